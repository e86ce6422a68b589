"""Scores that carry a confidence in, calibration of the model out: ECE, Brier score, risk against coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.types import Estimate
from ..run import ScoredTask
from .calibration import brier, calibration_error, risk_coverage


def calibration(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return `ece`, `brier`, `aurc` and the mean `confidence` of the trials whose scorer gave one."""
    pairs = [
        (float(score.detail["confidence"]), score.value)
        for _, score in scored.scores()
        if score.metric == "accuracy" and score.value is not None and "confidence" in score.detail
    ]
    confidences, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    values = {
        "ece": calibration_error(confidences, right),
        "brier": brier(confidences, right),
        "aurc": risk_coverage(confidences, right).area,
        "confidence": sum(confidences) / len(confidences) if confidences else None,
    }
    return {name: Estimate(value, n=len(pairs)) for name, value in values.items()}
