"""Turns outside records of read text, captions and chains into Scores or estimates by the measures of runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial

import numpy as np
from msgspec import structs

from ...core.errors import DataError
from ...core.types import Estimate, Score
from ...data.files.records import Record
from ...stats.intervals import estimate_mean
from ..aggregates.consistency import chains_from_items, consistency, steps
from ..scorers import key_values, word_accuracy
from ..scorers.caption_metrics import Caption
from ..scorers.caption_scores import caption, corpus_estimates
from .trials import KEY, METRIC, ScoreRecord

Scored = tuple[int, dict[str, Estimate], dict[str, str]]
"""How many records, their metrics, and of a metric without value the reason."""


def text_scorer(formulation: str, profile: str) -> ScoreRecord:
    """Return how a record of OCROpenEnded or KIEOpenEnded is scored: by containment of the answer."""
    return partial(_score_text, measure=_MEASURES[formulation, profile == "reform"])


def _score_text(record: Record, *, measure: Callable[[Record], float]) -> Score:
    return Score(KEY, METRIC, float(measure(record)))


def _ocr_reform(record: Record) -> bool:
    return word_accuracy.contains_reform(record.text_or_texts("prediction"), record.text_or_texts("answer"))


def _kie_reform(record: Record) -> bool:
    return key_values.contains_reform(record.text("prediction"), record.text_or_texts("answer"))


def _ocr(record: Record) -> float:
    prediction = record.text_or_texts("prediction")
    return word_accuracy.contains_words(
        prediction if isinstance(prediction, str) else " ".join(prediction), _references(record)
    )


def _kie(record: Record) -> float:
    return key_values.contains_field(record.text("prediction"), _references(record))


def _references(record: Record) -> list[str]:
    answer = record.text_or_texts("answer")
    references = [answer] if isinstance(answer, str) else answer
    if not any(reference.strip() for reference in references):
        record.fail("'answer' is empty, so nothing can match it")
    return references


_MEASURES: dict[tuple[str, bool], Callable[[Record], float]] = {
    ("OCROpenEnded", True): _ocr_reform,
    ("OCROpenEnded", False): _ocr,
    ("KIEOpenEnded", True): _kie_reform,
    ("KIEOpenEnded", False): _kie,
}


def score_captions(records: Iterable[Record], *, tokeniser: str) -> Scored:
    """Score a Generation file. Every record is a caption of its own; those with one `sample_id` are one cluster."""
    captions: list[Caption] = []
    codes: dict[Hashable, int] = {}
    clusters: list[int] = []
    for record in records:
        captions.append(caption(record.text("prediction"), record.texts("references")))
        named = "sample_id" in record.fields
        cluster = ("id", record.identifier("sample_id")) if named else ("record", record.number)
        clusters.append(codes.setdefault(cluster, len(codes)))
    if not captions:
        raise DataError("predictions: holds no records, so there is nothing to score")
    metrics, reasons = corpus_estimates(captions, np.array(clusters), tokeniser=tokeniser)
    return len(captions), metrics, reasons


def score_chains(records: Iterable[Record], *, convention: str) -> Scored:
    """Score a Consistency file: items `{"inference": …, "chain": […]}` as they are and as they were answered."""
    items = [_item(record) for record in records]
    if not items:
        raise DataError("the file holds no records, so there is nothing to score")
    chains = chains_from_items(*zip(*items, strict=True))
    silent = np.array([not prediction for _, prediction in items])
    metrics = consistency(chains, convention) | steps(chains)
    metrics["failed_rate"] = structs.replace(estimate_mean(silent.astype(np.float64)), unit="chains")
    notes = {name: "undefined: no item qualifies" for name, value in metrics.items() if value.value is None}
    if silent.any():
        notes["failed_rate"] = f"{int(silent.sum())} of {len(items)} items have no prediction and count as wrong"
    return len(items), metrics, notes


def _item(record: Record) -> tuple[Mapping[str, object], Mapping[str, object] | None]:
    truth, prediction = record.get("ground_truth"), record.get("prediction")
    if not isinstance(truth, Mapping) or not isinstance(prediction, Mapping | None):
        record.fail("'ground_truth' and 'prediction' must be objects {\"inference\": …, \"chain\": […]}")
    try:
        chains_from_items([truth], [prediction])
    except DataError as error:
        record.fail(str(error).removeprefix("item 0: "))
    return truth, prediction
