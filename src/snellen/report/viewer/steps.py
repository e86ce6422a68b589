"""A sample of a chain, a dialogue or a document to the steps around it, each with what became of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.markup import Child, Html, shorten, tag
from ...core.text import plural
from ...core.types import TrialKey
from ...scoring.tables.table import SampleFacts, TrialColumns, code_of
from ..pages.parts import outcome_tag
from .run_library import OpenRun
from .shell import link
from .walk import Walk

MOST = 60


def group_steps(run: OpenRun, columns: TrialColumns, key: TrialKey, walk: Walk) -> Iterator[Child]:
    """Yield the samples of the same group in the order of the plan, in this variant and repeat; none for a lone one."""
    code = code_of(columns.samples, key.sample)
    group = columns.facts[code].group if code >= 0 else None
    if group is None:
        return
    together = columns.cluster_of_sample == columns.cluster_of_sample[code]
    here = columns.rows_with("variant", key.variant) & (columns.repeat == key.repeat) & together[columns.sample]
    rows = np.flatnonzero(here).tolist()
    if len(rows) < 2:
        return
    steps = [_step(run, columns, row, key, walk) for row in rows[:MOST]]
    more = f", the first {MOST} shown" if len(rows) > MOST else ""
    label = f"{plural(len(rows), 'sample')} of {group}{more}"
    yield tag("nav", tag("p", label, class_="muted small"), tag("ol", *steps), class_="steps", aria_label="Steps")


def _step(run: OpenRun, columns: TrialColumns, row: int, key: TrialKey, walk: Walk) -> Html:
    other, sample = columns.key(row), columns.facts[int(columns.sample[row])]
    outcome = outcome_tag(int(columns.outcome[row]), float(columns.value[row]))
    current = "step" if other == key else None
    name = link(_name(sample), walk.trial(run, other), aria_current=current, title=shorten(sample.question, 200))
    return tag("li", outcome, " ", name)


def _name(sample: SampleFacts) -> str:
    """Return which step a sample is: its role and number in a chain, its round in a dialogue, else its id."""
    role, step, turn = (sample.tags.get(name) for name in ("role", "step", "round"))
    told = " ".join(str(part) for part in (role, step) if part is not None)
    return told or (f"round {turn}" if turn is not None else sample.id)
