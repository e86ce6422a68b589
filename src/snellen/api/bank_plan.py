"""A bank to how many questions a width or a gate will need: measured on the bank's own models, held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import Struct

from ..core.errors import UsageError
from ..stats.bank_estimate import FEWEST_ASKED, LOOK_EVERY, cross_fit, estimates
from ..stats.gate import RICH, Wagers, prepare
from ..stats.item_bank import fit_predictor
from ..store.bank_file import Bank, read_bank, relatives
from ..store.reader import RunReader

TRIALS = 40
GATES = 200
CHURN = (0.01, 0.03)
"""Shares of questions that change either way in a copy of the same model: quantised, on another engine."""


class WidthPlan(Struct, frozen=True):
    """Questions for an interval of ± `points`, with the bank and without, for models like the bank's strongest."""

    points: float
    questions: int
    random: int
    items: int

    def line(self) -> str:
        """Say it in one line."""
        return (
            f"±{self.points:g} points: about {self.questions:,} of {self.items:,} questions with the bank, "
            f"{self.random:,} without (the bank's strongest quarter, held out)"
        )


class GatePlan(Struct, frozen=True):
    """Questions until a gate of this margin is settled, for a candidate that is the same but for churn."""

    margin: float
    churn: float
    median: int
    most: int
    """Nine of ten gates need at most so many."""
    items: int
    loss: float = 0.0
    """Points that the candidate lost: then the gate says `worse`."""

    def line(self) -> str:
        """Say it in one line."""
        told = f"margin {self.margin:g}, {100 * self.churn:g} % of answers change each way"
        if self.loss:
            told = f"a loss of {self.loss:g} points, and {100 * self.churn:g} % of answers change each way"
        word, most = ("worse" if self.loss else "same"), f"nine of ten by {self.most:,}"
        return f"{told}: {word} after about {self.median:,} of {self.items:,} questions ({most})"


def plan_width(bank: Bank, points: float, seed: int = 0) -> WidthPlan:
    """Hold out the strongest quarter and find where its intervals become narrow enough, looking every 25 questions."""
    draw = np.random.default_rng(seed)
    values = bank.values
    order = np.argsort(np.nanmean(values, axis=1), kind="stable")
    quarter = max(1, len(order) // 4)
    predictor = fit_predictor(values[order[:-quarter]])
    held = np.nan_to_num(values[order[-quarter:]])[np.arange(TRIALS) % quarter]
    index = np.argsort(draw.random(held.shape), axis=1)
    items = held.shape[1]
    found = {True: items, False: items}
    for asked in range(FEWEST_ASKED, items, LOOK_EVERY):
        part = index[:, :asked]
        fit = cross_fit(predictor, part, np.take_along_axis(held, part, 1))
        made = estimates(fit, items)
        for plain in (True, False):
            ends = [made.interval(row, plain=plain) or (0.0, 0.0) for row in range(TRIALS)]
            width = float(np.median([high - low for low, high in ends])) / 2
            if width <= points / 100.0:
                found[plain] = min(found[plain], asked)
        if max(found.values()) < items:
            break
    return WidthPlan(points, found[False], found[True], items)


def plan_gate(
    bank: Bank, margin: float, base: Path | None = None, *, loss: float = 0.0, seed: int = 0
) -> list[GatePlan]:
    """Simulate gates on a base (its model in the bank, else the bank's median model) whose copies differ by churn.

    With a `loss` in points the copies lost so many more than they gained, and the gate has to say `worse`.
    """
    values = np.nan_to_num(bank.values)
    at = int(np.argsort(values.mean(axis=1))[len(values) // 2])
    if base is not None:
        with RunReader(base) as reader:
            name = reader.header().model
        own = relatives(name, bank)
        if not own:
            raise UsageError(f"{name} of {base} is not in the bank: add that run to it with `snellen bank build`")
        at = next(place for place, model in enumerate(bank.models) if model.name == own[0])
    prepared = prepare(values[at], np.delete(values, at, 0))
    draw, items = np.random.default_rng(seed), values.shape[1]
    found = []
    for churn in CHURN:
        count = max(1, round(churn * items))
        change = _changes(values[at], (count + round(loss / 100 * items), count), prepared.score, draw)
        wagers = Wagers(prepared, margin / 100, np.array([0.0 if loss else -margin / 100]), GATES)
        asked = _race(prepared.score, wagers, change, draw)
        found.append(GatePlan(margin, churn, int(np.median(asked)), int(np.quantile(asked, 0.9)), items, loss))
    return found


Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _changes(base: Array, counts: tuple[int, int], score: Array, draw: np.random.Generator) -> Array:
    key = draw.exponential(size=(GATES, base.size)) / score**2
    change = np.zeros((GATES, base.size))
    for count, side, sign in ((counts[0], base >= 0.5, -1.0), (counts[1], base < 0.5, 1.0)):
        number = min(count, int(side.sum()))
        at = np.argsort(np.where(side, key, np.inf), axis=1)[:, :number]
        np.put_along_axis(change, at, sign, 1)
    return change


def _race(score: Array, wagers: Wagers, change: Array, draw: np.random.Generator) -> Array:
    """Return after how many questions each gate was settled, on either side of its one delta; all where it was not."""
    order = np.argsort(draw.exponential(size=change.shape) / score, axis=1)
    asked, rows = np.full(len(change), float(change.shape[1])), np.arange(len(change))
    for step in range(change.shape[1] - 1):
        wagers.add(order[:, step], change[rows, order[:, step]])
        rich = np.maximum(wagers.wealth_above[:, 0], wagers.wealth_below[:, 0]) >= RICH
        won = rich & (asked == change.shape[1])
        asked[won] = step + 1
        if (asked < change.shape[1]).all():
            break
    return asked


def plan_with_bank(
    path: Path, *, until_ci: float | None, gate: float | None, gap: float | None, against: Path | None
) -> list[str]:
    """Return the lines of `snellen plan --bank`: a width, a gate, or a gap found with the bank's help."""
    bank = read_bank(path)
    lines = []
    if until_ci is not None:
        lines.append(plan_width(bank, until_ci).line())
    if gap is not None and against is not None:  # the base is known: only the candidate is asked, paired
        lines += [one.line() for one in plan_gate(bank, gap, against, loss=gap)]
    elif gap is not None:  # two models, each estimated: the interval of a difference is about √2 as wide as one's own
        lines.append(f"a gap of {gap:g} points between two models: {plan_width(bank, round(gap / 2**0.5, 2)).line()}")
    if gate is not None:
        lines += [one.line() for one in plan_gate(bank, gate, against)]
    if not lines:
        raise UsageError("--bank plans for --until-ci POINTS, --gate MARGIN or --gap POINTS: name one")
    return lines
