"""The band of a learning curve holds all points at once as often as it says; the alarm stays valid however long."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from snellen.kits.arrays.sup_band import fall, share_of_level, simultaneous_band


def drawn(
    generator: np.random.Generator, chances: list[float], groups: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return right answers at several points in time, alike within a question and within a group of questions."""
    shared = generator.normal(size=(groups * size, 1)) + np.repeat(generator.normal(size=(groups, 1)), size, axis=0)
    noise = generator.normal(size=(groups * size, len(chances)))
    score = (shared + noise) / np.sqrt(3.0)
    cuts = np.array([NormalDist().inv_cdf(chance) for chance in chances])
    return (score < cuts).astype(float), np.repeat(np.arange(groups), size)


def covered(runs: int, size: int) -> float:
    generator, chances, hits = np.random.default_rng(5), [0.3, 0.4, 0.5, 0.5, 0.55], 0
    truth = np.array(chances) - chances[0]
    for run in range(runs):
        band = simultaneous_band(*drawn(generator, chances, 300 // size, size), "test", run)
        hits += bool(np.all((band.low <= truth + 1e-12) & (truth - 1e-12 <= band.high)))
    return hits / runs


@pytest.mark.parametrize("size", [1, 5])
def test_the_band_holds_every_point_at_once(size: int) -> None:
    assert 0.90 <= covered(40, size) <= 1.0


@pytest.mark.nightly
@pytest.mark.parametrize("size", [1, 5])
def test_the_band_covers_as_often_as_it_says(size: int) -> None:
    assert 0.92 <= covered(600, size) <= 0.975


def test_one_point_and_no_change_have_an_honest_band() -> None:
    same = np.tile(np.arange(50) % 2.0, (3, 1)).T
    band = simultaneous_band(same, np.arange(50))
    assert np.allclose(band.difference, 0) and np.all(band.high[1:] >= 1.9 / 50) and band.high[0] == 0
    assert simultaneous_band(same[:, :1], np.arange(50)).factor == 0


def test_levels_of_all_looks_add_up_to_one_level() -> None:
    assert sum(share_of_level(look, look) * look for look in range(1, 100_000)) == pytest.approx(0.05, rel=1e-4)


def test_a_flat_curve_raises_few_false_alarms_and_a_fall_is_found() -> None:
    generator, alarms = np.random.default_rng(9), 0
    for _ in range(40):
        values, clusters = drawn(generator, [0.5] * 12, 200, 1)
        alarms += any(
            fall(values[:, values[:, :at].mean(0).argmax()], values[:, at], clusters, share_of_level(at, at))[1] > 0
            for at in range(1, 12)
        )
    assert alarms <= 5
    values, clusters = drawn(generator, [0.7, 0.4], 200, 1)
    fell, at_least = fall(values[:, 0], values[:, 1], clusters, share_of_level(1, 1))
    assert fell == pytest.approx(0.3, abs=0.12) and at_least > 0.05
