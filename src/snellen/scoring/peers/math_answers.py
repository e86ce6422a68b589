"""Answers of MathVision: what a long reply answers with, equal to the letter, the option's value or the number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ...core.types import Sample
from .arithmetic import same_value

_BOX = "oxed{"
_FLAGS = ("the final answer is", "the answer is", "the correct answer is", "the answer should be")
_BRACKETED = re.compile(r"[({]([a-e])[)}]")


def equals_in_maths(reply: str, sample: Sample) -> float:
    """Tell whether what the reply answers with is one of the answers: the same text, or worth the same."""
    given = stated_answer(reply)
    return float(any(same_answer(answer, given) for answer in sample.answers))


def read_maths_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the option whose letter or value the reply answers with; the letter comes first."""
    given = stated_answer(reply)
    by_letter = next((mark for mark in options if given.lower() == mark.lower()), None)
    return by_letter or next((mark for mark, text in options.items() if same_answer(text, given)), None)


def same_answer(wanted: str, given: str) -> bool:
    """Tell whether two answers are the same text (case and spaces aside) or worth the same."""
    texts = [re.sub(r"\s+", "", text).lower() for text in (wanted, given)]
    return bool(texts[0]) and (texts[0] == texts[1] or same_value(wanted, given))


def stated_answer(reply: str) -> str:
    """Return what a reply answers with: its last box, else what follows the last phrase that announces an answer."""
    text = reply.strip()
    for letter in "ABCDE":
        if text.endswith((f" {letter}.", f" ({letter}).")) or text.startswith((f"{letter}\n", f"({letter})\n")):
            text = letter
    boxed = list(_boxes(text))
    text = boxed[-1] if boxed else _announced(text)
    return _BRACKETED.sub(r"\1", text.strip().strip("$").lower()).rstrip(".").lstrip(":").strip()


def _boxes(text: str) -> Iterator[str]:
    """Yield the contents of all boxes whose brackets close."""
    at = text.find(_BOX)
    while at >= 0:
        start, depth = at + len(_BOX), 1
        for place in range(start, len(text)):
            depth += (text[place] == "{") - (text[place] == "}")
            if not depth:
                yield text[start:place]
                break
        at = text.find(_BOX, start)


def _announced(text: str) -> str:
    for flag in _FLAGS:
        for said in (flag, flag.capitalize()):
            if said in text:
                text = text.rpartition(said)[2].strip().split("\n")[0].split(". ")[0]
    return text
