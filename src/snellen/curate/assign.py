"""Items and reviewers to who looks at what: one person an item, a drawn share two, in whatever order they arrive."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import UsageError
from ..core.ids import rng


def assign(items: Sequence[str], reviewers: Sequence[str], overlap: float, seed: int) -> dict[str, list[str]]:
    """Return reviewer -> items in the order to review; `overlap` is the share of items that two people judge.

    Shared items are spread over all pairs and stand first in both lists, so that agreement is known early.
    """
    if not reviewers:
        raise UsageError("name at least one reviewer: --reviewer NAME")
    if not 0.0 <= overlap <= 1.0:
        raise UsageError(f"--overlap {overlap} must lie between 0 and 1")
    shuffled = sorted(items)
    rng(seed, "assignment").shuffle(shuffled)
    people = sorted(set(reviewers))
    shared = round(overlap * len(shuffled)) if len(people) > 1 else 0
    lists: dict[str, list[str]] = {name: [] for name in people}
    for place, item in enumerate(shuffled):
        first = place % len(people)
        lists[people[first]].append(item)
        if place < shared:
            step = 1 + (place // len(people)) % (len(people) - 1)
            lists[people[(first + step) % len(people)]].append(item)
    return lists
