"""A replica as a process of this machine: the driver's end of its pipes, and its own (`python -m` of this module).

A frame is its length in eight bytes and its content. Whatever else is printed goes to stderr, and the process ends with
the driver: when the pipe is closed, nobody waits for answers any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import struct
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, BinaryIO

import msgspec

from ...core.errors import SnellenError
from ...core.registry import foreign_code
from .host import Host
from .items import Hello, Lease, WireError, pack_lease, write_wire_error
from .leases import Waiting
from .links import Recipe, ReplicaLost

LENGTH = struct.Struct("<Q")
_frame = msgspec.msgpack.Decoder(tuple[Lease, list[bytes]])


class Opening(msgspec.Struct, frozen=True):
    """The first frame of a replica: what it is, or why it is none."""

    hello: Hello | None = None
    problem: WireError | None = None


async def serve_leases(recipe: Recipe, source: asyncio.StreamReader, sink: BinaryIO) -> None:
    """Make the model, say hello, and answer leases until the source ends."""
    try:
        with foreign_code("the replica's model cannot be made:"):
            host = Host(recipe.make())
            hello = await host.greet()
    except SnellenError as error:
        write_frame(sink, msgspec.msgpack.encode(Opening(problem=write_wire_error(error))))
        return
    write_frame(sink, msgspec.msgpack.encode(Opening(hello)))
    answers = asyncio.create_task(_hand_back(host, sink))
    while (frame := await read_frame(source)) is not None:
        host.accept(*_frame.decode(frame))
    answers.cancel()


async def _hand_back(host: Host, sink: BinaryIO) -> None:
    while True:
        outcomes = await host.collect()
        await asyncio.to_thread(write_frame, sink, outcomes)  # a slow driver must not hold the model


def write_frame(sink: BinaryIO, content: bytes) -> None:
    """Write one frame."""
    sink.write(LENGTH.pack(len(content)))
    sink.write(content)
    sink.flush()


async def read_frame(source: asyncio.StreamReader) -> bytes | None:
    """Return the next frame, or None when the other side is gone."""
    try:
        (size,) = LENGTH.unpack(await source.readexactly(LENGTH.size))
        return await source.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


ADVICE = "by hand, or the machine is out of memory: fewer --replicas, or a smaller --batch-size"
SHOWN = 200
"""So much of a dead replica's last line is shown."""


class ProcessLink:
    """Starts one process, talks to it by pipes, and says why it ended."""

    def __init__(
        self, number: int, recipe: Recipe, environment: Mapping[str, str] | None = None, advice: str = ADVICE
    ) -> None:
        self._number = number
        self._recipe = recipe
        self._environment = dict(environment or {})
        self._advice = advice
        self._process: asyncio.subprocess.Process | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the link

    async def open(self) -> Hello:
        """Start the process and wait until its model can answer."""
        starting = asyncio.ensure_future(self._start())
        try:
            self._process = await asyncio.shield(starting)
        except asyncio.CancelledError:  # nobody would end a process that is born while its fleet is closed
            self._process = await starting
            raise
        self._write(self._recipe.packed())
        opening = msgspec.msgpack.decode(await self._next_frame(), type=Opening)
        if opening.problem is not None:
            raise opening.problem.revive()
        if opening.hello is None:
            raise ReplicaLost("it said nothing")
        return opening.hello

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "snellen.kits.scale.processes"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, **self._environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # a Ctrl-C is for the driver: it lets replicas finish what they hold
        )

    def send(self, lease: Sequence[Waiting]) -> None:
        """Write a lease to the process."""
        packed, contents = pack_lease((waiting.number, waiting.item) for waiting in lease)
        self._write(msgspec.msgpack.encode((msgspec.Raw(packed), [content.data for content in contents])))

    async def receive(self) -> bytes:
        """Wait for the next outcomes."""
        return await self._next_frame()

    async def close(self) -> None:
        """End the process: by closing its pipe, and at once if it does not listen."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process is not None:
            process._transport.close()  # type: ignore[attr-defined]  # its pipes may hold what nobody reads any more
        self._said.close()

    async def _next_frame(self) -> bytes:
        process = self._process
        if process is None or process.stdout is None:
            raise ReplicaLost("it is closed")
        frame = await read_frame(process.stdout)
        if frame is None:
            raise ReplicaLost(await self._last_words(process))
        return frame

    def _write(self, content: bytes) -> None:
        if self._process is not None and self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(LENGTH.pack(len(content)))
            self._process.stdin.write(content)

    async def _last_words(self, process: asyncio.subprocess.Process) -> str:
        return last_words(await process.wait(), self._said, self._advice)


def last_words(code: int, said: IO[bytes], advice: str) -> str:
    """Return how a process ended, with the last line it said; `advice` is for one that was killed."""
    said.seek(0)
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    how = f"killed by {_signal_name(-code)}" if code < 0 else f"it ended with exit code {code}"
    if code == -signal.SIGKILL:
        how += f" ({advice})"
    return f"{how}: {lines[-1][-SHOWN:]}" if lines else how


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def _main() -> None:
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a model prints must not be taken for answers
    loop = asyncio.get_running_loop()
    source = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(source), sys.stdin)
    recipe = await read_frame(source)
    if recipe is not None:
        await serve_leases(Recipe.unpacked(recipe), source, sink)
    sys.stderr.flush()
    os._exit(0)  # a model in the middle of an answer nobody waits for must not hold the process


if __name__ == "__main__":
    asyncio.run(_main())
