"""What may be said of a pair of runs (`report.pages.comparison`): a verdict, and the questions that a gap needs."""

from __future__ import annotations

import re

import numpy as np

from snellen.report.pages.comparison import verdict_line
from snellen.scoring.compare.paired import Comparison


def pair(difference: float, half_width: float, p: float, paired: int = 60, metric: str = "accuracy") -> Comparison:
    interval = (difference - half_width, difference + half_width)
    values = (0.5, 0.5 + difference)
    return Comparison(metric, "old", "new", *values, difference, interval, p, "exact", p, p, paired=paired)


def test_a_clear_difference_names_the_better_run() -> None:
    assert verdict_line(pair(0.2, 0.1, 0.001)).endswith("new is better")
    assert verdict_line(pair(0.2, 0.1, 0.001, metric="wer")).endswith("old is better")


def test_a_gap_that_is_not_seen_names_the_questions_it_needs() -> None:
    said = verdict_line(pair(0.05, 0.10, 0.4))
    assert "not distinguishable on 60 questions" in said
    needed = int(re.search(r"about ([\d,]+)", said)[1].replace(",", ""))  # type: ignore[index]
    # So many questions find the gap in four of five draws.
    rng = np.random.default_rng(1)
    error = 0.10 / 1.96 * (60 / needed) ** 0.5
    seen = np.abs(rng.normal(0.05, error, 20_000)) > 1.96 * error
    assert 0.78 < seen.mean() < 0.83


def test_no_difference_needs_no_number() -> None:
    assert "needs" not in verdict_line(pair(0.0, 0.1, 1.0))
