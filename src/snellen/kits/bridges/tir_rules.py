"""TIR-Bench's thirteen tasks: a letter, letters, a number, two numbers, a set, an order, or a text that must occur.

The authors let a model (GPT-4.1) cut the answer out of a reply and compare by these rules; here our readers cut it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...core.types import Sample
from ...extract.choice import extract_choice
from ...extract.other_kinds import extract_number
from .math_answers import is_number

LETTERS = {letter: letter for letter in "ABCDEFGHIJ"}
_CUE = re.compile(r"(?:answer|order|result|differences?)\b[^:=\n\d]{0,30}[:=]?\s*", re.IGNORECASE)
_RUN = re.compile(r"\d+(?:[\s,，]+\d+)*")
_GLUED = re.compile(r"(?<![A-Za-z])[A-J](?:[\s,]*[A-J])*(?![A-Za-z])")
_PAIR = re.compile(r"\b(\d+)\s*,\s*(\d+)\b")


def judge_tir(reply: str, sample: Sample) -> float | None:
    """Return how right a reply is by the rule of its task (the tag `task`); None where nothing was read."""
    answer, task = sample.answers[0].strip(), str(sample.tags.get("task", ""))
    if task == "ocr":
        return float(answer in reply)
    if task == "jigsaw":
        return _order(reply, answer)
    if answer.isalpha():
        return _letters(reply, answer)
    if is_number(answer):
        said = extract_number(reply).value
        return None if said is None else float(said == float(answer))
    if task == "spot_difference":
        return _set(reply, answer)
    return _pair(reply, answer)


def _letters(reply: str, answer: str) -> float | None:
    if len(answer) == 1:
        said = extract_choice(reply, LETTERS).letter
        return None if said is None else float(said == answer)
    found = _GLUED.findall(_after_cue(reply))
    if not found:
        return None
    return float(sorted(letter for letter in found[-1] if letter.isalpha()) == sorted(answer))


def _order(reply: str, answer: str) -> float | None:
    """The share of pieces in their place, of the first run of as many numbers as there are pieces."""
    right = [int(number) for number in re.findall(r"\d+", answer)]
    runs = [[int(number) for number in re.findall(r"\d+", run)] for run in _RUN.findall(reply)]
    said = next((run for run in runs if len(run) == len(right)), None)
    return None if said is None or not right else sum(map(int.__eq__, right, said)) / len(right)


def _set(reply: str, answer: str) -> float | None:
    """What both name, of what either names."""
    said, right = set(_whole_numbers(_after_cue(reply))), set(_whole_numbers(answer))
    return len(said & right) / len(said | right) if said else None


def _pair(reply: str, answer: str) -> float | None:
    found, right = _PAIR.findall(reply), _PAIR.findall(answer)
    return None if not found or not right else float(tuple(map(int, found[-1])) == tuple(map(int, right[0])))


def _after_cue(reply: str) -> str:
    """Return what follows the last word that announces an answer; the whole reply where none does."""
    cues = list(_CUE.finditer(reply))
    tail = reply[cues[-1].end() :] if cues else ""
    return tail if re.search(r"\d|[A-J]", tail) else reply


def _whole_numbers(text: str) -> Sequence[int]:
    return [int(number) for number in re.findall(r"\d+", text)]
