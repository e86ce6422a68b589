"""A gap to find, or the questions at hand, to how much to measure; a pilot run gives the assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ..core.errors import UsageError
from ..scoring.aggregates.counted import counted_tables
from ..scoring.aggregates.means import mean
from ..scoring.aggregates.variance import advise, split_variance
from ..scoring.stored import stored_tables
from ..scoring.tables.table import ScoreTable
from ..stats.power import Assumptions, Design, assume, plan, recommend
from ..store.reader import RunReader


class Sizing(Struct, frozen=True):
    """How much to measure: what was assumed, the designs considered, which to take, and what the pilot advises."""

    assumptions: Assumptions
    designs: list[Design]
    verdict: str
    advice: str | None = None


def plan_size(
    assumptions: Mapping[str, float],
    *,
    gap: float | None = None,
    questions: int | None = None,
    repeats: Sequence[int] = (1,),
    pilot: Path | None = None,
) -> Sizing:
    """Return the designs that find `gap`, or the gaps that `questions` find; a `pilot` run corrects the assumptions."""
    assumed, advice = Assumptions(**assumptions), None
    if pilot is not None:
        assumed, advice = measure_pilot(pilot, assumed)
    designs = plan(assumed, gap=gap, questions=questions, repeats=repeats)
    return Sizing(assumed, designs, recommend(designs, by_questions=questions is not None), advice)


def measure_pilot(folder: Path, assumptions: Assumptions) -> tuple[Assumptions, str]:
    """Return the assumptions with accuracy and variance shares of the run's first 0…1 metric, and its advice."""
    with RunReader(folder) as reader:
        stored = [counted_tables(stored_tables(reader, task, tag_keys=())) for task in reader.tasks()]
    tables = [table for found in stored for table in found.values()]
    table = next((table for table in tables if _is_share(table)), None)
    if table is None:
        remedy = f"score it first with `snellen score {folder}`"
        raise UsageError(f"{folder} has no scores between 0 and 1 to plan from: {remedy}")
    split = split_variance(table)
    measured = assume(split, float(mean(table)[table.metric].value or 0.0))
    shares = measured.question_share if split.sampling is not None else assumptions.question_share
    return msgspec.structs.replace(assumptions, accuracy=measured.accuracy, question_share=shares), advise(split)


def _is_share(table: ScoreTable) -> bool:
    values = table.value[table.scored]
    return bool(values.size) and bool(((values >= 0.0) & (values <= 1.0)).all())
