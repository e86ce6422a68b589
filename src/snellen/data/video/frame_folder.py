"""A folder of frames as a video: its pictures in the order of their names, so many a second."""

from __future__ import annotations

import re
from pathlib import Path

from ...core.errors import DataError
from .reel import Reel

PICTURES = {".png", ".jpg", ".jpeg", ".webp", ".bmp"}
UNITS = 1_000_000
"""Timestamps are counted in millionths of a second."""


def list_frames(folder: str) -> list[Path]:
    """Return the pictures of a folder, by the numbers in their names: 2 comes before 10."""
    found = [file for file in Path(folder).iterdir() if file.suffix.lower() in PICTURES]
    if not found:
        raise DataError(f"video {folder!r} is a folder without pictures ({', '.join(sorted(PICTURES))})")
    return sorted(found, key=lambda file: (_natural(file.name), file.name))


def folder_reel(files: list[Path], fps: float) -> Reel:
    """Return when each picture is shown."""
    if not 0 < fps <= 1000:
        raise DataError(f"video {str(files[0].parent)!r}: fps {fps:g} is not between 0 and 1000")
    pts = tuple(round(place / fps * UNITS) for place in range(len(files)))
    keys = tuple(range(len(files)))
    return Reel(pts, (1, UNITS), fps, 0, 0, keys, last=1 / fps, codec="pictures", container="folder")


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]
