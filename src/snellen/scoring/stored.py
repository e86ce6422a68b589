"""A stored run in, the ScoreTables of one task out; only the few columns they need are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ..store.reader import RunReader
from .reading import SampleRow, read_tables
from .table import ScoreTable

_SCORES = "SELECT sample, variant, repeat, metric, value, answer, rule, reason FROM scores WHERE task = ?"
_TRIALS = (
    "SELECT sample, variant, repeat, CASE failed WHEN 1 THEN coalesce(json_extract(CAST(body AS TEXT), '$.failure.kind'), 'failed') END "
    "FROM predictions WHERE task = ?"
)
_SAMPLES = "SELECT body FROM samples WHERE task = ?"


class _Label(msgspec.Struct):
    """The part of a sample that groups it; the rest is skipped, not decoded."""

    id: str
    group: str | None = None
    tags: dict[str, Any] = {}


def stored_tables(
    reader: RunReader, task: str, *, metrics: Sequence[str] = (), tag_keys: Sequence[str] | None = None
) -> dict[str, ScoreTable]:
    """Return one table a metric of a stored task; `metrics` are there even when every trial failed."""
    scores, trials = reader.rows(_SCORES, (task,)), reader.rows(_TRIALS, (task,))
    return read_tables(scores, trials, _read_labels(reader, task), tag_keys=tag_keys, metrics=metrics)


def _read_labels(reader: RunReader, task: str) -> Iterator[SampleRow]:
    """Yield what groups every sample: id, group, tags."""
    decode = msgspec.json.Decoder(_Label).decode
    for (body,) in reader.rows(_SAMPLES, (task,)):
        label = decode(body)
        yield label.id, label.group, label.tags
