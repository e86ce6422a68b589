"""Asks the process that opens videos, within a time; a process that does not answer is ended and another started."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from ...core.errors import DataError, MissingExtra
from ...core.types import Frame
from .reel import Reel

FACTS_S = 120.0
"""How long it may take to read when the frames of a file are shown."""
FRAME_S = 30.0
"""How long it may take to decode one frame."""
SQUEEZE_S = 3600.0
"""How long it may take to compress a whole video: on one core of today a 720p film takes a third of its length."""
PROCESSES = min(2, os.cpu_count() or 1)


class VideoDecoder:
    """One process; requests wait for one another."""

    def __init__(self, facts_s: float = FACTS_S, frame_s: float = FRAME_S, squeeze_s: float = SQUEEZE_S) -> None:
        self._facts_s = facts_s
        self._frame_s = frame_s
        self._squeeze_s = squeeze_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def facts(self, path: str, *, scenes: bool = False) -> Reel:
        """Return what is known of a video; raise DataError where it cannot be read."""
        body = self._ask({"what": "facts", "path": path, "scenes": scenes}, self._facts_s)
        return msgspec.json.decode(body, type=Reel)

    def picture(self, path: str, frame: Frame) -> bytes:
        """Return one frame as a picture file; raise DataError where it cannot be decoded.

        In a compressed copy it is found by its place: timestamps are counted anew there.
        """
        request = {"what": "frame", "path": path, "pts": frame.pts, "side": frame.side, "encoding": frame.encoding}
        return self._ask(request | ({"place": frame.index} if frame.kbps else {}), self._frame_s)

    def squeeze(self, path: str, target: str, kbps: int) -> dict[str, Any]:
        """Write a video compressed to a bitrate; return what became of it, or raise DataError."""
        body = self._ask({"what": "squeeze", "path": path, "target": target, "kbps": kbps}, self._squeeze_s)
        found: dict[str, Any] = json.loads(body)
        return found

    def close(self) -> None:
        """End the process, if there is one; another is started when it is needed."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # What a request left in the pipe is written on closing; nobody reads it any more.
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def _ask(self, request: dict[str, Any], within_s: float) -> bytes:
        path = request["path"]
        with self._lock:
            process = self._running()
            late = threading.Event()
            alarm = threading.Timer(within_s, _give_up, (process, late))
            answered = False
            alarm.start()
            try:
                head, body = _exchange(process, request)
                answered = True
            except (OSError, EOFError):
                verb = "compress" if request["what"] == "squeeze" else "decode"
                what = f"took more than {within_s:g} s to {verb}" if late.is_set() else "made the decoder crash"
                raise DataError(f"video {path!r} {what} and was given up") from None
            finally:
                alarm.cancel()
                if not answered:  # what comes next must not be taken for the answer to another request
                    self.close()
        if "error" in head:
            raise DataError(f"video {path!r} {head['error']}")
        return body

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            _need_av()
            script = str(Path(__file__).with_name("av_child.py"))
            # A session of its own: Ctrl-C is for the run, which still has to finish what it asked.
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-I", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self._process


def _need_av() -> None:
    if importlib.util.find_spec("av") is None:
        raise MissingExtra("video", "opening videos")


def _give_up(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _exchange(process: subprocess.Popen[bytes], request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Send a request; return the head of the answer and what follows it."""
    if process.stdin is None or process.stdout is None:
        raise EOFError
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    head = json.loads(line)
    body = process.stdout.read(head["size"])
    if len(body) < head["size"]:
        raise EOFError
    return head, body


@cache
def decoders(work: str = "frames") -> tuple[VideoDecoder, ...]:
    """Return the processes of this program for one kind of work; they start when they are needed, and end with it."""
    made = tuple(VideoDecoder() for _ in range(PROCESSES))
    for decoder in made:
        atexit.register(decoder.close)
    return made


def decoder_of(path: str, work: str = "frames") -> VideoDecoder:
    """Return the process that has this file open, if any has; compressing has its own, so that frames need not wait."""
    known = decoders(work)
    return known[crc32(path.encode(errors="surrogateescape")) % len(known)]


def read_frame(path: str, frame: Frame) -> bytes:
    """Return a frame of a video file as a picture file."""
    return decoder_of(path).picture(path, frame)
