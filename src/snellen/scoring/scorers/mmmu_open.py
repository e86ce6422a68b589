"""Turns the reply to an open MMMU question into candidate answers, and those into right or wrong, as MMMU does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Candidate = str | float

_CUES = ("could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ")
_TRIVIAL = frozenset(":,.!?;'")
# `(?<!\d)`: a run of digits is tried once, from its start, or long runs would cost the square of their length.
_NUMBERS = (
    re.compile(r"-?\b\d{1,3}(?:,\d{3})+\b"),
    re.compile(r"-?(?<!\d)\d+(?:\.\d+)?[eE][+-]?\d+"),
    re.compile(r"-?(?:(?<!\d)\d+\.\d+|\.\d+|(?<!\d)\d+\b)(?![eE][+-]?\d)(?![,\d])"),
)


def parse_open(reply: str) -> list[Candidate]:
    """Return what the reply may mean, each once: the tail of a line after a cue (else all of it), and its numbers."""
    text = reply.strip().strip(".").lower()
    tails = _tails(text) or [text]
    numbers = [number for tail in tails for pattern in _NUMBERS for number in pattern.findall(tail)]
    return list(dict.fromkeys(form for part in (*tails, *numbers) for form in normalise(part)))


def judge_open(reply: str, answers: str | Sequence[str]) -> bool:
    """Whether a number of the reply equals an answer to two decimals, or a tail of it contains a text answer."""
    wanted = [form for answer in ([answers] if isinstance(answers, str) else answers) for form in normalise(answer)]
    return any(_matches(candidate, wanted) for candidate in parse_open(reply))


def normalise(text: str) -> list[Candidate]:
    """Return the forms compared: a number to two decimals, else lower case; a lone character with a space beside it."""
    text = text.strip()
    try:
        return [round(float(text.replace(",", "")), 2)]
    except ValueError:
        lower = text.lower()
        return [f" {lower}", f"{lower} "] if len(lower) == 1 else [lower]


def _matches(candidate: Candidate, wanted: Iterable[Candidate]) -> bool:
    if isinstance(candidate, str):
        return any(isinstance(answer, str) and answer in candidate for answer in wanted)
    return candidate in wanted


def _tails(text: str) -> list[str]:
    *lines, last = text.split("\n")
    # Only the last line may be an equation.
    tails = [*(_shortest_tail(line, _CUES) for line in lines), _shortest_tail(last, (*_CUES, "="))]
    return [tail for tail in tails if tail and tail not in _TRIVIAL]


def _shortest_tail(line: str, cues: Sequence[str]) -> str:
    shortest = ""
    for tail in (line.rpartition(cue)[2].strip() for cue in cues if cue in line):
        # An empty tail gives way to the next one, whatever its length.
        if not shortest or len(tail) < len(shortest):
            shortest = tail
    return shortest
