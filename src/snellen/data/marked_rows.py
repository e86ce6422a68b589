"""How many samples have markers (`<image 1>`) in their texts; which markers and which pictures have no partner."""

from __future__ import annotations

from msgspec import Struct

from ..core.message_parts import holds_marker, marked_pictures, number_markers
from ..core.types import Sample


class MarkerCount(Struct):
    """What one pass over the samples found."""

    rows: int = 0
    """Samples with a marker of a picture they have."""
    options: int = 0
    """Samples with a picture among their options."""
    unnamed: int = 0
    """Pictures that no marker names, of questions that name others."""
    unnamed_in: str = ""
    """The first sample with one."""
    missing: int = 0
    """Markers of pictures that their samples do not have."""
    missing_in: str = ""

    def add(self, sample: Sample) -> None:
        """Count one sample."""
        texts = "\n".join((sample.question, *sample.options))
        if "<" in texts and holds_marker(texts):
            self._add_question(sample, number_markers((sample.question, *sample.options)))
        elif sample.turns and any(turn.images and holds_marker(turn.text) for turn in sample.turns):
            self.rows += 1

    def _add_question(self, sample: Sample, texts: list[str]) -> None:
        named = set(marked_pictures(texts))
        there = named & set(range(1, len(sample.images) + 1))
        self.missing += len(named - there)
        self.missing_in = self.missing_in or (sample.id if named - there else "")
        if not there:
            return
        self.rows += 1
        self.options += not there.isdisjoint(marked_pictures(texts[1:]))
        if len(there) < len(sample.images) and marked_pictures(texts[:1]):
            self.unnamed += len(sample.images) - len(there)
            self.unnamed_in = self.unnamed_in or sample.id
