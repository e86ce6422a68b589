"""One task's part of results.json: shape, rates, groups, strict twins; no NaN, no dependence on order."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.builtins import AGGREGATES, default_registry
from snellen.core.errors import UsageError
from snellen.scoring.aggregates.means import group_codes, macro_over_groups, mean, rates
from snellen.scoring.aggregates.summary import summarize
from snellen.scoring.tables.table import ScoreTable
from snellen.scoring.tables.table_builder import read_tables
from snellen.stats.distributions import t_quantile
from snellen.stats.intervals import wilson


def table_of(rows: list[tuple[Any, ...]], trials: Any = (), samples: Any = ()) -> ScoreTable:
    """Make a table from (sample, variant, repeat, value[, answer[, reason]])."""
    full: Any = [
        (*row[:3], "accuracy", row[3], row[4] if len(row) > 4 else None, None, row[5] if len(row) > 5 else None)
        for row in rows
    ]
    return read_tables(full, trials, samples, metrics=["accuracy"])["accuracy"]


def test_questions_weigh_the_same_and_inferences_in_micro() -> None:
    table = table_of([("a", "base", 0, 1.0), ("a", "base", 1, 1.0), ("a", "base", 2, 1.0), ("b", "base", 0, 0.0)])
    estimates = mean(table)
    assert estimates["accuracy"].value == pytest.approx(0.5)
    assert estimates["accuracy_micro"].value == pytest.approx(0.75)
    assert estimates["accuracy"].n == 4


def test_strict_twin_keeps_everything_in_the_denominator() -> None:
    rows = [
        ("a", "base", 0, 1.0),
        ("b", "base", 0, None, None, "refusal"),
        ("c", "base", 0, None, None, "truncated"),
        ("d", "base", 0, 1.0),
    ]
    table = table_of(rows, trials=[("e", "base", 0, "timeout")])
    estimates = mean(table) | rates(table)
    own, read = estimates["accuracy"], estimates["accuracy_read"]
    assert (own.value, own.n, own.unscored, own.failed) == (0.5, 4, 0, 1)
    assert (read.value, read.n, read.unscored, read.failed) == (1.0, 2, 2, 1)
    assert (estimates["accuracy_strict"].value, estimates["accuracy_strict"].n) == (pytest.approx(0.4), 5)
    shares = {
        name: estimates[name].value for name in ("unparsed_rate", "refused_rate", "truncated_rate", "failed_rate")
    }
    assert shares == pytest.approx(
        {"unparsed_rate": 0.4, "refused_rate": 0.2, "truncated_rate": 0.2, "failed_rate": 0.2}
    )


def test_a_row_without_an_answer_is_not_a_reply_that_could_not_be_read() -> None:
    rows = [
        ("a", "base", 0, 1.0),
        ("b", "base", 0, None, "cat", "no_reference"),
        ("c", "base", 0, None, None, "unparsed"),
        ("d", "base", 0, None, None, "the sample has no reference answer"),
        ("e", "base", 0, None, None, "the sample has no answer"),
    ]
    table = table_of(rows)
    assert rates(table)["unparsed_rate"].value == pytest.approx(1 / 5)
    assert mean(table)["accuracy"].unscored == 3  # they are still counted, under their own reason


def test_a_refusal_of_the_server_counts_as_refused() -> None:
    table = table_of([("a", "base", 0, 1.0)], trials=[("b", "base", 0, "refused"), ("c", "base", 0, "truncated")])
    assert rates(table)["refused_rate"].value == pytest.approx(1 / 3)
    assert rates(table)["truncated_rate"].value == pytest.approx(1 / 3)
    assert rates(table)["failed_rate"].value == pytest.approx(2 / 3)


def test_shape_of_results() -> None:
    samples = [("a", None, {"topic": "x"}), ("b", None, {"topic": "y"}), ("c", None, {})]
    table = table_of([("a", "base", 0, 1.0), ("b", "base", 0, 0.0), ("c", "base", 0, 1.0)], samples=samples)
    result = summarize({"accuracy": table}, group_by=["topic"])
    assert set(result) == {"metrics", "groups"}
    counts = {"n", "unscored", "failed", "not_yet_asked", "left_out", "unit"}
    assert set(result["metrics"]["accuracy"]) == {"value", "stderr", "ci95", "bounds", "read", *counts}
    assert isinstance(result["metrics"]["accuracy"]["ci95"], list)
    assert {value: part["accuracy"]["value"] for value, part in result["groups"]["topic"].items()} == {
        "x": 1.0,
        "y": 0.0,
        "(none)": 1.0,
    }
    assert sum(part["accuracy"]["n"] for part in result["groups"]["topic"].values()) == 3
    assert result["metrics"]["accuracy_macro_topic"]["value"] == pytest.approx(2 / 3)
    assert msgspec.json.decode(msgspec.json.encode(result)) == result


def test_macro_error_by_hand() -> None:
    samples = [(f"s{i}", None, {"topic": "x" if i < 4 else "y"}) for i in range(8)]
    rows = [(f"s{i}", "base", 0, float(i % 2)) for i in range(8)]
    single = macro_over_groups(table_of(rows, samples=samples), "topic")["accuracy_macro_topic"]
    assert (single.value, single.stderr) == (0.5, pytest.approx(math.sqrt(4 / 3 * 8 * (0.5 / 8) ** 2)))
    pairs = [(name, f"doc{int(name[1:]) // 2}", tags) for name, _, tags in samples]
    assert macro_over_groups(table_of(rows, samples=pairs), "topic")["accuracy_macro_topic"].stderr == 0.0, (
        "every document has one of each"
    )


def test_groups_by_variant_axis_repeat_and_unknown_key() -> None:
    rows = [("a", "base", 0, 1.0), ("a", "perturb=jpeg:3", 0, 0.0), ("a", "perturb=jpeg:3&wording=1", 0, 1.0)]
    table = table_of(rows)
    result = summarize({"accuracy": table}, group_by=["perturb", "variant", "repeat"])["groups"]
    assert {value: part["accuracy"]["value"] for value, part in result["perturb"].items()} == {
        "base": 1.0,
        "jpeg:3": 0.5,
    }
    assert len(result["variant"]) == 3
    assert result["repeat"]["0"]["accuracy"]["n"] == 3
    with pytest.raises(UsageError, match="perturb"):
        group_codes(table, "pertub")


def test_several_inferences_and_variants_add_their_metrics() -> None:
    rows = [
        (f"q{i}", variant, r, float((i + r) % 2), "yes" if (i + r) % 2 else "no")
        for i in range(4)
        for r in range(3)
        for variant in ("base", "wording=1")
    ]
    metrics = summarize({"accuracy": table_of(rows)})["metrics"]
    # Every question has the runs no-yes-no or yes-no-yes, twice: one or two of three right.
    entropy = -(math.log(1 / 3) / 3 + 2 * math.log(2 / 3) / 3)
    expected = {
        "accuracy_micro": 0.5,
        "accuracy_majority": 0.5,  # two of four questions are mostly right
        "accuracy_run_std": 0.0,  # each of the three runs is half right
        "pass@2": (2 / 3 + 1) / 2,  # one right of three: two draws hold it in two of three pairs; two right: always
        "pass^2": (0 + 1 / 3) / 2,
        "pass@3": 1.0,
        "pass^3": 0.0,
        "cons@3": 0.5,
        "answer_entropy": entropy,
        "flip_rate": 2 / 3,  # two of the three pairs of runs differ
        "instability": entropy,  # over both variants the shares stay one third
        "instability_flip_rate": 8 / 15,  # of 15 pairs of six answers, 2 × 4 differ
        "accuracy_range": 0.0,
        "accuracy_worst_variant": 0.5,
    }
    assert {name: metrics[name]["value"] for name in expected} == pytest.approx(expected, abs=1e-12)
    assert (metrics["accuracy"]["n"], metrics["answer_entropy"]["n"], metrics["instability"]["n"]) == (24, 8, 4)


def test_second_metric_keeps_both_numbers_apart() -> None:
    rows: Any = [
        ("a", "base", r, metric, float(r == 0 or metric == "b"), "x", None, None)
        for r in range(2)
        for metric in ("a", "b")
    ]
    metrics = summarize(read_tables(rows))["metrics"]
    assert metrics["pass^2"]["value"] == 0.0
    assert metrics["pass^2_b"]["value"] == 1.0


def test_registered_aggregates_resolve_and_take_tables() -> None:
    scored = SimpleNamespace(tables={"accuracy": table_of([("a", "base", 0, 1.0), ("a", "base", 1, 0.0)])})
    for name in AGGREGATES:
        if "summary" in AGGREGATES[name] and name != "consistency":
            assert isinstance(default_registry().get("aggregate", name)(scored, {}), dict)


def numbers_of(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers_of(part)]
    if isinstance(value, list):
        return [number for part in value for number in numbers_of(part)]
    return [value] if isinstance(value, float) else []


keys = st.tuples(
    st.sampled_from("abcd"),
    st.sampled_from(["base", "perturb=jpeg:1", "perturb=jpeg:2", "wording=1"]),
    st.integers(0, 2),
)
values = st.none() | st.sampled_from([0.0, 1.0]) | st.floats(-1e6, 1e6)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(keys, st.tuples(values, st.sampled_from(["A", "B", None]))),
    st.sets(keys, max_size=4),
    st.randoms(use_true_random=False),
)
def test_any_table_gives_finite_results_that_do_not_depend_on_order(
    scored: Any, failed: Any, shuffler: random.Random
) -> None:
    rows = [
        (*key, value, answer if value is not None else None, None if value is not None else "refusal")
        for key, (value, answer) in scored.items()
    ]
    trials = [(*key, "server") for key in failed]
    samples = [(name, "g" if name in "ab" else None, {"round": i, "topic": "t"}) for i, name in enumerate("abcd")]

    def run() -> dict[str, Any]:
        return summarize({"accuracy": table_of(rows, trials, samples)}, group_by=["topic", "variant"])

    result = run()
    assert all(math.isfinite(number) for number in numbers_of(result))
    head = result["metrics"]["accuracy"]
    assert head["n"] + head["unscored"] + head["failed"] == len(scored.keys() | failed)
    for key in ("topic", "variant"):
        parts = [part["accuracy"] for part in result["groups"][key].values()]
        assert sum(part["n"] + part["unscored"] + part["failed"] for part in parts) == len(scored.keys() | failed)
    shuffler.shuffle(rows)
    shuffler.shuffle(samples)
    assert run() == result


def test_chains_are_scored_for_consistency_without_being_asked() -> None:
    samples = [
        (name, "item", {"role": role, "step": step}) for name, role, step in (("h", "inference", 0), ("s", "step", 1))
    ]
    metrics = summarize({"accuracy": table_of([("h", "base", 0, 1.0), ("s", "base", 0, 1.0)], samples=samples)})[
        "metrics"
    ]
    assert (metrics["Rh"]["value"], metrics["Cf"]["value"]) == (1.0, 1.0)
    assert summarize({}) == {"metrics": {}, "groups": {}}


def test_macro_interval_by_hand() -> None:
    samples = [(f"s{i}", None, {"topic": "x" if i < 4 else "y"}) for i in range(8)]
    table = table_of([(f"s{i}", "base", 0, float(i % 2)) for i in range(8)], samples=samples)
    macro = macro_over_groups(table, "topic")["accuracy_macro_topic"]
    variance = 4 / 3 * 8 * (0.5 / 8) ** 2
    assert macro.ci95 == pytest.approx(wilson(0.5, 0.25 / variance, t_quantile(0.975, 1.5 * 7.0)))
    assert macro_over_groups(table.take(table.sample < 0), "topic")["accuracy_macro_topic"].value is None
    single = macro_over_groups(table.take(table.sample < 1), "topic")["accuracy_macro_topic"]
    assert (single.value, single.stderr) == (0.0, None)
