"""A request that a model sends again by itself is paid for like the first: whoever asked says how."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_PAY: ContextVar[Callable[[], None] | None] = ContextVar("pay", default=None)


@contextmanager
def resends_paid_by(pay: Callable[[], None]) -> Iterator[None]:
    """Let `pay` be called before each request that is sent again in this block; it may refuse by raising."""
    before = _PAY.set(pay)
    try:
        yield
    finally:
        _PAY.reset(before)


def pay_for_resend() -> None:
    """Pay for one more request, if somebody counts them."""
    pay = _PAY.get()
    if pay is not None:
        pay()
