"""A scored task to how sure its answers were and how right: by repeats, by what replies state, by likelihood."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...stats.confidence import Confidence, describe_confidence
from ..tables.table import SOURCES, ScoredTask, ScoreTable
from .headline import PEER, main_metric, quoted_metric

FEWEST_REPEATS = 3


def describe_sureness(scored: ScoredTask) -> dict[str, Any]:
    """Return `{"sureness": [...]}`: calibration and risk by every source of confidence; nothing where there is none."""
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
        describe_confidence(SOURCES[name], *_columns(rows), without=judged - len(rows))
        for name, rows in pairs.items()
        if rows
    ]


def _columns(rows: list[tuple[float, float, str]]) -> tuple[Any, Any, Any]:
    sure, right, clusters = zip(*rows, strict=True)
    return np.array(sure), np.array(right), np.array(clusters)
