"""Robustness over severity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snellen.scoring.aggregates.instability import variant_range
from snellen.scoring.aggregates.robustness import aggregate, ladders, read_level
from snellen.scoring.tables.table import ScoreTable
from snellen.scoring.tables.table_builder import read_tables


def simulate(chances: dict[str, float], questions: int = 300) -> ScoreTable:
    generator = np.random.default_rng(2)
    rows: Any = [
        (f"q{i:03}", variant, 0, "accuracy", float(generator.random() < chance), None, None, None)
        for i in range(questions)
        for variant, chance in chances.items()
    ]
    return read_tables(rows)["accuracy"]


def test_levels() -> None:
    assert read_level("perturb=jpeg:3") == ("jpeg", 3.0)
    assert read_level("perturb=blur:0.5:seed7") == ("blur", 0.5)
    assert read_level("base") is None
    assert read_level("perturb=jpeg:3&wording=1") is None
    assert read_level("perturb=grey") is None


def test_by_hand() -> None:
    rows: Any = []
    table = {"a": (1, 1, 0), "b": (1, 0, 0), "c": (0, 1, 0), "d": (1, None, 1)}
    for name, values in table.items():
        for variant, value in zip(("base", "perturb=jpeg:1", "perturb=jpeg:2"), values, strict=True):
            if value is not None:
                rows.append((name, variant, 0, "accuracy", float(value), None, None, None))
    estimates = aggregate(read_tables(rows)["accuracy"], {"chance": 0.25})
    assert estimates["accuracy_jpeg_0"].value == pytest.approx(0.75)
    assert estimates["accuracy_jpeg_1"].value == pytest.approx(2 / 3)
    assert estimates["accuracy_jpeg_2"].value == pytest.approx(0.25)
    assert estimates["retention_jpeg_1"].value == pytest.approx(1.0), "over a, b, c only: two of three at base and at 1"
    assert estimates["retention_jpeg_2"].value == pytest.approx(0.0)
    assert estimates["accuracy_jpeg_worst"].value == pytest.approx(0.25)
    assert estimates["lost_jpeg"].value == pytest.approx(3 / 7)
    assert estimates["gained_jpeg"].value == pytest.approx(1 / 7)


def test_critical_severity_is_where_half_is_lost() -> None:
    chances = {"base": 0.95} | {f"perturb=blur:{s}": 0.25 + 0.7 / (1 + np.exp(2.0 * (s - 3))) for s in range(1, 6)}
    estimates = aggregate(simulate(chances), {"chance": 0.25})
    found = estimates["critical_severity_blur"]
    assert found.value == pytest.approx(3.0, abs=0.25)
    assert found.ci95 is not None
    assert found.ci95[0] < 3.0 < found.ci95[1]
    assert found.ci95[1] - found.ci95[0] < 0.8


def test_undefined_where_nothing_breaks() -> None:
    steady = aggregate(simulate({"base": 0.9, "perturb=blur:1": 0.9, "perturb=blur:2": 0.9}), {"chance": 0.25})
    assert steady["critical_severity_blur"].value is None
    blind = aggregate(simulate({"base": 0.0, "perturb=blur:1": 0.0, "perturb=blur:2": 0.0}))
    assert blind["retention_blur_1"].value is None
    assert blind["critical_severity_blur"].value is None


def test_families_stand_apart_and_need_a_base() -> None:
    table = simulate({"base": 0.9, "perturb=blur:1": 0.5, "perturb=jpeg:2": 0.5}, 20)
    assert [(ladder.family, ladder.severities) for ladder in ladders(table)] == [
        ("blur", (0.0, 1.0)),
        ("jpeg", (0.0, 2.0)),
    ]
    orphan = aggregate(simulate({"perturb=blur:1": 0.5, "perturb=blur:2": 0.5}, 5))
    assert orphan["accuracy_blur_1"].value is None
    assert orphan["accuracy_blur_worst"].value is None


def test_more_errors_are_no_gain() -> None:
    """Word errors of 0.1 that become 0.7: 0.3 of 0.9 is retained, every question lost, the worst is the highest."""
    rows = [
        (f"s{n}", variant, 0, value) for n in range(6) for variant, value in (("base", 0.1), ("perturb=blur:2", 0.7))
    ]
    scores: Any = [(*row[:3], "wer", row[3], None, "r", None) for row in rows]
    trials: Any = [(*row[:3], None) for row in rows]
    table = read_tables(scores, trials)["wer"]
    found = aggregate(table)
    assert (found["wer_blur_0"].value, found["wer_blur_2"].value) == (pytest.approx(0.1), pytest.approx(0.7))
    assert found["retention_blur_2"].value == pytest.approx(0.3 / 0.9)
    assert found["wer_blur_worst"].value == pytest.approx(0.7)
    assert (found["lost_blur"].value, found["gained_blur"].value) == (1.0, 0.0)
    spread = variant_range(table)
    assert spread["wer_worst_variant"].value == pytest.approx(0.7)
    assert spread["wer_best_variant"].value == pytest.approx(0.1)
    unread = read_tables([("s", "base", 0, "wer", None, None, None, "empty")], [("s", "base", 0, None)])["wer"]
    assert unread.value.tolist() == [1.0], "a page nobody could read is not read without an error"
