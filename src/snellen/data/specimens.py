"""Some samples, spread evenly over all that pass, in bounded memory: prompts and costs are estimated on them."""

from __future__ import annotations

from ..core.types import Sample

MOST = 200
"""When there are so many, every second goes."""
MOST_BYTES = 16 * 2**20
"""Pictures in data URLs are heavy: of those fewer are kept."""


class Specimens:
    """Keeps every sample at first, then every second, every fourth and so on."""

    def __init__(self) -> None:
        self._kept: list[Sample] = []
        self._weight_bytes = 0
        self._seen, self._step = 0, 1

    def add(self, sample: Sample) -> None:
        """Keep a sample if it is its turn."""
        self._seen += 1
        if (self._seen - 1) % self._step:
            return
        self._kept.append(sample)
        self._weight_bytes += weight_bytes(sample)
        while len(self._kept) > 1 and (len(self._kept) >= MOST or self._weight_bytes > MOST_BYTES):
            del self._kept[1::2]
            self._weight_bytes = sum(map(weight_bytes, self._kept))
            self._step *= 2

    def kept(self) -> tuple[Sample, ...]:
        """Return those that are kept, in the order they came."""
        return tuple(self._kept)


def weight_bytes(sample: Sample) -> int:
    """Return about how much text a sample carries, where it may be much."""
    weight = len(sample.question)
    if sample.images:
        weight += sum([len(image.ref) for image in sample.images])
    if sample.meta:
        weight += len(repr(sample.meta))
    return weight
