"""Several workers that score ranges: parts come back in the order of the plan, a dead worker's range is done again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from ...core.errors import EnvironmentProblem
from ...fleet.links import ReplicaLost
from ...store.reader import Rows
from ..ranges import RangeErrand, ScoredRange
from .range_process import read_scored_range

AHEAD = 3
"""Ranges a worker that may be done or under way before their turn: so memory is bounded."""


class RangeWorker(Protocol):
    """Whoever scores one range at a time."""

    def run(self, errand: bytes, rows: Rows) -> bytes:
        """Return the answer to one range; raise ReplicaLost when there will be none. May be called again."""
        ...

    def close(self) -> None:
        """End the worker."""
        ...


class RangePool:
    """Shares the ranges of tasks among workers; what it yields hangs on nobody's speed, number or death."""

    def __init__(
        self,
        workers: Sequence[RangeWorker],
        registry: tuple[str, Any],
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._workers, self._registry, self._say = list(workers), registry, say
        self._free: SimpleQueue[RangeWorker] = SimpleQueue()
        for worker in workers:
            self._free.put(worker)
        self.lost = 0
        """How often a worker was lost."""

    def score_all(self, errand: RangeErrand, ranges: Sequence[Rows]) -> Iterator[ScoredRange]:
        """Yield the parts of all ranges, in their order."""
        folder = str(Path(errand.folder).resolve())  # a node of a cluster works elsewhere
        packed = errand._replace(registry=self._registry, folder=folder).dumped()
        waiting: deque[Future[ScoredRange]] = deque()
        with ThreadPoolExecutor(len(self._workers)) as threads:
            try:
                for number, rows in enumerate(ranges):
                    where = f"range {number + 1} of {len(ranges)} of task {errand.task.name!r}"
                    waiting.append(threads.submit(self._score, packed, rows, where))
                    if len(waiting) >= AHEAD * len(self._workers):
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _score(self, errand: bytes, rows: Rows, where: str) -> ScoredRange:
        worker = self._free.get()
        try:
            return read_scored_range(self._answer(worker, errand, rows, where))
        finally:
            self._free.put(worker)

    def _answer(self, worker: RangeWorker, errand: bytes, rows: Rows, where: str) -> bytes:
        try:
            return worker.run(errand, rows)
        except ReplicaLost as first:
            self.lost += 1
            self._say(f"a scoring process was lost at {where}: {first}; the range is done again")
        try:
            return worker.run(errand, rows)
        except ReplicaLost as second:
            kept = "nothing was changed, every reply is stored; fewer --replicas, or --executor local"
            raise EnvironmentProblem(f"{where} ended its process twice: {second}; {kept}") from None

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.close()
