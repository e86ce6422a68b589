"""Trials in, the variance split out: how much of the spread is the questions, the variants, the sampling.

Value = mean + question + variant within question + noise of one sampling; the method of moments for nested, unbalanced
data (Searle, Casella & McCulloch 1992, ch. 3), negative components set to 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.types import Estimate
from ...stats.intervals import Floats
from ...stats.power import VarianceSplit
from ..tables.table import ScoreTable


class _Nested(NamedTuple):
    """Values with the question and the cell (question and variant) of each, codes ascending."""

    values: Floats
    question: NDArray[np.int64]
    cell: NDArray[np.int64]
    owner: NDArray[np.int64]
    """The question of every cell."""
    cell_sizes: Floats
    question_sizes: Floats


def split_variance(table: ScoreTable) -> VarianceSplit:
    """Return the variance components of the scored trials of a table."""
    if not table.scored.any():
        return VarianceSplit(None, None, None, 0, 0.0, 0.0)
    data = _nest(table)
    questions, cells, total = data.question_sizes.size, data.cell_sizes.size, data.values.size
    sampling = _sampling(data)
    variant = _variant(data, sampling or 0.0)
    question = _question(data, sampling or 0.0, variant or 0.0)
    return VarianceSplit(question, variant, sampling, questions, cells / questions, total / cells)


def _nest(table: ScoreTable) -> _Nested:
    sample, variant = table.sample[table.scored], table.variant[table.scored]
    new_question = np.r_[False, np.diff(sample) != 0]
    new_cell = new_question | np.r_[False, np.diff(variant) != 0]
    question, cell = np.cumsum(new_question), np.cumsum(new_cell)
    owner = question[np.flatnonzero(np.r_[True, new_cell[1:]])]
    cell_sizes, question_sizes = np.bincount(cell).astype(np.float64), np.bincount(question).astype(np.float64)
    return _Nested(table.value[table.scored], question, cell, owner, cell_sizes, question_sizes)


def _sampling(data: _Nested) -> float | None:
    """Return the mean square within cells; None when no cell has two trials."""
    spare = data.values.size - data.cell_sizes.size
    means = np.bincount(data.cell, weights=data.values) / data.cell_sizes
    return float(((data.values - means[data.cell]) ** 2).sum()) / spare if spare else None


def _variant(data: _Nested, sampling: float) -> float | None:
    """Return the component between variants of a question; None when no question has two."""
    spare = data.cell_sizes.size - data.question_sizes.size
    if not spare:
        return None
    means = np.bincount(data.cell, weights=data.values) / data.cell_sizes
    centers = np.bincount(data.question, weights=data.values) / data.question_sizes
    square = float((data.cell_sizes * (means - centers[data.owner]) ** 2).sum()) / spare
    coefficient = (data.values.size - _inner(data)) / spare
    return max(0.0, square - sampling) / coefficient


def _question(data: _Nested, sampling: float, variant: float) -> float | None:
    """Return the component between questions; None with a single question."""
    spare = data.question_sizes.size - 1
    if not spare:
        return None
    total = float(data.values.size)
    means = np.bincount(data.question, weights=data.values) / data.question_sizes
    square = float((data.question_sizes * (means - data.values.mean()) ** 2).sum()) / spare
    of_question = (total - float((data.question_sizes**2).sum()) / total) / spare
    of_variant = (_inner(data) - float((data.cell_sizes**2).sum()) / total) / spare
    return max(0.0, square - sampling - of_variant * variant) / of_question


def _inner(data: _Nested) -> float:
    return float((data.cell_sizes**2 / data.question_sizes[data.owner]).sum())


def aggregate(table: ScoreTable, options: Mapping[str, Any] | None = None) -> dict[str, Estimate]:
    """Return `<metric>_variance_question`, `_variant` and `_sampling`; None where the design cannot tell them apart."""
    split = split_variance(table)
    parts = {"question": split.question, "variant": split.variant, "sampling": split.sampling}
    scored, unscored, failed = table.counts
    return {
        f"{table.metric}_variance_{name}": Estimate(part, None, None, scored, unscored, failed, unit="trials")
        for name, part in parts.items()
    }


def advise(split: VarianceSplit) -> str:
    """Return what the split means for the next run, in one or two plain sentences."""
    now = split.stderr
    if not now or split.question is None:
        return "The trials do not spread enough to say what to measure more of."
    halves = {
        "questions": split.predicted_stderr(2 * split.questions, split.variants, split.repeats),
        "variants": split.predicted_stderr(split.questions, 2 * split.variants, split.repeats),
        "repeats": split.predicted_stderr(split.questions, split.variants, 2 * split.repeats),
    }
    if split.sampling is None:
        hint = "One reply a prompt cannot tell sampling noise from the rest: run some questions with --num-infers 4."
        return f"{_shares(split)} {hint}"
    gains = {name: 1.0 - after / now for name, after in halves.items()}
    cheap = "variants" if split.variant is not None and gains["variants"] > gains["repeats"] * 1.2 else "repeats"
    narrower, by_questions = f"{gains[cheap]:.0%}", f"{gains['questions']:.0%}"
    verdict = f"Twice the {cheap} would narrow the interval by {narrower}, twice the questions by {by_questions}."
    if gains[cheap] < 0.15:
        return f"{_shares(split)} {verdict} More questions, not more {cheap}."
    return f"{_shares(split)} {verdict} More {cheap} help almost as much as more questions."


def _shares(split: VarianceSplit) -> str:
    parts = {"questions": split.question, "variants": split.variant, "samplings of one prompt": split.sampling}
    total = sum(part or 0.0 for part in parts.values()) or 1.0
    shown = [f"{(part or 0.0) / total:.0%} between {name}" for name, part in parts.items() if part is not None]
    return f"Variance of single trials: {', '.join(shown)}." if len(shown) > 1 else "All variance is between questions."
