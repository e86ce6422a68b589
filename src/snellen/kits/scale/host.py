"""The replica's side: a model, the leases it was given, and what is finished of them."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
from collections.abc import Sequence

from ...core.errors import FailureKind, ModelError, SnellenError
from ...core.ids import content_hash
from ...core.protocols import BatchModel, Capability, EncodedImages, Model
from ...core.types import Prediction, Request
from ...core.version import __version__
from ...engine.call import Batcher, call_model, check_members
from .lease_format import Hello, Lease, unpack_requests, write_outcomes


class Host:
    """Answers leases with one model; used from one event loop."""

    def __init__(self, model: Model) -> None:
        check_members(model)
        self._model = model
        self._call = model.predict
        if isinstance(model, BatchModel) and Capability.BATCH in model.capabilities:
            self._call = Batcher(model).predict
        self._finished: list[tuple[int, Prediction | SnellenError]] = []
        self._something = asyncio.Event()
        self._answering: set[asyncio.Task[None]] = set()

    async def greet(self) -> Hello:
        """Load what the model needs and say what it is."""
        await self._model.check()
        identity = content_hash(self._model.identity(), 32)
        return Hello(__version__, identity, socket.gethostname(), os.getpid(), platform.python_version())

    def accept(self, lease: Lease, contents: Sequence[bytes]) -> None:
        """Begin to answer the requests of a lease."""
        for number, request, images in unpack_requests(lease, contents):
            task = asyncio.get_running_loop().create_task(self._answer(number, request, images))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def collect(self) -> bytes:
        """Wait until something is finished and return all that is."""
        await self._something.wait()
        self._something.clear()
        finished, self._finished = self._finished, []
        return write_outcomes(finished)

    async def close(self) -> None:
        """Let go of the model."""
        await self._model.close()

    async def _answer(self, number: int, request: Request, images: EncodedImages) -> None:
        result: Prediction | SnellenError
        try:
            result = await call_model(self._call, request, images)
        except TimeoutError:
            result = ModelError(FailureKind.TIMEOUT, "the model gave no answer in its own time", retryable=True)
        except SnellenError as error:
            result = error
        self._finished.append((number, result))
        self._something.set()
