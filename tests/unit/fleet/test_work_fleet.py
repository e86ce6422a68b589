"""Work by replicas: results in order, equal to those of one process, whatever is lost on the way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from fleet_doubles import NearLink
from snellen.core.errors import DataError, EnvironmentProblem, UsageError
from snellen.data.files.work import WorkSpec, do_here
from snellen.kits.scale.driver import Replicas
from snellen.kits.scale.host import Worker
from snellen.kits.scale.work_fleet import map_by_replicas


class Doubler:
    """Doubles an item; refuses one, and sleeps as long as its settings say."""

    def __init__(self, settings: bytes) -> None:
        self.facts = {"fonts": "the same"}
        self._rest = float(settings or b"0")

    def __call__(self, item: bytes) -> bytes:
        time.sleep(self._rest)
        if item == b"refused":
            raise DataError("page 3 is corrupt")
        return 2 * item


SPEC = WorkSpec(f"{__name__}:Doubler", b"")
ITEMS = [bytes([number]) * 10 for number in range(60)]


def near(spec: WorkSpec = SPEC, replicas: int = 2, kind: type[NearLink] = NearLink) -> Replicas:
    return Replicas(Worker(spec), replicas, lambda number: kind(Worker(spec), number), lease=4)


def test_results_come_in_order_and_are_those_of_one_process() -> None:
    assert list(map_by_replicas(near, iter(ITEMS))) == list(do_here(SPEC, ITEMS)) == [2 * item for item in ITEMS]


def test_lost_replicas_change_no_result() -> None:
    killed: list[int] = []

    class Dying(NearLink):
        def send(self, lease: object) -> None:
            super().send(lease)  # type: ignore[arg-type]
            if len(self.leases) == 2 and killed.count(self.number) < 1:
                killed.append(self.number)
                self.cut()

    assert list(map_by_replicas(lambda: near(kind=Dying), ITEMS)) == [2 * item for item in ITEMS]
    assert sorted(killed) == [1, 2]


def items_that_end_badly() -> Iterator[bytes]:
    yield b"first"
    raise DataError("record 2 has no text")


@pytest.mark.parametrize(
    ("items", "said"), [([b"first", b"refused", b"third"], "page 3 is corrupt"), (None, "record 2 has no text")]
)
def test_the_first_error_is_raised_after_what_came_before_it(items: list[bytes] | None, said: str) -> None:
    for results in (
        do_here(SPEC, items or items_that_end_badly()),
        map_by_replicas(near, items or items_that_end_badly()),
    ):
        assert next(results) == b"firstfirst"
        with pytest.raises(UsageError, match=said):
            next(results)


def test_who_has_other_fonts_does_not_do_it() -> None:
    class Other(Doubler):
        def __init__(self, settings: bytes) -> None:
            super().__init__(settings)
            self.facts = {"fonts": "others"}

    globals()["Other"] = Other
    there = WorkSpec(f"{__name__}:Other", b"")

    def fleet() -> Replicas:
        worker = Worker(there)
        worker.identity = lambda: {**Worker(there).identity(), "spec": SPEC.maker}  # type: ignore[method-assign]
        return Replicas(Worker(SPEC), 1, lambda number: NearLink(worker, number))

    with pytest.raises(EnvironmentProblem, match="its spec/Doubler is not the driver's"):
        list(map_by_replicas(fleet, ITEMS))


def test_whoever_stops_taking_leaves_nothing_running() -> None:
    results = map_by_replicas(near, iter(ITEMS))
    assert next(results) == 2 * ITEMS[0]
    results.close()  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
