"""Python's cycle collector, made rare while many short-lived records are in flight."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARE = 50_000
"""Objects that outlive their makers between two collections; Python's own 700 cost a fifth of a short request."""


FAULTS = 100
"""So many failed attempts are collected together: each leaves a ring of frames, some ten kilobytes."""


def collect_after_faults(count: int) -> None:
    """Collect what failed attempts left, every hundredth time: with rare collections it would stay for hours."""
    if count % FAULTS == 0:
        gc.collect(1)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect cycles rarely in the block: answered trials leave none, and every pass over those in flight costs."""
    before = gc.get_threshold()
    gc.set_threshold(max(RARE, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
