"""A served model whose requests go into batches: answered ones come back as live replies do, others are parked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ...core.errors import ModelError, Parked
from ...core.ids import canonical_json, sha256_hex
from ...core.protocols import EncodedImages
from ...core.types import FailureKind, Prediction, Request
from ...model.served.served_model import ServedModel
from .batch_queue import BatchQueue

IDENT_LENGTH = 32
Affords = Callable[[int], None]


class BatchedModel:
    """Fits the Protocol `Model`; its identity is the served model's: the same trials, the same cache, the same run."""

    cacheable = True

    def __init__(
        self,
        served: ServedModel,
        queue: BatchQueue,
        left_out: frozenset[str],
        *,
        affords: Affords,
        timeout_s: float,
        live_rest: bool = False,
    ) -> None:
        self.name = served.name
        self.capabilities = served.capabilities
        self.image_policy = served.image_policy
        self.clock = served.clock
        self._served = served
        self._queue = queue
        self._left_out = left_out
        self._affords = affords
        self._timeout_s = timeout_s
        self._live_rest = live_rest
        self._piloted = False
        self._pilot = asyncio.Lock()

    @property
    def adjusted(self) -> tuple[str, ...]:
        """What is sent otherwise than asked."""
        return self._served.adjusted

    @property
    def warnings(self) -> tuple[str, ...]:
        """What replies showed of the server."""
        return self._served.warnings

    @property
    def has_batches(self) -> bool:
        """Tell whether requests of this run are in batches whose replies are not stored yet: these are paid for."""
        return bool(self._queue.ledger.open or self._queue.ledger.unread)

    def identity(self) -> Mapping[str, Any]:
        """Return what changes the answers: what changes the served model's."""
        return self._served.identity()

    async def check(self) -> None:
        """Ask what the served model asks."""
        await self._served.check()

    async def close(self) -> None:
        """Close the served model; batches go on."""
        await self._served.close()

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Return the answer a batch brought, ask the first one live, or park the request in a batch."""
        ident = request_ident(request, images)
        answered = self._answered(ident, request, images)
        if answered is not None:
            return answered
        if self._queue.waits(ident):
            raise Parked
        if self._live_rest and self._queue.has_ended_ones:
            return await self._ask_live(request, images)
        async with self._pilot:
            if not self._piloted:  # one request tells what the server refuses; a batch would be refused line by line
                prediction = await self._ask_live(request, images)
                self._piloted = True
                return prediction
        if not self._queue.may_ask_again:
            raise ModelError(FailureKind.TIMEOUT, f"no batch answered it in {self._queue.rounds} rounds")
        self._affords(self._queue.waiting)
        await self._queue.put(ident, self._served.write_body(request, images, self._left_out))
        raise Parked

    def _answered(self, ident: str, request: Request, images: EncodedImages) -> Prediction | None:
        found = self._queue.answer(ident)
        if found is None:
            return None
        try:
            prediction = self._served.read_body(request, images, found.status, found.body)
        except ModelError as error:
            if not error.retryable:
                raise
            if self._queue.may_ask_again:
                self._queue.ask_again(ident, f"{error.kind.value}, {error}")
                return None
            raise ModelError(error.kind, str(error), status=error.status, detail=error.detail) from None
        return msgspec.structs.replace(prediction, detail={**prediction.detail, "batch": True})

    async def _ask_live(self, request: Request, images: EncodedImages) -> Prediction:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._served.predict(request, images)
        except TimeoutError:
            message = f"no answer within {self._timeout_s:g} s"
            raise ModelError(FailureKind.TIMEOUT, message, retryable=True) from None


def request_ident(request: Request, images: EncodedImages) -> str:
    """Return what names a request in a batch: its trial and all that is sent, however it is sent."""
    params = msgspec.structs.replace(request.params, timeout_s=None, stream=None)
    turns = [(turn.role, turn.text, turn.parts) for turn in request.messages]
    pictures = [images[image].sent.sha256 for turn in request.messages for image in turn.images]
    return sha256_hex(canonical_json((request.key, turns, pictures, params, request.prefix)))[:IDENT_LENGTH]
