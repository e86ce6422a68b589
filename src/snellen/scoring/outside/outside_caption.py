"""Turns outside caption records into corpus metrics."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from ...core.errors import DataError
from ...core.types import Estimate
from ..scorers.caption_metrics import Caption
from ..scorers.caption_scores import caption, corpus_estimates
from .outside_fields import Row


def score_captions(rows: Iterable[Row], *, tokeniser: str) -> tuple[int, dict[str, Estimate], dict[str, str]]:
    """Score a Generation file: number of records, metrics, and the reasons of those that cannot be had here.

    Every record is a caption of its own, also repeats of one sample; a missing `sample_id` makes its own cluster.
    """
    captions: list[Caption] = []
    codes: dict[Hashable, int] = {}
    clusters: list[int] = []
    origin = "predictions"
    for row in rows:
        origin = row.origin
        captions.append(caption(row.text("prediction"), row.texts("references")))
        key = ("id", row.identifier("sample_id")) if "sample_id" in row.fields else ("record", row.number)
        clusters.append(codes.setdefault(key, len(codes)))
    if not captions:
        raise DataError(f"{origin}: holds no records, so there is nothing to score")
    metrics, reasons = corpus_estimates(captions, np.array(clusters), tokeniser=tokeniser)
    return len(captions), metrics, reasons
