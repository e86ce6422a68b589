"""The questions of one page to what tells them apart: what all share is said once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.markup import Html, shorten, tag

WORTH = 40
"""Shared texts shorter than this stay where they are: a question is easier to read whole."""
SHOWN = 160
AS_ABOVE = "as above"


class Apart(NamedTuple):
    """What the questions of a page begin and end with, and what is left of each."""

    begin: str
    end: str
    rest: list[str]

    @property
    def all_same(self) -> bool:
        """Tell whether every row asks the same."""
        return bool(self.begin) and not self.end and not any(self.rest)

    def note(self) -> Html | None:
        """Return what was left out of the rows, in words."""
        if self.all_same:
            return tag("p", tag("b", "Every question here: "), shorten(self.begin, 600), class_="small")
        parts = [f"{how} “{shorten(text, 300)}”" for how, text in (("begins", self.begin), ("ends", self.end)) if text]
        return tag("p", tag("b", "Every question here "), " and ".join(parts), class_="small") if parts else None

    def cells(self) -> list[str]:
        """Return what a row shows: only what differs, and not again what stands in the row above."""
        shown, before = [], None
        for text in self.rest:
            words = ("… " if self.begin else "") + text + (" …" if self.end else "")
            shown.append(AS_ABOVE if text == before else shorten(words, SHOWN))
            before = text
        return shown


def tell_apart(questions: Sequence[str]) -> Apart:
    """Take off the questions what all of them begin and end with, at the ends of words."""
    texts = list(questions)
    if len(texts) < 2:
        return Apart("", "", texts)
    if len(set(texts)) == 1:
        return Apart(texts[0], "", [""] * len(texts)) if texts[0] else Apart("", "", texts)
    begin = _whole_words(texts)
    rest = [text[len(begin) :] for text in texts]
    end = _whole_words([text[::-1] for text in rest])[::-1]
    return Apart(begin.strip(), end.strip(), [text[: len(text) - len(end)].strip() for text in rest])


def _whole_words(texts: Sequence[str]) -> str:
    """Return what all texts begin with, up to its last space, or nothing if it is not worth taking off."""
    first, last = min(texts), max(texts)  # what these two share, all that sort between them share
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    shared = first[:length]
    cut = max((place for place, sign in enumerate(shared) if sign.isspace()), default=-1) + 1
    return shared[:cut] if cut >= WORTH else ""
