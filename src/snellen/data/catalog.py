"""Names to Tasks: the built-in cards, the user's `--catalog DIR`, a task file, or a bare data file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from ..core.config import convert, read_config_file, set_by_path
from ..core.errors import ConfigError, UsageError, did_you_mean
from ..core.tasks import Prompt, ProtocolReading, Task
from ..core.types import Form
from .atlas.protocols import Suite, protocols_of, read_suite, under_protocol
from .files.folder_tables import TASK_FILE, find_tables, folder_task_name, list_tables, task_folders
from .files.rows import READERS, read_rows, unknown_ending

DEFAULT_SCORERS: dict[Form, tuple[str, ...]] = {
    Form.CHOICE: ("choice",),
    Form.MULTIPLE: ("multiple",),
    Form.YESNO: ("yesno",),
    Form.NUMBER: ("number",),
    Form.OPEN: ("short", "exact", "contains"),
    Form.OCR: ("wer",),
    Form.KIE: ("exact", "contains"),
    Form.CAPTION: ("caption",),
    Form.PARSE: ("parse",),
    Form.AUTO: ("by_form",),
}


SHIPPED = Path(str(files("snellen") / "catalog"))
LOOKED_AT_BYTES = 65_536
KNOWN_FILES: dict[str, tuple[bytes, ...]] = {"cure": (b'"cot_inference"', b'"bboxes"')}
"""Card -> what all stands at the beginning of a JSON file that is run by this card where it is given itself."""


def card_of_file(path: Path) -> str | None:
    """Return the card that a file is run by, told by the file's beginning; None for the rows of anybody else."""
    with path.open("rb") as stream:
        head = stream.read(LOOKED_AT_BYTES)
    return next((card for card, names in KNOWN_FILES.items() if all(name in head for name in names)), None)


