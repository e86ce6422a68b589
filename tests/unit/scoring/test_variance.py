"""Variance components and the advice they give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.scoring.aggregates.variance import advise, split_variance
from snellen.scoring.tables.table import ScoreTable
from snellen.scoring.tables.table_builder import read_tables
from snellen.stats.power import VarianceSplit


def simulate(
    question: float, variant: float, sampling: float, *, holes: float = 0.0, questions: int = 400
) -> ScoreTable:
    generator = np.random.default_rng(9)
    rows: list[Any] = []
    for q in range(questions):
        a = generator.normal(0, question**0.5)
        for v in range(3):
            b = generator.normal(0, variant**0.5)
            for r in range(4):
                value = a + b + generator.normal(0, sampling**0.5)
                if generator.random() >= holes:
                    rows.append((f"q{q:04}", f"wording={v}", r, "m", value, None, None, None))
    return read_tables(rows)["m"]


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("parts", [(1.0, 0.3, 0.5), (0.2, 0.0, 1.0), (0.0, 0.5, 0.1)])
def test_recovers_components(parts: tuple[float, float, float], holes: float) -> None:
    split = split_variance(simulate(*parts, holes=holes))
    assert (split.question, split.variant, split.sampling) == pytest.approx(parts, abs=0.12)
    assert min(split.question or 0.0, split.variant or 0.0, split.sampling or 0.0) >= 0.0


def test_predicted_error_is_that_of_the_mean() -> None:
    table = simulate(1.0, 0.3, 0.5)
    means = [table.value[table.sample == code].mean() for code in range(400)]
    assert split_variance(table).stderr == pytest.approx(np.std(means, ddof=1) / 20, rel=1e-6)


def test_designs_that_cannot_tell_say_none() -> None:
    rows: Any = [(f"q{i}", "base", 0, "m", float(i % 2), None, None, None) for i in range(10)]
    split = split_variance(read_tables(rows)["m"])
    assert (split.variant, split.sampling) == (None, None)
    assert "--num-infers" in advise(split)
    empty = split_variance(read_tables([], metrics=["m"])["m"])
    assert (empty.question, empty.stderr) == (None, None)
    assert "do not spread" in advise(empty)
    assert split_variance(read_tables(rows[:1])["m"]).question is None


def test_advice_in_plain_words() -> None:
    assert "More questions, not more repeats." in advise(VarianceSplit(0.9, None, 0.1, 500, 1.0, 4.0))
    assert "More repeats help" in advise(VarianceSplit(0.05, None, 0.9, 500, 1.0, 1.0001))
    assert "variants" in advise(VarianceSplit(0.05, 0.9, 0.05, 500, 2.0, 4.0))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["base", "w=1"]), st.floats(-1e50, 1e50)), max_size=25)
)
def test_never_negative_never_nan(trials: list[tuple[str, str, float]]) -> None:
    rows: Any = [(name, variant, i, "m", value, None, None, None) for i, (name, variant, value) in enumerate(trials)]
    split = split_variance(read_tables(rows, metrics=["m"])["m"])
    parts = [part for part in (split.question, split.variant, split.sampling) if part is not None]
    assert all(np.isfinite(part) and part >= 0.0 for part in parts)
    assert advise(split)


def test_advice_word_for_word() -> None:
    assert advise(VarianceSplit(0.75, None, 0.25, 100, 1.0, 4.0)) == (
        "Variance of single trials: 75% between questions, 25% between samplings of one prompt. "
        "Twice the repeats would narrow the interval by 2%, twice the questions by 29%. More questions, not more repeats."
    )
    assert "Twice the variants would narrow the interval by 26%" in advise(
        VarianceSplit(0.05, 0.9, 0.05, 500, 2.0, 4.0)
    )
