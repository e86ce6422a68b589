"""A document's pages and a model's limits into what is sent: all, none, without the middle, smaller, or in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from ...core.errors import UsageError, not_among
from .visual_tokens import Size, visual_tokens

POLICIES = ("skip", "middle", "dpi", "chunk")
_SMALLEST = 0.3
"""Share of both sides below which text is no longer legible."""


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """What a model takes in one request; None is no limit. `policy` says what happens to a document beyond it."""

    max_images: int | None = None
    max_visual_tokens: int | None = None
    family: str = "qwen2.5-vl"
    policy: str = "skip"

    def check(self) -> None:
        """Refuse an unknown policy."""
        if self.policy not in POLICIES:
            raise UsageError(f"too-long policy {not_among(self.policy, POLICIES)}")


class Fit(NamedTuple):
    """What of a document is sent. `reason` is set when nothing is; `chunk` is the pages per request when it is cut."""

    pages: tuple[int, ...]
    edits: tuple[str, ...] = ()
    reason: str = ""
    chunk: int = 0


def fit(sizes: Sequence[Size], limits: Limits) -> Fit:
    """Decide before anything is sent; page indices count from 0."""
    limits.check()
    everything = tuple(range(len(sizes)))
    most = _most_pages(sizes, limits)
    if most >= len(sizes):
        return Fit(everything)
    over = f"too long: {len(sizes)} pages where the model takes {most}"
    if limits.policy == "skip" or most < 1:
        return Fit((), reason=over)
    if limits.policy == "chunk":
        return Fit(everything, chunk=most)
    if limits.policy == "dpi":
        share = _share(sizes, limits)
        if share is not None:
            return Fit(everything, (f"scale:{share:g}",))
    head = (most + 1) // 2
    return Fit((*everything[:head], *everything[len(sizes) - (most - head) :]))


def _most_pages(sizes: Sequence[Size], limits: Limits) -> int:
    most = len(sizes) if limits.max_images is None else min(len(sizes), limits.max_images)
    if limits.max_visual_tokens is None or not sizes:
        return most
    costs = [visual_tokens([size], limits.family) for size in sizes[:most]]
    while most and sum(costs[:most]) > limits.max_visual_tokens:
        most -= 1
    return most


def _share(sizes: Sequence[Size], limits: Limits) -> float | None:
    """Return the largest share of both sides at which all pages fit, or None if only their number is the trouble."""
    if limits.max_visual_tokens is None or len(sizes) > (limits.max_images or len(sizes)):
        return None
    for step in range(19, int(_SMALLEST * 20) - 1, -1):
        share = step / 20
        scaled = [(round(width * share), round(height * share)) for width, height in sizes]
        if visual_tokens(scaled, limits.family) <= limits.max_visual_tokens:
            return share
    return None
