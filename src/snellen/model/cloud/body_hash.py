"""The SHA-256 of bodies in parts: what was hashed of a picture is kept while questions about it follow each other."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

LARGE = 16_384
"""From so many bytes on a part is a picture, and worth being remembered."""
KEPT_BYTES = 2**24
"""Pictures that are held for their hash alone; most are on the image door's shelf as well, which costs nothing."""

EMPTY = hashlib.sha256()


class BodyHash:
    """Hashes bodies; one that begins as an earlier one did, up to a picture, is hashed from there on."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._most = kept_bytes
        self._held = 0
        self._states: OrderedDict[tuple[object, ...], tuple[Any, Sequence[bytes], int]] = OrderedDict()
        """What was hashed, by its parts: small ones as they are, a large one by its object, which is held as long."""

    def hexdigest(self, body: Sequence[bytes]) -> str:
        """Return the hash of all parts as one."""
        if len(body) == 1:
            state = EMPTY.copy()  # cheaper than to begin anew
            state.update(body[0])
            return str(state.hexdigest())
        if len(body) == 3 and (kept := self._states.get((body[0], id(body[1])))):  # one picture, as most have
            state = kept[0].copy()
            state.update(body[2])
            return str(state.hexdigest())
        keys = [id(part) if len(part) >= LARGE else part for part in body]
        state, known = self._longest(keys)
        for place in range(known, len(body)):
            state.update(body[place])
            if len(body[place]) >= LARGE:
                self._keep(tuple(keys[: place + 1]), state, body[: place + 1])
        return str(state.hexdigest())

    def _longest(self, keys: Sequence[object]) -> tuple[Any, int]:
        """Return the state after the longest beginning that is known, and how many parts that has."""
        for place in range(len(keys) - 1, -1, -1):
            if isinstance(keys[place], int) and (kept := self._states.get(key := tuple(keys[: place + 1]))):
                self._states.move_to_end(key)
                return kept[0].copy(), place + 1
        return hashlib.sha256(), 0

    def _keep(self, key: tuple[object, ...], state: Any, parts: Sequence[bytes]) -> None:
        size = sum(map(len, parts))
        if size > self._most:
            return
        self._states[key] = state.copy(), parts, size
        self._held += size
        while self._held > self._most:
            self._held -= self._states.popitem(last=False)[1][2]
