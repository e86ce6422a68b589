"""Work that sleeps, done by several executors."""

from __future__ import annotations

import time


class Sleeper:
    """Doubles an item after a while."""

    def __init__(self, settings: bytes) -> None:
        self.facts: dict[str, str] = {}
        self._rest = float(settings)

    def __call__(self, item: bytes) -> bytes:
        """Return the item twice."""
        time.sleep(self._rest)
        return item * 2
