"""Picture files to facts in a process of its own: hashing and checksums cost more than all the rest of a request.

Threads would not do: every hash would hand the interpreter lock back and forth, which costs the event loop as much as
hashing.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque

from . import frames
from .frames import Facts, read_facts

FEW_FILES = 32
"""So many are looked at by whoever asks; for more a process is started."""
USEFUL = os.name == "posix" and (os.cpu_count() or 1) > 1 and not getattr(sys, "frozen", False)
"""There must be a second core, a process that takes a socket for a file, and a Python to start (no frozen program)."""


class Examination:
    """Starts the process once there are files enough to be worth it; nobody waits for its start."""

    def __init__(self) -> None:
        self._asked = 0
        self._examiner: asyncio.Task[Examiner | None] | None = None

    async def examine(self, path: str) -> Facts | None:
        """Return the facts of a file, or None: then whoever asks looks for himself."""
        self._asked += 1
        if self._asked <= FEW_FILES or not USEFUL:
            return None
        if self._examiner is None:
            self._examiner = asyncio.create_task(Examiner.start())
        examiner = self._examiner.result() if self._examiner.done() else None
        return None if examiner is None else await examiner.examine(path)

    def close(self) -> None:
        """End the process, if there is one; another is started when it is needed again."""
        if self._examiner is not None:
            starting, self._examiner = self._examiner, None
            if starting.done():
                _end(starting)
            else:
                starting.add_done_callback(_end)


class Examiner(asyncio.Protocol):
    """Asks a process for the facts of files, in order; once it is gone there are none."""

    def __init__(self, process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._process = process
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._asked: deque[asyncio.Future[Facts | None]] = deque()
        self._paths: list[bytes] = []
        self._rest = b""

    @classmethod
    async def start(cls) -> Examiner | None:
        """Start the process: 13 ms of another core and 13 MB; None where it cannot be had."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                command, end = [sys.executable, "-I", "-S", frames.__file__], theirs.fileno()
                # A session of its own: Ctrl-C is for the run, which still has to finish what it asked.
                process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own module; starting it takes 0.3 ms
                    command, stdin=end, stdout=end, stderr=subprocess.DEVNULL, start_new_session=True
                )
        except OSError:
            ours.close()
            return None
        examiner = cls(process, loop)
        try:
            await loop.create_connection(lambda: examiner, sock=ours)
        finally:
            if examiner._transport is None:
                process.kill()
                process.wait()
        return examiner

    def examine(self, path: str) -> asyncio.Future[Facts | None]:
        """Return the facts of a file when they are known; None where it cannot be read, or where nobody can look."""
        loop = asyncio.get_running_loop()
        facts: asyncio.Future[Facts | None] = loop.create_future()
        # A zero byte in a name would end it too early.
        name = path.encode(errors="surrogateescape") if path.isprintable() else b""
        if self._transport is None or self._transport.is_closing() or loop is not self._loop or not name:
            facts.set_result(None)
            return facts
        self._asked.append(facts)
        self._paths.append(name + b"\0")
        if len(self._paths) == 1:
            loop.call_soon(self._send)  # all that is asked in this turn of the loop goes together
        return facts

    def close(self) -> None:
        """End the process; what was asked is answered with None."""
        if self._transport is not None:
            self._transport.abort()
        self._process.terminate()
        self._process.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to write."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a socket's is one
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand out the facts that came."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            _settle(self._asked.popleft(), read_facts(line))

    def connection_lost(self, exc: Exception | None) -> None:
        """Let nobody wait for what will not come."""
        while self._asked:
            _settle(self._asked.popleft(), None)

    def _send(self) -> None:
        paths, self._paths = b"".join(self._paths), []
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(paths)


def _settle(future: asyncio.Future[Facts | None], facts: Facts | None) -> None:
    if not future.done():
        future.set_result(facts)


def _end(starting: asyncio.Task[Examiner | None]) -> None:
    examiner = None if starting.cancelled() else starting.result()
    if examiner is not None:
        examiner.close()
