"""The size of a picture as sent to the tokens a provider counts for it: formulas by name, their figures on cards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import msgspec

from ...data.visual_tokens import Size, visual_tokens


class PictureTokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One formula of a card (`[pictures]`): its kind, and the figures that this kind needs."""

    kind: str
    base: int = 0
    """tiles: for the whole picture; flat: for every picture; family: what is added to each."""
    tile: int = 0
    multiplier: float = 1.0
    cap: int = 1536
    """patches: how many at most."""
    area: float = 750.0
    """area: pixels a token."""
    max_side: int | None = None
    max_pixels: int | None = None
    family: str = ""
    """family: one of `snellen.data.visual_tokens.FAMILIES`."""
    mark: str = ""
    """`seen` in a source, or `from memory`."""

    def count(self, size: Size) -> int:
        """Return the tokens of one picture of this width and height."""
        return KINDS[self.kind](size, self)

    def __post_init__(self) -> None:
        """Refuse a kind that no formula has."""
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r} is none of {', '.join(KINDS)}")


def _flat(size: Size, card: PictureTokens) -> int:
    return card.base


def _tiles(size: Size, card: PictureTokens) -> int:
    """Into 2048 by 2048, the shorter side to 768 at most, so much for each square of 512."""
    scale = min(1.0, 2048 / max(size))
    scale *= min(1.0, 768 / (min(size) * scale))
    across, down = (math.ceil(round(side * scale, 6) / 512) for side in size)
    return card.base + card.tile * across * down


def _patches(size: Size, card: PictureTokens) -> int:
    """One a square of 32, shrunk until at most `cap` whole ones fit."""
    width, height = size
    patches = math.ceil(width / 32) * math.ceil(height / 32)
    if patches > card.cap:
        ratio = math.sqrt(card.cap * 32 * 32 / (width * height))
        across, down = width * ratio / 32, height * ratio / 32
        ratio *= min(max(1, math.floor(across)) / across, max(1, math.floor(down)) / down)
        across, down = (math.ceil(round(side * ratio / 32, 6)) for side in size)
        patches = int(across * down)
    return math.ceil(round(patches * card.multiplier, 6))


def _area(size: Size, card: PictureTokens) -> int:
    """So many pixels a token, after the picture was brought under a side and an area."""
    width, height = size
    scale = min(1.0, card.max_side / max(size)) if card.max_side else 1.0
    if card.max_pixels:
        scale = min(scale, math.sqrt(card.max_pixels / (width * height)))
    return max(1, math.ceil(width * scale * height * scale / card.area))


def _crops(size: Size, card: PictureTokens) -> int:
    """One for a small picture, else one a crop whose side hangs on the shorter side."""
    if max(size) <= 384:
        return card.tile
    unit = min(768, max(256, math.floor(min(size) / 1.5)))
    return card.tile * math.ceil(size[0] / unit) * math.ceil(size[1] / unit)


def _family(size: Size, card: PictureTokens) -> int:
    return visual_tokens([size], card.family) + card.base


KINDS: Mapping[str, Callable[[Size, PictureTokens], int]] = {
    "flat": _flat,
    "tiles": _tiles,
    "patches": _patches,
    "area": _area,
    "crops": _crops,
    "family": _family,
}
ASSUMED = PictureTokens("area", mark="assumed")
"""Where no card has a formula: 750 pixels a token; whoever uses it says so."""
