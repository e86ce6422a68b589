"""Where the data of a card comes from: a hub's table, a toolkit's TSV, official files; recognised by its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError, UsageError, not_among
from .row_changes import RowChange


class QuestionTemplates(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the templates of a benchmark stand, and how a row says what its questions are about."""

    file: str
    """The authors' file: beside the table, in `src`, or one folder up."""
    name: str
    """The table in it: number -> text with `{}` for the place that is asked about."""
    bring: str
    """How people get the file."""
    whole: str = ""
    """What stands for `{}` where a figure has one plot."""
    cell: str = ""
    """The same for a plot of a grid, with {row} and {column}."""
    other: str = ""
    """The same for a plot that the row describes in words, with {place}."""
    without: tuple[int, ...] = ()
    """Templates about the whole figure: they have no `{}`."""


class CardSource(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One shape in which a benchmark's data is found."""

    ids: tuple[str, ...] = ()
    """Its names on the hub, all spellings."""
    config: str = ""
    split: str = ""
    url: str = ""
    """Where files lie that are on no hub; a file's name is added to it."""
    files: dict[str, str] = {}
    """File -> its MD5 (32 digits) or SHA-256 (64), empty where nobody wrote it down."""
    columns: tuple[str, ...] = ()
    """What its rows are recognised by: all of these are there."""
    count: int | None = None
    """Rows, where known."""
    table: dict[str, Any] = {}
    """What the table loader is told of this shape: preset, columns, answer_kind …"""
    rows: tuple[RowChange, ...] = ()
    keep: dict[str, tuple[str, ...]] = {}
    """Only rows whose column has one of these values; how many were left out is noted."""
    also: tuple[str, ...] = ()
    """What else of a hub's dataset belongs to it: `documents/*`."""
    every_config: bool = False
    """All configs of the hub's dataset together are the benchmark."""
    together: bool = False
    """All of `files` together are the benchmark; which one a row is of stands in its column `file_name`."""
    beside: dict[str, str] = {}
    """A JSON object beside the table (file -> column): the value under a row's `id` becomes that column."""
    letters: str = ""
    """`files` lists the pictures of AI2's archive: how letters stand on them, `over` their words or `beside` them."""
    templates: QuestionTemplates | None = None
    """Its rows name questions by number: where their texts are read from."""
    pictures: str = ""
    """The folder its pictures are named in, seen from the one that holds `files`."""
    bring: str = ""
    """How people get its files, where they are not to be fetched."""
    note: str = ""
    """What people must know who ask with this shape."""
    refuse: str = ""
    """Why this shape cannot be asked, and what can."""
    marks: tuple[str, ...] = ()

    def other_split(self, row: Mapping[str, Any]) -> str:
        """Return the column that says that a row is none of these; empty where it is kept, or has no such column."""
        kept = self.keep.items()
        return next((name for name, wanted in kept if str(row.get(name, wanted[0])) not in wanted), "")


def read_card_sources(table: Mapping[str, Any], where: str) -> dict[str, CardSource]:
    """Return the sources of a card's dataset table."""
    try:
        return {name: msgspec.convert(one, CardSource) for name, one in (table.get("sources") or {}).items()}
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: dataset.sources: {error}") from None


def tell_sources(dataset: dict[str, Any], overrides: Iterable[tuple[str, Any]]) -> None:
    """Let what a user tells of a dataset (`-p dataset.answer_kind=text`) win over what its sources say of it."""
    told = {key.removeprefix("dataset."): value for key, value in overrides if key.startswith("dataset.")}
    sources = dataset.get("sources")
    if not told or not isinstance(sources, dict):
        return
    dataset["sources"] = {name: _overridden(one, told) for name, one in sources.items()}


def _overridden(source: Any, told: Mapping[str, Any]) -> Any:
    if not isinstance(source, dict):
        return source  # refused where sources are read
    table = {key: told.get(key, value) for key, value in (source.get("table") or {}).items()}
    return {**source, "table": table, **({"pictures": ""} if "image_root" in told else {})}


def choose_source(
    sources: Mapping[str, CardSource], told: str, columns: Iterable[str], where: Path
) -> tuple[str, CardSource]:
    """Return the source that was told, or the one whose columns are all there; none and several are refused.

    Of several that fit, the one that names the file wins, then the one with the most columns.
    """
    if told:
        if told not in sources:
            raise UsageError(f"dataset.source {not_among(told, sorted(sources), ' is unknown')}")
        return told, sources[told]
    known = set(columns)
    fitting = {name: one for name, one in sources.items() if set(one.columns) <= known}
    best = _best({name: one for name, one in fitting.items() if not one.letters or names_file(one, where)}, where)
    if len(best) > 1:
        raise DataError(f"{where.name} can be {' or '.join(best)} by its columns: say -p dataset.source={best[0]}")
    return (best[0], sources[best[0]]) if best else ("", CardSource())


def _best(fitting: Mapping[str, CardSource], file: Path) -> list[str]:
    """Return those of several fitting sources that the file is most likely of: one, where that can be told."""
    named = [name for name, one in fitting.items() if names_file(one, file)] or list(fitting)
    most = max((len(fitting[name].columns) for name in named), default=0)
    best = [name for name in named if len(fitting[name].columns) == most]
    return [name for name in best if not fitting[name].files or names_file(fitting[name], file)] or best


def names_file(source: CardSource, file: Path) -> bool:
    """Tell whether a source has a file of this name."""
    return any(PurePosixPath(name).name == file.name for name in source.files)
