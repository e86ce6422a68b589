"""The columns of a large run as its scoring left them in `columns.bin`: looked at where they lie, or not used at all.

run.db names the file by its seal, and every writer takes that name away before it writes: so columns are never stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..core.tasks import Task
from ..store.column_seal import stored_mark
from ..store.database import COLUMNS_SEAL
from ..store.reader import RunReader
from .array_file import ArrayFile
from .packed import LISTED, MadeWhenAsked
from .seen import TextBlock
from .table import Codes, Costs, SampleFacts, TrialColumns

COLUMNS_FILE = "columns.bin"
SHARED = ("sample", "variant", "repeat", "row")
"""Columns that no metric changes."""
OF_METRIC = ("value", "outcome", "answer", "rule", "reason")
CODED = ("answer", "rule", "reason")
SEEN = ("latency_s", "tokens", "input_tokens")
_SAMPLE = "SELECT body FROM samples WHERE task = ? AND id = ?"
_SAMPLES = "SELECT body FROM samples WHERE +task = ?"


class AboutTask(Struct, frozen=True):
    """What the list of the file says of a task."""

    number: int
    blocks: int
    metrics: tuple[str, ...]
    tags: tuple[str, ...]
    grouped: bool

    def name(self, *parts: object) -> str:
        """Return the name of an array of this task."""
        return "/".join(map(str, (self.number, *parts)))


@dataclass(frozen=True, kw_only=True)
class KeptColumns(TrialColumns):
    """Columns that lie in a file, in as few bytes as they need."""

    kept: KeptTask

    def take(self, rows: NDArray[Any]) -> TrialColumns:
        """Return the chosen trials; in memory, and in the width that aggregates count with: eight bits overflow."""
        names = [name for name in TrialColumns.__dataclass_fields__ if name not in (*SHARED, *OF_METRIC)]
        fields = {name: getattr(self, name) for name in names} | self._taken(rows)
        wide = {name: fields[name].astype(np.int32) for name in ("sample", "variant", "repeat", *CODED)}
        return TrialColumns(**fields | wide | {"row": fields["row"].astype(np.int64)})


class KeptTask:
    """One task of a file of columns."""

    def __init__(self, file: ArrayFile, about: AboutTask) -> None:
        self._file, self._about = file, about

    def columns(self, task: Task, metric: str | None, source: Callable[[], RunReader]) -> KeptColumns:
        """Return the trials under a metric, or the main one; `source` is asked for what a page shows of a sample."""
        file, about = self._file, self._about
        known = about.metrics or ("",)
        chosen = metric if metric in known else known[0]
        number = known.index(chosen)
        columns: dict[str, Any] = {name: file.mapped_array(about.name(name)) for name in SHARED}
        columns |= {name: file.mapped_array(about.name(number, name)) for name in OF_METRIC}
        columns |= {f"{name}s": self._book(number, f"{name}s") for name in CODED}
        samples = self._book("samples")
        return KeptColumns(
            metric=chosen,
            **columns,
            samples=samples,
            variants=self._book("variants"),
            cluster_of_sample=file.mapped_array(about.name("clusters")),
            tags={key: self._coded("tag", place) for place, key in enumerate(about.tags)},
            groups=self._coded("group") if about.grouped else None,
            task=task,
            metrics=about.metrics,
            facts=StoredFacts(task.name, samples, source),
            kept=self,
        )

    def _coded(self, *name: object) -> tuple[Codes, Sequence[str]]:
        return self._file.mapped_array(self._about.name(*name)), self._book(*name, "texts")

    def _book(self, *name: object) -> Sequence[str]:
        texts = self._file.read_texts(self._about.name(*name))
        return texts if len(texts) > LISTED else list(texts)

    @cached_property
    def places(self) -> Codes:
        """Return which question belongs to each sample."""
        return self._file.mapped_array(self._about.name("places"))

    def costs(self) -> Costs:
        """Return what the trials took, in the order of the columns."""
        latency, tokens, asked = (
            [self._file.read_array(self._about.name("block", block, name)) for block in range(self._about.blocks)]
            for name in SEEN
        )
        return Costs(_joined(latency, np.float64), _joined(tokens, np.int64), _joined(asked, np.int64))

    def replies(self) -> Iterator[TextBlock]:
        """Yield the searched part of the replies, in the order of the columns."""
        return self._texts("replies")

    def questions(self) -> Iterator[TextBlock]:
        """Yield ids and questions, in the order of the plan."""
        return self._texts("questions")

    def _texts(self, kind: str) -> Iterator[TextBlock]:
        for block in range(self._about.blocks):
            named = [self._about.name("block", block, kind, part) for part in TextBlock._fields]
            texts, ends, codes = (self._file.read_array(name) for name in named)
            yield TextBlock(texts.tobytes(), ends, codes)


def _joined(parts: list[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, kind), *parts], dtype=kind)


class KeptRun:
    """The tasks of a file of columns."""

    def __init__(self, file: ArrayFile) -> None:
        self._file = file
        self._tasks = {name: msgspec.convert(about, AboutTask) for name, about in file.about["tasks"].items()}

    @classmethod
    def of(cls, reader: RunReader) -> Self | None:
        """Return the columns of a run if they are those of what is stored now."""
        seal, path = reader.meta(COLUMNS_SEAL), Path(reader.folder) / COLUMNS_FILE
        file = ArrayFile.sealed(path, seal) if isinstance(seal, str) else None
        is_now = file is not None and file.about["mark"] == stored_mark(reader, file.about["scored"])
        return cls(file) if file is not None and is_now else None

    def task(self, name: str) -> KeptTask | None:
        """Return one task."""
        about = self._tasks.get(name)
        return None if about is None else KeptTask(self._file, about)


class StoredFacts(MadeWhenAsked[SampleFacts]):
    """What pages show of samples, read from run.db when it is asked for."""

    def __init__(self, task: str, samples: Sequence[str], source: Callable[[], RunReader]) -> None:
        self._task, self._samples, self._source = task, samples, source
        self._decode = msgspec.json.Decoder(SampleFacts).decode

    def __len__(self) -> int:
        return len(self._samples)

    def made(self, place: int) -> SampleFacts:
        """Read one sample."""
        name = self._samples[place]
        row = next(self._source().rows(_SAMPLE, (self._task, name)), None)
        return SampleFacts(name) if row is None else self._decode(row[0])

    def __iter__(self) -> Iterator[SampleFacts]:
        return iter(self._all)

    @cached_property
    def _all(self) -> list[SampleFacts]:
        """Return all of them: whoever asks for each one gets them by one pass."""
        rows = self._source().rows(_SAMPLES, (self._task,))
        known = {facts.id: facts for facts in (self._decode(body) for (body,) in rows)}
        return [known.get(name) or SampleFacts(name) for name in self._samples]
