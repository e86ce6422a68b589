"""A sitting that is cut short says so of every test that was not settled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from snellen.core.types import Prediction
from snellen.engine.limits import Limits
from snellen.sight.cards import chosen_tests
from snellen.sight.sitting import CUT_SHORT, Order, Sitting, Stored


class Notes(dict[str, Any]):
    """Plans, kept in memory."""

    def meta(self, key: str) -> Any:
        return self.get(key)

    def put_meta(self, key: str, value: Any) -> None:
        self[key] = value


def test_tests_that_were_cut_short_give_that_as_their_reason(tmp_path: Path) -> None:
    names = ("orientation", "locate", "quarter-turns")
    order = Order(chosen_tests(names, "quick"), "quick", 0)
    sitting = Sitting(order, tmp_path, Notes(), Stored())
    asked = asyncio.Event()

    async def never(*_: object, **__: object) -> Prediction:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def cut() -> None:
        task = asyncio.create_task(sitting.run(never))
        await asked.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cut())
    assert {name: sitting.results[name]["reason"] for name in names} == dict.fromkeys(names, CUT_SHORT)


def test_a_round_that_may_not_be_asked_is_not_written_down(tmp_path: Path) -> None:
    notes = Notes()
    order = Order(chosen_tests(("orientation",), "quick"), "quick", 0)
    sitting = Sitting(order, tmp_path, notes, Stored(), limits=Limits(requests=7))
    asyncio.run(sitting.run(None))  # type: ignore[arg-type] - nobody may be asked
    assert sitting.ended == sitting.results["orientation"]["reason"] and "7 requests" in sitting.ended
    assert not notes
