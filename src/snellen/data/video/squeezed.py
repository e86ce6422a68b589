"""Videos as they are after compression to a bitrate: written once, kept while there is room, read frame by frame."""

from __future__ import annotations

import os
import secrets
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from ...core.errors import DataError
from ...core.folders import cache_folder
from ...core.ids import content_hash
from ...core.types import Frame
from .decoder import decoder_of, read_frame

MOST_KEPT_BYTES = 4 * 2**30
"""Compressed videos beyond this go, the one not read for the longest time first; they can be made again."""
_ASKING: dict[str, Lock] = {}
_LOCK = Lock()


class Squeezed(msgspec.Struct, frozen=True):
    """A compressed video: its file, and what is recorded of it."""

    file: str
    asked_kbps: int
    kbps: float
    """What the encoder made of it: a rate it cannot reach is not hidden."""
    encoder: str

    def record(self) -> dict[str, Any]:
        """Return what a trial stores."""
        return {"asked_kbps": self.asked_kbps, "kbps": self.kbps, "encoder": self.encoder}


def squeeze(path: str, kbps: int) -> Squeezed:
    """Return a video compressed to so many kbit/s; raise DataError where that cannot be done."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        raise DataError(f"video {path!r} does not exist") from None
    encoder = f"libx264 veryfast, PyAV {version('av')}"
    name = content_hash([path, status.st_size, status.st_mtime_ns, kbps, encoder], 32)
    with _LOCK:
        asking = _ASKING.setdefault(name, Lock())
    with asking:  # many questions about one video compress it once
        file = cache_folder() / "squeezed" / f"{name}.mp4"
        note = file.with_suffix(".json")
        if not (file.is_file() and note.is_file()):
            _write(path, kbps, file, note)
        os.utime(file)
        measured = msgspec.json.decode(note.read_bytes())
    return Squeezed(str(file), kbps, measured["kbps"], encoder)


def _write(path: str, kbps: int, file: Path, note: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.stem}.{secrets.token_hex(4)}.mp4")
    try:
        measured = decoder_of(path, "squeeze").squeeze(path, str(draft), kbps)
        note.write_bytes(msgspec.json.encode(measured))
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    make_room(file.parent, file)


def make_room(folder: Path, kept: Path, most_bytes: int = MOST_KEPT_BYTES) -> None:
    """Take away what was not read for the longest time, until the rest fits; one file always stays."""
    known = sorted((one for one in folder.glob("*.mp4") if one != kept), key=lambda one: one.stat().st_mtime)
    room = most_bytes - kept.stat().st_size - sum(one.stat().st_size for one in known)
    for old in known:
        if room >= 0:
            return
        room += old.stat().st_size
        old.unlink(missing_ok=True)
        old.with_suffix(".json").unlink(missing_ok=True)


def read_film_frame(path: str, frame: Frame) -> bytes:
    """Return a frame of a video file as a picture file, from its compressed copy where one is meant."""
    if not frame.kbps:
        return read_frame(path, frame)
    return read_frame(squeeze(path, frame.kbps).file, frame)
