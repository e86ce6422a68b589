"""A gap to detect in, a number of questions and repeats out (and the other way round).

Two models answer the same questions; the mean difference has variance (2(1-ρ)·question + 2·noise/repeats) / questions,
where `question` and `noise` split the variance p(1-p) of one trial and ρ is how alike the models find the questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from ..core.errors import UsageError
from .distributions import normal_quantile


class Assumptions(Struct, frozen=True, kw_only=True):
    """What a plan rests on; the defaults are cautious figures for multiple choice."""

    accuracy: float = 0.7
    question_share: float = 0.7
    """How much of the variance of one trial belongs to the question (the rest is sampling noise)."""
    likeness: float = 0.5
    """Correlation, over questions, of the two models' chances to be right."""
    alpha: float = 0.05
    power: float = 0.8

    def __post_init__(self) -> None:
        for name in ("accuracy", "alpha", "power"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise UsageError(f"{name} must lie between 0 and 1, not {getattr(self, name)}")
        for name in ("question_share", "likeness"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise UsageError(f"{name} must lie in 0…1, not {getattr(self, name)}")


class Design(Struct, frozen=True):
    """One way to spend calls: what it costs a model and what it detects."""

    questions: int
    repeats: int
    calls: int
    gap: float
    """The smallest difference of means found with the asked power, as a fraction."""
    half_width: float
    """Half of the 95 % interval of one model's mean."""


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


def assume(split: VarianceSplit, accuracy: float, **others: float) -> Assumptions:
    """Return assumptions with the variance shares measured in a run."""
    question, noise = split.question or 0.0, (split.sampling or 0.0) + (split.variant or 0.0)
    share = question / (question + noise) if question + noise > 0 else 0.7
    return Assumptions(accuracy=min(0.999, max(0.001, accuracy)), question_share=share, **others)


def difference_variance(assumptions: Assumptions, repeats: int) -> float:
    """Return the variance of one question's paired difference."""
    total = assumptions.accuracy * (1.0 - assumptions.accuracy)
    question, noise = total * assumptions.question_share, total * (1.0 - assumptions.question_share)
    return 2.0 * (1.0 - assumptions.likeness) * question + 2.0 * noise / repeats


def questions_for(gap: float, repeats: int, assumptions: Assumptions) -> int:
    """Return how many questions detect `gap` (a fraction) with the asked power."""
    if not 0.0 < gap < 1.0:
        raise UsageError(f"gap must lie between 0 and 1 (0.02 is two points), not {gap}")
    reach = normal_quantile(1.0 - assumptions.alpha / 2.0) + normal_quantile(assumptions.power)
    return max(2, math.ceil(reach * reach * difference_variance(assumptions, repeats) / gap**2))


def gap_for(questions: int, repeats: int, assumptions: Assumptions) -> float:
    """Return the smallest gap that so many questions detect with the asked power."""
    reach = normal_quantile(1.0 - assumptions.alpha / 2.0) + normal_quantile(assumptions.power)
    return reach * math.sqrt(difference_variance(assumptions, repeats) / questions)


def plan(
    assumptions: Assumptions,
    *,
    gap: float | None = None,
    questions: int | None = None,
    repeats: Sequence[int] = (1, 2, 4, 8),
) -> list[Design]:
    """Return one design for each number of repeats: questions from the gap, or the gap from the questions."""
    if (gap is None) == (questions is None):
        raise UsageError("give either a gap to detect (--gap 2.0) or the questions at hand (--questions 500)")
    designs = []
    for count in repeats:
        if count < 1:
            raise UsageError(f"repeats must be at least 1, not {count}")
        number = questions_for(gap, count, assumptions) if gap is not None else int(questions or 0)
        if number < 1:
            raise UsageError(f"questions must be at least 1, not {number}")
        total = assumptions.accuracy * (1.0 - assumptions.accuracy)
        variance = total * (assumptions.question_share + (1.0 - assumptions.question_share) / count) / number
        found = gap if gap is not None else gap_for(number, count, assumptions)
        designs.append(Design(number, count, number * count, found, 1.959963984540054 * math.sqrt(variance)))
    return designs


def recommend(designs: Sequence[Design], *, by_questions: bool) -> str:
    """Return which design to take, in one sentence."""
    if by_questions:
        best = min(designs, key=lambda design: (design.gap, design.calls))
        gap = f"the smallest gap you can find is {best.gap * 100:.2f} points"
        return f"With {best.questions} questions {gap}, at {best.repeats} repeats."
    best = min(designs, key=lambda design: design.calls)
    fewest = min(designs, key=lambda design: design.questions)
    text = f"Cheapest: {best.questions} questions × {best.repeats} ({best.calls} calls a model)."
    return (
        text
        if fewest == best
        else f"{text} If questions are scarce: {fewest.questions} × {fewest.repeats} ({fewest.calls} calls)."
    )
