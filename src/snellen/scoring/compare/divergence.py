"""Two stored trials of the same key in, the first stage at which they differ out."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.ids import content_hash
from ...core.looks import end_of
from ...core.message_parts import write_markers
from ...core.types import Image, Prediction, Request, Sample, Score, Turn
from ..tables.table_builder import CodeBook, codes_in

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


ENDS = (*STAGES, SAME)
Numbers = NDArray[np.int64]


class StageMarks:
    """What every stage of each trial of a task was, by hash; trials are known by codes of this run's own books."""

    def __init__(self, found: Iterable[tuple[Key, Fingerprint]] = ()) -> None:
        self.samples, self.variants = CodeBook(), CodeBook()
        keys, hashes = array("q"), array("Q")
        for (sample, variant, repeat), marks in found:
            keys.extend((self.samples.code(sample), self.variants.code(variant), repeat))
            hashes.extend([int(mark, 16) for mark in marks])
        self.keys = np.frombuffer(keys, np.int64).reshape(-1, 3) if keys else np.empty((0, 3), np.int64)
        """Sample, variant, repeat."""
        shape = (-1, len(STAGES))
        self.hashes = np.frombuffer(hashes, np.uint64).reshape(shape) if hashes else np.empty((0, len(STAGES)))

    def parting(self, other: StageMarks) -> dict[str, str]:
        """Return, for each sample of which both runs have a trial, the earliest stage at which its trials part."""
        ours, theirs = self._shared_trials(other)
        differs = self.hashes[ours] != other.hashes[theirs]
        stages = np.where(differs.any(axis=1), differs.argmax(axis=1), len(STAGES))
        earliest = np.full(len(self.samples), len(ENDS))
        np.minimum.at(earliest, self.keys[ours, 0], stages)
        names = self.samples.texts()
        return {names[place]: ENDS[earliest[place]] for place in np.flatnonzero(earliest < len(ENDS)).tolist()}

    def _shared_trials(self, other: StageMarks) -> tuple[Numbers, Numbers]:
        """Return the rows of the trials that both runs have, in each of them."""
        known = np.column_stack(
            [
                codes_in(self.samples, other.samples.texts())[other.keys[:, 0]],
                codes_in(self.variants, other.variants.texts())[other.keys[:, 1]],
                other.keys[:, 2],
            ]
        )
        rows = np.flatnonzero((known >= 0).all(axis=1))
        shape = [int(max(self.keys[:, at].max(initial=0), known[:, at].max(initial=0))) + 1 for at in range(3)]
        ours, theirs = (np.ravel_multi_index(tuple(keys.T), shape) for keys in (self.keys, known[rows]))
        _, first, second = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
        return first, rows[second]
