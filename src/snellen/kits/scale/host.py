"""The replica's side: what it does, the leases it was given, and what is finished of them."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from ...core.errors import FailureKind, ModelError, SnellenError
from ...core.ids import content_hash, sha256_hex
from ...core.protocols import BatchModel, Capability, Model
from ...core.version import __version__
from ...data.files.work import Work, WorkSpec
from ...engine.call import Batcher, call_model, check_members
from .items import Hello, Lease, Result, unpack_requests, write_outcomes


class Doer(Protocol):
    """What a replica is there for: it answers questions, or does work."""

    async def check(self) -> None:
        """Load what is needed."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """Return what its results depend on: whoever has others does not take part."""
        ...

    def begin(self, lease: Lease, contents: Sequence[bytes]) -> Iterable[tuple[int, Coroutine[Any, Any, Result]]]:
        """Return the items of a lease by their numbers, each to be done side by side with the others."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


class Answers:
    """Answers questions with one model."""

    def __init__(self, model: Model) -> None:
        check_members(model)
        self._model = model
        self.check, self.identity, self.close = model.check, model.identity, model.close
        self._call = model.predict
        if isinstance(model, BatchModel) and Capability.BATCH in model.capabilities:
            self._call = Batcher(model).predict

    def begin(self, lease: Lease, contents: Sequence[bytes]) -> Iterable[tuple[int, Coroutine[Any, Any, Result]]]:
        """Return the questions of a lease, to be asked."""
        for number, request, images in unpack_requests(lease, contents):
            yield number, call_model(self._call, request, images)


class Worker:
    """Does the work of a spec, one item at a time."""

    def __init__(self, spec: WorkSpec) -> None:
        self.name = f"spec/{spec.maker.rpartition(':')[2]}"
        self._spec = spec
        self._work: Work | None = None
        self._thread = ThreadPoolExecutor(1, "snellen-spec")  # fonts and the like are made for one thread

    async def check(self) -> None:
        """Make the work."""
        self._made()

    def identity(self) -> Mapping[str, Any]:
        """Return what its results depend on: the spec, and what of this machine is part of it."""
        made = {"python": platform.python_version(), "snellen": __version__, **self._made().facts}
        return {"spec": self._spec.maker, "settings": sha256_hex(self._spec.settings), "made of": made}

    def begin(self, lease: Lease, contents: Sequence[bytes]) -> Iterable[tuple[int, Coroutine[Any, Any, Result]]]:
        """Return the items of a lease, to be done."""
        for number, place in lease.work:
            yield number, self._done(contents[place])

    async def close(self) -> None:
        """Let go of the work."""
        self._work = None
        self._thread.shutdown(wait=False)

    async def _done(self, item: bytes) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._made(), item)

    def _made(self) -> Work:
        if self._work is None:
            self._work = self._spec.make()
        return self._work


class Host:
    """Does what leases hold; used from one event loop."""

    def __init__(self, doer: Doer) -> None:
        self._doer = doer
        self._finished: list[tuple[int, Result]] = []
        self._something = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()

    async def greet(self) -> Hello:
        """Load what is needed and say what this replica is."""
        await self._doer.check()
        identity = content_hash(self._doer.identity(), 32)
        return Hello(__version__, identity, socket.gethostname(), os.getpid(), platform.python_version())

    def accept(self, lease: Lease, contents: Sequence[bytes]) -> None:
        """Begin to do the items of a lease."""
        for number, doing in self._doer.begin(lease, contents):
            task = asyncio.get_running_loop().create_task(self._finish(number, doing))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def collect(self) -> bytes:
        """Wait until something is finished and return all that is."""
        await self._something.wait()
        self._something.clear()
        finished, self._finished = self._finished, []
        return write_outcomes(finished)

    async def close(self) -> None:
        """Let go of everything."""
        await self._doer.close()

    async def _finish(self, number: int, doing: Coroutine[Any, Any, Result]) -> None:
        result: Result
        try:
            result = await doing
        except TimeoutError:
            result = ModelError(FailureKind.TIMEOUT, "the model gave no answer in its own time", retryable=True)
        except SnellenError as error:
            result = error
        self._finished.append((number, result))
        self._something.set()
