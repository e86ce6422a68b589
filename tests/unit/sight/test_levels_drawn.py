"""A threshold is measured only among the levels that were drawn: beyond them `sight` says a bound, in every place."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from snellen.report.pages.exam_page import verdict_words
from snellen.report.pages.exam_terminal import comparison_lines
from snellen.sight.adaptive import AdaptiveTest
from snellen.sight.advice import beyond_easiest, evidence_of, prescribe, safe_words
from snellen.sight.cards import eye_test
from snellen.sight.exam_trials import Outcome, Planned
from snellen.sight.plate import Reading
from snellen.sight.result import threshold_result
from snellen.sight.sitting import bench_of, rules_of_test, so_far


def sat(
    name: str, threshold: float, seed: int = 0, *, slope: float = 6.0, fails: tuple[float, float] | None = None
) -> AdaptiveTest:
    """An observer of a known threshold through one running test, without pictures; what lies in `fails` is not answered."""
    test, draw = eye_test(name), random.Random(f"{name} {threshold} {seed}")
    running = AdaptiveTest(name, test, seed, rules_of_test(name, test.card, "quick"), blanks=False)
    while planned := running.plan():
        running.take([answered(running, one, threshold, slope, draw, fails) for one in planned])
    return running


def answered(
    running: AdaptiveTest, planned: Planned, threshold: float, slope: float, draw: random.Random, fails: Any
) -> Outcome:
    card, guess = running.test.card, running.test.chance(planned.level)
    if fails and fails[0] <= planned.level <= fails[1]:
        return Outcome(planned, planned.level, None, "", {}, "refused", None)
    reach = card.axis.x(planned.level) - card.axis.x(threshold)
    share = guess + (0.99 - guess) / (1 + math.exp(-slope * reach))
    right = sum(draw.random() < share for _ in range(card.glyphs))
    return Outcome(planned, planned.level, Reading(float(right), card.glyphs, guess, "x"), "", {"hue": 0.0}, "", None)


@pytest.mark.parametrize("name", ["orientation", "acuity", "vernier", "count"])
@pytest.mark.parametrize("times", [0.7, 0.85, 0.95, 1.1])
def test_no_value_lies_beyond_what_was_drawn(name: str, times: float) -> None:
    card = eye_test(name).card
    for seed in range(3):
        for end, factor in ((card.hardest, times), (card.easiest, 1 / times)):
            running = sat(name, end * factor**card.axis.sign, seed)
            result = threshold_result(running)
            levels = [row[0] for row in result["levels"]]
            if result["value"] is not None:
                assert min(levels) <= result["value"] <= max(levels), (result["verdict"], result["value"])
            else:
                assert result["verdict"] != "measured"
            if result["bound"] is not None:
                assert min(levels) <= result["bound"] <= max(levels)


def just_beyond() -> dict[str, Any]:
    """An observer a little better than the hardest ring: its median lies beyond, but not surely."""
    for seed in range(40):
        running = sat("orientation", 4.6, seed)
        known = running.settle().known
        if known is not None and 0.5 < known.below[0] < 0.95 and known.middle[0] < math.log(5.0):
            result = threshold_result(running)
            if result["verdict"] != "not settled":
                return result
    raise AssertionError("no such observer")


def test_a_median_beyond_the_hardest_level_is_said_as_a_bound_everywhere() -> None:
    result = just_beyond()
    assert (result["verdict"], result["value"], result["ci95"]) == ("at ceiling", None, None)
    words = f"better than {result['bound']:.3g} px"
    assert 5.0 <= result["bound"] < 9.0 and result["reason"] == words
    assert verdict_words(result) == f"at ceiling: {words}"
    assert evidence_of(result).startswith(f"at ceiling: {words}, ")


def test_advice_at_ceiling_rests_on_where_95_percent_is_right() -> None:
    result = just_beyond()
    assert result["x95_upper90"] > result["bound"]
    sentences = [line.sentence for line in prescribe({"orientation": result}, None)]
    assert len(sentences) == 1
    assert f"from {math.ceil(result['x95_upper90'])} px" in sentences[0] or "not settled" in sentences[0]


def test_no_limit_is_said_only_where_95_percent_is_right_at_the_hardest_level() -> None:
    result = threshold_result(sat("acuity", 1.7, 1, slope=5.0))
    assert result["verdict"] == "at ceiling" and result["x95_upper90"] > 2.2
    assert not any("no limit" in line.sentence for line in prescribe({"acuity": result}, None))
    surely = dict(result, x95=None, x95_upper90=None)
    assert any("no limit" in line.sentence for line in prescribe({"acuity": surely}, None))


def test_levels_that_a_server_refused_were_not_measured() -> None:
    result = threshold_result(sat("count", 60.0, 1, fails=(20.0, 99.0)))
    assert result["value"] is None
    answered_levels = [row[0] for row in result["levels"]]
    assert max(answered_levels) < 20.0
    assert result["verdict"] == "not settled" or result["bound"] <= max(answered_levels)


def test_worse_than_the_easiest_level_is_said_as_such() -> None:
    words = [threshold_result(sat("orientation", 104.0, seed, slope=14.0)) for seed in range(12)]
    floors = [one for one in words if one["verdict"] == "not measurable" and one["bound"] is not None]
    for one in floors:
        assert one["reason"] == f"worse than {one['bound']:.3g} px"
        assert verdict_words(one) == f"not measurable: {one['reason']}"
    assert all(one["value"] is None or one["value"] <= 100.0 for one in words)


def test_a_safe_level_beyond_the_easiest_is_no_advice() -> None:
    result = threshold_result(sat("orientation", 60.0, 2, slope=3.0))
    assert result["verdict"] == "measured" and result["x95_upper90"] > 100.0
    assert beyond_easiest(result) and safe_words(result) == "not at 100"
    lines = prescribe({"orientation": result}, None)
    assert [line.sentence for line in lines if line.id == "open-orientation"] == [
        f"{result['title']}: even at 100 px, the easiest level, 95 % is not surely right."
    ]


def test_what_needs_a_test_at_ceiling_is_drawn_by_its_bound() -> None:
    found = threshold_result(sat("acuity", 0.7))
    assert found["verdict"] == "at ceiling"
    bench = bench_of(found, exact=False)
    assert bench is not None and bench.half == found["bound"] <= bench.far <= 3 * bench.half
    assert bench_of(found, exact=True) is None, "a field is drawn at the threshold itself"


def test_progress_does_not_name_a_range_beyond_the_axis() -> None:
    assert "better than 5 px so far" in so_far(sat("orientation", 1.0))
    assert "half at" in so_far(sat("orientation", 20.0))


def test_a_bound_against_a_value_is_a_one_sided_ratio() -> None:
    from snellen.api import exams

    ceiling, measured = threshold_result(sat("orientation", 1.5)), threshold_result(sat("orientation", 30.0))
    row = exams._row(measured, ceiling)
    least, most = row["ratio_bound"]
    assert row["ratio"] is None and most is None and 3.5 < least < 6.5 and row["p"] < 0.01
    back = exams._row(ceiling, measured)
    assert back["ratio_bound"][0] is None and back["ratio_bound"][1] == pytest.approx(1 / least, rel=0.05)
    compared = {"first": "a", "second": "b", "notes": [], "tests": {"orientation": row | {"differs": True}}}
    lines = list(comparison_lines(compared | {"summary": exams._summary(compared["tests"])}))
    assert lines[1] == f" B is better in orientation (at least {least:.3g}×)"
    assert (
        f"at ceiling: better than {ceiling['bound']:.3g} px" in lines[3]
        and f"at least {least:.2f} times better (B)*" in lines[3]
    )
    assert exams._row(ceiling, ceiling)["p"] is None


def test_long_units_keep_the_columns_of_a_comparison() -> None:
    row = {"ratio": 1.02, "ci95": (0.9, 1.17), "p": 1.0, "differs": False, "words": ""}
    tests = {
        "contrast": {"a": "0.0614 of full contrast", "b": "0.06 of full contrast", **row},
        "acuity": {"a": "8 px", "b": "7 px", **row},
    }
    head, *lines = list(comparison_lines({"first": "a", "second": "b", "summary": "", "notes": [], "tests": tests}))[2:]
    for line, told in zip(lines, tests.values(), strict=True):
        assert line[: head.index(" A ") + 2].endswith(told["a"]) and line[: head.index(" B ") + 2].endswith(told["b"])
        assert line.index("0.90 – 1.17") == head.index("95 %")
