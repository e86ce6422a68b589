"""The confidence sequence is valid at every moment, and narrow enough to be of use."""

from __future__ import annotations

import numpy as np
import pytest

from draws import drawn
from snellen.core.errors import UsageError
from snellen.stats.sequential import ConfidenceSequence


@drawn(200)
@pytest.mark.parametrize(("share", "half_width"), [(0.5, None), (0.8, 0.05), (0.97, 0.02)])
def test_anytime_coverage(share: float, half_width: float | None, draws: int) -> None:
    """The true mean may fall out at any of 400 looks in at most 5 % of runs."""
    generator = np.random.default_rng(12)
    lost = 0
    for _ in range(draws):
        sequence = ConfidenceSequence(half_width=half_width, grid=200)
        for value in (generator.random(400) < share).tolist():
            sequence.add(float(value))
        lost += not sequence.interval[0] <= share <= sequence.interval[1]
    assert lost / draws <= 0.05


def test_interval_only_shrinks_and_holds_the_mean() -> None:
    generator = np.random.default_rng(1)
    sequence = ConfidenceSequence(grid=500)
    before = sequence.interval
    for value in generator.beta(4, 2, 500).tolist():
        sequence.add(value)
        low, high = sequence.interval
        assert before[0] <= low <= high <= before[1]
        before = (low, high)
    assert sequence.n == 500
    assert sequence.mean is not None
    assert low <= sequence.mean <= high


def test_stops_within_reach() -> None:
    """± 2 points at a share of 0.9: a fixed sample needs 864 trials; looking at every moment may cost twice that."""
    generator = np.random.default_rng(3)
    sequence = ConfidenceSequence(half_width=0.02)
    while not sequence.is_narrow:
        sequence.add(float(generator.random() < 0.9))
    assert 864 <= sequence.n <= 1728
    assert not ConfidenceSequence().is_narrow


def test_steady_values_stop_soon() -> None:
    sequence = ConfidenceSequence()
    for _ in range(300):
        sequence.add(0.5)
    assert sequence.interval[1] - sequence.interval[0] < 0.1


def test_refuses_what_is_no_share() -> None:
    sequence = ConfidenceSequence()
    assert (sequence.mean, sequence.interval) == (None, (0.0, 1.0))
    for value in (1.5, -0.1, float("nan")):
        with pytest.raises(UsageError, match="until-ci"):
            sequence.add(value)
    with pytest.raises(UsageError, match="alpha"):
        ConfidenceSequence(alpha=0.0)
    with pytest.raises(UsageError, match="points"):
        ConfidenceSequence(half_width=0.0)
