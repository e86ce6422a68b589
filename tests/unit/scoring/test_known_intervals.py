"""No interval is a point where nothing is certain: 0 %, 100 %, all the same, groups of one; and what covers the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snellen.core.tasks import Figure, Task
from snellen.core.types import Form, Sample, Score, TrialKey
from snellen.data.atlas.protocols import Suite, SuiteMember
from snellen.kits.pages.document_ladder import compensated
from snellen.report.pages.comparison import pair_sheet
from snellen.scoring.aggregates.instability import aggregate as instability
from snellen.scoring.aggregates.means import macro
from snellen.scoring.aggregates.quoted_figures import RULE_SUMS, figures
from snellen.scoring.aggregates.robustness import aggregate as robustness
from snellen.scoring.compare.paired import Comparison, RunSide, compare_pair
from snellen.scoring.suites import suite_figure
from snellen.scoring.tables.table import ScoredTask, ScoreTable
from snellen.scoring.tables.table_builder import read_tables
from snellen.stats.intervals import macro_moments, share_interval, sum_interval, wilson


def table_of(
    values: list[float | None], topics: str = "", variants: tuple[str, ...] = ("base",), failed: tuple[int, ...] = ()
) -> ScoreTable:
    """One sample a value, of the topic at its place, asked in every variant with the same outcome."""
    names = [f"s{place:03d}" for place in range(len(values))]
    keys = [(name, variant, 0) for name in names for variant in variants]
    spread = [value for value in values for _ in variants]
    lost = {(names[place], variant, 0) for place in failed for variant in variants}
    rows = [
        (
            *key,
            "accuracy",
            value,
            None if value is None else f"{value:g}",
            "r",
            None if value is not None else "unparsed",
        )
        for key, value in zip(keys, spread, strict=True)
        if key not in lost
    ]
    trials = [(*key, "timeout" if key in lost else None) for key in keys]
    labels = [
        (name, None, {"topic": topic} if topics else {}) for name, topic in zip(names, topics or names, strict=True)
    ]
    return read_tables(rows, trials, labels)["accuracy"]


def scored_task(table: ScoreTable, task: Task) -> ScoredTask:
    return ScoredTask(task, {"accuracy": table}, lambda: iter(()))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_macro_mean_of_0_or_100_percent_has_a_width(value: float) -> None:
    task = Task("t", {}, group_by=("topic",))
    found = macro(scored_task(table_of([value] * 6, "xxxyyy"), task), {})["macro"]
    assert found.value == value and found.ci95 is not None
    assert found.ci95[1] - found.ci95[0] > 0.3, "six questions"


def test_a_macro_mean_of_more_than_1_keeps_its_interval_around_it() -> None:
    task = Task("t", {}, group_by=("topic",))
    found = macro(scored_task(table_of([2.0, 3.0, 4.0, 5.0], "xxyy"), task), {})["macro"]
    assert found.value == 3.5 and found.ci95 is not None and found.ci95[0] < 3.5 < found.ci95[1]


SIZES = ([1] * 10 + [2], [2] * 20, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5], [3] * 30, [20] * 10, [100] + [5] * 9, [1] * 12)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_interval_of_a_mean_of_small_groups_covers_the_truth(sizes: list[int]) -> None:
    random, inside, draws = np.random.default_rng(7), 0, 400
    for _ in range(draws):
        chances = random.uniform(0.3, 0.9, len(sizes))
        parts = [(random.random(size) < p).astype(float) for size, p in zip(sizes, chances, strict=True)]
        places = np.cumsum([0, *sizes])
        codes = [np.arange(start, start + size) for start, size in zip(places, sizes, strict=False)]
        low, high = share_interval(macro_moments(list(zip(parts, codes, strict=True))))
        inside += low <= chances.mean() <= high
    assert 0.92 <= inside / draws <= 0.99, inside / draws


def test_the_error_of_a_macro_mean_is_that_of_its_strata() -> None:
    parts = [(np.array([0.0, 1.0, 1.0]), np.arange(3)), (np.array([1.0, 0.0]), np.arange(3, 5))]
    by_hand = math.sqrt(0.25 * (1 / 3) / 3 + 0.25 * 0.5 / 2)  # each stratum: s²/m, half the weight
    assert macro_moments(parts).stderr == pytest.approx(by_hand)


def test_the_interval_of_a_suite_at_100_percent_has_a_width() -> None:
    whole = {"value": 1.0, "stderr": 0.0, "ci95": list(wilson(1.0, 10))}
    tasks = {name: {"metrics": {"accuracy": whole}, "headline": "accuracy"} for name in "ab"}
    found = suite_figure(Suite(members=(SuiteMember("a"), SuiteMember("b")), headline="average"), tasks)
    assert found["value"] == 1.0 and found["ci95"][1] == 1.0 and found["ci95"][0] < 0.85
    assert sum_interval([(1.0, 0.4, (0.3, 0.6))]) == pytest.approx((0.3, 0.6))


@pytest.mark.parametrize(
    ("rule", "value"), [("mean", 1.0), ("mean", 0.0), ("mean-of-groups", 1.0), ("all-of-group", 1.0)]
)
def test_a_quoted_figure_of_0_or_100_percent_has_wilsons_interval(rule: str, value: float) -> None:
    figure = Figure("points", rule, by=("topic",) if "group" in rule else (), scale=100.0)
    task = Task("t", {}, figures=(figure,))
    found = figures(scored_task(table_of([value] * 8, "abcdefgh"), task), {})["points"]
    assert found.value == 100.0 * value
    assert found.ci95 == pytest.approx([100 * bound for bound in wilson(value, 8)])


def test_a_sum_of_points_that_never_vary_has_no_interval_of_its_own() -> None:
    assert "sum" in RULE_SUMS
    task = Task("t", {}, figures=(Figure("points", "sum"),))
    found = figures(scored_task(table_of([1.0] * 8), task), {})["points"]
    assert (found.value, found.ci95) == (8.0, None)


@pytest.mark.parametrize("first", [0.0, 1.0])
@pytest.mark.parametrize("second", [0.0, 1.0])
def test_two_runs_that_differ_by_the_same_everywhere_are_not_known_exactly(first: float, second: float) -> None:
    sides = [RunSide(name, table_of([value] * 10)) for name, value in (("a", first), ("b", second))]
    found = compare_pair(*sides)
    assert found.difference == second - first and found.ci95 is not None
    low, high = found.ci95
    assert low <= found.difference <= high and high - low > 0.2, "ten questions"
    assert low >= -1.0 and high <= 1.0


def test_what_never_varied_has_no_interval_rather_than_one_without_width() -> None:
    varied = table_of([1.0] * 5, variants=("base", "perturb=blur:1"))
    assert (instability(varied)["instability"].value, instability(varied)["instability"].ci95) == (0.0, None)
    kept = robustness(varied)["retention_blur_1"]
    assert (kept.value, kept.ci95) == (1.0, None)


def test_compensation_is_by_the_options_of_each_question_and_counts_what_it_divides_by() -> None:
    table = table_of([1.0, None, None, 0.0], failed=(3,))
    options = {"s000": 4, "s001": 2, "s002": 5, "s003": 4}
    samples = {
        name: Sample(name, "t", Form.CHOICE, "?", options=tuple("abcde"[:size])) for name, size in options.items()
    }
    scores = [
        (sample, Score(TrialKey("t", name), "accuracy", None, reason="unparsed")) for name, sample in samples.items()
    ]
    found = compensated(ScoredTask(Task("t", {}, Form.CHOICE), {"accuracy": table}, lambda: iter(scores)), {})
    assert found["compensated"].value == pytest.approx((1 + 1 / 2 + 1 / 5 + 0) / 4)
    assert (found["compensated"].n, found["compensated"].failed) == (4, 0)


@pytest.mark.parametrize(
    ("metric", "values", "cells"),
    [
        ("accuracy", (0.5, 0.75), ("accuracy", "50.0", "75.0", "+25.0")),
        ("acuity_px", (6.25, 8.0), ("acuity_px (not in %)", "6.25", "8", "+1.75")),
        ("cider", (0.5, 0.75), ("cider (not in %)", "0.5", "0.75", "+0.25")),
    ],
)
def test_pixels_and_points_are_not_shown_as_percentages(
    metric: str, values: tuple[float, float], cells: tuple[str, ...]
) -> None:
    one = Comparison(metric, "a", "b", *values, values[1] - values[0], None, 0.5, "test", 0.5)
    row = pair_sheet("t", [one]).rows[0]
    assert (row[0], *row[3:6]) == cells
