"""The loader `card`: the rows of a published benchmark in any of the shapes its card knows, to Samples."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from ...core.config import convert
from ...core.errors import DataError, MissingData
from ...core.folders import cache_folder
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Sample
from ..files.folder_tables import find_tables, list_tables
from ..files.rows import Row, read_rows
from ..loaders.authors_files import named_reader
from ..loaders.row_source import TableSource, data_home, resolve
from ..loaders.table import load_rows
from .card_sources import CardSource, choose_source, names_file, read_card_sources
from .fetch import wanted_files
from .official_files import SideColumns, home_of, named_files, picture_folder, source_rows
from .row_changes import RowChange, changed_rows


def hub_cache() -> Path:
    """Return the hub's cache, as its library finds it."""
    if told := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(told).expanduser()
    home = os.environ.get("HF_HOME")
    base = Path(home).expanduser() if home else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return base.expanduser() / "hub"


def cached_data(sources: Mapping[str, CardSource]) -> Path | None:
    """Return the newest snapshot that holds a table of a source's config and split; None where there is none."""
    for source in sources.values():
        for spelling in source.ids:
            for snapshot in _snapshots(hub_cache() / f"datasets--{spelling.replace('/', '--')}"):
                files = [path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()]
                with suppress(DataError):  # a snapshot without its tables: only a README was looked at
                    next(wanted_files(files, source, spelling))
                    return snapshot
    return None


def _snapshots(folder: Path) -> Iterator[Path]:
    """Yield the revision that `main` was last, then the others, newest first."""
    held = [path for path in folder.glob("snapshots/*") if path.is_dir()]
    with suppress(OSError):
        main = (folder / "refs" / "main").read_text("utf-8").strip()
        held.sort(key=lambda path: (path.name == main, path.stat().st_mtime), reverse=True)
    yield from held


OWN = ("sources", "source", "rows", "needs", "any_shape", "templates")
"""What of a card's dataset table the table loader does not know."""


class FoundShape(NamedTuple):
    """The files of a card, and the shape they are in."""

    name: str
    source: CardSource
    files: list[Path]
    home: Path
    """The folder that the names of its files begin in."""


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield the samples of a card's data; which shape it has is noted."""
    shape = find_shape(task, context.root)
    _check_shape(task, shape)
    if shape.name:
        where = f" from the hub's cache ({shape.home.name[:8]})" if shape.home.is_relative_to(hub_cache()) else ""
        context.notes.setdefault(
            f"read as the {shape.name} form of {task.name}{where}", Counter({shape.files[0].name: 1})
        )
    if shape.source.note:
        context.notes.setdefault(shape.source.note, Counter({shape.files[0].name: 1}))
    table = {key: value for key, value in task.dataset.items() if key not in OWN} | shape.source.table
    table |= picture_folder(shape.source, shape.home)
    table |= {"loader": "table"} | {key: task.dataset[key] for key in ("preset", "columns") if key in task.dataset}
    source = convert(table, TableSource, f"task {task.name!r}, dataset")
    own = [convert(one, RowChange, f"task {task.name!r}, dataset.rows") for one in task.dataset.get("rows", ())]
    changes = (*shape.source.rows, *own)
    sides = SideColumns(shape.source, shape.files[0].parent, asked=not task.dataset.get("any_shape"))
    made = (context.workdir or cache_folder() / "generated") / "rows"
    drawn = None if task.dataset.get("any_shape") else made
    reader = named_reader(source.reader, f"task {task.name!r}")

    def read(file: Path, sheet: str) -> Iterator[tuple[int, Row]]:
        rows = source_rows(shape.source, file, sheet, drawn, context.notes, read=reader)
        kept = _kept_rows(shape.source, rows, context.notes)
        return changed_rows(changes, sides.rows(kept, file), context.refuse)

    return load_rows(task, source, shape.files, context, read)


