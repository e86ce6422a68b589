"""A question and what was found out before it, as one text: the same words for a gold chain and for a model's own."""

from __future__ import annotations

from collections.abc import Iterable

LEAD = "What is known so far:"


def recount(question: str, found: Iterable[tuple[str, str]]) -> str:
    """Return the question with earlier (question, answer) pairs before it; without pairs, the question itself."""
    lines = [f"{number}. {asked} {answer}" for number, (asked, answer) in enumerate(found, 1)]
    return "\n".join([LEAD, *lines, question]) if lines else question
