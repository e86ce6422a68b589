"""A rate, a shape and a seed in, the moments at which requests are due out: pure, in seconds from the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from ..core.errors import UsageError
from ..core.ids import rng

RAMPS = ("none", "linear", "exponential")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """An open loop. `burstiness` is the gamma shape: 1 Poisson, below 1 bursts, above 1 more even, 0 a constant beat.

    With a ramp the rate goes from `ramp_from` to `rate` over the requests, linearly or exponentially.
    """

    rate: float
    burstiness: float = 1.0
    ramp: str = "none"
    ramp_from: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise UsageError(f"--rate must be above zero, not {self.rate:g}")
        if self.burstiness < 0:
            raise UsageError(f"--burstiness must not be negative, not {self.burstiness:g}")
        if self.ramp not in RAMPS:
            raise UsageError(f"no ramp {self.ramp!r}; known: {', '.join(RAMPS)}")
        if self.ramp != "none" and not self.ramp_from > 0:
            raise UsageError("a ramp starts from a rate above zero: --ramp-from 0.5")

    def moments(self, count: int) -> list[float]:
        """Return when each of `count` requests is due. The first comes after one interval, so count / last = rate."""
        generator = rng(self.seed, "arrivals")
        rates = (self._rate_at(index / max(count - 1, 1)) for index in range(count))
        return list(accumulate(_interval(rate, self.burstiness, generator) for rate in rates))

    def moments_until(self, duration_s: float) -> list[float]:
        """Return all due moments within `duration_s` seconds; a ramp spans the whole duration."""
        generator = rng(self.seed, "arrivals")
        moments: list[float] = []
        now = 0.0
        while True:
            now += _interval(self._rate_at(min(now / duration_s, 1.0)), self.burstiness, generator)
            if now > duration_s * (1 + 1e-9):  # sums of equal steps end a hair late
                return moments
            moments.append(now)

    def _rate_at(self, progress: float) -> float:
        if self.ramp == "linear":
            return self.ramp_from + (self.rate - self.ramp_from) * progress
        if self.ramp == "exponential":
            return float(self.ramp_from * (self.rate / self.ramp_from) ** progress)
        return self.rate


def _interval(rate: float, burstiness: float, generator: Random) -> float:
    if burstiness == 0:
        return 1 / rate
    return generator.gammavariate(burstiness, 1 / (rate * burstiness))


def slot_starts(concurrency: int, ramp_s: float = 0.0) -> list[float]:
    """Return when each slot of a closed loop opens: all at once, or evenly over `ramp_s` seconds."""
    if concurrency < 1:
        raise UsageError(f"--concurrency must be at least 1, not {concurrency}")
    return [ramp_s * index / concurrency for index in range(concurrency)]


def replayed(timestamps: Sequence[float], speed: float = 1.0) -> list[float]:
    """Return a recorded trace as due moments, the first at 0, in order; `speed` 2 plays it twice as fast."""
    if not timestamps:
        raise UsageError("the trace holds no timestamp")
    if not speed > 0:
        raise UsageError(f"--replay-speed must be above zero, not {speed:g}")
    first = min(timestamps)
    return sorted((moment - first) / speed for moment in timestamps)


def planned_rate(moments: Sequence[float], bin_s: float) -> list[tuple[float, float]]:
    """Return (start of bin, requests per second due in it), for the planned-against-actual picture."""
    if not moments:
        return []
    bins = int(max(moments) / bin_s) + 1
    counts = [0] * bins
    for moment in moments:
        counts[int(moment / bin_s)] += 1
    return [(index * bin_s, count / bin_s) for index, count in enumerate(counts)]
