"""`sight.drift`: a threshold that moves during an exam is told, one that stays is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exam_observer import Observer, sit
from snellen.sight.drift import late_count, trials_to_repeat
from snellen.sight.exam_trials import SEARCH, Outcome, Planned
from snellen.sight.plate import Reading
from snellen.stats.exchange import exchange_chance

READ, FAILED = Reading(1.0, 1, 0.1, "x"), None


def outcomes(count: int, failed: tuple[int, ...] = ()) -> list[Outcome]:
    return [
        Outcome(
            Planned(SEARCH, number // 4, number % 4, 1.0 + number, "", 0), 1.0, FAILED if number in failed else READ
        )
        for number in range(count)
    ]


def test_which_trials_are_repeated_goes_by_their_number_alone() -> None:
    def numbers(*told: Any) -> list[int]:
        return [round(one.planned.level) - 1 for one in trials_to_repeat(*told)]

    assert numbers(outcomes(30), 4, 4) == [4, 5, 6, 7]
    assert sorted(numbers(outcomes(12), 12, 4)) == list(range(12))
    assert max(numbers(outcomes(99), 28, 4)) == 15, "what came later is not early"
    assert numbers(outcomes(6), 12, 4) == 2 * [4, 5, 0, 1, 2, 3], "more are asked for than there were: twice"
    assert numbers(outcomes(30, failed=(5, 6)), 8, 4) == [4, 7, 8, 9, 10, 11]
    assert numbers(outcomes(3), 12, 4) == 2 * [0, 1, 2]
    wrong = [one._replace(reading=Reading(0.0, 1, 0.1, "y")) for one in outcomes(30)]
    assert numbers(wrong, 8, 4) == numbers(outcomes(30), 8, 4)


def test_many_tests_share_what_is_asked_again() -> None:
    assert late_count(1, rows=True) == 28 and late_count(30, rows=True) == 4
    assert late_count(30, rows=False) == 12


def chance_of(differences: Any, number: int) -> float:
    return exchange_chance(np.asarray(differences, float), np.zeros((len(differences), 1)), number)


def test_reversing_pairs_gives_the_chance_of_a_sign_test() -> None:
    assert chance_of(np.ones(8), 1) == pytest.approx(2 / 2**8, abs=0.003)
    assert chance_of([1.0, -1.0, 1.0, -1.0], 1) == 1.0
    assert chance_of(np.zeros(5), 1) == 1.0
    draw = np.random.default_rng(0)
    alarms = [chance_of(draw.normal(0, draw.uniform(0.1, 3, 16)), number) <= 0.05 for number in range(300)]
    assert np.mean(alarms) < 0.085


def test_the_first_of_three_is_as_often_the_highest_as_the_others() -> None:
    draw = np.random.default_rng(1)
    values = draw.normal(0, 1, (300, 12, 3))
    alarms = [exchange_chance(one[:, 0], one[:, 1:], number) <= 0.05 for number, one in enumerate(values)]
    assert 0.01 < np.mean(alarms) < 0.085
    assert exchange_chance(values[0, :, 0] + 3, values[0, :, 1:], 1) < 0.01


def test_a_threshold_that_doubles_is_told_and_gets_no_advice(tmp_path: Path) -> None:
    for seed in range(3):
        result = sit(tmp_path / str(seed), Observer(drift=(2.0, 6), slope=4.5, seed=seed), seed=seed, tests=("acuity",))
        found = result.exam["tests"]["acuity"]
        assert result.exam["drift"]["moved"] and found["drift"]["early"] > found["drift"]["late"] + 0.1
        assert not [line for line in result.exam["prescription"] if line["id"] in ("text-height", "recipe")]
        assert "moved while it was measured" in (result.folder / "prescription.html").read_text("utf-8")


def test_one_that_stays_is_not_and_its_late_trials_count(tmp_path: Path) -> None:
    moved = 0
    for seed in range(4):
        exam = sit(tmp_path / str(seed), Observer(seed=seed), mode="quick", seed=seed, tests=("acuity",)).exam
        moved += exam["drift"]["moved"]
        stages = [point[4] for point in exam["tests"]["acuity"]["levels"]]
        assert stages.count("late") == exam["drift"]["late_trials"] >= 12
    assert moved <= 1
