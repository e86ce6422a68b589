"""Candidates that differ by their looks to candidates that look alike: endings, capitals, quotes and spaces."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import structs

from .records import Draft, Question

STOPS = ".。!！…"
_SPACES = re.compile(r"\s+")


def level_draft(draft: Draft) -> tuple[Draft, bool]:
    """Return the item with all candidates of each question made alike, and whether anything changed."""
    steps = tuple(level_question(step) for step in draft.steps)
    inference = level_question(draft.inference)
    changed = steps != draft.steps or inference != draft.inference
    return (structs.replace(draft, steps=steps, inference=inference), True) if changed else (draft, False)


def level_question(question: Question) -> Question:
    """Make the candidates of one question alike."""
    candidates = tuple(level_texts(question.candidates))
    return question if candidates == question.candidates else structs.replace(question, candidates=candidates)


def level_texts(texts: Sequence[str]) -> list[str]:
    """Strip spaces, quotes and final stops from all texts; where some begin with a capital, all do, as names must."""
    bare = [_SPACES.sub(" ", text).strip(' "“”').rstrip(STOPS + " ") or text for text in texts]
    return [text[:1].upper() + text[1:] for text in bare] if any(text[:1].isupper() for text in bare) else bare
