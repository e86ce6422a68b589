"""The arms of looking again are variants; how a trial ended stands in its prediction."""

from __future__ import annotations

import msgspec
import pytest

from snellen.core.errors import UsageError
from snellen.core.looks import DETAIL, ENDS, UNSCORED_ENDS, LookEnd, arm_of, end_of, in_look_arms, why_unscored
from snellen.core.types import Prediction, TrialKey
from snellen.core.variants import variants_beside


def test_an_arm_is_a_variant_beside_the_one_with_true_crops() -> None:
    variants = in_look_arms(("base", "order=1"), ("base", "plain", "grey"))
    assert variants == ("base", "look=plain", "look=grey", "order=1", "look=plain&order=1", "look=grey&order=1")
    assert arm_of("look=grey&order=1") == ("grey", "order=1") and arm_of("order=1") == ("base", "order=1")
    assert variants_beside(variants) == {name for name in variants if "look" in name}
    assert in_look_arms(("base",), ()) == ("base",)


@pytest.mark.parametrize("arms", [("base", "gray"), ("grey",), ("base", "grey", "grey")])
def test_arms_that_cannot_be_compared_are_refused(arms: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="--tool-arms"):
        in_look_arms(("base",), arms)


def test_a_prediction_says_how_its_looks_ended_and_whether_there_is_anything_to_score() -> None:
    key = TrialKey("t", "1")
    assert end_of(Prediction(key, text="a")) is None and why_unscored(Prediction(key, text="a")) == ""
    assert set(UNSCORED_ENDS) < set(ENDS)
    for end in ENDS:
        told = LookEnd(end, 3, 4, 2, {"frame": 2}, tokens=(10, 2))
        stored = Prediction(key, text="a", detail={DETAIL: msgspec.to_builtins(told)})
        assert end_of(stored) == told and bool(why_unscored(stored)) == (end in UNSCORED_ENDS)
