"""A run with several inferences in, the assumptions of a plan and a word of advice out."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..core.errors import UsageError
from ..scoring.aggregates.means import mean
from ..scoring.aggregates.variance import advise, split_variance
from ..scoring.stored import stored_tables
from ..scoring.table import ScoreTable
from ..stats.power import Assumptions, assume
from ..store.reader import RunReader


def measure_pilot(folder: Path, assumptions: Assumptions) -> tuple[Assumptions, str]:
    """Return the assumptions with accuracy and variance shares of the run's first 0…1 metric, and the advice it implies."""
    with RunReader(folder) as reader:
        tables = [table for task in reader.tasks() for table in stored_tables(reader, task, tag_keys=()).values()]
    table = next((table for table in tables if _is_share(table)), None)
    if table is None:
        raise UsageError(
            f"{folder} has no scores between 0 and 1 to plan from: score it first with `snellen score {folder}`"
        )
    split = split_variance(table)
    measured = assume(split, float(mean(table)[table.metric].value or 0.0))
    shares = measured.question_share if split.sampling is not None else assumptions.question_share
    return msgspec.structs.replace(assumptions, accuracy=measured.accuracy, question_share=shares), advise(split)


def _is_share(table: ScoreTable) -> bool:
    values = table.value[table.scored]
    return bool(values.size) and bool(((values >= 0.0) & (values <= 1.0)).all())
