"""One accuracy over questions of several forms: each reply is read as its question's form wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...core.types import Form, Prediction, Request, Sample, Score
from . import number_match, open_answer, option_choice, text_match
from .mmmu_open import judge_open
from .replies import score_text

METRIC = "accuracy"
READERS = {
    Form.CHOICE: option_choice.score,
    Form.MULTIPLE: option_choice.score_set,
    Form.YESNO: option_choice.score_yesno,
    Form.NUMBER: number_match.score,
    Form.OCR: text_match.word_error,
}
"""How each form is scored; any other by `short`."""
CLOSED = frozenset({Form.CHOICE, Form.MULTIPLE, Form.YESNO})
"""Forms whose right answer needs no rule of the benchmark's own."""
NEEDS_OWN_SCORER = "open answer: this benchmark needs a scorer of its own"
OWN_METRIC = {Form.OCR: "word_accuracy"}
"""Where a form's scorer gives several metrics: the one from 0 to 1 that stands for it in the common accuracy."""


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Return one score named `accuracy`, whatever the sample's form; its detail names the metric it came from."""
    found = READERS.get(sample.form, open_answer.score)(sample, request, prediction, options)
    wanted = OWN_METRIC.get(sample.form)
    one = next((score for score in found if score.metric == wanted), found[0])
    return [replace(one, metric=METRIC, detail={**one.detail, "form": sample.form.value, "metric": one.metric})]


def score_closed(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """The same where nobody said how open answers of the benchmark are compared: they are unscored, not wrong."""
    if sample.form in CLOSED:
        return score(sample, request, prediction, options)
    return [Score(request.key, METRIC, None, reason=NEEDS_OWN_SCORER, detail={"form": sample.form.value})]


def score_mmmu(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """The same for MMMU, whose open answers have a rule of their own: numbers to two decimals, texts contained."""
    if sample.form in CLOSED:
        return score(sample, request, prediction, options)
    return [score_text(METRIC, lambda reply, answers: float(judge_open(reply, answers)), sample, prediction)]
