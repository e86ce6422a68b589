"""The scoring of a run as work: who does a range reads run.db where it is, and hands the part back as bytes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from ..core.errors import EnvironmentProblem
from ..core.garbage import rare_collections
from ..core.registry import foreign_code
from ..data.files.work import Work, WorkSpec
from ..store.reader import Rows, RunReader
from .ranges import RangeScorer, RangeSpec, ScoredRange

Name = Callable[[int], str]
"""Says which item is meant, counted from 0."""


class Executor(Protocol):
    """Who does the work of a scoring, elsewhere; `registry` is how it makes its scorers, see `RangeSpec`."""

    registry: tuple[str, Any]

    def work_through(self, spec: WorkSpec, items: Iterable[bytes], name: Name) -> Iterator[bytes]:
        """Yield the results of work on these items, in their order."""
        ...


def score_elsewhere(executor: Executor, spec: RangeSpec, ranges: Sequence[Rows]) -> Iterator[ScoredRange]:
    """Yield the parts of all ranges, in their order."""
    folder = str(Path(spec.folder).resolve())  # a node of a cluster works elsewhere
    settings = spec._replace(registry=executor.registry, folder=folder).dumped()
    items = (rows.tobytes() for rows in ranges)
    name = partial(_name_range, len(ranges), spec.task.name)
    return map(_read_part, executor.work_through(WorkSpec(f"{__name__}:RangeWork", settings), items, name))


def _name_range(count: int, task: str, number: int) -> str:
    return f"range {number + 1} of {count} of task {task!r}"


def _read_part(result: bytes) -> ScoredRange:
    part: ScoredRange = pickle.loads(result)  # noqa: S301 - only bytes of our own processes come here
    return part


class RangeWork:
    """Turns the rows of a range into its part of the results."""

    def __init__(self, settings: bytes) -> None:
        self.facts: dict[str, Any] = {}
        self._spec, self._scorer = RangeSpec.loaded(settings), RangeScorer()

    def __call__(self, item: bytes) -> bytes:
        """Return the part, packed."""
        try:
            return pickle.dumps(self._scorer.score(self._spec, np.frombuffer(item, np.int64)), 5)
        except MemoryError:
            raise EnvironmentProblem("out of memory while scoring: fewer --replicas, or --executor local") from None


class ScoringWork:
    """Does all work of one run's scoring: an item says which; the last stays made, as thousands follow."""

    def __init__(self, settings: bytes) -> None:
        with RunReader(settings.decode()) as reader:  # whoever sees another run at this path must not score it
            self.facts = {"run": reader.header().id, "numpy": np.__version__}
        self._last: tuple[WorkSpec, Work] | None = None

    def __call__(self, item: bytes) -> bytes:
        """Return the result of the item that was packed."""
        maker, settings, content = _unpack(item)
        spec = WorkSpec(maker, settings)
        with foreign_code("a range cannot be scored:"), rare_collections():
            if self._last is None or self._last[0] != spec:
                self._last = spec, spec.make()
            return self._last[1](content)


_unpack = msgspec.msgpack.Decoder(tuple[str, bytes, bytes]).decode


def scoring_spec(folder: Path) -> WorkSpec:
    """Return what scores a run: one spec, so that its processes stay from task to task."""
    return WorkSpec(f"{__name__}:ScoringWork", str(folder.resolve()).encode())


def pack_item(spec: WorkSpec, item: bytes) -> bytes:
    """Return an item of one kind of work as an item of the whole scoring."""
    return msgspec.msgpack.encode((*spec, item))
