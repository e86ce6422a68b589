"""Trials in, the variance split out: how much of the spread is the questions, the variants, the sampling.

Value = mean + question + variant within question + noise of one sampling; the method of moments for nested, unbalanced
data (Searle, Casella & McCulloch 1992, ch. 3), negative components set to 0.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from .stats import Floats
from .table import ScoreTable


class VarianceSplit(Struct, frozen=True):
    """Variance components, and the design they were measured with. None: the design cannot tell it apart."""

    question: float | None
    variant: float | None
    sampling: float | None
    questions: int
    variants: float
    """Variants a question, on average."""
    repeats: float
    """Trials a question and variant, on average."""

    @property
    def stderr(self) -> float | None:
        """Return the standard error of the mean that these components imply for this design."""
        return self.predicted_stderr(self.questions, self.variants, self.repeats) if self.questions else None

    def predicted_stderr(self, questions: float, variants: float, repeats: float) -> float:
        """Return the standard error of the mean for another design."""
        question, variant, sampling = (part or 0.0 for part in (self.question, self.variant, self.sampling))
        return math.sqrt((question + (variant + sampling / repeats) / variants) / questions)


def split_variance(table: ScoreTable) -> VarianceSplit:
    """Return the variance components of the scored trials of a table."""
    values, question, cell = table.value[table.scored], *_nested_codes(table)
    if not values.size:
        return VarianceSplit(None, None, None, 0, 0.0, 0.0)
    questions, cells = int(question[-1]) + 1, int(cell[-1]) + 1
    sizes = np.bincount(cell).astype(np.float64)
    owner = question[np.flatnonzero(np.r_[True, np.diff(cell) != 0])]
    sampling, between, k_between = _within(values, cell, question, sizes, owner)
    variant = _component(between, sampling, k_between, cells > questions)
    top = _questions(values, question, sizes, owner, sampling, variant)
    return VarianceSplit(top, variant, sampling, questions, cells / questions, values.size / cells)


def _nested_codes(table: ScoreTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sample, variant = table.sample[table.scored], table.variant[table.scored]
    if not sample.size:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    new_sample = np.r_[False, np.diff(sample) != 0]
    new_cell = new_sample | np.r_[False, np.diff(variant) != 0]
    return np.cumsum(new_sample), np.cumsum(new_cell)


def _within(
    values: Floats, cell: NDArray[np.int64], question: NDArray[np.int64], sizes: Floats, owner: NDArray[np.int64]
) -> tuple[float | None, float, float]:
    """Return the sampling variance, the mean square between variants of a question, and its coefficient."""
    total, cells, questions = values.size, sizes.size, int(owner[-1]) + 1
    cell_means = np.bincount(cell, weights=values) / sizes
    squares = float(((values - cell_means[cell]) ** 2).sum())
    sampling = squares / (total - cells) if total > cells else None
    if cells == questions:
        return sampling, 0.0, 0.0
    per_question = np.bincount(owner, weights=sizes)
    question_means = np.bincount(question, weights=values) / per_question
    between = float((sizes * (cell_means - question_means[owner]) ** 2).sum()) / (cells - questions)
    coefficient = (total - float((sizes**2 / per_question[owner]).sum())) / (cells - questions)
    return sampling, between, coefficient


def _component(mean_square: float, noise: float | None, coefficient: float, separable: bool) -> float | None:
    return max(0.0, mean_square - (noise or 0.0)) / coefficient if separable and coefficient > 0.0 else None


def _questions(
    values: Floats, question: NDArray[np.int64], sizes: Floats, owner: NDArray[np.int64], sampling: float | None, variant: float | None
) -> float | None:
    questions = int(owner[-1]) + 1
    if questions < 2:
        return None
    per_question = np.bincount(owner, weights=sizes)
    means = np.bincount(question, weights=values) / per_question
    total = float(values.size)
    square = float((per_question * (means - values.mean()) ** 2).sum()) / (questions - 1)
    k_question = (total - float((per_question**2).sum()) / total) / (questions - 1)
    k_variant = (float((sizes**2 / per_question[owner]).sum()) - float((sizes**2).sum()) / total) / (questions - 1)
    return max(0.0, square - (sampling or 0.0) - k_variant * (variant or 0.0)) / k_question


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
        return f"{_shares(split)} One reply a prompt cannot tell sampling noise from the rest: run some questions with --num-infers 4."
    gains = {name: 1.0 - after / now for name, after in halves.items()}
    cheap = "variants" if split.variant is not None and gains["variants"] > gains["repeats"] * 1.2 else "repeats"
    verdict = f"Twice the {cheap} would narrow the interval by {gains[cheap]:.0%}, twice the questions by {gains['questions']:.0%}."
    if gains[cheap] < 0.15:
        return f"{_shares(split)} {verdict} More questions, not more {cheap}."
    return f"{_shares(split)} {verdict} More {cheap} help almost as much as more questions."


def _shares(split: VarianceSplit) -> str:
    parts = {"the questions": split.question, "the variants": split.variant, "the sampling": split.sampling}
    total = sum(part or 0.0 for part in parts.values()) or 1.0
    shown = [f"{(part or 0.0) / total:.0%} {name}" for name, part in parts.items() if part is not None]
    return f"Of the spread of single trials, {', '.join(shown)}."
