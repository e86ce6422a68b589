"""ChartQAPro's rule, member by member, worked out by hand."""

from __future__ import annotations

import pytest

from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.scoring.scorers.chart_answers import chart_answer, members, score_chart_answer

KEY = TrialKey("t", "1")


@pytest.mark.parametrize(
    ("gold", "reply", "years", "exact", "value"),
    [
        ("100", "104", (), False, 1.0),
        ("100", "106", (), False, 0.0),
        ("12%", "12", (), False, 1.0),
        ("0", "0.0", (), False, 1.0),
        ("0", "0.01", (), False, 0.0),
        ("2019", "2020", (), False, 1.0),
        ("2019", "2020", (True,), False, 0.0),
        ("Germany", "germany", (), False, 1.0),
        ("Germany", "Germani", (), False, 6 / 7),
        ("true", "True", (), True, 1.0),
        ("a", "b", (), True, 0.0),
        ("[10, 20]", "[10, 21]", (), False, 1.0),
        ("[10, 20]", "[10]", (), False, 0.5),
        ("[Asia, Europe]", "['Asia', 'Africa']", (), False, 0.5),
        ("[2019, 2020]", "[2019, 2021]", (True,), False, 0.5),
    ],
)
def test_members_are_compared_in_their_places(
    gold: str, reply: str, years: tuple[bool, ...], exact: bool, value: float
) -> None:
    assert chart_answer(gold, reply, years, exact=exact) == pytest.approx(value)


def test_lists_are_read_with_or_without_quotes() -> None:
    assert members("['a', \"b\"]") == ["a", "b"]
    assert members("[a, b]") == ["a", "b"]
    assert members("a, b.") == ["a, b"]


@pytest.mark.parametrize(
    ("reply", "kind", "value", "reason"),
    [
        ("The answer is true", "Fact Checking", 1.0, None),
        ("", "Fact Checking", None, "empty"),
        ("<think>true", "Fact Checking", None, "truncated"),
    ],
)
def test_a_reply_is_scored_by_what_its_sample_asks(
    reply: str, kind: str, value: float | None, reason: str | None
) -> None:
    sample = Sample("1", "t", Form.OPEN, "?", answers=("true",), tags={"Question Type": kind, "years": '["NO"]'})
    [score] = score_chart_answer(sample, Request(KEY, ()), Prediction(KEY, text=reply), {})
    assert (score.value, score.reason) == (value, reason)
