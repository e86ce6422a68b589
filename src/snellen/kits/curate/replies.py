"""What an LLM replied to checked records: JSON found in the text, small flaws repaired by rule, the rest named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from ...core.text import json_objects
from .records import CANDIDATES, FEWEST_STEPS, MOST_STEPS

T = TypeVar("T")
WRONG = CANDIDATES - 1


class UnusableReplyError(ValueError):
    """The reply cannot be used; the message says why, to the LLM on its next attempt and to people in the report."""


class StepReply(Struct, frozen=True):
    """One sub-question and its right answer."""

    question: str
    answer: str


class ChainReply(Struct, frozen=True):
    """What the LLM is asked for first."""

    steps: tuple[StepReply, ...]


class CandidatesReply(Struct, frozen=True):
    """What it is asked for next: wrong candidates for every step and for the inference."""

    steps: tuple[tuple[str, ...], ...]
    inference: tuple[str, ...]


def read_chain(text: str) -> ChainReply:
    """Return the chain of a reply, two to four steps, each with question and answer."""
    reply = _decode(text, ChainReply)
    steps = tuple(StepReply(_tidy(step.question), _tidy(step.answer)) for step in reply.steps)
    if not FEWEST_STEPS <= len(steps) <= MOST_STEPS:
        raise UnusableReplyError(f"the chain has {len(steps)} steps; it needs {FEWEST_STEPS} to {MOST_STEPS}")
    for number, step in enumerate(steps, 1):
        if not step.question or not step.answer:
            raise UnusableReplyError(f"step {number} has no {'answer' if step.question else 'question'}")
    if len({alike(step.question) for step in steps}) < len(steps):
        raise UnusableReplyError("two steps ask the same question")
    return ChainReply(steps)


def read_candidates(text: str, answers: Sequence[str], inference: str) -> CandidatesReply:
    """Return five distinct wrong candidates for every answer; repeats and copies of the right one go first."""
    reply = _decode(text, CandidatesReply)
    if len(reply.steps) != len(answers):
        raise UnusableReplyError(f"candidates for {len(reply.steps)} steps where the chain has {len(answers)}")
    steps = tuple(
        _distinct(wrong, right, f"step {number}")
        for number, (wrong, right) in enumerate(zip(reply.steps, answers, strict=True), 1)
    )
    return CandidatesReply(steps, _distinct(reply.inference, inference, "the inference"))


def alike(text: str) -> str:
    """Return a text as it is compared: without case, spaces and final punctuation."""
    return " ".join(text.casefold().split()).strip(" .,;:!?。")


def _distinct(wrong: Sequence[str], right: str, where: str) -> tuple[str, ...]:
    kept = {alike(text): _tidy(text) for text in reversed(wrong) if _tidy(text)}
    kept.pop(alike(right), None)
    texts = [text for text in dict.fromkeys(map(_tidy, wrong)) if kept.get(alike(text)) == text]
    if len(texts) < WRONG:
        raise UnusableReplyError(f"{where} has {len(texts)} distinct wrong candidates; it needs {WRONG}")
    return tuple(texts[:WRONG])


def _tidy(text: str) -> str:
    return " ".join(text.split()).strip("\"“”' ")


def _decode(text: str, kind: type[T]) -> T:
    problem = "the reply holds no JSON object"
    for value in json_objects(text):
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            problem = f"the JSON does not fit: {error}"
    raise UnusableReplyError(problem)
