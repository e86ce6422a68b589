"""Two stored trials of the same key in, the first stage at which they differ out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.ids import content_hash
from ...core.looks import end_of
from ...core.message_parts import write_markers
from ...core.types import Image, Prediction, Request, Sample, Score, Turn

STAGES = ("data", "image", "prompt", "params", "looks", "reply", "extraction", "score")
SAME = "same"
_NOT_ANSWERS = ("timeout_s", "stream")
"""Parameters that change how a reply travels, not what it says."""


class Fingerprint(NamedTuple):
    """A short hash of every stage of one trial, in the order in which they happen."""

    data: str
    image: str
    prompt: str
    params: str
    looks: str
    """What tools were called, and what they showed: all turns between the question and the last reply."""
    reply: str
    extraction: str
    score: str


def fingerprint(sample: Sample, request: Request, prediction: Prediction, scores: Sequence[Score]) -> Fingerprint:
    """Return the hashes of one stored trial."""
    params = {name: value for name, value in msgspec.to_builtins(request.params).items() if name not in _NOT_ANSWERS}
    asked, looked = _parted(request, prediction)
    sent = _images(request, prediction)
    shown = sum(len(turn.images) for turn in asked)
    stages = (
        [sample.question, sample.options, sample.answers, _said(sample.turns), sample.form],
        sent[:shown],
        [_said(asked), request.marks, request.shown, request.prefix, request.choices, *_offered(request)],
        params,
        [_said(looked), [[call.name, call.arguments] for turn in looked for call in turn.calls], sent[shown:]],
        [prediction.text, prediction.loglikelihoods, prediction.failure and prediction.failure.kind],
        sorted([score.metric, score.answer or "", score.rule or "", score.reason or ""] for score in scores),
        sorted([score.metric, repr(score.value)] for score in scores),
    )
    return Fingerprint(*map(content_hash, stages))


def _parted(request: Request, prediction: Prediction) -> tuple[Sequence[Turn], Sequence[Turn]]:
    """Return the messages of the question, and those of its looks: from the first reply that called a tool on."""
    end = end_of(prediction)
    replies = [place for place, turn in enumerate(request.messages) if turn.role == "assistant"]
    looked = min(end.turns - 1, len(replies)) if end is not None else 0
    first = replies[-looked] if looked else len(request.messages)
    return request.messages[:first], request.messages[first:]


def _offered(request: Request) -> list[list[str]]:
    """Return the tools that were offered; nothing where there were none."""
    return [[tool.name, tool.description] for tool in request.tools]


def _said(turns: Sequence[Turn]) -> list[list[str]]:
    return [[turn.role, turn.text] for turn in write_markers(turns)]


def _images(request: Request, prediction: Prediction) -> list[Any]:
    """Return what was sent where that is known, else what was asked for: by content, not by place."""
    if prediction.images:
        return [image.sha256 for image in prediction.images]
    return [_image(image) for turn in request.messages for image in turn.images]


def _image(image: Image) -> list[Any]:
    return [image.sha256 or image.ref, image.page, image.edits, *([image.frame] if image.frame else [])]


Key = tuple[str, str, int]
"""sample, variant, repeat"""