def _check_shape(task: Task, shape: FoundShape) -> None:
    """Refuse rows that are not the benchmark's, and a shape that lacks what the protocol asks with."""
    if task.dataset.get("any_shape"):
        return
    sources = read_card_sources(task.dataset, f"task {task.name!r}")
    if sources and not shape.name:
        forms = "; ".join(f"{name}: {', '.join(source.columns)}" for name, source in sources.items())
        fix = "-p dataset.source=NAME takes them for one all the same"
        raise DataError(f"{shape.files[0].name} has not the columns of any form of {task.name} ({forms}); {fix}")
    if shape.source.refuse:
        raise DataError(f"the {shape.name} form of {task.name} cannot be asked: {shape.source.refuse}")
    needs = task.dataset.get("needs") or ()
    if needs and shape.name not in needs:
        what = f"protocol {task.protocol!r} asks with words that only {' and '.join(needs)} rows of {task.name} have"
        raise DataError(f"{what}; {shape.files[0].name} has {shape.name} rows: give the others, or another --protocol")


def _kept_rows(
    source: CardSource, rows: Iterator[tuple[int, Row]], notes: dict[str, Counter[str]]
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of one split of a table that has several, and count the others."""
    for number, row in rows:
        other = source.other_split(row)
        if not other:
            yield number, row
            continue
        text = f"rows left out: their {other} is not {' or '.join(source.keep[other])}"
        notes.setdefault(text, Counter())[str(row[other])] += 1


def find_shape(task: Task, root: Path | None) -> FoundShape:
    """Return the files of a card and the shape they are in, by the columns of the first row."""
    sources = read_card_sources(task.dataset, f"task {task.name!r}")
    path = resolve(str(task.dataset.get("path") or task.name), root)
    if not path.exists():
        path = cached_data(sources) or path
    if not path.exists():
        fix = f"`snellen data fetch {task.name}` brings it, -p dataset.path=FILE names another place"
        places = {str(path): None} | ({str(data_home() / path): None} if root is None else {})
        said = f"there is no data at {' or '.join(map(repr, places))}, nor in the hub's cache {str(hub_cache())!r}"
        raise MissingData(task.name, f"task {task.name!r}: {said}; {fix}")
    files = _files(task, sources, path)
    told = str(task.dataset.get("source", "")) or _listing(sources, files[0])
    head = () if sources.get(told, CardSource()).letters else _head(files[0], str(task.dataset.get("sheet", "")))
    name, source = choose_source(sources, told, head, files[0])
    return FoundShape(name, _told_templates(task, source), files, home_of(source, path))


def _told_templates(task: Task, source: CardSource) -> CardSource:
    """Return a source with the file of templates that a user names; replies alone are scored without any."""
    if source.templates is None:
        return source
    if task.dataset.get("any_shape"):
        return structs.replace(source, templates=None)
    told = str(task.dataset.get("templates") or "")
    templates = structs.replace(source.templates, file=str(Path(told).absolute())) if told else source.templates
    return structs.replace(source, templates=templates)


def _listing(sources: Mapping[str, CardSource], file: Path) -> str:
    """Return the source whose list of pictures a file is: it has no columns to be known by."""
    return next((name for name, one in sources.items() if one.letters and names_file(one, file)), "")


def _head(file: Path, sheet: str) -> Iterator[str]:
    return chain.from_iterable(row for _, row in islice(read_rows(file, sheet), 1))


def has_card_data(task: Task, root: Path | None) -> list[str]:
    """Return where the data of a card lies, if it does; nothing is opened."""
    path = resolve(str(task.dataset.get("path") or task.name), root)
    found = path if path.exists() else cached_data(read_card_sources(task.dataset, f"task {task.name!r}"))
    return [str(found)] if found else []


def _files(task: Task, sources: dict[str, CardSource], path: Path) -> list[Path]:
    """Return the table's files; in a folder, a file that a source names, else the hub's config and split."""
    if not path.is_dir():
        return [path]
    if named := named_files(sources, path):
        return named
    hub = next((one for one in sources.values() if one.ids), CardSource())
    if hub.every_config:
        return _every_config(path, hub.split)
    config, split = (str(task.dataset.get(name) or getattr(hub, name)) for name in ("config", "split"))
    return find_tables(path, config if _has_folder(path, config) else "", split)


def _every_config(path: Path, split: str) -> list[Path]:
    """Return the tables of one split in all folders: the configs of a hub's dataset, one after the other."""
    found = sorted(file for file in list_tables(path) if file.stem.startswith(split))
    if not found:
        raise DataError(f"{str(path)!r} holds no table of split {split!r}: {split}-00000-of-00001.parquet or the like")
    return found


def _has_folder(path: Path, config: str) -> bool:
    return bool(config) and any(part == config for file in path.rglob("*") for part in file.parts[-3:-1])
