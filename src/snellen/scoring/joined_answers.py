"""Answers made of several texts, as MM-Vet writes them: `a <AND> b` is met by both, `a <OR> b` by either."""

from __future__ import annotations

from collections.abc import Callable, Sequence

AND, OR = "<AND>", "<OR>"
JOINED = "the answer joins texts by <AND> or <OR>: use the scorer contains, or a judge"
BOTH_WAYS = "the answer holds <AND> and <OR>, and what is asked hangs on which of them binds"


def is_joined(answers: Sequence[str]) -> bool:
    """Tell whether an answer is a condition over several texts."""
    return any("<" in answer and (AND in answer or OR in answer) for answer in answers)


def is_met(answer: str, holds: Callable[[str], bool]) -> bool | None:
    """Tell whether a condition is met, by what holds of each of its texts; a plain answer is one of a single text.

    Nobody says which of the two joints binds closer: where that decides, None.
    """
    all_of_any = all(any(map(holds, _parts(group, OR))) for group in _parts(answer, AND))
    any_of_all = any(all(map(holds, _parts(group, AND))) for group in _parts(answer, OR))
    return all_of_any if all_of_any == any_of_all else None


def _parts(text: str, joint: str) -> list[str]:
    return [part.strip() for part in text.split(joint) if part.strip()]
