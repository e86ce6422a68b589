"""What may still be sent: every attempt is paid for before it leaves, so that a budget of requests is kept exactly."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.errors import SnellenError


class BudgetSpentError(SnellenError):
    """No request may leave any more; what is in flight may come back."""


@dataclass(slots=True)
class Purse:
    """A count of requests: what is stored or cached costs nothing, an attempt that is tried again costs again."""

    most: int | None = None
    """None: no budget, requests are only counted."""
    sent: int = 0
    held_back: bool = False
    """True once a request was wanted that could not be paid."""

    def pay(self) -> None:
        """Pay for one request that is about to leave, or refuse it."""
        if self.most is not None and self.sent >= self.most:
            self.held_back = True
            raise BudgetSpentError(f"the budget of {self.most} requests is spent")
        self.sent += 1
