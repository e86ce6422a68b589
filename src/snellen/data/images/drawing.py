"""Pictures that must be drawn again (decoded, edited, resized) to encoded ones, in processes that can be ended.

A picture can be made so that its decoder works for minutes or takes all memory, and a decoder cannot be interrupted in
this process. So a few processes, each used again and again, draw with a limit of CPU and memory; whatever goes wrong
there costs the picture, never the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import struct
import subprocess
import sys
import threading
import time
import weakref
from typing import IO

import msgspec

from ...core.errors import DataError
from ...core.protocols import EncodedImage, ImagePolicy
from ...core.types import Image, ImageSent
from .decode import short_name

CPU_S = 20
"""CPU seconds for one picture; the largest allowed (80 million pixels) takes a few."""
WALL_S = 120.0
MEMORY_BYTES = 4 * 2**30
PROCESSES = max(1, min(4, os.cpu_count() or 1))
LENGTH = struct.Struct("<I")
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from snellen.data.images.drawing import draw; draw()"


class Order(msgspec.Struct, frozen=True, array_like=True):
    """One picture to draw."""

    image: Image
    policy: ImagePolicy
    cpu_s: int
    memory_bytes: int


class Drawn(msgspec.Struct, frozen=True, array_like=True):
    """What came of it: a picture, or what is wrong with it."""

    sent: ImageSent | None
    base64: bytes
    problem: str = ""


class Lost(Exception):
    """The process ended, or was ended, before it answered; `says` is the end of a sentence."""


class Drawer:
    """One process. Used by one thread at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-c", START, json.dumps(sys.path)]
        few_threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        # A session of its own: Ctrl-C is for the run, which still has to finish what it asked.
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | few_threads,
            start_new_session=True,
        )

    def draw(self, order: Order) -> Drawn:
        """Return the picture; raise Lost where the process is gone or takes too long."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101 - both are pipes
        message = msgspec.msgpack.encode(order)
        ends = time.monotonic() + WALL_S
        try:
            stdin.write(LENGTH.pack(len(message)) + message)
            stdin.flush()
            (length,) = LENGTH.unpack(_read(stdout, LENGTH.size, ends))
            return msgspec.msgpack.decode(_read(stdout, length, ends), type=Drawn)
        except (OSError, ValueError, EOFError, struct.error, msgspec.DecodeError):
            self.end()
            raise Lost(_last_words(self._process.returncode)) from None

    def kill(self) -> None:
        """Let the process end at once: whoever waits for it is told."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def end(self) -> None:
        """End the process, whatever it does, and let go of it."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None  # noqa: S101 - both are pipes
                pipe.close()


def _read(stream: IO[bytes], size: int, ends: float) -> bytes:
    """Return so many bytes, or raise EOFError where they do not come in time."""
    parts, left = [], size
    while left:
        ready = select.select([stream], [], [], max(0.0, ends - time.monotonic()))[0]
        part = os.read(stream.fileno(), left) if ready else b""
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _last_words(code: int | None) -> str:
    if code == -24:  # SIGXCPU
        return f"takes more than {CPU_S} s of CPU to decode"
    return f"could not be decoded within {WALL_S:g} s and {MEMORY_BYTES // 2**30} GB of memory"


class Drawing:
    """A few drawers for one run; they are started when pictures come, and ended with it."""

    def __init__(self) -> None:
        self._free: list[Drawer] = []
        self._busy: set[Drawer] = set()
        self._lock = threading.Lock()
        self._places: asyncio.Semaphore | None = None
        self._closed = False
        weakref.finalize(self, _end_all, self._free)  # a door that nobody closes leaves no process behind

    async def prepare(self, image: Image, policy: ImagePolicy) -> EncodedImage:
        """Return the picture as the policy wants it; raise DataError where it cannot be had."""
        if self._places is None:
            self._places = asyncio.Semaphore(PROCESSES)
            self._closed = False
        async with self._places:
            return await asyncio.to_thread(self._draw, Order(image, policy, CPU_S, MEMORY_BYTES))

    def close(self) -> None:
        """End all processes, also those at work: nobody waits for their pictures any more."""
        with self._lock:
            self._closed = True
            for drawer in self._busy:
                drawer.kill()
            _end_all(self._free)
        self._places = None

    def _draw(self, order: Order) -> EncodedImage:
        drawer = self._taken()
        try:
            drawn = drawer.draw(order)
        except Lost as lost:
            self._busy.discard(drawer)
            raise DataError(f"image {short_name(order.image.ref)!r} {lost}") from None
        with self._lock:
            self._busy.discard(drawer)
            if not self._closed:
                self._free.append(drawer)
        if self._closed:
            drawer.end()
        if drawn.sent is None:
            raise DataError(drawn.problem)
        return EncodedImage(drawn.base64, drawn.sent)

    def _taken(self) -> Drawer:
        with self._lock:
            drawer = self._free.pop() if self._free else Drawer()
            self._busy.add(drawer)
            return drawer


def _end_all(drawers: list[Drawer]) -> None:
    while drawers:
        drawers.pop().end()


def draw() -> None:
    """Draw what is asked for until nobody asks: the life of a drawing process."""
    import resource

    from .encode import encode_moving

    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while len(head := stdin.read(LENGTH.size)) == LENGTH.size:
        order = msgspec.msgpack.decode(stdin.read(LENGTH.unpack(head)[0]), type=Order)
        spent = resource.getrusage(resource.RUSAGE_SELF)
        limits = {resource.RLIMIT_CPU: int(spent.ru_utime + spent.ru_stime) + order.cpu_s}
        for kind, limit in (limits | {resource.RLIMIT_AS: order.memory_bytes}).items():
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
        try:
            made = encode_moving(order.image, order.policy)
            drawn = Drawn(made.sent, made.base64)
        except DataError as error:
            drawn = Drawn(None, b"", str(error))
        except MemoryError:
            problem = f"needs more than {order.memory_bytes / 2**30:g} GB of memory to decode"
            drawn = Drawn(None, b"", f"image {short_name(order.image.ref)!r} {problem}")
        message = msgspec.msgpack.encode(drawn)
        stdout.write(LENGTH.pack(len(message)) + message)
        stdout.flush()
