"""The figures of cards: every rule by hand, unscored members as they must be, twins, intervals, runs that were stopped."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ConfigError
from snellen.core.tasks import Figure, Task
from snellen.core.types import Estimate
from snellen.scoring.aggregates.quoted_figures import RULE_SUMS, RULES, figures
from snellen.scoring.tables.table_builder import TableBuilder

Row = tuple[str, float | None, dict[str, str]]


def made(rows: Sequence[Row], *wanted: Figure, answers: Sequence[str] = (), **options: Any) -> dict[str, Estimate]:
    builder = TableBuilder()
    builder.add_samples([(name, None, tags) for name, _, tags in rows])
    builder.add_trials(
        [(name, "base", 0, "server" if value == -9 else None, at) for at, (name, value, _) in enumerate(rows)]
    )
    said = answers or [""] * len(rows)
    scores = [
        (name, "base", 0, "accuracy", value, answer or None, "rule", None if value is not None else "unparsed")
        for (name, value, _), answer in zip(rows, said, strict=True)
        if value != -9
    ]
    builder.add_scores(scores)
    task = Task("t", {"loader": "table"}, figures=tuple(wanted))
    return figures(SimpleNamespace(task=task, tables=builder.tables()), options)  # type: ignore[arg-type]


def group(name: str) -> dict[str, str]:
    return {"group": name}


CIRCULAR = Figure("circular", "all-of-group", by=("group",))


def test_all_of_a_group_with_unread_members() -> None:
    rows: list[Row] = [
        ("a1", 1, group("a")), ("a2", 1, group("a")),  # right
        ("b1", 1, group("b")), ("b2", 0, group("b")),  # wrong
        ("c1", 1, group("c")), ("c2", None, group("c")),  # unread
        ("d1", 0, group("d")), ("d2", None, group("d")),  # wrong already
        ("e1", 1, group("e")), ("e2", -9, group("e")),  # failed
    ]  # fmt: skip
    found = made(rows, CIRCULAR)
    own, read, strict = found["circular"], found["circular_read"], found["circular_strict"]
    assert (own.value, own.n, own.unscored, own.failed) == (pytest.approx(1 / 4), 4, 0, 1)
    assert own.bounds == pytest.approx((1 / 5, 3 / 5))
    assert (read.value, read.n, read.unscored, read.failed) == (pytest.approx(1 / 3), 3, 1, 1)
    assert (strict.value, strict.n, strict.unscored) == (pytest.approx(1 / 5), 5, 0)
    assert own.unit == "groups"


def test_a_group_of_a_stopped_run_has_no_value() -> None:
    rows: list[Row] = [("a1", 1, group("a")), ("a2", 1, group("a"))]
    assert made(rows, CIRCULAR, planned_trials=3)["circular"].value is None
    assert made(rows, CIRCULAR, planned_trials=2)["circular"].value == 1.0


def test_the_worst_of_a_group() -> None:
    rows: list[Row] = [("a1", 0.5, group("a")), ("a2", 1, group("a")), ("b1", 1, group("b")), ("c1", None, group("c"))]
    worst = made(rows, Figure("worst", "worst-of-group", by=("group",)))["worst"]
    assert (worst.value, worst.n, worst.unscored, worst.bounds) == (0.5, 3, 0, pytest.approx((0.5, 2.5 / 3)))


def test_hallusionbench_is_the_mean_of_three() -> None:
    def tags(figure: str, question: str) -> dict[str, str]:
        return {"figure": figure, "question": question}

    rows: list[Row] = [
        ("1", 1, tags("f1", "q1")), ("2", 0, tags("f1", "q2")), ("3", 1, tags("f2", "q1")), ("4", 1, tags("f2", "q2")),
    ]  # fmt: skip
    wanted = (
        Figure("aAcc"),
        Figure("fAcc", "all-of-group", by=("figure",)),
        Figure("qAcc", "all-of-group", by=("question",)),
        Figure("mean3", "mean-of", of=("aAcc", "fAcc", "qAcc")),
    )
    found = made(rows, *wanted)
    assert [found[name].value for name in ("aAcc", "fAcc", "qAcc")] == [0.75, 0.5, 0.5]
    assert found["mean3"].value == pytest.approx((0.75 + 0.5 + 0.5) / 3)
    assert found["mean3"].ci95 is None  # figures and questions cross: it is one cluster


def test_points_sums_and_means_of_groups() -> None:
    rows: list[Row] = [("1", 1, group("a")), ("2", 0, group("a")), ("3", 1, group("b")), ("4", None, group("b"))]
    found = made(
        rows,
        Figure("points", scale=1000),
        Figure("total", "sum"),
        Figure("macro", "mean-of-groups", by=("group",)),
        Figure("only-a", where={"group": ("a",)}),
        Figure("score", "sum-of", of=("total", "macro")),
    )
    assert found["points_read"].value == pytest.approx(2000 / 3)
    assert found["points"].value == 500
    assert found["points"].bounds == pytest.approx((500, 750))
    assert (found["total"].value, found["total"].bounds) == (2, (2, 3))
    assert (found["macro"].value, found["macro_read"].value) == (0.5, 0.75)
    assert found["only-a"].value == 0.5
    assert (found["score"].value, found["score"].bounds) == (2.5, pytest.approx((2.5, 3.75)))


def test_precision_recall_and_the_ratio_of_yes() -> None:
    # gold:   yes yes no no;  said: yes no yes no
    rows: list[Row] = [("1", 1, {}), ("2", 0, {}), ("3", 0, {}), ("4", 1, {})]
    names = ("precision", "recall", "f1", "yes-ratio", "label-ratio")
    found = made(rows, *(Figure(name, name) for name in names), answers=["yes", "no", "yes", "no"])
    assert [found[name].value for name in names] == [0.5, 0.5, 0.5, 0.5, 0.5]
    one_sided = made(
        rows[:2], Figure("yes-ratio", "yes-ratio"), Figure("label-ratio", "label-ratio"), answers=["yes", "no"]
    )
    assert (one_sided["yes-ratio"].value, one_sided["label-ratio"].value) == (0.5, 1.0)


def test_f1_of_the_answerable() -> None:
    rows: list[Row] = [("1", 1, {"answerable": "yes"}), ("2", 0, {"answerable": "yes"}), ("3", 1, {"answerable": "no"})]
    found = made(rows, Figure("f1", "answerable-f1"), answers=["12", "Not answerable", "Not answerable"])
    assert found["f1"].value == pytest.approx(2 * (1 / 1) * (1 / 2) / (1 / 1 + 1 / 2))


def test_an_unknown_rule_is_refused_and_a_missing_metric_left_out() -> None:
    with pytest.raises(ConfigError, match="rule 'all-of-groups'"):
        made([("1", 1, {})], Figure("x", "all-of-groups"))
    assert made([("1", 1, {})], Figure("x", metric="nothing"), Figure("y", "mean-of", of=("x",))) == {}
    assert set(RULE_SUMS) <= set(RULES)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 1.0, None])), min_size=1, max_size=40))
def test_a_figure_lies_between_its_strict_twin_and_its_best_case(trials: list[tuple[int, float | None]]) -> None:
    rows: list[Row] = [(str(at), value, group(str(of))) for at, (of, value) in enumerate(trials)]
    found = made(rows, Figure("share"), CIRCULAR)
    for name in ("share", "circular"):
        own, strict = found[name], found[f"{name}_strict"]
        assert strict.value is not None
        assert own.n + own.unscored + own.failed == strict.n
        assert own.value is not None and own.bounds is not None
        assert own.value >= strict.value - 1e-12
        assert own.bounds[0] - 1e-12 <= own.value <= own.bounds[1] + 1e-12
        if own.ci95 is not None:
            assert own.ci95[0] - 1e-9 <= np.clip(own.value, *own.ci95) <= own.ci95[1] + 1e-9


def test_an_interval_of_circular_accuracy_covers() -> None:
    draw = np.random.default_rng(1)
    hits = 0
    for _ in range(60):
        rows: list[Row] = [
            (f"{of}-{at}", float(right), group(str(of)))
            for of in range(60)
            for right_of in [draw.random() < 0.6]
            for at, right in enumerate([right_of, right_of or draw.random() < 0.3])
        ]
        interval = made(rows, CIRCULAR)["circular"].ci95
        assert interval is not None
        hits += interval[0] <= 0.6 <= interval[1]
    assert hits >= 51


GAIN = Figure("gain", "gain", against="control=no-video")


def gained(before: Sequence[float | None], after: Sequence[float | None]) -> dict[str, Estimate]:
    """Return the gain of questions that were asked without and with something to learn from."""
    builder = TableBuilder()
    names = [f"q{number}" for number in range(len(before))]
    builder.add_samples([(name, None, {}) for name in names])
    trials = [(name, variant) for name in names for variant in ("base", "control=no-video")]
    builder.add_trials([(*trial, 0, None, at) for at, trial in enumerate(trials)])
    said = dict(zip(trials, [value for pair in zip(after, before, strict=True) for value in pair], strict=True))
    builder.add_scores(
        [
            (*trial, 0, "accuracy", value, None, "rule", None if value is not None else "unparsed")
            for trial, value in said.items()
        ]
    )
    task = Task("t", {"loader": "table"}, figures=(GAIN, Figure("seen", besides=("control=no-video",))))
    return figures(SimpleNamespace(task=task, tables=builder.tables()), {})  # type: ignore[arg-type]


def test_a_gain_is_the_share_of_what_could_still_be_gained() -> None:
    found = gained([1, 1, 0, 0], [1, 1, 1, 0])
    assert found["gain"].value == pytest.approx((0.75 - 0.5) / 0.5)
    assert found["seen"].value == 0.75, "what was asked without the video is no part of it"
    assert gained([1, 1, 0, 0], [1, 0, 0, 0])["gain"].value == pytest.approx(-0.5)
    assert gained([1, 1], [1, 1])["gain"].value is None, "nothing was left to gain"
    lost = gained([1, None, 0], [1, 1, 1])
    assert (lost["gain"].value, lost["gain"].n, lost["gain"].unscored) == (1.0, 3, 0), "what was not read is not right"
    assert (lost["gain_read"].value, lost["gain_read"].n) == (pytest.approx((1 - 0.5) / 0.5), 2)
    assert "gain" not in made([("a", 1, {})], GAIN), "without the questions alone there is none"


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_a_gain_is_at_most_one_and_nothing_where_nothing_changed(answers: list[tuple[bool, bool]]) -> None:
    before, after = [float(b) for b, _ in answers], [float(a) for _, a in answers]
    value = gained(before, after)["gain"].value
    assert value is None if all(before) else value is not None
    assert value is None or value <= 1.0
    assert gained(before, before)["gain"].value in (None, 0.0)


def test_a_mean_over_fewer_groups_than_the_benchmark_has_is_none() -> None:
    rows: list[Row] = [("a", 1, group("x")), ("b", 0, group("y"))]
    assert made(rows, Figure("mean", "mean-of-groups", by=("group",), groups=3))["mean"].value is None
    assert made(rows, Figure("mean", "mean-of-groups", by=("group",), groups=2))["mean"].value == 0.5


def test_a_mean_of_figures_counts_trials_once_apart_or_not() -> None:
    rows: list[Row] = [("a", 1, group("x")), ("b", 0, group("y")), ("c", 0, group("y")), ("d", None, group("y"))]
    x, y = (Figure(name, where={"group": (name,)}) for name in "xy")
    both = made(rows, x, y, Figure("both", "mean-of", of=("x", "y")))["both"]
    assert (both.value, both.n, both.unscored) == (0.5, 4, 0)
    twice = made(rows, Figure("p"), Figure("q"), Figure("both", "mean-of", of=("p", "q")))["both"]
    assert (twice.n, twice.unscored) == (4, 0)
