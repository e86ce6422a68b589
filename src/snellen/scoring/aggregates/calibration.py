"""Log-likelihoods of choices in, confidence and its calibration out: ECE, Brier score, risk against coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.errors import DataError
from ...core.types import Estimate
from ...stats.confidence import Confidence, describe_confidence, softmax
from ..tables.table import SOURCES, ScoredTask, ScoreTable
from .headline import PEER, main_metric, quoted_metric

FEWEST_REPEATS = 3


def describe_sureness(scored: ScoredTask) -> dict[str, Any]:
    """Return `{"sureness": [...]}`: calibration and risk by every source of confidence; nothing where there is none."""
    if not scored.confidences and not any(table.is_repeated for table in scored.tables.values()):
        return {}
    own = [name for name in scored.tables if not name.endswith(PEER) and len(scored.tables[name])]
    metric = main_metric(tuple(own), quoted_metric(scored.task))
    if metric is None or metric not in scored.tables:
        return {}
    table = scored.tables[metric]
    values = table.value[table.scored]
    if not values.size or values.min() < 0.0 or values.max() > 1.0:
        return {}
    found = [by_repeats(table), *_by_detail(scored, table)]
    told = [msgspec.to_builtins(one) for one in found if one is not None]
    return {"sureness": told} if told else {}


def by_repeats(table: ScoreTable) -> Confidence | None:
    """Return the confidence of votes: the share of a prompt's replies that agree with the commonest answer.

    The first of equals counts; a reply without an answer agrees with nobody. Right is whether the vote is.
    """
    if not table.is_repeated:
        return None
    starts = np.flatnonzero(np.r_[True, (np.diff(table.sample) != 0) | (np.diff(table.variant) != 0)])
    sure, right, clusters, without = [], [], [], 0
    for rows in np.split(np.arange(len(table)), starts[1:]):
        asked = rows[table.scored[rows]]
        said = asked[table.answer[asked] >= 0]
        if asked.size < FEWEST_REPEATS or not said.size:
            without += 1
            continue
        share, value = _vote(table, said, asked.size)
        sure.append(share)
        right.append(value)
        clusters.append(int(table.cluster[rows[0]]))
    return describe_confidence("repeats", np.array(sure), np.array(right), np.array(clusters), without=without)


def _vote(table: ScoreTable, said: NDArray[np.int64], asked: int) -> tuple[float, float]:
    codes, first, counts = np.unique(table.answer[said], return_index=True, return_counts=True)
    best = min(range(codes.size), key=lambda place: (-counts[place], first[place]))
    return float(counts[best]) / asked, float(table.value[said[first[best]]])


def _by_detail(scored: ScoredTask, table: ScoreTable) -> list[Confidence | None]:
    """Return the confidences that scores keep, where any does; one pass over the stored scores."""
    pairs: dict[str, list[tuple[float, float, str]]] = {name: [] for name in SOURCES if name in scored.confidences}
    if not pairs:
        return []
    judged = 0
    for sample, score in scored.scores():
        if score.metric != table.metric or score.value is None:
            continue
        judged += 1
        for name, rows in pairs.items():
            if name in score.detail:
                rows.append((float(score.detail[name]), score.value, sample.group or sample.id))
    return [
        describe_confidence(SOURCES[name], *_sureness_columns(rows), without=judged - len(rows))
        for name, rows in pairs.items()
        if rows
    ]


def _sureness_columns(rows: list[tuple[float, float, str]]) -> tuple[Any, Any, Any]:
    sure, right, clusters = zip(*rows, strict=True)
    return np.array(sure), np.array(right), np.array(clusters)


class Bin(Struct, frozen=True):
    """One bar of a reliability diagram."""

    low: float
    high: float
    n: int
    confidence: float | None
    accuracy: float | None


class RiskCoverage(Struct, frozen=True):
    """Error among the most confident answers, for every share answered."""

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    area: float | None
    """Mean risk over all coverages (AURC); lower is better."""


def confidence(loglikelihoods: Sequence[float]) -> tuple[int, float]:
    """Return the likeliest choice (the first of equals) and its probability."""
    probabilities = softmax(loglikelihoods)
    best = int(np.argmax(probabilities))
    return best, float(probabilities[best])


def reliability(confidences: Sequence[float], right: Sequence[float], bins: int = 15) -> list[Bin]:
    """Return equal-width bins over (0, 1], the last closed on both sides; empty ones have None."""
    sure, correct = _columns(confidences, right)
    place = np.clip(np.ceil(sure * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    total_confidence = np.bincount(place, weights=sure, minlength=bins)
    total_right = np.bincount(place, weights=correct, minlength=bins)
    return [
        Bin(i / bins, (i + 1) / bins, int(n), _over(total_confidence[i], n), _over(total_right[i], n))
        for i, n in enumerate(counts)
    ]


def calibration_error(confidences: Sequence[float], right: Sequence[float], bins: int = 15) -> float | None:
    """Return the expected calibration error: the mean gap of confidence and accuracy, bins weighing by their size."""
    filled = [part for part in reliability(confidences, right, bins) if part.n]
    total = sum(part.n for part in filled)
    gaps = sum(part.n * abs((part.confidence or 0.0) - (part.accuracy or 0.0)) for part in filled)
    return gaps / total if total else None


def brier(confidences: Sequence[float], right: Sequence[float]) -> float | None:
    """Return the mean squared distance of confidence from being right."""
    sure, correct = _columns(confidences, right)
    return float(((sure - correct) ** 2).mean()) if sure.size else None


def risk_coverage(confidences: Sequence[float], right: Sequence[float]) -> RiskCoverage:
    """Return the risk when only the most confident share is answered; equally confident answers are taken together."""
    sure, correct = _columns(confidences, right)
    if not sure.size:
        return RiskCoverage((), (), None)
    levels, place = np.unique(-sure, return_inverse=True)
    counts = np.cumsum(np.bincount(place, minlength=levels.size))
    wrong = np.cumsum(np.bincount(place, weights=1.0 - correct, minlength=levels.size))
    steps = np.diff(np.r_[0, counts])
    risk = wrong / counts
    return RiskCoverage(
        tuple((counts / sure.size).tolist()), tuple(risk.tolist()), float((risk * steps).sum() / sure.size)
    )


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
    table = scored.tables.get("accuracy")
    _, unscored, failed = table.counts if table is not None else (0, 0, 0)
    n = len(pairs)
    return {
        name: Estimate(value, n=n, unscored=unscored, failed=failed, unit="trials") for name, value in values.items()
    }


def _columns(confidences: Sequence[float], right: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sure, correct = np.asarray(confidences, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if sure.shape != correct.shape:
        raise DataError(f"{sure.size} confidences but {correct.size} results: give one of each a trial")
    if not (np.all((sure >= 0.0) & (sure <= 1.0)) and np.all((correct >= 0.0) & (correct <= 1.0))):
        raise DataError("confidences and results must lie in 0…1")
    return sure, correct


def _over(total: float, count: int) -> float | None:
    return float(total / count) if count else None
