"""Everything a run can be told, as one record: the command line and the library fill the same one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..core.protocols import ImagePolicy
from ..core.secret import Secret
from ..core.types import BASE_VARIANT

PROMPT_FIELD = "prompt."


def perturbations(spec: str | None) -> tuple[str, ...]:
    """Return the variants of `jpeg:1-5,blur:1-3`, the untouched image first; none for None."""
    if not spec:
        return ()
    from ..data.degrade.perturb import parse_variants  # numpy, which most commands do not need

    return BASE_VARIANT, *parse_variants(spec)


PATHS = ("output_dir", "data_root", "prompt_pack")
MANY_PATHS = ("catalogs", "plugins")


class RunSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to measure, on what, how; None means the task's own value.

    Example:
        >>> settings = snellen.RunSettings(tasks=("my.jsonl",), model="blind/first", num_infers=3)
        >>> snellen.run(settings).state.done
        6
    """

    tasks: tuple[str, ...]
    model: str
    # where things are
    base_url: str | None = None
    more_urls: tuple[str, ...] = ()
    """Further servers of the same model: together with `base_url` they are asked as one pool."""
    api_key: Secret | None = None
    key_command: str | None = None
    """Prints the key or a token, and is asked again when the server no longer takes it."""
    headers: dict[str, Secret] = {}
    """Sent with every request and never stored: gateways and proxies ask for them."""
    query: dict[str, str] = {}
    """Behind the address of every request (`api-version=…`)."""
    strict_params: bool = False
    """Stop instead of sending otherwise what a server refuses (a limit by another name, no temperature)."""
    output_dir: Path | None = None
    data_root: Path | None = None
    """Where cards look for their files; None: `$SNELLEN_DATA`, or ./data."""
    catalogs: tuple[Path, ...] = ()
    plugins: tuple[Path, ...] = ()
    # what changes results
    seed: int = 0
    limit: int | None = None
    num_infers: int | None = None
    infer_method: str | None = None
    likelihood_reduction: str | None = None
    candidates: str | None = None
    calibration: str | None = None
    variants: tuple[str, ...] = ()
    shuffle_options: bool | None = None
    option_mark: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    sampling_seed: int | None = None
    reasoning: str | None = None
    """How much a served model may reason: off, low, medium, high, on, or tokens; None leaves it to the model."""
    constrain: str | None = None
    """Let a served model answer with nothing but an option's mark (`options`) or JSON (`json`): another protocol."""
    stream: bool | None = None
    extra_body: dict[str, Any] | None = None
    prompt_template: str | None = None
    prompt_pack: Path | None = None
    prompt: dict[str, Any] = {}
    """Fields of the prompt to replace (`in_context`, `prefix`, `style`, `shots` …)."""
    duplication: int | None = None
    random_instruct: bool = False
    columns: dict[str, str] = {}
    form: str | None = None
    """One form for all records of own data; None or `auto` decides for each."""
    preset: str | None = None
    """The row map of own data (`snellen.data.loaders.row_map`); None recognises it by the columns."""
    duplicates: str | None = None
    split: str | None = None
    data_config: str | None = None
    sheet: str | None = None
    """Which table of a folder or workbook with several is meant."""
    ids: tuple[str, ...] = ()
    """Ask only these samples."""
    sample: int | None = None
    """Ask so many drawn samples of each task."""
    sample_seed: int = 0
    stratify: str | None = None
    """A tag of which every value gets its share of `sample`."""
    subset: str | None = None
    """A card of catalog/subsets, or `column=value`."""
    shots_file: Path | None = None
    """Where worked examples are drawn from; None: from the task's own samples."""
    overrides: tuple[tuple[str, Any], ...] = ()
    image_policy: ImagePolicy | None = None
    strip_metadata: bool = False
    """Whether pictures leave without EXIF, texts and bytes after their end."""
    model_arguments: dict[str, Any] = {}
    # what does not
    max_workers: int | None = None
    max_retries: int = 5
    rate: float | None = None
    """Requests a second at most, evenly spaced."""
    timeout_s: float | None = None
    max_errors: str | None = None
    deadline_s: float | None = None
    """Seconds for the whole run; then it takes nothing new, drains, and scores what it has."""
    executor: str = "local"
    """Where models answer: `local` (this process), `processes` of this machine, or actors of a `ray` cluster."""
    replicas: int | None = None
    """Copies of the model, for `processes` and `ray`; None is one."""
    gpus_per_replica: float = 0.0
    replica_patience_s: float | None = None
    """Seconds that no replica's silence is shorter than before its trials are given to others; None is a minute."""
    ray_address: str | None = None
    """The cluster's head, `auto` for the one this machine is part of; None: $RAY_ADDRESS, or a Ray of this machine."""
    price: str | None = None
    """`IN,OUT` or `IN,OUT,CACHED`: what a million tokens cost, instead of what the model's card says."""
    max_cost: float | None = None
    """What this call may spend; before a request could pass it, nothing more is asked and everything is kept."""
    yes: bool = False
    """Start although the estimate is above `max_cost`."""
    batch: bool = False
    """Ask in batches of the provider, at their price: requests wait there, and the same call later collects them."""
    batch_leave: bool = False
    """Send the batches and leave them; the same call later collects."""
    batch_rest: str = "again"
    """What becomes of requests that a batch did not answer: `again` in another batch, or `live`."""
    batch_lines: int | None = None
    """Requests in one batch at most; None: as many as the provider takes."""
    batch_poll_s: float = 30.0
    """Seconds between two looks at a batch; they grow to five minutes."""
    prompt_cache: bool = False
    """Mark what requests share to be kept by the provider, where it keeps only what is marked (Anthropic)."""
    cache: bool = True
    allow_missing_images: bool = False
    allow_outside: bool = False
    """Whether pictures outside the data's folder may be sent."""
    same_model: bool = False
    """Continue a folder although another server answers now: the model is the same."""
    protocol: str | None = None
    """Which of a card's protocols; None: the card's own, which is `official` unless it says otherwise."""
    profile: str | None = None
    convention: str | None = None
    """What Cf and Cb of chains divide by: `conditional` or `over-n`."""
    until_ci: float | None = None
    """Half-width in points at which to stop asking; None asks everything."""
    detailed_keys: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    """Trackers that are told of the run: jsonl, tensorboard, mlflow, wandb."""
    command: str = ""

    def __post_init__(self) -> None:
        """Take paths as texts too: `output_dir="runs/x"`."""
        for name in PATHS:
            if isinstance(value := getattr(self, name), str):
                msgspec.structs.force_setattr(self, name, Path(value))
        for name in MANY_PATHS:
            given = getattr(self, name)
            paths = (given,) if isinstance(given, str | Path) else given
            msgspec.structs.force_setattr(self, name, tuple(map(Path, paths)))

    def task_overrides(self) -> list[tuple[str, Any]]:
        """Return the flags as `-p` overrides; explicit `-p` come last and win."""
        flags: Sequence[tuple[str, Any]] = (
            ("repeats", self.num_infers),
            ("infer", self.infer_method),
            ("infer_options.reduction", self.likelihood_reduction),
            ("infer_options.candidates", self.candidates),
            ("infer_options.calibration", self.calibration),
            ("dataset.rounds", "last" if self.infer_method == "last" else None),
            ("variants", list(self.variants) or None),
            ("shuffle_options", self.shuffle_options),
            ("params.max_tokens", self.max_tokens),
            ("params.temperature", self.temperature),
            ("params.top_p", self.top_p),
            ("params.seed", self.sampling_seed),
            ("params.timeout_s", self.timeout_s),
            ("params.stream", self.stream),
            ("params.extra_body", self.extra_body),
            ("dataset.columns", self.columns or None),
            ("form", self.form),
            ("dataset.preset", self.preset),
            ("dataset.duplicates", self.duplicates),
            ("dataset.split", self.split),
            ("dataset.config", self.data_config),
            ("dataset.sheet", self.sheet),
            ("group_by", list(self.detailed_keys) or None),
        )
        given = [(key, value) for key, value in flags if value is not None]
        return [*given, *((key, value) for key, value in self.overrides if not key.startswith(PROMPT_FIELD))]

    def prompt_overrides(self) -> list[tuple[str, Any]]:
        """Return the `-p prompt.field=value`: they change fields of the prompt a task has, and keep the others."""
        return [(key[len(PROMPT_FIELD) :], value) for key, value in self.overrides if key.startswith(PROMPT_FIELD)]
