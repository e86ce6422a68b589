"""A model and what changes its replies to the header of run.db: the one place where a header is made."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ..core.ids import content_hash
from ..core.loaded_code import hash_file, hashes_of
from ..core.message_parts import holds_marker
from ..core.registry import Registry
from ..core.tasks import PlannedCounts, Prompt, ProtocolReading, RunHeader, Task
from ..data.dataset import Survey
from ..data.images.edits import calibrated_variant
from ..prompt.build import Prompter, PrompterByForm
from .settings import RunSettings
from .settings import table as settings_of

NOT_IN_IDENTITY = (
    *("scorers", "aggregates", "title", "notes", "licence", "dimension"),
    *("protocol", "fallback", "figures", "headline", "score_options"),
)
"""Fields of a task that no setting sets, and that change how replies are read: scoring again may differ."""
VERSIONED = ("snellen", "numpy", "pillow", "msgspec", "aiohttp")


class Identified(Protocol):
    """Whoever answered: a model, or a file of another harness's replies."""

    @property
    def name(self) -> str:
        """Return what reports call it."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """Return what makes its replies its own."""
        ...


def make_header(
    model: Identified,
    config: Mapping[str, Any],
    *,
    versions: Mapping[str, str],
    command: str = "",
    tasks: Sequence[Task] = (),
    planned: Mapping[str, int] | None = None,
    counted: Mapping[str, PlannedCounts] | None = None,
    protocols: Mapping[str, dict[str, ProtocolReading]] | None = None,
) -> RunHeader:
    """Return the header of a run; its id is the hash of `config` and of the model, wherever that is served."""
    identity = {key: value for key, value in model.identity().items() if key != "base_url"}
    if code := hashes_of(model):  # a provider of a plug-in: another file is another model
        identity["code"] = code
    whole = msgspec.json.encode({"model": identity, **config})
    read_back = msgspec.json.decode(whole)  # as it will be read from the file, so that equal is equal
    return RunHeader(
        id=content_hash(read_back),
        config=read_back,
        versions=dict(versions),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        model=model.name,
        tasks=list(tasks),
        planned=dict(planned or {}),
        counted=dict(counted or {}),
        protocols=None if protocols is None else dict(protocols),
    )


@cache
def installed_versions() -> Mapping[str, str]:
    """Return what a run is made with; packages do not change while a process runs."""
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for package in VERSIONED:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def identity_of(
    task: Task, prompter: Prompter | PrompterByForm, content: Survey, registry: Registry | None = None
) -> dict[str, Any]:
    """Return what of a task changes its replies: its part of the run's id; of plug-ins, their files."""
    table = msgspec.to_builtins(task)
    for field in NOT_IN_IDENTITY:
        table.pop(field)
    if not table["twins"]:  # a field that 0.2 had not: its runs keep their names
        del table["twins"]
    for field in ("path", "image_root", "image_list", "documents_in_flight", "sources"):
        table["dataset"].pop(field, None)  # the data's content counts, not where it lies
    table["variants"] = [calibrated_variant(variant) for variant in task.variants]
    for row in settings_of(RunSettings).values():
        if row.to and row.identity in ("no", "folder"):
            part, _, field = row.to.rpartition(".")
            (table[part] if part else table).pop(field, None)
    prompt = prompter.prompts if isinstance(prompter, PrompterByForm) else prompter.prompt
    identity = {**table, "prompt": msgspec.to_builtins(prompt), "data": content.fingerprint}
    if take_placing(identity["prompt"], marked=content.markers.rows > 0, pictured=content.images > 0):
        identity["placed_pictures"] = True
    code = _code_of(task, registry) if registry is not None else {}
    if styles := _style_files(prompts_of(prompter)):
        code["style"] = styles
    if code:
        identity["code"] = code
    showing = [msgspec.structs.asdict(prompt.video) for prompt in prompts_of(prompter)]
    if content.videos:
        identity["video"] = showing
    return identity


def _code_of(task: Task, registry: Registry) -> dict[str, Any]:
    """Return the files of the plug-ins that make a task's samples and calls; a built-in has none."""
    things = {"inferencer": task.infer, "loader": task.dataset["loader"]}
    files = {kind: hashes_of(registry.get(kind, name)) for kind, name in things.items() if name}
    return {kind: hashes for kind, hashes in files.items() if hashes}


def _style_files(prompts: Sequence[Prompt]) -> dict[str, str]:
    """Return the files of dialogue styles that are no card's, with a hash each: their text is part of every prompt."""
    styles = {prompt.style for prompt in prompts if prompt.style.startswith("meta:") or prompt.style.endswith(".toml")}
    paths = {Path(style.removeprefix("meta:")) for style in styles}
    return {path.name: hash_file(path) for path in sorted(paths) if path.is_file()}


def prompts_of(prompter: Prompter | PrompterByForm) -> list[Prompt]:
    """Return the prompts of a task: one, or one a form."""
    return list(prompter.prompts.values()) if isinstance(prompter, PrompterByForm) else [prompter.prompt]


def take_placing(prompt: dict[str, Any], *, marked: bool, pictured: bool) -> bool:
    """Take what says nothing of its own out of a prompt (or one a form), and tell whether pictures get places by it.

    Where no text has a place for a picture, `place_pictures` changes nothing and is no part of a run's name.
    """
    prompts = [prompt] if "template" in prompt else list(prompt.values())
    placing = [fields.pop("place_pictures") for fields in prompts]
    for fields in prompts:
        fields.pop("video", None)  # named by itself where there are videos
        if not fields["likelihood"]:  # nothing of its own is said: no part of the name
            del fields["likelihood"]
        if fields["white_space"] == Prompt().white_space:  # a field that 0.2 had not: its runs keep their names
            del fields["white_space"]
    told = any(holds_marker(fields["template"]) or _has_examples(fields["shots"]) for fields in prompts)
    return any(placing) and (marked or (pictured and told))


def _has_examples(shots: dict[str, Any]) -> bool:
    """Tell whether there are drawn examples: the question's own pictures stand after them now."""
    return bool(shots.get("retriever", "zero") != "zero")
