"""The size of a picture as sent to the tokens a provider counts for it: formulas by name, their figures on cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ...core.frames import Size
from ...data.visual_tokens import area_tokens, crop_tokens, patch_tokens, tile_tokens, visual_tokens


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


KINDS: Mapping[str, Callable[[Size, PictureTokens], int]] = {
    "flat": lambda size, card: card.base,
    "tiles": lambda size, card: tile_tokens(size, base=card.base, tile=card.tile),
    "patches": lambda size, card: patch_tokens(size, cap=card.cap, multiplier=card.multiplier),
    "area": lambda size, card: area_tokens(size, area=card.area, max_side=card.max_side, max_pixels=card.max_pixels),
    "crops": lambda size, card: crop_tokens(size, tile=card.tile),
    "family": lambda size, card: visual_tokens([size], card.family) + card.base,
}
"""The formulas are those of `docs` (`snellen.data.visual_tokens`): a page costs the same in both."""
ASSUMED = PictureTokens("area", mark="assumed")
"""Where no card has a formula: 750 pixels a token; whoever uses it says so."""
