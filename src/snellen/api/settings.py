"""The one table of settings: what a run can be told, each by name, type, flag, help, group, target and identity.

A field of the classes below is a row: its type and default stand in the class, all else in its `Setting`. The options
of commands, the groups of their help, the overrides of a task, the keys of a model file, the name of a run's folder,
the signatures of the library and what each command refuses are derived from here.
"""

# No `from __future__ import annotations`: every start reads the table, and as texts its rows take ten times as long.

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
)

import msgspec

from ..core.builtins import default_registry
from ..core.errors import UsageError, did_you_mean
from ..core.protocols import ImagePolicy
from ..core.secret import Secret
from ..core.types import BASE_VARIANT

P = ParamSpec("P")
Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)

GROUPS = (
    MODEL := "The model",
    ASKED := "What is asked",
    ROWS := "Your own data",
    SAMPLING := "Sampling",
    PROMPT := "The prompt",
    READING := "Inference and scoring",
    LOAD := "Time, load and money",
    PROCESSES := "More than one process",
    OUTPUT := "Output",
)
"""The headings of `--help`, in their order."""

COMMON = frozenset(
    {
        *("model", "base_url", "api_key_env", "config_file", "limit", "sample", "num_infers", "variants", "data_root"),
        *("columns", "form", "temperature", "max_tokens", "reasoning", "shuffle_options", "infer_method", "protocol"),
        *("max_workers", "deadline_s", "max_cost", "no_cache", "output_dir", "run_name", "log", "plugins", "overrides"),
    }
)
"""Rows that `--help` shows; `--help-all` shows every one."""

PROMPT_FIELD = "prompt."
NOTHING: tuple[Any, ...] = (None, (), {})
"""Values of a setting that was not told."""
FORMS = ("auto", "choice", "multiple", "yesno", "number", "open", "ocr", "kie", "caption", "parse")


class Setting(NamedTuple):
    """A row of the table. In the classes below it says what the name, the type and the default of a field do not."""

    group: str = ""
    help: str = ""
    flag: str | None = ""
    """The flag and other names of it; empty: `--` and the row's name; None: no flag of its own."""
    to: str = ""
    """The field of the task that it sets; of what only a command line has, the setting that it stands for."""
    identity: Literal["no", "yes", "when set", "folder"] = "no"
    """Whether another value is another run. `when set`: the same, of a row younger than the runs that go on without
    it, so every new row is that. `folder`: another folder, but the replies of both are compared as one run's."""
    file: str = ""
    """Its keys in a model file."""
    secret: bool = False
    """Whether the value must never be stored or shown."""
    least: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    many: bool | None = None
    """Whether the flag may be repeated; None: as the type says."""
    exists: bool = False
    """Whether the path must be that of a file."""
    rewrite: str = ""
    """The registered `rewrite` of tasks that it switches on."""
    value: Any = None
    """What a plain flag stands for, where that is not `true`."""
    name: str = ""
    kind: Any = None
    """The type of one value: bool, int, float, str, Path, Secret … It and all below are read from the class."""
    several: bool = False
    """Whether its value is a tuple or a dict of such."""
    may_be_none: bool = False
    default: Any = None

    @property
    def flags(self) -> tuple[str, ...]:
        """Return its flags, the one to show first; none where it has no flag of its own."""
        if self.flag is None:
            return ()
        return tuple(self.flag.split()) or (f"--{self.name.replace('_', '-')}",)

    def settle(self, value: Any) -> Any:
        """Return a value as its type has it: of one value a tuple, of texts paths and secrets."""
        if isinstance(value, dict):
            return {name: self._one(one) for name, one in value.items()} if self.kind is Secret else value
        if self.several and not isinstance(value, tuple | None):
            value = (value,) if isinstance(value, str | Path) else tuple(value)
        if self.kind in (Path, Secret):
            return tuple(map(self._one, value)) if isinstance(value, tuple) else self._one(value)
        return value

    def _one(self, value: Any) -> Any:
        return self.kind(value) if isinstance(value, str) else value

    def check(self, value: Any) -> None:
        """Refuse a number out of bounds and a word that is none of the choices."""
        word = ""
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.least is not None and value < self.least:
                word = f"at least {self.least:g}"
            elif self.above is not None and value <= self.above:
                word = f"above {self.above:g}"
            elif self.below is not None and value >= self.below:
                word = f"below {self.below:g}"
        elif isinstance(value, str) and self.choices and value not in self.choices:
            word = f"one of {', '.join(self.choices)}"
        if word:
            raise UsageError(f"{self.name} {value!r}: must be {word}")


