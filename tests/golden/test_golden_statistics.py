"""Numbers recorded from other systems' own code: consistency, entropy, rounds, avg@n, pass@k, cons@k."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.scoring.aggregates.consistency import chains_from_items, consistency, steps
from snellen.scoring.aggregates.instability import aggregate as instability
from snellen.scoring.aggregates.instability import round_trend
from snellen.scoring.aggregates.repeats import aggregate
from snellen.scoring.tables.table_builder import read_tables

GOLDEN = Path(__file__).parent / "data"


def load(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text())


def consistency_sets() -> list[Any]:
    return load("cure/consistency.json")["sets"]


@pytest.mark.parametrize("case", consistency_sets(), ids=lambda case: case["id"])
def test_consistency(case: Any) -> None:
    chains = chains_from_items(case["ground_truth"], case["predictions"])
    expected = case["expected"]
    for convention, key in (("conditional", "conditional"), ("over-n", "over_N")):
        found = {name: estimate.value for name, estimate in consistency(chains, convention).items()}
        assert found == pytest.approx(expected[key], abs=1e-9)
    assert steps(chains)["step_accuracy"].value == pytest.approx(expected["step_accuracy"], abs=1e-9)
    assert chains.inference.astype(int).tolist() == [item["h"] for item in expected["per_item"]]
    assert chains.whole.astype(int).tolist() == [item["s"] for item in expected["per_item"]]
    lengths = chains.lengths.tolist()
    assert [row[:n].astype(int).tolist() for row, n in zip(chains.steps, lengths, strict=True)] == [
        item["steps"] for item in expected["per_item"]
    ]


def test_published_rows_follow_the_conditional_convention() -> None:
    checked = 0
    for row in load("cure/consistency.json")["published_row_check"]:
        if row["row"].startswith(("LLaVA", "miniGPT")):
            continue  # these two transcribed rows fit neither convention
        for part, whole in (("Cf", "Rcot"), ("Cb", "Rh")):
            if row[part] is not None and row[whole] is not None:
                assert row[part] == pytest.approx(100 * row["Ro"] / row[whole], abs=0.02)
                checked += 1
    assert checked >= 5


def test_entropy() -> None:
    for row in load("reform/fn_entropy.json")["rows"]:
        rows: Any = [
            (group, "base", number, "accuracy", 1.0, str(answer), None, None)
            for group, answers in row["groups"].items()
            for number, answer in enumerate(answers)
        ]
        if rows:  # of nothing at all the original divides by zero
            found = instability(read_tables(rows)["accuracy"])["instability"].value
            assert found == pytest.approx(row["out"]["ok"], abs=1e-9)


def test_rounds() -> None:
    for row in load("reform/fn_multi_round.json")["rows"]:
        trend = round_trend(row["rounds"])
        correlation, slope = row["out"]["ok"]
        assert (
            trend.correlation is None
            if correlation == "nan"
            else trend.correlation == pytest.approx(correlation, abs=1e-9)
        )
        assert trend.slope == pytest.approx(slope, abs=1e-9)


def repeat_cases() -> list[str]:
    return sorted(path.name for path in (GOLDEN / "perf").glob("k*.json"))


@pytest.mark.parametrize("name", repeat_cases())
def test_several_inferences(name: str) -> None:
    """avg@n and pass@k with the right grouping; the recorded grouping bug is not reproduced (docs/adr/statistics.md)."""
    case = load(f"perf/{name}")
    n, k = case["n"], case["k"]
    rows: Any = [
        (f"q{i:02}", "base", r, "accuracy", float(case["correct_matrix"][i][r]), answer, None, None)
        for i, answers in enumerate(case["predictions"])
        for r, answer in enumerate(answers)
    ]
    estimates = aggregate(read_tables(rows)["accuracy"], {"k": [k]})
    right = case["independent_right_grouping"]
    assert estimates["accuracy"].value == pytest.approx(right[f"avg@{n}"] / 100, abs=1e-9)
    if n > 1:
        assert estimates["accuracy"].value == pytest.approx(case["aisbench"][f"avg@{n}"] / 100, abs=1e-9)
    assert estimates[f"pass@{k}"].value == pytest.approx(right[f"pass@{k}"] / 100, abs=1e-9)
    vote = right["majority-vote accuracy over n answers (ties: first seen)"]
    assert estimates["accuracy_majority"].value == pytest.approx(vote / 100, abs=1e-9)
