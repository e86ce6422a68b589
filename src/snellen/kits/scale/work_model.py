"""Work as a model: an item travels as a picture does, by content, and its result comes back as a prediction.

So leases, lost and silent replicas, Ray's object store and versions that differ are dealt with once.
"""

from __future__ import annotations

import asyncio
import itertools
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Thread
from typing import Any

from ...core.errors import EnvironmentProblem, ModelError, SnellenError
from ...core.ids import sha256_hex
from ...core.protocols import Capability, EncodedImage, EncodedImages, ImagePolicy
from ...core.types import Image, ImageSent, Prediction, Request, TrialKey, Turn
from ...core.version import __version__
from ...data.files.work import Work, WorkSpec
from .driver import Fleet
from .leases import LostTooOften

RESULT = "result"
UNIT = "item"
LEASE = 4
"""Items a lease at most: a page takes as long as a reply, and there are fewer of them."""
AHEAD = 2 * LEASE
"""Items a replica that may be done or under way before their turn: so memory is bounded."""
BYTES_UNDER_WAY = 64 * 2**20
MADE_OF = "application/octet-stream"
TIMES = {1: "once", 2: "twice"}


class ItemLost(EnvironmentProblem):
    """An item was lost with its replicas so often that nobody is given it any more."""


class WorkModel:
    """Does the work where it lives; asked by leases like any other model."""

    def __init__(self, spec: WorkSpec) -> None:
        self.name = f"spec/{spec.maker.rpartition(':')[2]}"
        self.capabilities: frozenset[Capability] = frozenset()
        self.image_policy = ImagePolicy()
        self.cacheable = False
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

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Do the work with the item that came along."""
        (item,) = images.values()
        result = await asyncio.get_running_loop().run_in_executor(self._thread, self._made(), item.base64)
        return Prediction(request.key, text="", detail={RESULT: result})

    async def close(self) -> None:
        """Let go of the work."""
        self._work = None
        self._thread.shutdown(wait=False)

    def _made(self) -> Work:
        if self._work is None:
            self._work = self._spec.make()
        return self._work


class WorkFleet:
    """A fleet that does work for a caller that waits: started with the first item, kept until `close`.

    Of each replica at most `ahead` items are under way or done before their turn.
    """

    def __init__(self, open_fleet: Callable[[], Fleet], ahead: int = AHEAD) -> None:
        self._open, self._ahead = open_fleet, ahead
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._fleet: Fleet | None = None
        self._numbers = itertools.count()

    def results_of(self, items: Iterable[bytes], name: Callable[[int], str] | None = None) -> Iterator[bytes]:
        """Yield the results of items in their order; `name` says which one is meant, counted from 0."""
        loop, fleet = self._started()
        under_way: deque[tuple[Future[bytes], int]] = deque()
        size, ended = 0, _Ended(items)
        try:
            for number, item in enumerate(ended):
                named = name(number) if name is not None else f"item {number + 1}"
                asked = asyncio.run_coroutine_threadsafe(_ask(fleet, next(self._numbers), named, item), loop)
                under_way.append((asked, len(item)))
                size += len(item)
                while size > BYTES_UNDER_WAY or len(under_way) > self._ahead * len(fleet.replicas):
                    size -= under_way[0][1]
                    yield under_way.popleft()[0].result()  # nothing here holds it while it is taken
            while under_way:
                yield under_way.popleft()[0].result()
        finally:
            for asked, _ in under_way:
                asked.cancel()
        if ended.problem is not None:
            raise ended.problem

    def close(self) -> None:
        """End the replicas; nothing is left running."""
        loop, thread, fleet = self._loop, self._thread, self._fleet
        self._loop = self._thread = self._fleet = None
        if loop is None or thread is None:
            return
        if fleet is not None:
            asyncio.run_coroutine_threadsafe(fleet.close(), loop).result()
        asyncio.run_coroutine_threadsafe(_end_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _started(self) -> tuple[asyncio.AbstractEventLoop, Fleet]:
        """Return the loop in which the fleet lives, and the fleet, once one of its replicas can work."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(target=self._loop.run_forever, name="snellen work", daemon=True)
            self._thread.start()
        if self._fleet is None:
            self._fleet = asyncio.run_coroutine_threadsafe(self._opened(), self._loop).result()
            asyncio.run_coroutine_threadsafe(self._fleet.check(), self._loop).result()
        return self._loop, self._fleet

    async def _opened(self) -> Fleet:
        return self._open()


def map_by_replicas(open_fleet: Callable[[], Fleet], items: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the results of items in their order; a fleet works ahead of whoever takes them, within bounds of bytes."""
    with closing(WorkFleet(open_fleet)) as fleet:
        yield from fleet.results_of(items)


async def _end_all() -> None:
    """End what still runs in this loop, so that nothing of it outlives the loop."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


class _Ended:
    """Items until one cannot be made: that is said once all before it are done, as in one process."""

    def __init__(self, items: Iterable[bytes]) -> None:
        self._items = items
        self.problem: SnellenError | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._items
        except SnellenError as error:
            self.problem = error


async def _ask(fleet: Fleet, number: int, name: str, item: bytes) -> bytes:
    sha256 = sha256_hex(item)
    image = Image(f"data:{MADE_OF};item={number}", MADE_OF)
    request = Request(TrialKey("spec", name), (Turn("user", "", (image,)),))
    encoded = EncodedImage(item, ImageSent(sha256, MADE_OF, 1, 1, len(item)))
    try:
        prediction = await fleet.predict(request, {image: encoded})
    except LostTooOften as error:
        times = TIMES.get(error.ended, f"{error.ended} times")
        silent = f" and silenced {error.lost - error.ended}" if error.lost > error.ended else ""
        raise ItemLost(f"{name} ended its process {times}{silent}: {error.why}") from None
    except ModelError as error:
        raise EnvironmentProblem(f"{name}: {error}") from None
    result: bytes = prediction.detail[RESULT]
    return result
