"""Pictures by content in Ray's object store: put there once, fetched once a node, let go of by age."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ...core.errors import EnvironmentProblem
from ...core.protocols import EncodedImage

KEPT_BYTES = 256 * 2**20
INLINE_BYTES = 64 * 1024
"""What is smaller travels with the lease: an object of its own would cost more than it spares."""


class RayPictures:
    """Contents to object references; what is in use stays, of the rest the oldest goes."""

    def __init__(self, ray: Any, kept_bytes: int = KEPT_BYTES) -> None:
        self._ray = ray
        self._kept_bytes = kept_bytes
        self._references: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self.used_bytes = 0

    def reference(self, encoded: EncodedImage) -> Any:
        """Return what a lease carries for a content: its bytes where they are few, else where they lie."""
        if len(encoded.base64) <= INLINE_BYTES:
            return encoded.base64
        name = encoded.sent.sha256
        if name not in self._references:
            self._references[name] = (self._put(encoded.base64), len(encoded.base64))
            self.used_bytes += len(encoded.base64)
            self._forget_oldest()
        self._references.move_to_end(name)
        return self._references[name][0]

    def let_go(self) -> None:
        """Hold nothing any more."""
        self._references.clear()
        self.used_bytes = 0

    def _put(self, content: bytes) -> Any:
        full = (self._ray.exceptions.ObjectStoreFullError, self._ray.exceptions.OutOfDiskError)
        try:
            return self._ray.put(content)
        except full:
            self.let_go()  # what is kept for later questions must not be what has no room for this one
        try:
            return self._ray.put(content)
        except full as error:
            why = str(error).strip().splitlines()[0]
            fix = "start Ray with a larger --object-store-memory, or lower --max-workers; run it again to continue"
            raise EnvironmentProblem(f"Ray's object store takes no more pictures: {why}; {fix}") from None

    def _forget_oldest(self) -> None:
        while self.used_bytes > self._kept_bytes and len(self._references) > 1:
            _, (_, size) = self._references.popitem(last=False)
            self.used_bytes -= size
