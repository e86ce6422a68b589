"""A folder to the files of one table: its only one, or the shards of one config and split of a hub's snapshot."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...core.errors import UsageError, did_you_mean
from .rows import READERS

DEEPEST = 3
"""Folders below the one named in which tables are looked for: data/config/split/file."""
SHARD = re.compile(r"(?P<split>.*?)[-_.]?(?P<number>\d{4,6})(?:-of-(?P<count>\d{4,6}))?(?:-[0-9a-f]{8,})?")
SPLIT_WORDS = ("train", "training", "validation", "valid", "val", "dev", "test", "testmini", "minival")
SPLIT_IN_NAME = re.compile(rf"(?:^|[-_.])({'|'.join(SPLIT_WORDS)})(?=$|[-_.])")
NO_TABLES = {
    "dataset_info.json",
    "dataset_infos.json",
    "dataset_dict.json",
    "state.json",
    "config.json",
    "task_info.json",
}
"""Files that hubs and tools lay beside their tables."""


TASK_FILE = "data.json"
"""What FlagEvalMM calls the table of every task: the folder says which task it is, as NAME or NAME/SPLIT."""


class TableFile(NamedTuple):
    """One file, and what its place says of it."""

    file: Path
    config: str
    split: str
    base: str
    """What remains of its name: files of one base are shards of one table."""
    number: int | None = None
    of: int | None = None


def find_tables(folder: Path, config: str = "", split: str = "") -> list[Path]:
    """Return the files of one table, in order; what is ambiguous is refused by naming the choices."""
    found = _chosen(_tables_at(folder), "config", config, folder, "--data-config")
    found = _chosen(found, "split", split, folder, "--split")
    if len({one.base for one in found}) > 1 or not _are_counted(found):
        names = ", ".join(sorted(str(one.file.relative_to(folder)) for one in found)[:8])
        raise UsageError(f"folder {str(folder)!r} holds several data files ({names}): name one")
    return _in_order(found, folder)


def tables_by_name(path: Path, wanted: str = "", split: str = "") -> dict[str, list[Path]]:
    """Return every table of a folder (or the one file) by its name; `wanted` chooses one of them.

    The name is that of the file, or of its folder where the file is called by its split.
    """
    named: dict[str, list[TableFile]] = {}
    for one in _tables_at(path):
        if split in ("", one.split):
            named.setdefault(_table_name(one), []).append(one)
    if not named:
        raise UsageError(f"{str(path)!r} has no table of split {split!r}: leave out --split, or name another")
    if wanted:
        if wanted not in named:
            has = f"it has: {', '.join(sorted(named))}"
            raise UsageError(f"{str(path)!r} has no table {wanted!r}{did_you_mean(wanted, named)}; {has}")
        named = {wanted: named[wanted]}
    return {name: _whole_table(named[name], path) for name in sorted(named)}


def _tables_at(path: Path) -> list[TableFile]:
    if not path.is_dir():
        return [_placed(path, path.parent.parent)]
    found = [_placed(file, path) for file in list_tables(path)]
    if not found:
        need = f"a table with a question for each ({', '.join(READERS)})"
        raise UsageError(f"folder {str(path)!r} holds no data file: pictures alone ask nothing, add {need}")
    return found


def _table_name(one: TableFile) -> str:
    return one.base if one.base not in (one.split, "") else one.config.rpartition("/")[2] or one.base


def _whole_table(found: list[TableFile], path: Path) -> list[Path]:
    """Return the files of one table; two splits of it, or two files of one name, are refused."""
    if len({(one.config, one.split) for one in found}) > 1 or not _are_counted(found):
        names = ", ".join(str(one.file.relative_to(path)) for one in found[:8])
        raise UsageError(f"{str(path)!r} holds one table twice ({names}): choose a split, or take some away")
    return _in_order(found, path)


def list_tables(folder: Path) -> Iterator[Path]:
    """Yield the data files of a folder and of those below it; hidden ones, runs and what tools add are left out."""
    for place, below, names in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        below[:] = sorted(name for name in below if not name.startswith(".")) if depth < DEEPEST else []
        if "run.db" in names:
            continue
        for name in sorted(names):
            file = Path(place) / name
            if not name.startswith(".") and file.suffix.lower() in READERS and name not in NO_TABLES and file.is_file():
                yield file


def task_folders(folder: Path) -> list[Path]:
    """Return the folders of a folder of several tasks: all its tables are `data.json`, each in a folder of its own.

    Of two splits of one task nobody has said which is meant: these are no folder of tasks.
    """
    files = list(list_tables(folder))
    places = [file.parent for file in files]
    tasks = {place.parent if place.name in SPLIT_WORDS else place for place in places}
    alone = len(files) > 1 and all(file.name == TASK_FILE for file in files) and folder not in places
    return places if alone and len(tasks) == len(places) else []


def folder_task_name(folder: Path) -> str:
    """Return the name of a folder's task; a split says too little of itself."""
    return f"{folder.parent.name}-{folder.name}" if folder.name in SPLIT_WORDS else folder.name


def _placed(file: Path, folder: Path) -> TableFile:
    above = [part for part in file.relative_to(folder).parts[:-1] if part != "data"]
    shard = SHARD.fullmatch(file.stem)
    number, count, base = None, None, file.stem
    if shard:
        number, base = int(shard["number"]), shard["split"]
        count = int(shard["count"]) if shard["count"] else None
    split = next((part for part in reversed(above) if part in SPLIT_WORDS), "")
    if split:
        above.remove(split)
    elif count is not None and base:
        split = base
    else:
        words = SPLIT_IN_NAME.findall(base)
        split = words[-1] if words else ""
    return TableFile(file, "/".join(above), split, base, number, count)


def _chosen(found: list[TableFile], field: str, wanted: str, folder: Path, flag: str) -> list[TableFile]:
    known = sorted({getattr(one, field) for one in found})
    has = ", ".join(name or "(none)" for name in known)
    if wanted and wanted not in known:
        near = did_you_mean(wanted, known)
        raise UsageError(f"folder {str(folder)!r} has no {field} {wanted!r}{near}; it has: {has}")
    if not wanted and len(known) > 1:
        raise UsageError(f"folder {str(folder)!r} has several {field}s ({has}): choose one with {flag}")
    return [one for one in found if getattr(one, field) == wanted] if wanted else found


def _are_counted(found: list[TableFile]) -> bool:
    """Tell whether several files are shards: by `-of-00003`, or numbered on from 0 or 1; years are no shards."""
    if len(found) < 2 or any(one.of is not None for one in found):
        return True
    numbers = sorted(-1 if one.number is None else one.number for one in found)
    return numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _in_order(found: list[TableFile], folder: Path) -> list[Path]:
    """Return the files of a table in order; one without all its shards is refused: it would be another table."""
    counts = {one.of for one in found if one.of is not None}
    if len(counts) > 1:
        raise UsageError(
            f"folder {str(folder)!r} mixes shards of {' and '.join(map(str, sorted(counts)))}; take some away"
        )
    numbers = {one.number for one in found}
    missing = [number for number in range(next(iter(counts), 0)) if number not in numbers]
    if missing:
        which = ", ".join(map(str, missing[:5]))
        raise UsageError(
            f"folder {str(folder)!r}: {len(missing)} shards are missing (number {which}); fetch them again"
        )
    return [one.file for one in sorted(found, key=lambda one: (one.number or 0, one.file.name))]
