"""Few questions, told by hand or by exact sums: intervals that hold the truth, units that are no shares, bounds at 0."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from snellen.core.tasks import Task
from snellen.core.types import Form
from snellen.data.catalog import with_defaults
from snellen.report.terminal import dimension_means
from snellen.report.written import percent_metric, written
from snellen.scoring.aggregates.instability import rounds
from snellen.scoring.aggregates.means import macro_over_groups, mean
from snellen.scoring.aggregates.repeats import aggregate as repeats
from snellen.scoring.compare.paired import RunSide, compare_pair
from snellen.scoring.tables.table import ScoreTable
from snellen.scoring.tables.table_builder import read_tables
from snellen.stats.bootstrap import difference_interval, percentile_interval
from snellen.stats.intervals import paired_share_interval


def table_of(metric: str, values: list[list[float]], tags: list[dict[str, str]] | None = None) -> ScoreTable:
    """One list a sample, one value a repeat; the answer is the value."""
    cells = [(f"s{place:02d}", repeat, value) for place, row in enumerate(values) for repeat, value in enumerate(row)]
    rows = [(name, "base", repeat, metric, value, f"{value:g}", "r", None) for name, repeat, value in cells]
    trials = [(name, "base", repeat, None) for name, repeat, _ in cells]
    samples = [(f"s{place:02d}", None, tags[place] if tags else {}) for place in range(len(values))]
    return read_tables(rows, trials, samples)[metric]


@pytest.mark.parametrize("pairs", [3, 5, 8, 12, 20, 30, 60])
@pytest.mark.parametrize("chances", [(0.05, 0.0), (0.1, 0.05), (0.1, 0.1), (0.3, 0.1), (0.5, 0.1), (0.9, 0.0)])
def test_the_interval_of_two_runs_on_single_questions_covers(pairs: int, chances: tuple[float, float]) -> None:
    up, down = chances
    inside = 0.0
    for gained in range(pairs + 1):
        for lost in range(pairs + 1 - gained):
            same = pairs - gained - lost
            ways = comb(pairs, gained) * comb(pairs - gained, lost)
            low, high = paired_share_interval(gained, lost, pairs)
            assert low <= (gained - lost) / pairs <= high
            if low - 1e-12 <= up - down <= high + 1e-12:
                inside += ways * up**gained * down**lost * (1.0 - up - down) ** same
    assert inside >= 0.945, "the bootstrap had 0.84 of 8 questions"


def test_one_question_that_changed_does_not_show_that_none_changes_the_other_way() -> None:
    sides = [RunSide(name, table_of("accuracy", [[1.0]] * 7 + [[last]])) for name, last in (("a", 1.0), ("b", 0.0))]
    found = compare_pair(*sides)
    assert found.difference == -0.125 and found.ci95 is not None
    assert found.ci95[0] < -0.125 and found.ci95[1] > 0.05


@pytest.mark.parametrize("clusters", [3, 5, 8])
def test_the_interval_of_few_repeated_questions_covers(clusters: int) -> None:
    random, inside, draws = np.random.default_rng(5), 0, 300
    for i in range(draws):
        chance = random.beta(4, 4, clusters) * 0.9
        change = (random.binomial(4, chance + 0.1) - random.binomial(4, chance)) / 4.0
        bounds = difference_interval(change, np.ones(clusters), "cover", i, draws=500, limits=(-1.0, 1.0))
        inside += bounds is None or bounds[0] - 1e-12 <= 0.1 <= bounds[1] + 1e-12
    assert inside / draws >= 0.93, "three questions: 0.75 by percentiles alone"


def test_limits_of_a_statistic_are_kept() -> None:
    low, high = percentile_interval(np.linspace(0.8, 1.0, 200), 3, (0.0, 1.0)) or (None, None)
    assert low is not None and low < 0.8 and high == 1.0


def test_entropies_and_error_rates_begin_at_nothing() -> None:
    told = repeats(table_of("accuracy", [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]))
    entropy = told["answer_entropy"]
    assert entropy.value == pytest.approx(np.log(2) / 4) and entropy.ci95 is not None and entropy.ci95[0] == 0.0
    errors = mean(table_of("wer", [[0.25], [3.0]]))["wer"]
    assert errors.value == 1.625 and errors.ci95 is not None and errors.ci95[0] == 0.0


def test_one_round_has_no_slope() -> None:
    one = rounds(table_of("accuracy", [[1.0], [0.0]], [{"round": "2"}] * 2))
    assert (one["accuracy_round_2"].value, one["round_slope"].value) == (0.5, None)
    two = rounds(table_of("accuracy", [[1.0], [0.0]], [{"round": "0"}, {"round": "1"}]))
    assert two["round_slope"].value == -1.0


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        *((name, "0.400") for name in ("answer_entropy", "instability", "cider", "cider_ptb", "round_correlation")),
        *(
            (name, "0.400")
            for name in ("round_slope", "threshold", "threshold_fps", "accuracy_variance_question", "difference:b-a")
        ),
        *((name, "40.0 %") for name in ("accuracy", "instability_flip_rate", "wer", "accuracy_run_std", "ece")),
    ],
)
def test_what_is_no_share_is_not_shown_in_percent(metric: str, shown: str) -> None:
    estimate = {"value": 0.4, "ci95": [0.3, 0.5]}
    assert written(metric, estimate) == shown
    assert percent_metric(metric, estimate) is shown.endswith("%")


def test_points_and_cider_are_not_averaged_with_shares() -> None:
    values = {"a": ("accuracy", 0.5), "b": ("cider", 0.9), "c": ("score", 1800.0), "d": ("accuracy", 0.7)}
    tasks = {
        task: {"metrics": {name: {"value": value}, f"{name}_strict": {"value": value}}, "headline": name}
        for task, (name, value) in values.items()
    }
    assert dimension_means(tasks, dict.fromkeys(tasks, "all")) == {"all": (pytest.approx(0.6), 2)}


def test_captions_are_compared_as_captions() -> None:
    task = with_defaults(Task("t", {"loader": "table"}, Form.CAPTION))
    assert (task.scorers, task.aggregates) == (("caption",), ("caption",))


def test_a_group_of_which_nothing_is_known_leaves_no_mean_of_the_others() -> None:
    tags = [{"topic": "x"}, {"topic": "y"}]
    assert macro_over_groups(table_of("accuracy", [[1.0], [0.0]], tags), "topic")["accuracy_macro_topic"].value == 0.5
    lost = [
        ("s00", "base", 0, "accuracy", 1.0, "1", "r", None),
        ("s01", "base", 0, "accuracy", None, None, "r", "no_reference"),
    ]
    trials = [("s00", "base", 0, None), ("s01", "base", 0, None)]
    half = read_tables(lost, trials, [("s00", None, tags[0]), ("s01", None, tags[1])])["accuracy"]
    found = macro_over_groups(half, "topic")["accuracy_macro_topic"]
    assert (found.value, found.ci95, found.n, found.unscored) == (None, None, 1, 1)
