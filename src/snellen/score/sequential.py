"""Values one by one in, an interval that is valid at every moment out: stop when it is narrow enough.

The hedged betting confidence sequence of Waudby-Smith & Ramdas (2023, section 4): for every candidate mean m two
gamblers bet that the values are larger or smaller; an m against which one of them grows 1/α rich is ruled out for ever.
By Ville's inequality a true mean is ever ruled out with chance at most α, however often one looks.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.errors import UsageError
from .stats import Interval

GRID = 2_000
_LARGEST_BET = 0.75


class ConfidenceSequence:
    """Feed one value in [0, 1] an independent unit (the mean of one question, or of one group), in random order."""

    def __init__(self, *, alpha: float = 0.05, grid: int = GRID) -> None:
        if not 0.0 < alpha < 1.0:
            raise UsageError(f"alpha must lie between 0 and 1, not {alpha}")
        self.n = 0
        self._alpha = alpha
        self._means = np.linspace(0.0, 1.0, grid + 1)
        self._up = np.zeros(grid + 1)
        self._down = np.zeros(grid + 1)
        self._alive = np.ones(grid + 1, dtype=bool)
        self._sum = 0.0
        self._squares = 0.25
        self._low, self._high = 0.0, 1.0

    def add(self, value: float) -> None:
        """Take one more value."""
        if not 0.0 <= value <= 1.0:
            raise UsageError(f"--until-ci needs values in 0…1, got {value}: it works for accuracies, not for this metric")
        self.n += 1
        bet = math.sqrt(2.0 * math.log(2.0 / self._alpha) / (self._squares * math.log(self.n + 1.0)))
        with np.errstate(divide="ignore"):
            larger = np.minimum(bet, _LARGEST_BET / self._means)
            smaller = np.minimum(bet, _LARGEST_BET / (1.0 - self._means))
        self._up += np.log1p(larger * (value - self._means))
        self._down += np.log1p(-smaller * (value - self._means))
        self._alive &= np.maximum(self._up, self._down) < math.log(2.0 / self._alpha)
        self._sum += value
        center = (0.5 + self._sum) / (self.n + 1.0)
        self._squares += (value - center) ** 2
        self._shrink()

    def _shrink(self) -> None:
        """Round outward by one step of the grid, so that the grid never cuts a mean that lies between its points."""
        alive = np.flatnonzero(self._alive)
        if alive.size:
            step = self._means[1]
            self._low = max(self._low, float(self._means[alive[0]]) - float(step))
            self._high = min(self._high, float(self._means[alive[-1]]) + float(step))

    @property
    def mean(self) -> float | None:
        """Return the mean of the values so far."""
        return self._sum / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        """Return the interval at this moment; it only ever shrinks."""
        return self._low, self._high

    def is_narrow(self, half_width: float) -> bool:
        """Return whether the interval is at most ± `half_width` (a fraction)."""
        return (self._high - self._low) / 2.0 <= half_width
