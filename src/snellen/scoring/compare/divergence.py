"""Two stored trials of the same key in, the first stage at which they differ out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.ids import content_hash
from ...core.message_parts import write_markers
from ...core.types import Image, Prediction, Request, Sample, Score, Turn

STAGES = ("data", "image", "prompt", "params", "reply", "extraction", "score")
SAME = "same"
_NOT_ANSWERS = ("timeout_s", "stream")
"""Parameters that change how a reply travels, not what it says."""


class Fingerprint(NamedTuple):
    """A short hash of every stage of one trial, in the order in which they happen."""

    data: str
    image: str
    prompt: str
    params: str
    reply: str
    extraction: str
    score: str


def fingerprint(sample: Sample, request: Request, prediction: Prediction, scores: Sequence[Score]) -> Fingerprint:
    """Return the hashes of one stored trial."""
    params = {name: value for name, value in msgspec.to_builtins(request.params).items() if name not in _NOT_ANSWERS}
    stages = (
        [sample.question, sample.options, sample.answers, _said(sample.turns), sample.form],
        _images(request, prediction),
        [_said(request.messages), request.marks, request.shown, request.prefix, request.choices],
        params,
        [prediction.text, prediction.loglikelihoods, prediction.failure and prediction.failure.kind],
        sorted([score.metric, score.answer or "", score.rule or "", score.reason or ""] for score in scores),
        sorted([score.metric, repr(score.value)] for score in scores),
    )
    return Fingerprint(*map(content_hash, stages))


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
