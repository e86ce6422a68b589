"""A task and its samples with a wrong gold answer to a second headline: the same metric without them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ...core.markup import Html, tag
from ...core.text import plural
from ...scoring.aggregates.arms import counted
from ...scoring.aggregates.headline import headline
from ...scoring.aggregates.summary import summarize
from ...scoring.tables.table import TrialColumns
from ..written import written, written_interval


def without_samples(columns: TrialColumns, left_out: Collection[str]) -> dict[str, Any]:
    """Return the metrics of a task over all its samples but some, counted as the task's own are."""
    out = np.array([name in left_out for name in columns.samples], np.bool_)
    table = counted(columns.by_sample)
    metrics: dict[str, Any] = summarize({columns.metric: table.take(~out[table.sample])})["metrics"]
    return metrics


def second_headline(result: Mapping[str, Any], columns: TrialColumns, left_out: Collection[str]) -> Html | None:
    """Return the headline without the marked samples, in words beside the first; None where none is marked."""
    marked = [name for name in columns.samples if name in left_out]
    if not marked:
        return None
    name, first = headline(result)
    told = f"{plural(len(marked), 'sample')} marked as having a wrong gold answer"
    again = without_samples(columns, marked).get(name or "")
    if name is None or again is None or again["value"] is None:
        return tag("p", f"{told}; {name or 'the headline'} cannot be counted without them.", class_="notice calm")
    words = f"Without {told}: {name} {written(name, again)}"
    interval = f" [{written_interval(name, again)}]" if again.get("ci95") else ""
    with_them = f" (with them {written(name, first)}, n {first['n']:,})"
    return tag("p", tag("b", words), f"{interval}, n {again['n']:,}{with_them}", class_="notice calm second")