# fmt: off
# A row is laid out by hand: its type and group, its help, the rest.
class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model and how it is reached: what `snellen.load_model` honours."""

    base_url: Annotated[str | None, Setting(MODEL,
        "Where the server answers; several are asked as one pool.",
        "--base-url --url", file="base_url url", many=True)] = None
    more_urls: Annotated[tuple[str, ...], Setting(MODEL, "Further servers of the same pool.", None)] = ()
    api_key: Annotated[Secret | None, Setting(MODEL,
        "The key itself (visible in process lists: prefer --api-key-env).", file="api_key", secret=True)] = None
    key_command: Annotated[str | None, Setting(MODEL,
        "Prints the key or a token; run again when it expires.", "--api-key-command", metavar="COMMAND")] = None
    headers: Annotated[dict[str, Secret], Setting(MODEL,
        "Send this header too; VALUE may be env:NAME. Never stored.",
        "--header", metavar="NAME=VALUE", secret=True)] = {}
    query: Annotated[dict[str, str], Setting(MODEL,
        "Add this query parameter to every URL: api-version=2025-01-01.", metavar="NAME=VALUE")] = {}
    strict_params: Annotated[bool, Setting(MODEL,
        "Fail where a server refuses a parameter, instead of dropping or renaming it.")] = False
    model_arguments: Annotated[dict[str, Any], Setting(MODEL,
        "Provider-specific: dtype=…, engine.enforce_eager=true",
        "--model-arg", identity="yes", metavar="KEY=VALUE")] = {}
    plugins: Annotated[tuple[Path, ...], Setting(READING, "Python file with register(registry).", "--plugin")] = ()
    catalogs: Annotated[tuple[Path, ...], Setting(ASKED, "Folder with further cards.", "--catalog")] = ()
    image_policy: Annotated[ImagePolicy | None, Setting(PROMPT, flag=None, identity="yes")] = None
    strip_metadata: Annotated[bool, Setting(ROWS,
        "Send pictures without EXIF, texts and bytes after their end.", identity="when set")] = False
    reasoning: Annotated[str | None, Setting(SAMPLING,
        "How much a served model may reason: off, low, medium, high, on, or so many tokens.", identity="yes")] = None
    constrain: Annotated[str | None, Setting(SAMPLING,
        "Constrain decoding to the option letters, or to JSON (starts a new run).",
        identity="when set", choices=("options", "json"))] = None
    infer_method: Annotated[str | None, Setting(READING,
        "generation (default), likelihood, perplexity (a template a label), or a plug-in's.",
        to="infer", identity="yes")] = None
    prompt_cache: Annotated[bool, Setting(LOAD,
        "Mark pages and instructions to be kept by the provider (Anthropic; others do it alone).")] = False
    timeout_s: Annotated[float | None, Setting(LOAD,
        "Seconds for one attempt. [default: 600]", "--timeout", to="params.timeout_s", file="timeout", above=0)] = None

    def __post_init__(self) -> None:
        """Take texts for paths and keys and one value for a tuple, and refuse what a row does not allow."""
        for name, row in table(type(self)).items():
            value = row.settle(getattr(self, name))
            row.check(value)
            msgspec.structs.force_setattr(self, name, value)


class AskSettings(ModelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model is asked, and within which limits: what `snellen.exam` takes beside what is its own."""

    temperature: Annotated[float | None, Setting(SAMPLING,
        "Sent as given, 0 too; not sent when unset.",
        to="params.temperature", identity="yes", file="temperature")] = None
    top_p: Annotated[float | None, Setting(SAMPLING,
        "Sent as given; not sent when unset.", to="params.top_p", identity="yes", file="top_p")] = None
    max_tokens: Annotated[int | None, Setting(SAMPLING,
        "Tokens of a reply at most.", to="params.max_tokens", identity="yes", file="max_tokens", least=1)] = None
    extra_body: Annotated[dict[str, Any] | None, Setting(SAMPLING,
        flag=None, to="params.extra_body", identity="yes", file="extra_body")] = None
    seed: Annotated[int, Setting(SAMPLING, "Seed of everything Snellen draws itself.", identity="yes")] = 0
    max_workers: Annotated[int | None, Setting(LOAD,
        "Requests in flight at most. [default: 32]",
        "--max-workers --num-workers", file="num_workers", least=1)] = None
    max_retries: Annotated[int, Setting(LOAD, "Further attempts at a request that failed.", least=0)] = 5
    rate: Annotated[float | None, Setting(LOAD,
        "Requests a second at most, evenly spaced; retries count.", above=0)] = None
    max_errors: Annotated[str | None, Setting(LOAD, "Stop after so many failed trials: 20, or 5%.")] = None
    deadline_s: Annotated[float | None, Setting(LOAD,
        "Seconds for the whole run: then it stops cleanly, keeps everything and exits 3; run it again to continue.",
        "--deadline", above=0)] = None
    price: Annotated[str | None, Setting(LOAD,
        "Price of a million input and output tokens.  [default: the model's card, see `snellen models show`]",
        metavar="IN,OUT[,CACHED]")] = None
    max_cost: Annotated[float | None, Setting(LOAD,
        "What this command may spend: then it stops, keeps everything and exits 3; run it again to continue.",
        above=0)] = None
    yes: Annotated[bool, Setting(LOAD,
        "Fetch a benchmark's data that is not here; start although the estimate is above --max-cost.")] = False
    cache: Annotated[bool, Setting(LOAD, flag=None, file="use_cache")] = True
    cache_check: Annotated[int, Setting(LOAD,
        "Ask so many prompts of a server again before its stored replies are believed; 0: believe them.", least=0)] = 3
    fresh: Annotated[bool, Setting(LOAD,
        "Ask everything again: what the folder holds is set aside in it. Without it the same command continues.",
        )] = False
    batch: Annotated[bool, Setting(LOAD,
        "Ask in the provider's batches, at half the price, within a day. Ctrl-C leaves them; run it again to collect.",
        )] = False
    batch_leave: Annotated[bool, Setting(LOAD,
        "With --batch: send and leave; the same command later collects.")] = False
    batch_rest: Annotated[str, Setting(LOAD,
        "What a batch did not answer: in another batch, or live.", choices=("again", "live"))] = "again"
    batch_lines: Annotated[int | None, Setting(LOAD,
        "With --batch: requests in one batch at most. [default: the provider's limit]", least=1)] = None
    batch_poll_s: Annotated[float, Setting(LOAD,
        "Seconds between looks, growing to 300.", "--batch-poll", above=0)] = 30.0
    executor: Annotated[str, Setting(PROCESSES,
        "Who answers: this process, processes of this machine, or actors of a Ray cluster.",
        choices=("local", "processes", "ray"))] = "local"
    replicas: Annotated[int | None, Setting(PROCESSES,
        "Copies of the model, for --executor processes and ray. [default: 1]", least=1)] = None
    gpus_per_replica: Annotated[float, Setting(PROCESSES,
        "GPUs that each copy has to itself; for ray also a share.", least=0)] = 0.0
    replica_patience_s: Annotated[float | None, Setting(PROCESSES,
        "How long a copy may be silent at least, beside ten times the slowest answer.  [default: 60]",
        "--replica-patience", above=0, metavar="SECONDS")] = None
    ray_address: Annotated[str | None, Setting(PROCESSES,
        "The cluster's head: auto, HOST:PORT. [default: $RAY_ADDRESS, or this machine]")] = None
    same_model: Annotated[bool, Setting(MODEL,
        "Continue although another server answers, or another name in replies: it is the same model.")] = False
    output_dir: Annotated[Path | None, Setting(OUTPUT,
        "Run folder; the same command again continues it.", "--output-dir -o")] = None
    keep_pictures: Annotated[str, Setting(OUTPUT,
        "Keep pictures as they were sent beside run.db: small (256 KB each, 64 MB a run), all, off.",
        choices=("small", "all", "off"))] = "small"
    log: Annotated[tuple[str, ...], Setting(OUTPUT,
        "Tell a tracker, live: jsonl, otel, tensorboard, mlflow or wandb (extras).", metavar="TRACKER")] = ()
    command: Annotated[str, Setting(OUTPUT, "The command as it was typed, for the run's header.", None)] = ""


