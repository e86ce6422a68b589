"""How the engine asks: numbers in one place, nothing here changes results."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.types import Params


@dataclass(frozen=True, slots=True)
class Policy:
    """Workers, retries and timeouts of one run; what it may use altogether is in `Limits`."""

    max_workers: int = 32
    max_bytes_in_flight: int = 256 * 2**20
    max_retries: int = 5
    per_second: float | None = None
    """Requests that may leave in a second, retries counted; None: as fast as slots are free."""
    timeout_s: float | None = 600.0
    """Seconds for one attempt; None: waiting is no fault (a batch model's next turn), whatever a request says."""
    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    retry_after_max_s: float = 300.0
    """A server that asks for a longer rest is asked again after so long: a date in 9998 must not hold a run."""
    drain_s: float = 4.0
    adaptive: bool = True

    def backoff_of(self, attempt: int) -> float:
        """Return the seconds to wait after the attempt-th failure (from 0), before jitter."""
        return min(self.backoff_max_s, self.backoff_s * 2.0**attempt)

    def timeout_of(self, params: Params) -> float | None:
        """Return the seconds one attempt may take: the request's own, or the run's."""
        return None if self.timeout_s is None else params.timeout_s or self.timeout_s
