"""What the engine may do: numbers in one place, nothing here changes results."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..core.errors import UsageError
from ..core.types import Params


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """How many failed trials end a run: a count, or a share of the finished ones."""

    count: int | None = None
    share: float | None = None

    @classmethod
    def parse(cls, text: str) -> ErrorBudget:
        """Read `20` or `5%`."""
        try:
            budget = cls(share=float(text[:-1]) / 100) if text.endswith("%") else cls(count=int(text))
        except ValueError:
            raise UsageError(f"--max-errors {text!r} is neither a number nor a percentage") from None
        if not 0 <= (budget.count if budget.share is None else budget.share) < math.inf:  # type: ignore[operator]
            raise UsageError(f"--max-errors {text!r} is not 0 or more")
        return budget

    def exceeded(self, failed: int, done: int) -> bool:
        """Tell whether the run must stop; a share counts only after 100 trials, so that one bad start is no verdict."""
        if self.count is not None and failed > self.count:
            return True
        return self.share is not None and done >= 100 and failed > self.share * done


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits, retries and deadlines of one run."""

    max_workers: int = 32
    max_bytes_in_flight: int = 256 * 2**20
    max_retries: int = 5
    per_second: float | None = None
    """Requests that may leave in a second, retries counted; None: as fast as slots are free."""
    timeout_s: float | None = 600.0
    """Seconds for one attempt; None: waiting is no fault (a batch model's next turn), whatever a request says."""
    deadline_s: float | None = None
    """Total time one trial may take over all its attempts."""
    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    retry_after_max_s: float = 300.0
    """A server that asks for a longer rest is asked again after so long: a date in 9998 must not hold a run."""
    drain_s: float = 4.0
    max_errors: ErrorBudget = field(default_factory=ErrorBudget)
    adaptive: bool = True

    def backoff_of(self, attempt: int) -> float:
        """Return the seconds to wait after the attempt-th failure (from 0), before jitter."""
        return min(self.backoff_max_s, self.backoff_s * 2.0**attempt)

    def timeout_of(self, params: Params) -> float | None:
        """Return the seconds one attempt may take: the request's own, or the run's."""
        return None if self.timeout_s is None else params.timeout_s or self.timeout_s
