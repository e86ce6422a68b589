"""engine.state: what several passes over one plan add up to."""

from __future__ import annotations

from snellen.core.types import Failure, FailureKind, Prediction, TrialKey, Usage
from snellen.engine.state import RunState

KEY = TrialKey("t", "s")


def test_passes_add_up_and_the_last_one_says_what_is_left() -> None:
    first, later = RunState(parked=3, last_error="old"), RunState(parked=1, unfinished=True)
    first.count(Prediction(KEY, text="a", usage=Usage(5, 2), finish="length"))
    first.count(Prediction(KEY, failure=Failure(FailureKind.SERVER, "broke")))
    later.count(Prediction(KEY, text=" ", usage=Usage(7, 1), cached=True))
    later.count(Prediction(KEY, failure=Failure(FailureKind.SERVER, "broke again")))
    later.count(Prediction(KEY, failure=Failure(FailureKind.TIMEOUT, "late")))
    first.add_pass(later)
    assert (first.done, first.failed, first.cached, first.cut_off, first.empty) == (5, 3, 1, 1, 1)
    assert (first.input_tokens, first.output_tokens) == (12, 3)
    assert first.failures == {"server": 2, "timeout": 1}
    assert (first.parked, first.last_error, first.unfinished, first.overdue) == (1, "late", True, False)


def test_a_pass_without_an_error_keeps_the_error_before_it() -> None:
    first = RunState()
    first.count(Prediction(KEY, failure=Failure(FailureKind.SERVER, "broke")))
    first.add_pass(RunState())
    assert first.last_error == "broke"
