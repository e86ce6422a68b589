"""The picture files of samples to what a plan says of them: their bytes, and which lie outside the data's folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from .images.decode import short_name

LISTED = 3


class Leaving(Struct, frozen=True):
    """What would leave with one pass over the samples."""

    size_bytes: int = 0
    outside: int = 0
    first_outside: tuple[str, ...] = ()
    """The first few pictures that lie outside, as `sample: file`."""
    folder: str = ""
    """The folder they lie outside of."""


class PictureFolders:
    """Tells of each picture how large it is, and whether it really lies in one of the folders; links are followed.

    Without folders (a loader that makes or fetches its own pictures) nothing lies outside. They are looked up when the
    first picture comes: a loader names them when it begins.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._given = folders
        self._known: dict[str, bool] = {}
        self._size_bytes = self._outside = 0
        self._first: list[str] = []

    def add(self, sample: str, ref: str) -> bool:
        """Count one picture; return whether it is there."""
        if ref.startswith("data:"):
            self._size_bytes += (len(ref) - ref.find(",") - 1) * 3 // 4
            return True
        size_bytes, linked = _look_at(ref)
        if size_bytes is None:
            return False
        self._size_bytes += size_bytes
        if self._roots and self._lies_outside(ref, linked=linked):
            self._outside += 1
            if len(self._first) < LISTED:
                self._first.append(f"{sample}: {short_name(ref)}")
        return True

    def add_video(self, sample: str, ref: str) -> bool:
        """Look at a video, a folder of frames or a file of subtitles; return whether it is there.

        What leaves of it is known when it is asked about, not before.
        """
        if not Path(ref).exists():
            return False
        if self._roots and self._lies_outside(ref, linked=True):
            self._outside += 1
            if len(self._first) < LISTED:
                self._first.append(f"{sample}: {short_name(ref)}")
        return True

    def summary(self) -> Leaving:
        """Return what was counted."""
        return Leaving(self._size_bytes, self._outside, tuple(self._first), next(iter(self._given), ""))

    @cached_property
    def _roots(self) -> list[str]:
        return [root for folder in self._given for root in _roots_of(os.path.realpath(folder))]

    def _lies_outside(self, ref: str, *, linked: bool) -> bool:
        folder = ref.rpartition("/")[0]
        inside = self._known.get(folder)
        if inside is None:  # thousands of pictures lie in few folders: only what may be a link is looked at alone
            inside = self._known[folder] = self._is_under(os.path.realpath(folder or "/"))
        if inside and not linked:
            return False
        return not self._is_under(os.path.realpath(ref))

    def _is_under(self, path: str) -> bool:
        return any(path == root or path.startswith(root.rstrip("/") + "/") for root in self._roots)


def _roots_of(folder: str) -> list[str]:
    """Return a folder and, for a snapshot in a hub's cache, the folder of its repository: its files are links there."""
    head, found, _ = folder.partition("/snapshots/")
    return [folder, head] if found and Path(head, "blobs").is_dir() else [folder]


def _look_at(ref: str) -> tuple[int | None, bool]:
    """Return how many bytes a picture has (None where it is not there), and whether the file itself may be a link."""
    try:
        status = os.lstat(ref)  # one call for most of thousands of pictures
        if stat.S_ISREG(status.st_mode):
            return status.st_size, False
        status = Path(ref).stat()
    except (OSError, ValueError):
        try:
            status = Path(ref).stat()  # as a Path: `a.png/` is written so in some tables
        except (OSError, ValueError):
            return None, False
    return (status.st_size if stat.S_ISREG(status.st_mode) else None), True
