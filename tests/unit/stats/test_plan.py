"""Plans that deliver the power they promise."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.core.errors import UsageError
from snellen.stats.power import Assumptions, VarianceSplit, assume, gap_for, plan, questions_for, recommend


def test_planned_power_is_met_in_simulation() -> None:
    """Two models, correlated chances over questions, 0/1 trials: the share of runs that find the gap."""
    assumptions = Assumptions(accuracy=0.6, question_share=0.5, likeness=0.5)
    gap, repeats = 0.05, 3
    questions = questions_for(gap, repeats, assumptions)
    generator = np.random.default_rng(6)
    # chances 0.6 ± d so that the variance between questions is half of p(1-p); equal in half of the questions (likeness 0.5)
    spread = (0.5 * 0.24) ** 0.5
    found = 0
    for _ in range(400):
        signs = generator.choice([-1, 1], questions)
        other = np.where(generator.random(questions) < 0.5, signs, generator.choice([-1, 1], questions))
        first = generator.binomial(repeats, 0.6 - gap / 2 + spread * signs) / repeats
        second = generator.binomial(repeats, np.clip(0.6 + gap / 2 + spread * other, 0, 1)) / repeats
        change = second - first
        found += abs(change.mean()) / (change.std(ddof=1) / questions**0.5) > 1.96
    assert 0.74 <= found / 400 <= 0.86


def test_gap_and_questions_are_inverse() -> None:
    assumptions = Assumptions()
    questions = questions_for(0.02, 2, assumptions)
    assert gap_for(questions, 2, assumptions) == pytest.approx(0.02, rel=1e-3)
    assert questions_for(0.01, 2, assumptions) == pytest.approx(4 * questions, rel=0.01)


def test_table_of_designs() -> None:
    designs = plan(Assumptions(), gap=0.02, repeats=[1, 4])
    assert designs[1].questions < designs[0].questions
    assert designs[1].calls == 4 * designs[1].questions > designs[0].calls
    assert "Cheapest" in recommend(designs, by_questions=False)
    assert "scarce" in recommend(designs, by_questions=False)
    at_hand = plan(Assumptions(), questions=500)
    assert [design.gap for design in at_hand] == sorted((design.gap for design in at_hand), reverse=True)
    assert "500 questions" in recommend(at_hand, by_questions=True)


def test_measured_shares() -> None:
    measured = assume(VarianceSplit(0.15, None, 0.05, 100, 1.0, 4.0), 0.7)
    assert measured.question_share == pytest.approx(0.75)
    assert assume(VarianceSplit(None, None, None, 0, 0.0, 0.0), 1.0).accuracy < 1.0


def test_bad_plans_say_what_to_give() -> None:
    for arguments in ({}, {"gap": 0.1, "questions": 5}, {"gap": 1.5}, {"questions": 0}, {"gap": 0.1, "repeats": [0]}):
        with pytest.raises(UsageError):
            plan(Assumptions(), **arguments)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="accuracy"):
        Assumptions(accuracy=1.2)
    with pytest.raises(UsageError, match="likeness"):
        Assumptions(likeness=-0.1)