class TaskSettings(AskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked, and how replies are read: all that `snellen.run` takes beside tasks and model."""

    limit: Annotated[int | None, Setting(ASKED,
        "Use the first N samples of each task.", identity="yes", least=1)] = None
    sample: Annotated[int | None, Setting(ASKED,
        "Ask a random sample of N questions per task.", "--sample --dataset-subsample", identity="yes", least=1)] = None
    sample_seed: Annotated[int, Setting(ASKED, "Seed of that draw.", identity="yes")] = 0
    stratify: Annotated[str | None, Setting(ASKED,
        "Draw from every value of a tag its share.", identity="yes", metavar="TAG")] = None
    ids: Annotated[tuple[str, ...], Setting(ASKED, "Ask only these samples: a,b,c.", identity="yes", many=False)] = ()
    num_infers: Annotated[int | None, Setting(ASKED,
        "Inferences per question.", to="repeats", identity="yes", file="num_infers", least=1)] = None
    duplication: Annotated[int | None, Setting(ASKED,
        "Ask every sample N times (variants and repeats).", "--dataset-duplication", identity="yes", least=1)] = None
    variants: Annotated[tuple[str, ...], Setting(ASKED,
        "A variant to ask, e.g. wording=1 or order=2; may be repeated.",
        "--variant", to="variants", identity="yes")] = ()
    arms: Annotated[tuple[str, ...], Setting(ASKED,
        "Ask each question with and without its picture: picture,none,blank,other,shuffled-options; videos also "
        "one-frame,frames-shuffled,no-video; documents without-page.",
        identity="when set", rewrite="arms", many=False, metavar="ARM,ARM…")] = ()
    tools: Annotated[tuple[str, ...], Setting(ASKED,
        "Offer tools by which a model looks again at its pictures: zoom,turn,enhance,measure,frame,page.",
        identity="when set", rewrite="look", many=False, metavar="TOOL,TOOL…")] = ()
    tool_dialect: Annotated[str | None, Setting(ASKED,
        "With --tools, how calls are written.  [default: native where the server's API has calls, else text]",
        identity="when set", rewrite="look",
        choices=("auto", "native", "text", "qwen3-vl", "deepeyes", "mini-o3", "pixel-reasoner"))] = None
    tool_frame: Annotated[str | None, Setting(ASKED,
        "With --tools, what coordinates count: card (as the model's card says), the folder of an exam, or 0-1, 0-1000, "
        "pixels, sent-pixels … [default: card, else 0-1000]",
        identity="when set", rewrite="look", metavar="card|EXAM|FRAME")] = None
    max_turns: Annotated[int | None, Setting(ASKED,
        "With --tools: requests of a trial at most; the last allows no calls. [default: 6]",
        identity="when set", rewrite="look", least=2)] = None
    max_looks: Annotated[int | None, Setting(ASKED,
        "With --tools: calls that are done in a trial at most. [default: 12]",
        identity="when set", rewrite="look", least=1)] = None
    at_limit: Annotated[str | None, Setting(ASKED,
        "With --tools, at a limit: force an answer without calls, or stop unscored. [default: force]",
        identity="when set", rewrite="look", choices=("force", "stop"))] = None
    carry: Annotated[str | None, Setting(ASKED,
        "With --tools, where a result's picture stands: in the tool's message or in the user's next. [default: auto]",
        identity="when set", rewrite="look", choices=("auto", "user", "tool"))] = None
    tool_arms: Annotated[tuple[str, ...], Setting(ASKED,
        "With --tools, ask each question also without them or with other crops: "
        "base,plain,none,grey,elsewhere,whole,gold.",
        identity="when set", rewrite="look", many=False, metavar="ARM,ARM…")] = ()
    until_ci: Annotated[float | None, Setting(ASKED,
        "Stop when the interval is ± this many points.", above=0, below=50)] = None
    bank: Annotated[Path | None, Setting(ASKED,
        "Estimate the whole benchmark with a bank of other models' results: with --until-ci or --budget.",
        exists=True)] = None
    budget: Annotated[int | None, Setting(ASKED, "With --bank: ask so many questions.", least=1)] = None
    bank_without: Annotated[tuple[str, ...], Setting(ASKED,
        "A model of the bank to leave out, beside those that are this one.", metavar="NAME")] = ()
    subset: Annotated[str | None, Setting(ASKED,
        "A named subset (core, debug, a card of yours), one beside a run (RUN/needs-picture), or COLUMN=VALUE.",
        identity="yes", metavar="NAME")] = None
    errata: Annotated[Path | None, Setting(ROWS,
        "A ledger of corrected gold answers.", identity="when set", exists=True)] = None
    gold: Annotated[str | None, Setting(ROWS,
        "Of that ledger: official, corrected, or as it stood at a date (2026-07).  [default: corrected]",
        identity="when set", metavar="VERSION")] = None
    data_root: Annotated[Path | None, Setting(ASKED,
        "Folder that holds the datasets. [default: $SNELLEN_DATA or ./data]")] = None
    split: Annotated[str | None, Setting(ROWS,
        "Of a folder with several splits: test, validation …", to="dataset.split", identity="yes")] = None
    data_config: Annotated[str | None, Setting(ROWS,
        "Of a folder with several configs of a hub's dataset.",
        to="dataset.config", identity="yes", metavar="NAME")] = None
    sheet: Annotated[str | None, Setting(ROWS,
        "Of a workbook with several sheets.", to="dataset.sheet", identity="yes")] = None
    columns: Annotated[dict[str, str], Setting(ROWS,
        "Which column of your file is which field.",
        "--map", to="dataset.columns", identity="yes", metavar="FIELD=COLUMN")] = {}
    form: Annotated[str | None, Setting(ROWS,
        "The form of all records of your file. [default: each its own]",
        to="form", identity="yes", choices=FORMS)] = None
    preset: Annotated[str | None, Setting(ROWS,
        "How your file is laid out: vlmevalkit, flageval, hub …  [default: recognised by its columns]",
        to="dataset.preset", identity="yes")] = None
    duplicates: Annotated[str | None, Setting(ROWS,
        "What to do with rows that repeat an option.",
        to="dataset.duplicates", identity="yes", choices=("error", "keep", "drop"))] = None
    allow_missing_images: Annotated[bool, Setting(ROWS,
        "Count samples without their image as failed instead of refusing.")] = False
    allow_outside: Annotated[bool, Setting(ROWS, "Send pictures that lie outside the data's folder, too.")] = False
    sampling_seed: Annotated[int | None, Setting(SAMPLING,
        "Seed sent to the server (plus the index of the inference).",
        to="params.seed", identity="yes", file="seed")] = None
    stream: Annotated[bool | None, Setting(SAMPLING,
        "Stream replies: gives time to first token.", to="params.stream", identity="folder", file="stream")] = None
    option_mark: Annotated[str | None, Setting(PROMPT,
        "How options are labelled.", identity="yes", choices=("upper", "lower", "number", "random"))] = None
    shuffle_options: Annotated[bool | None, Setting(PROMPT,
        "Draw the order of options for each trial.", to="shuffle_options", identity="yes")] = None
    prompt: Annotated[dict[str, Any], Setting(PROMPT, flag=None, identity="yes")] = {}
    """Fields of the prompt to replace (`in_context`, `prefix`, `style`, `shots` …)."""
    prompt_template: Annotated[str | None, Setting(PROMPT, flag=None, identity="yes", file="prompt_template")] = None
    prompt_pack: Annotated[Path | None, Setting(PROMPT,
        "File with other wordings.", identity="yes", exists=True)] = None
    shots_file: Annotated[Path | None, Setting(PROMPT,
        "Draw the examples from this file, not from the rows that are asked.", identity="yes")] = None
    random_instruct: Annotated[bool, Setting(PROMPT,
        "Another wording of the instruction each time.", identity="yes")] = False
    overrides: Annotated[tuple[tuple[str, Any], ...], Setting(PROMPT,
        "Override any field of the task.", "-p", identity="yes", metavar="KEY=VALUE")] = ()
    likelihood_reduction: Annotated[str | None, Setting(READING,
        "sum (default), mean, per-byte, none or prompt-mean.", to="infer_options.reduction", identity="yes")] = None
    candidates: Annotated[str | None, Setting(READING,
        "Likelihood of the option text (default) or of the letters: text, letters.",
        to="infer_options.candidates", identity="yes")] = None
    calibration: Annotated[str | None, Setting(READING,
        "Likelihood less its prior: none (default), unconditional, content-free.",
        to="infer_options.calibration", identity="yes")] = None
    protocol: Annotated[str | None, Setting(READING,
        "Ask, read and count as this protocol of the card: official, lmms-eval …", identity="folder")] = None
    coordinates: Annotated[str | None, Setting(READING,
        "Ask for points and boxes in this frame and read them in it: card (as the model's card says), the folder of an "
        "exam, or 0-1000, 0-1, sent-pixels … [default: as the protocol asks]",
        identity="when set", metavar="card|EXAM|FRAME")] = None
    profile: Annotated[str | None, Setting(READING,
        "Read answers as another tool does: reform, vqa-scripts, flageval …")] = None
    convention: Annotated[str | None, Setting(READING,
        "Cf and Cb of chains: conditional or over-n. [default: conditional]")] = None
    shard: Annotated[str | None, Setting(PROCESSES,
        "Ask one part of a run, 0/64 to 63/64; `env`: as Slurm's, Kubernetes' or MPI's variables say.",
        metavar="3/64|env|env/64")] = None
    steal: Annotated[bool, Setting(PROCESSES,
        "With --shard: a part that has done its own takes units of up to 64 trials from the others.")] = False
    extractor: Annotated[str | None, Setting(READING,
        "provider/name: finds the answer in what the protocol's rule leaves unread, where its own tool asks a model.",
        metavar="MODEL")] = None
    extractor_settings: Annotated[dict[str, Any], Setting(READING,
        "How the extractor is asked, as a run is: base_url=…, rate=2, max_cost=5, batch=true.",
        "--extractor-arg", metavar="SETTING=VALUE", secret=True)] = {}
    detailed_keys: Annotated[tuple[str, ...], Setting(READING,
        "Tags to group by; may be repeated. [default: all]", to="group_by")] = ()


class RunSettings(TaskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to measure, on what, how; None means the task's own value.

    Example:
        >>> settings = snellen.RunSettings(tasks=("my.jsonl",), model="blind/first", num_infers=3)
        >>> snellen.run(settings).state.done
        6
    """

    tasks: Annotated[tuple[str, ...], Setting(ASKED, flag=None, identity="yes")]
    model: Annotated[str, Setting(MODEL,
        "provider/name: openai/NAME, anthropic/NAME, gemini/NAME, reader, blind/longest, replay/FILE …",
        identity="yes", file="model_name")]

    def task_overrides(self) -> list[tuple[str, Any]]:
        """Return the settings of the task as `-p` overrides; explicit `-p` come last and win."""
        told = [(row.to, getattr(self, name)) for name, row in table(RunSettings).items() if row.to]
        given = [(to, list(value) if isinstance(value, tuple) else value) for to, value in told if value not in NOTHING]
        if self.infer_method == "last":
            given.append(("dataset.rounds", "last"))
        return [*given, *((key, value) for key, value in self.overrides if not key.startswith(PROMPT_FIELD))]

    def prompt_overrides(self) -> list[tuple[str, Any]]:
        """Return the `-p prompt.field=value`: they change fields of the prompt a task has, and keep the others."""
        return [(key[len(PROMPT_FIELD) :], value) for key, value in self.overrides if key.startswith(PROMPT_FIELD)]

    def named(self) -> dict[str, Any]:
        """Return what a run's folder is named by: every row of the identity; a younger one where it is set."""
        named = {}
        for name, row in table(RunSettings).items():
            value = getattr(self, name)
            if row.identity in ("yes", "folder") or (row.identity == "when set" and value):
                named[name] = str(value or "") if row.kind is Path else value
        return named


class Shorthands:
    """What only a command line or a model file has: each row stands for a setting, or for a part of one."""

    config_file: Annotated[Path | None, Setting(MODEL,
        "Model file (JSON, TOML) or a ready one: qwen3-vl, internvl-3.5, kimi-vl, glm-4.5v …",
        "--config -c", to="model")]
    api_key_env: Annotated[str | None, Setting(MODEL, "Environment variable that holds the key.", to="api_key")]
    api_key_file: Annotated[Path | None, Setting(MODEL, "File that holds the key.", to="api_key", exists=True)]
    half: Annotated[bool, Setting(MODEL,
        "Local models in half precision (the same as --model-arg half=true).", to="model_arguments.half")]
    batch_size: Annotated[int | None, Setting(MODEL,
        "Local models: requests a batch and device. [default: as memory allows]",
        to="model_arguments.batch_size", least=1)]
    no_cache: Annotated[bool, Setting(LOAD, "Neither read nor write the response cache.", to="cache")]
    use_cache: Annotated[bool, Setting(MODEL,
        "Answer from the cache although the model file says otherwise. [default without one]", to="cache")]
    try_run: Annotated[bool, Setting(ASKED, "Use the first 8 samples of each task.", to="limit")]
    ids_file: Annotated[Path | None, Setting(ASKED,
        "Ask only the samples named in this file, one a line.", to="ids", exists=True)]
    perturb: Annotated[str | None, Setting(ASKED, "Image degradations as variants: jpeg:1-5,blur:1-3.", to="variants")]
    core_eval: Annotated[bool, Setting(ASKED, "Short for --subset core.", to="subset")]
    dataset_debug: Annotated[bool, Setting(ASKED, "Short for --subset debug.", to="subset")]
    presence_penalty: Annotated[float | None, Setting(SAMPLING,
        "Sent as given; not sent when unset.", to="extra_body.presence_penalty", file="presence_penalty")]
    system_prompt: Annotated[str | None, Setting(PROMPT, flag=None, to="prompt.system", file="system_prompt")]
    shots: Annotated[str | None, Setting(PROMPT,
        "Worked examples: 2, random:2, similar:3, bm25:3, fixed:id1,id2.", to="prompt.shots", metavar="[RETRIEVER:]N")]
    post_prompt: Annotated[str | None, Setting(PROMPT,
        "What stands after the question and its options, instead of the instruction.", to="prompt.instructions")]
    in_context_sample: Annotated[bool, Setting(PROMPT,
        "Show the prompt's fixed example first.", to="prompt.in_context")]
    response_prefix: Annotated[str | None, Setting(PROMPT, "How the answer is made to begin.", to="prompt.prefix")]
    answer_space_instruct: Annotated[bool, Setting(PROMPT,
        "Name the possible answers when options are hidden.",
        to="prompt.answer_space", value="Possible answers: {answers}.")]
    yesno_instruct: Annotated[bool, Setting(PROMPT,
        "Ask for yes or no where these are the options.", to="prompt.yesno", value="Answer yes or no.")]
    style: Annotated[str | None, Setting(PROMPT,
        "Prompt as one string: one, two, llama_2, otter, llama_adapter2, visualglm, question_answer …, or meta:FILE.",
        to="prompt.style")]
    options_in_history: Annotated[bool | None, Setting(PROMPT,
        "Show options in earlier rounds of a dialogue.", to="prompt.options_in_history")]
    capitalize: Annotated[bool, Setting(PROMPT, "Begin questions and options with a capital letter.", to="overrides")]
    online_multi_round: Annotated[bool, Setting(PROMPT,
        "Dialogues with the model's own answers (--infer-method every).", to="infer_method")]
    image_max_side: Annotated[int | None, Setting(PROMPT,
        "Shrink images whose longer side is larger (px).", to="image_policy.max_side", file="max_long_side", least=16)]
    image_min_side: Annotated[int | None, Setting(PROMPT,
        "Give smaller images a white margin up to this side (px).",
        to="image_policy.min_side", file="min_short_side", least=1)]
    run_name: Annotated[str | None, Setting(OUTPUT, "Run folder runs/NAME.", "--name", to="output_dir")]
    eval_stability: Annotated[bool, Setting(READING,
        "Accepted; instability is reported whenever there are repeats or variants.", to="num_infers")]
# fmt: on


@cache
def table(record: type) -> Mapping[str, Setting]:
    """Return the rows of a record by name, those of its bases first; a field without a `Setting` is none."""
    defaults = {field.name: field.default for field in _fields(record)}
    hints = {name: hint for base in reversed(record.__mro__) for name, hint in inspect.get_annotations(base).items()}
    rows = {}
    for name, hint in hints.items():
        if get_origin(hint) is not Annotated:
            continue
        whole, setting = get_args(hint)
        (kind, *none) = get_args(whole) if isinstance(whole, UnionType) else (whole,)
        several = get_origin(kind) in (tuple, dict)
        kind = get_args(kind)[-1 if get_origin(kind) is dict else 0] if several else kind
        rows[name] = setting._replace(
            name=name, kind=kind, several=several, may_be_none=bool(none), default=defaults.get(name)
        )
    return rows


def _fields(record: type) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(record) if issubclass(record, msgspec.Struct) else ()


def rows_for(rewrite: str) -> tuple[str, ...]:
    """Return the names of the rows that switch a rewrite of tasks on."""
    return tuple(name for name, row in table(RunSettings).items() if row.rewrite == rewrite)


def rewrites_of(settings: RunSettings) -> list[str]:
    """Return the rewrites of tasks that some settings switch on, by name."""
    rows = table(RunSettings).items()
    return list(dict.fromkeys(row.rewrite for name, row in rows if row.rewrite and getattr(settings, name)))


def perturbations(spec: str | None) -> tuple[str, ...]:
    """Return the variants of `jpeg:1-5,blur:1-3`, the untouched image first; none for None."""
    if not spec:
        return ()
    return BASE_VARIANT, *default_registry().get("edit", "perturb").parse_variants(spec)


BATCHES = ("batch", "batch_leave", "batch_rest", "batch_lines", "batch_poll_s")
REPLICAS = ("executor", "replicas", "gpus_per_replica", "replica_patience_s", "ray_address")
ONE_MACHINE = "it measures from one machine, whose clock all times are; --processes makes more load"
LOADS = "--concurrency and --rate of the load say how it is asked"
NOT_BY: Mapping[str, tuple[type, Mapping[str, str]]] = {
    "run": (RunSettings, {}),
    "load_model": (ModelSettings, {}),
    "exam": (
        AskSettings,
        dict.fromkeys(("image_policy", "constrain", "infer_method"), "an exam sends pictures as it draws them")
        | dict.fromkeys(BATCHES, "an exam chooses its next round by the replies to the last")
        | dict.fromkeys(("yes", "log"), ""),
    ),
    "judge": (
        AskSettings,
        dict.fromkeys(("temperature", "top_p", "max_tokens", "extra_body", "seed"), "the judge's card says that")
        | dict.fromkeys(("infer_method", "plugins", "output_dir", "yes", "log"), ""),
    ),
    "perf": (
        RunSettings,
        dict.fromkeys(REPLICAS, ONE_MACHINE)
        | {"shard": ONE_MACHINE, "steal": ONE_MACHINE, "constrain": "replies to a load are not held to it"}
        | dict.fromkeys(("max_workers", "max_retries", "rate", "max_errors", "deadline_s", *BATCHES), LOADS)
        | dict.fromkeys(("until_ci", "bank", "budget", "bank_without"), LOADS)
        | dict.fromkeys(("max_cost", "yes", "cache", "cache_check", "fresh", "same_model", "keep_pictures", "log"), "")
        | dict.fromkeys(rows_for("look"), "a load is made of single requests; `snellen run` asks with tools")
        | dict.fromkeys(("extractor", "extractor_settings"), "`snellen score RUN --extractor` reads its store"),
    ),
    "mc": (
        RunSettings,
        dict.fromkeys(("tasks", "output_dir", "variants", "limit"), "its own options say that")
        | dict.fromkeys(("shard", "steal"), "its files are written by one process"),
    ),
}
"""Command -> the record that it takes, and which rows of it it refuses, and why. `mc` is `niah` too."""


@cache
def rows_of(command: str) -> Mapping[str, Setting]:
    """Return the rows that a command honours in the order of the table, each followed by what is short for it."""
    record, others = NOT_BY[command]
    rows: dict[str, Setting] = {}
    for name, row in sorted(table(RunSettings).items(), key=lambda item: item[0] != "model"):
        if name not in others and (name in table(record) or name == "model"):
            rows[name] = row
            rows |= {short: line for short, line in table(Shorthands).items() if line.to.partition(".")[0] == name}
    return rows


def refuse_others(settings: RunSettings, command: str) -> None:
    """Refuse, by name, a setting that a command was told and does not honour."""
    honoured = rows_of(command)
    for name, row in table(RunSettings).items():
        value = getattr(settings, name)
        if name not in honoured and value not in NOTHING and value != row.default:
            raise refusal(name, command)


def refusal(name: str, command: str, shown: str = "", place: str = "") -> UsageError:
    """Return what says that a command does not honour a setting; `shown` is its flag, `place` where it was said."""
    row = table(Shorthands).get(name)
    why = NOT_BY[command][1].get(row.to.partition(".")[0] if row else name) or "it means nothing there"
    return UsageError(f"{shown or name} is not for {place or f'`snellen {command}`'}: {why}; leave it out")


def make_record(record: Callable[..., Made], function: str, given: Mapping[str, Any]) -> Made:
    """Return a record of settings given as keywords; one that it has not is refused by name."""
    known = inspect.signature(record).parameters
    for name in given:
        if name not in known and name in table(RunSettings):
            raise refusal(name, function)
        if name not in known:
            raise UsageError(f"snellen.{function}: no setting {name!r}{did_you_mean(name, known)}")
    return record(**given)


class TakesTasks(Protocol[P, Made_co]):
    """A function of tasks and a model, or of one record of settings."""

    def __call__(
        self, tasks: str | tuple[str, ...] | RunSettings, model: str = "", *_: P.args, **settings: P.kwargs
    ) -> Made_co:
        """Call it."""
        ...


def taking(record: Callable[P, Any]) -> Callable[[Callable[..., Made]], Callable[Concatenate[str, P], Made]]:
    """Give a function with `**settings` the keywords of a record: for completion, `help()` and checkers of types."""
    return partial(_with_keywords, record)


def taking_tasks(record: Callable[P, Any]) -> Callable[[Callable[..., Made]], TakesTasks[P, Made]]:
    """Do the same for a function of tasks and a model."""
    return partial(_with_keywords, record)


def _with_keywords(record: Any, function: Any) -> Any:
    own = inspect.signature(function)
    first = [parameter for parameter in own.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    more = [
        parameter.replace(annotation=getattr(parameter.annotation, "__origin__", parameter.annotation))  # not its row
        for parameter in inspect.signature(record).parameters.values()
    ]
    function.__signature__ = own.replace(parameters=[*first, *more])
    return function
