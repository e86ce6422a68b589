"""Two versions of a benchmark to what changed: rows added, gone, and other in gold, options, words or pictures."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from ...core.builtins import default_registry
from ...core.config import set_by_path
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Image, Sample
from ...data.catalog import Catalog
from ...data.dataset import Dataset
from ...store.reader import RunReader
from .golds import regraded

PARTS = ("gold", "options", "question", "pictures")


class Change(Struct, frozen=True):
    """One row that is in both versions and not the same."""

    sample: str
    what: list[str]
    old: dict[str, Any]
    new: dict[str, Any]


class Effect(Struct, frozen=True):
    """What the new golds do to a stored run, on the questions that ask the same."""

    run: str
    model: str
    old: float
    new: float
    rows: int

    def line(self) -> str:
        """Say it in one line."""
        moved = 100 * (self.new - self.old)
        values = f"{100 * self.old:.1f} → {100 * self.new:.1f} ({moved:+.1f})"
        return f"{self.run} ({self.model}): {values} on {self.rows:,} rows"


class DataDiff(Struct, frozen=True):
    """The difference of two versions."""

    old_rows: int
    new_rows: int
    added: list[str]
    gone: list[str]
    changed: list[Change]
    counts: dict[str, int]
    effects: list[Effect] = []

    def lines(self, most: int = 20) -> list[str]:
        """Say it in lines."""
        told = ", ".join(f"{self.counts[part]} {part}" for part in PARTS if self.counts.get(part)) or "nothing"
        lines = [
            f"{self.old_rows:,} rows before, {self.new_rows:,} now: {len(self.added)} added, {len(self.gone)} gone, "
            f"{len(self.changed)} changed ({told})"
        ]
        for change in self.changed[:most]:
            parts = "; ".join(f"{part}: {change.old[part]!r} → {change.new[part]!r}" for part in change.what)
            lines.append(f"  {change.sample}  {parts[:300]}")
        if len(self.changed) > most:
            lines.append(f"  and {len(self.changed) - most} more: --json lists them all")
        return [*lines, *(effect.line() for effect in self.effects)]


def diff_data(name: str, old: Path, new: Path, runs: Sequence[Path] = ()) -> DataDiff:
    """Compare two versions of a benchmark's data, read by its card (or a file of your own: name it `-`)."""
    before, after = ({one.id: one for one in _read(name, place)} for place in (old, new))
    changes = [change for key in before if key in after and (change := _change(before[key], after[key])) is not None]
    counts = {part: sum(part in change.what for change in changes) for part in PARTS}
    added = [key for key in after if key not in before]
    gone = [key for key in before if key not in after]
    effects = [effect for run in runs for effect in _effects(run, before, after)]
    return DataDiff(len(before), len(after), added, gone, changes, counts, effects)


def _read(name: str, place: Path) -> Iterator[Sample]:
    catalog, registry = Catalog(()), default_registry()
    own = name == "-"
    task = catalog.task(str(place) if own else name, [])
    if not own:
        table = msgspec.to_builtins(task)
        set_by_path(table, "dataset.path", str(place))
        task = msgspec.convert(table, type(task))
    return iter(Dataset(task, registry.get("loader", task.dataset["loader"]), LoadContext()))


def _change(old: Sample, new: Sample) -> Change | None:
    parts = {
        "gold": (list(old.answers), list(new.answers)),
        "options": (list(old.options), list(new.options)),
        "question": (old.question, new.question),
        "pictures": ([picture_hash(one) for one in old.images], [picture_hash(one) for one in new.images]),
    }
    found = [part for part, (before, after) in parts.items() if _plain(before) != _plain(after)]
    if not found:
        return None
    return Change(old.id, found, {part: parts[part][0] for part in found}, {part: parts[part][1] for part in found})


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value


def picture_hash(image: Image) -> str:
    """Return the hash of a picture's bytes; of one that is not there, that it is missing."""
    if image.sha256:
        return image.sha256[:16]
    if image.ref.startswith("data:"):
        return hashlib.sha256(image.ref.encode()).hexdigest()[:16]
    try:
        return hashlib.sha256(Path(image.ref).read_bytes()).hexdigest()[:16]
    except OSError:
        return f"missing: {Path(image.ref).name}"


def _effects(folder: Path, before: dict[str, Sample], after: dict[str, Sample]) -> Iterator[Effect]:
    """Score a stored run by the old golds and by the new ones, on questions that both versions have."""
    with RunReader(folder) as reader:
        header = reader.header()
        for task in header.tasks:
            rows = list(_worths(reader, task, before, after))
            if rows:
                old, new = np.array(rows).mean(axis=0)
                yield Effect(folder.name, header.model, float(old), float(new), len(rows))


def _worths(
    reader: RunReader, task: Task, before: dict[str, Sample], after: dict[str, Sample]
) -> Iterator[tuple[float, float]]:
    for sample, under in regraded(reader, task):
        if sample.id in before and sample.id in after:
            old, new = under(before[sample.id].answers), under(after[sample.id].answers)
            if not (math.isnan(old) or math.isnan(new)):
                yield old, new
