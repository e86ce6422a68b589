"""How the share of what is right grows with the level: the logistic law, and two others that observers may have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .intervals import Floats

FAR = math.log(19.0)
"""Slope times the way from the threshold to where 95 % of what can be right is right, of the logistic law."""


def logistic_curve(reach: Floats) -> Floats:
    """Return the logistic function, for any finite reach."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(reach, -40.0, 40.0))))


class Law(NamedTuple):
    """A curve from 0 to 1 that is one half at 0 and as steep there as the logistic, and where it reaches 95 %."""

    curve: Callable[[Floats], Floats]
    far: float


_LN2 = math.log(2.0)
LOGISTIC = Law(logistic_curve, FAR)
OTHER_LAWS = (
    Law(
        lambda reach: np.asarray(1.0 - np.exp(-_LN2 * np.exp(np.clip(reach / (2 * _LN2), -40.0, 5.0)))),
        2 * _LN2 * math.log(math.log(20.0) / _LN2),
    ),
    Law(
        lambda reach: np.asarray(np.exp(-_LN2 * np.exp(-np.clip(reach / (2 * _LN2), -5.0, 40.0)))),
        -2 * _LN2 * math.log(-math.log(0.95) / _LN2),
    ),
)
"""Weibull, whose upper end is short, and Gumbel, whose upper end is long: what an observer may be like instead."""


def right_share(reach: Floats, slope: Floats, guess: float | Floats, lapse: Floats, law: Law = LOGISTIC) -> Floats:
    """Return P(right) at `reach` = x - threshold: the model of `psychometric`."""
    return np.asarray(guess + (1.0 - guess - lapse) * law.curve(slope * reach))
