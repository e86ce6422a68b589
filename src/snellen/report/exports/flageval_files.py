"""Turns stored trials into FlagEvalMM's multiple-inference records: one a question, inferences by their own index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...core.counting import worth_of
from ...core.message_parts import write_markers
from ...core.types import BASE_VARIANT, Prediction, Request, Sample, Score
from ...extract.mark_patterns import derive_marks
from ...scoring.outside.inferences import MISSING, Inference, inference_record

StoredTrial = tuple[Sample, Request, Prediction, Score | None]
"""A trial as stored, with its score of the metric to export (None: failed or not scored)."""


def flageval_records(trials: Iterable[StoredTrial]) -> Iterator[dict[str, Any]]:
    """Yield one record a question (and variant): answers, raw texts and scores of all its inferences.

    A failed or missing inference is null at its own index, so that none ever takes another's place; one that could not
    be read is not right.
    """
    questions: dict[str, tuple[str, dict[int, Inference]]] = {}
    for trial in trials:
        _, request, prediction, _ = trial
        key = prediction.key
        name = key.sample if key.variant == BASE_VARIANT else f"{key.sample}?{key.variant}"
        known = questions.get(name) or questions.setdefault(name, (_question(request), {}))
        known[1][key.repeat] = _inference(trial)
    return (_record(name, *asked) for name, asked in questions.items())


def _record(name: str, question: str, known: dict[int, Inference]) -> dict[str, Any]:
    inferences = [known.get(index, MISSING) for index in range(max(known) + 1)]
    return inference_record(name, question, inferences)


def _inference(trial: StoredTrial) -> Inference:
    sample, _, prediction, score = trial
    return Inference(prediction.text, _letter(sample, score), worth_of(score)) if score else Inference(prediction.text)


def _letter(sample: Sample, score: Score) -> str | None:
    """Return the answer as that system's rules read it: of a choice the letter of the option, in the data's order."""
    if score.answer is None or sample.options.count(score.answer) != 1:
        return score.answer
    return derive_marks(len(sample.options))[sample.options.index(score.answer)]


def _question(request: Request) -> str:
    """The question as the model saw it: the last message a user sent."""
    return next((turn.text for turn in reversed(write_markers(request.messages)) if turn.role == "user"), "")
