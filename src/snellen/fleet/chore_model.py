"""A chore as a model: an item travels as a picture does, by content, and its result comes back as a prediction.

So leases, lost and silent replicas, Ray's object store and versions that differ are dealt with once.
"""

from __future__ import annotations

import asyncio
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Thread
from typing import Any

from .. import __version__
from ..core.errors import EnvironmentProblem, ModelError, SnellenError
from ..core.ids import sha256_hex
from ..core.protocols import Capability, EncodedImage, EncodedImages, ImagePolicy
from ..core.types import Image, ImageSent, Prediction, Request, TrialKey, Turn
from ..data.chores import Chore, Work
from .driver import Fleet

RESULT = "result"
LEASE = 4
"""Items a lease at most: a page takes as long as a reply, and there are fewer of them."""
BYTES_UNDER_WAY = 64 * 2**20
MADE_OF = "application/octet-stream"


class ChoreModel:
    """Does the work where it lives; asked by leases like any other model."""

    def __init__(self, chore: Chore) -> None:
        self.name = f"chore/{chore.maker.rpartition(':')[2]}"
        self.capabilities: frozenset[Capability] = frozenset()
        self.image_policy = ImagePolicy()
        self.cacheable = False
        self._chore = chore
        self._work: Work | None = None
        self._one_at_a_time = asyncio.Lock()

    async def check(self) -> None:
        """Make the work."""
        self._made()

    def identity(self) -> Mapping[str, Any]:
        """Return what its results depend on: the chore, and what of this machine is part of it."""
        made = {"python": platform.python_version(), "snellen": __version__, **self._made().facts}
        return {"chore": self._chore.maker, "settings": sha256_hex(self._chore.settings), "made of": made}

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Do the work with the item that came along."""
        (item,) = images.values()
        async with self._one_at_a_time:  # fonts and the like are made for one thread
            result = await asyncio.to_thread(self._made(), item.base64)
        return Prediction(request.key, text="", detail={RESULT: result})

    async def close(self) -> None:
        """Let go of the work."""
        self._work = None

    def _made(self) -> Work:
        if self._work is None:
            self._work = self._chore.make()
        return self._work


def map_by_replicas(open_fleet: Callable[[], Fleet], items: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the results of items in their order; a fleet works ahead of whoever takes them, within bounds of bytes."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="snellen chores", daemon=True)
    thread.start()

    def wait_for(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def opened() -> Fleet:
        return open_fleet()

    fleet: Fleet | None = None
    try:
        fleet = wait_for(opened())
        wait_for(fleet.check())
        yield from _in_order(fleet, items, loop)
    finally:
        if fleet is not None:
            wait_for(fleet.close())
        wait_for(_end_all())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_all() -> None:
    """End what still runs in this loop, so that nothing of it outlives the loop."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


def _in_order(fleet: Fleet, items: Iterable[bytes], loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    under_way: deque[tuple[Any, int]] = deque()
    size, ended = 0, _Ended(items)
    for number, item in enumerate(ended):
        under_way.append((asyncio.run_coroutine_threadsafe(_ask(fleet, number, item), loop), len(item)))
        size += len(item)
        while size > BYTES_UNDER_WAY or len(under_way) > (fleet.holds or 0):
            asked, done = under_way.popleft()
            size -= done
            yield asked.result()
    while under_way:
        yield under_way.popleft()[0].result()
    if ended.problem is not None:
        raise ended.problem


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


async def _ask(fleet: Fleet, number: int, item: bytes) -> bytes:
    sha256 = sha256_hex(item)
    image = Image(f"data:{MADE_OF};item={number}", MADE_OF)
    request = Request(TrialKey("chore", str(number)), (Turn("user", "", (image,)),))
    encoded = EncodedImage(item, ImageSent(sha256, MADE_OF, 1, 1, len(item)))
    try:
        prediction = await fleet.predict(request, {image: encoded})
    except ModelError as error:
        raise EnvironmentProblem(f"item {number + 1}: {error}") from None
    result: bytes = prediction.detail[RESULT]
    return result
