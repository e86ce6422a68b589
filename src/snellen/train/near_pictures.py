"""Pictures to fingerprints that survive another size, format or quality, and the search for near ones.

Two fingerprints must both be near: the signs of brightness steps (64 bits), and an 8 × 8 thumbnail in colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from ..core.ids import sha256_hex
from ..core.types import Image
from ..data.images.decode import decode, read_bytes

MOST_BITS = 8
MOST_LEVELS = 10.0
"""Of 256: mean difference of the thumbnails."""
BLOCK = 512


class PictureMark(NamedTuple):
    """One picture's fingerprints."""

    name: str
    sha256: str
    signs: int
    thumbnail: NDArray[np.float32]


def mark_picture(name: str, image: Image) -> PictureMark:
    """Return the fingerprints of a picture as it lies on the disk, without its edits."""
    data = read_bytes(image)
    picture = decode(data, image.ref).convert("RGB")
    grey = np.asarray(picture.convert("L").resize((9, 8), PIL.Image.Resampling.BOX), dtype=np.int16)
    bits = (grey[:, 1:] > grey[:, :-1]).ravel()
    small = np.asarray(picture.resize((8, 8), PIL.Image.Resampling.BOX), dtype=np.float32).ravel()
    return PictureMark(name, sha256_hex(data), int(np.packbits(bits).view(">u8")[0]), small)


def near_pairs(taught: Sequence[PictureMark], tested: Sequence[PictureMark]) -> Iterator[tuple[int, int]]:
    """Yield the places (taught, tested) of pictures that look alike; equal files are not looked for here."""
    if not taught or not tested:
        return
    signs = np.asarray([mark.signs for mark in tested], dtype=np.uint64)
    thumbnails = np.stack([mark.thumbnail for mark in tested])
    for start in range(0, len(taught), BLOCK):
        block = taught[start : start + BLOCK]
        mine = np.asarray([mark.signs for mark in block], dtype=np.uint64)
        apart = np.bitwise_count(mine[:, None] ^ signs[None, :])
        for row, column in np.argwhere(apart <= MOST_BITS):
            levels = np.abs(block[row].thumbnail - thumbnails[column]).mean()
            if levels <= MOST_LEVELS:
                yield start + int(row), int(column)
