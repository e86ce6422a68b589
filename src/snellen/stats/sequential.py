"""Values one by one in, an interval that is valid at every moment out: stop when it is narrow enough.

The hedged betting confidence sequence of Waudby-Smith & Ramdas (2023, section 4): for every candidate mean m two
gamblers bet that the values are larger or smaller; an m against which one of them grows 1/α rich is ruled out for ever.
By Ville's inequality a true mean is ever ruled out with chance at most α, however often one looks.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.errors import UsageError
from .intervals import Interval

GRID = 2_000
_LARGEST_BET = 0.75


class ConfidenceSequence:
    """Feed one value in [0, 1] an independent unit (the mean of one question, or of one group), in random order.

    With `half_width`, the bets are tuned to get there soonest; the sequence is valid all the same.
    """

    def __init__(self, *, half_width: float | None = None, alpha: float = 0.05, grid: int = GRID) -> None:
        if not 0.0 < alpha < 1.0:
            raise UsageError(f"alpha must lie between 0 and 1, not {alpha}")
        if half_width is not None and not 0.0 < half_width < 0.5:
            raise UsageError(f"--until-ci must lie between 0 and 50 points, not {half_width * 100:g}")
        self.n = 0
        self._half_width = half_width
        self._bar = math.log(2.0 / alpha)
        self._step = 1.0 / grid
        self._means = np.linspace(0.0, 1.0, grid + 1)
        self._up = np.zeros(grid + 1)
        self._down = np.zeros(grid + 1)
        self._sum = 0.0
        self._squares = 0.25
        self._low, self._high = 0.0, 1.0

    def add(self, value: float) -> None:
        """Take one more value."""
        if not 0.0 <= value <= 1.0:
            raise UsageError(
                f"--until-ci needs values in 0…1, got {value}: it works for accuracies, not for this metric"
            )
        self.n += 1
        bet = self._next_bet()
        larger = np.minimum(bet, _LARGEST_BET / np.maximum(self._means, 1e-12))
        smaller = np.minimum(bet, _LARGEST_BET / np.maximum(1.0 - self._means, 1e-12))
        self._up += np.log1p(larger * (value - self._means))
        self._down += np.log1p(-smaller * (value - self._means))
        self._sum += value
        self._squares += (value - (0.5 + self._sum) / (self.n + 1.0)) ** 2
        self._shrink()

    def _next_bet(self) -> float:
        """Return the stake, from the values before this one only.

        At n values with variance v the interval is about ± (bar/stake + stake·v·n/2)/n: least at √(2·bar/(v·n)), and
        for a wanted half-width w first reached with a stake of w/v.
        """
        if self._half_width is not None:
            return self._half_width * self.n / self._squares
        return math.sqrt(2.0 * self._bar / (self._squares * math.log(self.n + 1.0)))

    def _shrink(self) -> None:
        """Drop ruled-out means at both ends; round outward by one step, so that no mean between two points is lost."""
        alive = np.flatnonzero(np.maximum(self._up, self._down) < self._bar)
        if not alive.size or (alive[0] == 0 and alive[-1] == self._means.size - 1):
            return
        kept = slice(int(alive[0]), int(alive[-1]) + 1)
        self._means, self._up, self._down = self._means[kept], self._up[kept], self._down[kept]
        self._low = max(self._low, float(self._means[0]) - self._step)
        self._high = min(self._high, float(self._means[-1]) + self._step)

    @property
    def mean(self) -> float | None:
        """Return the mean of the values so far."""
        return self._sum / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        """Return the interval at this moment; it only ever shrinks."""
        return self._low, self._high

    @property
    def is_narrow(self) -> bool:
        """Return whether the interval is at most ± the wanted half-width."""
        return self._half_width is not None and (self._high - self._low) / 2.0 <= self._half_width
