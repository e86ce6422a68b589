"""A card with three sources (raw annotations, prepared hub file, own bundle) to Samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import ConfigError, DataError, not_among
from ...core.folders import cache_folder
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Sample
from ..files.bundle import MANIFEST, read_bundle
from ..images.embedded import ImageStore
from ..loaders.row_source import data_home
from ..loaders.table import capitalise
from .corpus import Corpus
from .formulate import Recipe, build, guard
from .prepared import Prepared, PreparedReader, fetch

SOURCES = ("auto", "bundle", "prepared", "raw", "hub")


class Card(Struct, frozen=True, forbid_unknown_fields=True):
    """The `dataset` table of a card."""

    loader: str
    source: str = "auto"
    path: str = ""
    """The folder of the data; empty: `<data root>/<name>`, or the data root itself."""
    options: int = 4
    raw: dict[str, Any] = {}
    """reader, method, files, images (file name pattern); further keys are settings of the reader."""
    prepared: Prepared | None = None
    count: dict[str, int] = {}
    """How many samples each source is known to give."""
    home: str = ""
    """Where to get the raw files."""
    capitalise: bool = False
    """Begin questions, options and answers with a capital letter."""
    rounds: str = "all"
    """`last`: of each dialogue only its last round."""
    keys: dict[str, str] = {}
    """How the seed's own commands name it (dataset_name, config)."""


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield the Samples of one card from the source that is there (or the one asked for)."""
    card = read_card(task)
    source, folder = locate(card, task.name, context.root)
    samples = open_source(card, task, source, folder, context)
    if card.rounds == "last":
        samples = last_rounds(samples)
    if card.capitalise:
        samples = map(capitalise, samples)
    return samples if context.limit is None else islice(samples, context.limit)


def read_card(task: Task) -> Card:
    """Return the task's dataset table, checked."""
    try:
        card = msgspec.convert(task.dataset, Card)
    except msgspec.ValidationError as error:
        raise ConfigError(f"task {task.name!r}, dataset: {error}") from None
    if card.source not in SOURCES:
        raise ConfigError(f"dataset.source {not_among(card.source, SOURCES, ' is unknown')}")
    return card


def open_source(card: Card, task: Task, source: str, folder: Path, context: LoadContext) -> Iterator[Sample]:
    """Yield the Samples from one source in `folder`."""
    recipe = Recipe(task.name, task.form, context.seed, card.options, card.raw)
    if source == "bundle":
        return read_bundle(folder)
    if source == "raw":
        settings = {key: value for key, value in card.raw.items() if key not in ("files", "images")}
        corpus = Corpus(folder, card.raw["files"], card.raw.get("images", "{image}"), settings)
        return build(corpus, card.raw["reader"], card.raw["method"], recipe)
    if card.prepared is None:
        raise ConfigError(f"card {task.name!r} has no prepared file")
    store = ImageStore((context.workdir or cache_folder()) / "images")
    find = fetch if source == "hub" else lambda name: find_prepared(folder, name)
    return guard(PreparedReader(card.prepared, find, store, recipe).read(), Path(card.prepared.file).name)


def last_rounds(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Keep the last sample of each run of neighbours with one group."""
    for _, members in groupby(samples, key=lambda sample: sample.group or sample.id):
        *_, last = members
        yield last


def locate(card: Card, name: str, root: Path | None) -> tuple[str, Path]:
    """Return (source, folder) for a card: what was asked for, or the first of bundle, prepared, raw that is there."""
    if card.source == "hub":
        return "hub", Path()
    folders = _folders(card, name, root)
    wanted = SOURCES[1:4] if card.source == "auto" else (card.source,)
    for folder in folders:
        for source in wanted:
            if _is_there(card, source, folder):
                return source, folder
    sought = ", ".join(str(folder) for folder in folders)
    hint = f"get the raw files from {card.home}" if card.home else "give the files"
    raise DataError(f"no {' or '.join(wanted)} data for {name!r} under {sought}: {hint}, or set --data-root DIR")


def available(card: Card, name: str, root: Path | None) -> list[str]:
    """Return which sources of a card are there."""
    folders = _folders(card, name, root)
    return [source for source in SOURCES[1:4] if any(_is_there(card, source, folder) for folder in folders)]


def _folders(card: Card, name: str, root: Path | None) -> list[Path]:
    if card.path:
        return [Path(card.path) if root is None else root / card.path]
    base = root or data_home()
    return [base / name, base / name.rpartition("/")[2], base]


def _is_there(card: Card, source: str, folder: Path) -> bool:
    if source == "bundle":
        return (folder / MANIFEST).is_file()
    if source == "prepared":
        return card.prepared is not None and _prepared_path(folder, card.prepared.file) is not None
    files = [name for key, name in card.raw.get("files", {}).items() if key not in card.raw.get("optional", ())]
    return bool(files) and all(any(folder.glob(name)) for name in files)


def find_prepared(folder: Path, name: str) -> Path:
    """Return a prepared file (or, for the empty name, its folder) as the hub's tree or flat."""
    if not name:
        return folder
    path = _prepared_path(folder, name)
    if path is None:
        raise DataError(f"{folder / name} does not exist: copy the hub's {name!r} there")
    return path


def _prepared_path(folder: Path, name: str) -> Path | None:
    tries = (folder / name, folder / "ReForm-Eval-Data" / name, folder / Path(name).name)
    return next((path for path in tries if path.is_file()), None)
