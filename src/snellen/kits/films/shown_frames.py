"""Whether what answers a question about a video was in the frames that were shown at all: the policy's part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score

METRIC = "needle_shown"
TOLERANCE_S = 1e-6


def score_shown(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Score 1 where a shown frame lies in the needle's time; unscored where nobody knows which frames were seen."""
    span = sample.meta.get("needle_seconds")
    records = prediction.detail.get("videos") or []
    if not span:
        return [Score(request.key, METRIC, None, reason="when the answer is shown is not known")]
    if not records or any("seconds" not in record for record in records):
        return [Score(request.key, METRIC, None, reason="which frames were seen is not known")]
    start, end = float(span[0]) - TOLERANCE_S, float(span[1]) - TOLERANCE_S
    shown = [second for record in records for second in record["seconds"] if start <= second < end]
    return [Score(request.key, METRIC, float(bool(shown)), rule="frames", detail={"frames": len(shown)})]
