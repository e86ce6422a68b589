"""Results of one test in, how much of its axis is read out: what makes settings of different tests add up to points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..stats.intervals import Floats
from .exam_trials import generator
from .plate import Axis
from .procedure import CEILING, FLOOR, MEASURED

DRAWS = 4000
POINT = 1.0
"""A point is one of 100 levels spread evenly, in the logarithm, over the axis of a test."""


class Behind(NamedTuple):
    """How many points a setting lies behind another, with the 95 % interval."""

    points: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Tell whether it is within a point of it, as far as the trials can say."""
        return "within" if self.high <= POINT else "further" if self.low > POINT else "not settled"


def why_left_out(results: Sequence[Mapping[str, Any] | None]) -> str:
    """Return why a test does not count for these settings; empty where it does."""
    for number, result in enumerate(results, 1):
        if result is None:
            return f"not asked in exam {number}"
        if "axis" not in result:
            return "has no threshold"
        if result["verdict"] not in (MEASURED, CEILING, FLOOR):
            return f"{result['verdict']} in exam {number}"
        if not (result.get("retest") or {}).get("consistent", True):
            return f"its re-test disagreed in exam {number}"
        first = results[0]
        if first is not None and result["axis"] != first["axis"]:
            return f"other levels in exam {number} than in exam 1"
    return ""


def points_read(name: str, result: Mapping[str, Any], number: int) -> Floats:
    """Return draws of how many of 100 levels are read, from the posterior; none where it fails when it is easy."""
    posterior = result.get("posterior")
    if posterior is None:
        return np.zeros(DRAWS)
    hardest, easiest = result["axis"]
    axis, draw = Axis(hardest, easiest), generator(number, name, "points")
    mass = np.array(posterior["mass"], np.float64)
    place = draw.choice(mass.size, DRAWS, p=mass / mass.sum()) + draw.random(DRAWS) - 0.5
    threshold = posterior["x"] + posterior["step"] * place
    share = (axis.x(easiest) - threshold) / (axis.x(easiest) - axis.x(hardest))
    return np.asarray(100.0 * np.clip(share, 0.0, 1.0), np.float64)


def mean_points(tests: Mapping[str, Mapping[str, Any]], names: Sequence[str], number: int) -> Floats:
    """Return draws of the mean over tests for the setting of that number."""
    return np.asarray(np.mean([points_read(name, tests[name], number) for name in names], 0), np.float64)


def span_of(draws: Floats) -> tuple[float, float, float]:
    """Return the mean and the 95 % interval of draws."""
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(draws.mean()), float(low), float(high)


def behind(draws: Floats, best: Floats) -> Behind:
    """Return how far a setting lies behind the best; the best lies behind itself by nothing."""
    return Behind(0.0, 0.0, 0.0) if draws is best else Behind(*span_of(best - draws))
