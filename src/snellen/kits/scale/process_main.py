"""A replica as a process (`python -m snellen.kits.scale.process_main`): frames in by one pipe, out by another.

A frame is its length in eight bytes and its content. Whatever else is printed goes to stderr, and the process ends with
the driver: when the pipe is closed, nobody waits for answers any more.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from typing import BinaryIO

import msgspec

from ...core.errors import SnellenError
from ...core.registry import foreign_code
from .host import Host
from .items import Hello, Lease, WireError, write_wire_error
from .links import Recipe

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