class Catalog:
    """Finds tasks, suites and prompts as TOML in the package and in further folders; a name in two is an error."""

    def __init__(self, folders: Sequence[str | Path] = ()) -> None:
        self._roots = [SHIPPED, *map(Path, folders)]
        for root in self._roots[1:]:
            if not root.is_dir():
                raise UsageError(f"catalog {str(root)!r} is not a folder")

    def names(self, kind: str) -> list[str]:
        """Return the names of all cards of one kind (datasets, suites, prompts, models, judges)."""
        return sorted(self._find(kind))

    def task(self, name: str, overrides: Sequence[tuple[str, Any]] = (), protocol: str | None = None) -> Task:
        """Return a task by name or file, under one of its protocols, with `-p key=value` applied before the check."""
        table = under_protocol(self.task_table(name), name, protocol)
        for key, value in overrides:
            set_by_path(table, key, value)
        dataset = table.get("dataset")
        if isinstance(dataset, dict) and dataset.get("loader") == "card":
            from .atlas.card_sources import tell_sources

            tell_sources(dataset, overrides)
        if isinstance(dataset, dict) and dataset.get("loader") == "table":
            place = str(dataset.get("path") or "")
            if place and Path(place).is_dir() and not dataset.get("table_tag"):  # a choice not made is refused here
                find_tables(Path(place), str(dataset.get("config", "")), str(dataset.get("split", "")))
        return _task_of(table, name)

    def protocols(self, name: str) -> dict[str, ProtocolReading]:
        """Return how each protocol of a task reads and counts replies; none where it has none."""
        table = self.task_table(name)
        tasks = {protocol: _task_of(under_protocol(table, name, protocol), name) for protocol in protocols_of(table)}
        fields = ProtocolReading.__struct_fields__
        return {
            protocol: ProtocolReading(**{field: getattr(task, field) for field in fields})
            for protocol, task in tasks.items()
        }

    def expand(self, name: str, *, open_folders: bool = False) -> list[str]:
        """Return the task names of a suite, if told the folders of a folder of tasks, or the name itself."""
        suites = self._find("suites")
        if name not in suites:
            is_folder = open_folders and Path(name).is_dir() and name not in self._find("datasets")
            return ([str(folder) for folder in task_folders(Path(name))] if is_folder else []) or [name]
        suite = self.suite(name)
        known = self._find("datasets") if suite.members else suite.tasks
        return [task for task in suite.names if task in known]

    def suite(self, name: str) -> Suite:
        """Return a suite as its card has it, members without a card included."""
        return read_suite(self.card("suites", name), name)

    def prompt(self, task: Task, form: Form | None = None) -> Prompt:
        """Return the prompt of a task: its own, the named one, or the default of its form (or of the given one)."""
        if isinstance(task.prompt, Prompt):
            return task.prompt
        known = form or (Form.OPEN if task.form is Form.AUTO else task.form)
        name = task.prompt or known.value
        if task.prompt and f"{name}/{known.value}" in self._find("prompts"):
            name = f"{name}/{known.value}"  # a folder of prompts has one a form
        return convert(self.card("prompts", name), Prompt, f"prompt {name!r}")

    def card(self, kind: str, name: str) -> dict[str, Any]:
        """Return one card as a plain table."""
        known = self._find(kind)
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"no {kind.removesuffix('s')} named {name!r}{hint}; see `snellen tasks`")
        return read_config_file(Path(known[name]))

    def cards(self, kind: str, mentioning: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield all cards of one kind, or only those in which a text stands: the others are not parsed."""
        for name, place in sorted(self._find(kind).items()):
            if not mentioning or mentioning.encode() in _content(place):
                yield name, read_config_file(Path(place))

    def task_table(self, name: str) -> dict[str, Any]:
        """Return a task's table as its card or file has it, all protocols and sources included."""
        path = Path(name)
        if path.suffix.lower() in (".json", ".jsonl") and path.is_file() and (known_as := card_of_file(path)):
            card = self.card("datasets", known_as)
            return {**card, "name": path.stem, "dataset": {**card["dataset"], "path": str(path.resolve())}}
        if path.suffix.lower() in READERS:
            return table_for_file(path)
        if path.suffix == ".toml":
            table = read_config_file(path)
            dataset = table.get("dataset")
            if isinstance(dataset, dict) and isinstance(dataset.get("path"), str):
                dataset["path"] = str(path.parent / dataset["path"])
            return {"name": path.stem, **table}
        known = self._find("datasets")
        if name not in known and path.is_dir():
            return table_for_folder(path)
        if name not in known and path.is_file():
            raise unknown_ending(name)
        if name not in known:
            hint = did_you_mean(name, [*known, *self._find("suites")])
            raise UsageError(f"no task named {name!r}{hint}; see `snellen tasks`, or give a data file")
        return {"name": name, **read_config_file(Path(known[name]))}

    def _find(self, kind: str) -> dict[str, str]:
        """Return where each card of a kind lies."""
        found: dict[str, str] = {}
        for root in self._roots:
            for name, path in _shipped_cards(kind) if root is SHIPPED else sorted(_list_cards(str(root / kind))):
                if name in found:
                    raise ConfigError(f"{kind} card {name!r} is in {found[name]} and in {path}: rename one")
                found[name] = path
        return found


@cache
def _shipped_cards(kind: str) -> list[tuple[str, str]]:
    """Return the package's own cards of a kind: they stay as they are, and every command asks for them often."""
    return sorted(_list_cards(str(SHIPPED / kind)))


@cache
def _shipped_content(place: str) -> bytes:
    return Path(place).read_bytes()


def _content(place: str) -> bytes:
    return _shipped_content(place) if place.startswith(str(SHIPPED)) else Path(place).read_bytes()


def _list_cards(folder: str, within: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and path of every TOML file of a folder and those below it."""
    if not os.path.isdir(folder):  # noqa: PTH112
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _list_cards(entry.path, f"{within}{entry.name}/")
            elif entry.name.endswith(".toml"):
                yield within + entry.name.removesuffix(".toml"), entry.path


def table_for_file(path: Path) -> dict[str, Any]:
    """Return the task table of a bare data file; every record decides its own form."""
    read_rows(path)  # a file that is not there is refused here
    return {"name": path.stem, "dataset": {"loader": "table", "path": str(path.resolve())}}


def table_for_folder(folder: Path) -> dict[str, Any]:
    """Return the task table of a folder: of its one table, or of the shards of one config and split, chosen later."""
    files = list(list_tables(folder))
    whole = folder.resolve()
    if len(files) == 1 and files[0].name == TASK_FILE:
        return {**table_for_file(files[0]), "name": folder_task_name(whole)}
    if len(files) == 1:
        return table_for_file(files[0])
    snapshot = whole.parent.name == "snapshots"  # a hub's cache: datasets--owner--name/snapshots/revision
    name = whole.parent.parent.name.removeprefix("datasets--").replace("--", "-") if snapshot else whole.name
    return {"name": name, "dataset": {"loader": "table", "path": str(whole)}}


def _task_of(table: dict[str, Any], name: str) -> Task:
    """Return the task of a table, checked and with its defaults; rows of a table say for themselves what they are."""
    dataset = table.get("dataset")
    if isinstance(dataset, dict) and dataset.get("loader") == "table":
        table.setdefault("form", Form.AUTO.value)
    return with_defaults(convert(table, Task, f"task {name!r}"))


def with_defaults(task: Task) -> Task:
    """Return the task with the scorers of its form and the aggregates of its inferencer where it names none."""
    if not isinstance(task.dataset.get("loader"), str):
        raise ConfigError(f"task {task.name!r} names no loader: add dataset.loader")
    scorers = task.scorers or DEFAULT_SCORERS[task.form]
    own = ("calibration",) if task.infer == "likelihood" else ("caption",) if scorers == ("caption",) else ()
    aggregates = task.aggregates or own
    return msgspec.structs.replace(task, scorers=scorers, aggregates=aggregates)
