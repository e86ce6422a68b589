"""The published form against changed ones: false alarms at their rate, power as promised, a liking for A is no memory."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.stats.exchange import beside_references, detectable_drop, exchange_test, order_test

LIKING = np.array([0.5, 0.2, 0.2, 0.1])


def answers(draw: np.random.Generator, n: int, memory: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A model that knows 40 %, likes A, and remembers the published letter of a share of the questions."""
    places = np.column_stack([draw.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]), draw.integers(0, 4, (n, 3))])
    right = (draw.random(n) < 0.4)[:, None] | (draw.random((n, 4)) < LIKING[places])
    remembered = (draw.random(n) < memory)[:, None]
    return np.where(remembered, places == places[:, :1], right).astype(float), places


def test_a_liking_for_a_letter_is_no_memory() -> None:
    draw = np.random.default_rng(0)
    alarms = [(order_test(*answers(draw, 100)).p or 1) <= 0.025 for _ in range(400)]
    assert np.mean(alarms) <= 0.045  # 2.5 %, and what 400 draws may add


def test_what_could_have_been_found_is_found() -> None:
    draw, found = np.random.default_rng(1), []
    for _ in range(200):
        values, places = answers(draw, 150)
        detectable = order_test(values, places).detectable or 1.0
        wrong = values[:, 0] == 0
        values[:, 0] = np.maximum(values[:, 0], wrong & (draw.random(150) < detectable / wrong.mean()))
        found.append((order_test(values, places).p or 1) <= 0.025)
    assert np.mean(found) >= 0.85


def test_a_remembered_letter_is_found() -> None:
    one = order_test(*answers(np.random.default_rng(2), 200, memory=0.4))
    assert (one.p or 1) < 0.001
    assert one.drop == pytest.approx(0.4 * (1 - 0.28), abs=0.08)  # a drawn order has it in the same place at times
    assert one.ci95 is not None and one.ci95[0] > 0


def test_two_forms_of_right_and_wrong_are_mcnemars_exact_test() -> None:
    published, changed = np.r_[np.ones(9), np.zeros(1), np.ones(20)], np.r_[np.zeros(9), np.ones(1), np.ones(20)]
    one = exchange_test(published, changed[:, None], draws=20_000)
    assert one.p == pytest.approx(11 / 1024, abs=0.004)
    assert one.informative == 10


def test_forms_that_never_differ_give_no_alarm_and_still_tell_their_power() -> None:
    one = exchange_test(np.ones(50), np.ones((50, 3)))
    assert (one.p, one.drop) == (1.0, 0.0)
    assert one.detectable == pytest.approx(detectable_drop(0.0, 50))
    assert one.ci95 is None


def test_nothing_is_said_of_nothing() -> None:
    assert exchange_test(np.zeros(0), np.zeros((0, 1))).p is None
    assert order_test(np.full((3, 2), np.nan), np.zeros((3, 2), int)).drop is None


def test_a_drop_that_honest_models_have_too_is_no_alarm() -> None:
    alone, _ = beside_references(0.2, 0.03, [0.0, 0.02])
    common, detectable = beside_references(0.2, 0.03, [0.18, 0.22])
    assert alone < 0.01 < 0.3 < common
    assert detectable > 3.2 * 0.03
