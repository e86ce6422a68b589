"""Confidence from log-likelihoods."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import DataError
from snellen.scoring.aggregates.calibration import brier, calibration_error, confidence, reliability, risk_coverage
from snellen.stats.confidence import softmax


def test_softmax_and_confidence() -> None:
    assert softmax([math.log(3), math.log(1)]).tolist() == pytest.approx([0.75, 0.25])
    assert softmax([-1e5, -1e5 - 1]).sum() == pytest.approx(1.0)
    assert softmax([-math.inf, 0.0]).tolist() == [0.0, 1.0]
    assert softmax([2.0, 0.0], temperature=2.0)[0] == pytest.approx(math.e / (math.e + 1))
    assert confidence([-2.0, -1.0, -1.0])[0] == 1
    for bad in ([], [math.nan, 0.0], [-math.inf], [math.inf, 0.0]):
        with pytest.raises(DataError):
            softmax(bad)


def test_calibration_error_by_hand() -> None:
    sure, right = [0.95, 0.95, 0.55, 0.55], [1.0, 0.0, 1.0, 0.0]
    assert calibration_error(sure, right, bins=10) == pytest.approx((0.45 + 0.05) / 2)
    assert brier(sure, right) == pytest.approx((0.05**2 + 0.95**2 + 0.45**2 + 0.55**2) / 4)
    assert (calibration_error([], []), brier([], []), risk_coverage([], []).area) == (None, None, None)


def test_a_calibrated_model_has_little_error() -> None:
    generator = np.random.default_rng(0)
    sure = generator.random(40_000)
    right = (generator.random(40_000) < sure).astype(float)
    error = calibration_error(sure.tolist(), right.tolist())
    assert error is not None
    assert error < 0.01


def test_risk_coverage_takes_equals_together() -> None:
    curve = risk_coverage([0.9, 0.5, 0.5, 0.1], [1.0, 1.0, 0.0, 0.0])
    assert curve.coverage == pytest.approx((0.25, 0.75, 1.0))
    assert curve.risk == pytest.approx((0.0, 1 / 3, 0.5))
    assert curve.area == pytest.approx((0.0 + 2 / 3 + 0.5) / 4)


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0])), max_size=50))
def test_bins_add_up(rows: list[tuple[float, float]]) -> None:
    sure, right = [row[0] for row in rows], [row[1] for row in rows]
    assert sum(part.n for part in reliability(sure, right)) == len(rows)
    error = calibration_error(sure, right)
    assert error is None if not rows else 0.0 <= error <= 1.0  # type: ignore[operator]


def test_bad_columns() -> None:
    with pytest.raises(DataError, match="one of each"):
        brier([0.5], [])
    with pytest.raises(DataError, match="0…1"):
        brier([1.5], [1.0])


def test_edges_of_the_bins() -> None:
    bins = reliability([0.0, 0.25, 0.26, 1.0], [0.0, 1.0, 1.0, 1.0], bins=4)
    assert [(part.low, part.high, part.n) for part in bins] == [
        (0.0, 0.25, 2),
        (0.25, 0.5, 1),
        (0.5, 0.75, 0),
        (0.75, 1.0, 1),
    ]
    assert (bins[0].confidence, bins[0].accuracy) == (pytest.approx(0.125), pytest.approx(0.5))
    assert (bins[2].confidence, bins[2].accuracy) == (None, None)
    for sure, right in (([-0.1], [1.0]), ([0.5], [1.5]), ([0.5], [-0.5])):
        with pytest.raises(DataError):
            calibration_error(sure, right)
