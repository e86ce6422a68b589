"""An answer file to the entry a request is about, found by its question and the bytes of its images alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from ...core.errors import DataError
from ...core.message_parts import MARKER, all_pictures, holds_marker, number_markers, without_markers, write_marker
from ...core.types import Sample
from .ask import Ask, squeeze
from .pictures import file_bytes, thumbnail

NEAR = 12.0
"""Mean grey-level difference of two thumbnails up to which they show the same picture."""


class Entry(Struct, frozen=True, omit_defaults=True):
    """What the simulated reader may know about one question."""

    question: str
    answer: str
    images: tuple[str, ...] = ()
    """SHA-256 of each image file, in order."""
    options: tuple[str, ...] = ()
    lines: tuple[tuple[str, float], ...] = ()
    """Text and glyph height in px of each line of a chart."""
    contrasts: tuple[float, ...] = ()
    """Contrast of each of these lines, where they are not all black on white."""
    glyph_px: float | None = None
    position: float | None = None
    """Where the answer stands in a long document, 0 to 1."""
    width: int | None = None
    """Width of the first image in px, so that a shrunken copy is seen as such."""
    thumbnail: bytes | None = None
    """Small grey copy of the first image: finds it again after re-encoding."""


class AnswerBook:
    """All entries, indexed by (images, question)."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)
        self._exact: dict[tuple[tuple[str, ...], str], Entry] = {}
        self._by_images: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
        self._marked: dict[frozenset[str], list[Entry]] = defaultdict(list)
        """By their pictures, those whose question or options say where these stand: they may be shown in any order."""
        for entry in self.entries:
            self._exact.setdefault((entry.images, squeeze(entry.question)), entry)
            self._by_images[entry.images].append(entry)
            if any(map(holds_marker, (entry.question, *entry.options))):
                self._marked[frozenset(entry.images)].append(entry)
        self._pictured = [entry for entry in self.entries if entry.thumbnail]
        thumbnails = [np.frombuffer(entry.thumbnail or b"", dtype=np.uint8) for entry in self._pictured]
        self._thumbnails = np.array(thumbnails, dtype=np.int16)

    @classmethod
    def read(cls, path: str | Path) -> AnswerBook:
        """Read a JSONL file; the error names the line."""
        entries = []
        for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
            if not line.strip():
                continue
            try:
                entries.append(msgspec.json.decode(line, type=Entry))
            except msgspec.DecodeError as error:
                raise DataError(f"{path}:{number}: not an answer entry: {error}") from None
        return cls(entries)

    def find(self, ask: Ask) -> Entry | None:
        """Return the entry whose question stands in the text and whose images were sent."""
        entry = self._by_marks(ask) if self._marked else None
        entry = entry or self._by_question(ask.image_hashes, ask.text)
        if entry is None and ask.images and self._pictured:
            return self._by_picture(ask)
        return entry

    def _by_question(self, images: tuple[str, ...], text: str) -> Entry | None:
        for line in (text, *text.split("\n")):
            for candidate in (line, line.partition(": ")[2]):
                entry = self._exact.get((images, squeeze(candidate)))
                if entry is not None:
                    return entry
        return longest_contained(self._by_images.get(images, []), squeeze(text))

    def _by_marks(self, ask: Ask) -> Entry | None:
        """Return the entry with these pictures in any order whose question is asked, its markers as the request's."""
        text = squeeze(without_markers(ask.text))
        near = self._marked.get(frozenset(ask.image_hashes), [])
        asked = [entry for entry in near if squeeze(without_markers(entry.question)) in text]
        entry = max(asked, key=lambda entry: len(entry.question), default=None)
        return _renumbered(entry, ask.image_hashes) if entry is not None else None

    def _by_picture(self, ask: Ask) -> Entry | None:
        seen = thumbnail(ask.images[0])
        if seen is None:
            return None
        distance = np.abs(self._thumbnails - np.frombuffer(seen, dtype=np.uint8).astype(np.int16)).mean(axis=1)
        nearest = float(distance.min())
        near = [entry for entry, value in zip(self._pictured, distance, strict=True) if value <= nearest + 1e-9]
        return longest_contained(near, squeeze(ask.text)) if nearest <= NEAR else None


def _renumbered(entry: Entry, shown: tuple[str, ...]) -> Entry:
    """Return the entry with the numbers its pictures have in a request."""
    numbers = {place: shown.index(digest) + 1 for place, digest in enumerate(entry.images, 1)}

    def _renumber(text: str) -> str:
        return MARKER.sub(lambda found: write_marker(numbers.get(int(found[1]), 0)), text)

    question, *options, answer = map(_renumber, number_markers((entry.question, *entry.options, entry.answer)))
    return msgspec.structs.replace(entry, question=question, answer=answer, options=tuple(options))


def longest_contained(entries: list[Entry], text: str) -> Entry | None:
    """Return the entry with the longest question that the text contains."""
    contained = [entry for entry in entries if squeeze(entry.question) in text]
    return max(contained, key=lambda entry: len(entry.question), default=None)


def entry_of(sample: Sample) -> Entry:
    """Turn one sample into what a simulated reader may know about it."""
    data = [file_bytes(image) for image in all_pictures(sample)]
    earlier = len(data) - len(sample.images)
    texts = (sample.question, *sample.options, sample.answers[0] if sample.answers else "")
    question, *options, answer = _count_on(texts, earlier) if earlier else texts
    return Entry(
        question=question,
        answer=answer,
        images=tuple(digest for digest, _ in data),
        options=tuple(options),
        lines=tuple((str(line["text"]), float(line["height_px"])) for line in sample.meta.get("lines", ())),
        contrasts=_contrasts(sample),
        glyph_px=_number(sample, "glyph_px"),
        position=_number(sample, "position", "depth"),
        width=sample.images[0].width if sample.images else None,
        thumbnail=thumbnail(data[0][1]) if data else None,
    )


def _count_on(texts: Sequence[str], earlier: int) -> list[str]:
    """Return texts whose markers count the pictures of earlier rounds too."""
    return [MARKER.sub(lambda found: write_marker(int(found[1]) + earlier), text) for text in number_markers(texts)]


def _contrasts(sample: Sample) -> tuple[float, ...]:
    contrasts = tuple(float(line.get("contrast", 1.0)) for line in sample.meta.get("lines", ()))
    return contrasts if any(value != 1.0 for value in contrasts) else ()


def _number(sample: Sample, *names: str) -> float | None:
    """Return the first of these facts about a sample that is a number."""
    values: list[Any] = [sample.meta.get(name, sample.tags.get(name)) for name in names]
    return next((float(value) for value in values if isinstance(value, int | float)), None)


def write_answers(samples: Iterable[Sample], path: str | Path) -> int:
    """Write the answer file of these samples; return how many entries it holds."""
    lines = [msgspec.json.encode(entry_of(sample)) for sample in samples]
    Path(path).write_bytes(b"".join(line + b"\n" for line in lines))
    return len(lines)
