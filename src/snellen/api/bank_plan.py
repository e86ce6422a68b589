"""A bank to how many questions a width or a gate will need: measured on the bank's own models, held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import Struct

from ..core.errors import UsageError
from ..stats.bank_estimate import FEWEST_ASKED, LOOK_EVERY, cross_fit, estimates
from ..stats.gate import Wagers, prepare
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

    def line(self) -> str:
        """Say it in one line."""
        told = f"margin {self.margin:g}, {100 * self.churn:g} % of answers change each way"
        return f"{told}: same after about {self.median:,} of {self.items:,} questions (nine of ten by {self.most:,})"


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


def plan_gate(bank: Bank, margin: float, base: Path | None = None, seed: int = 0) -> list[GatePlan]:
    """Simulate gates on a base (its model in the bank, else the bank's median model) whose copies differ by churn."""
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
        change = _changes(values[at], count, prepared.score, draw)
        asked = _race(prepared.score, Wagers(prepared, margin / 100, np.array([-margin / 100]), GATES), change, draw)
        found.append(GatePlan(margin, churn, int(np.median(asked)), int(np.quantile(asked, 0.9)), items))
    return found


Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _changes(base: Array, count: int, score: Array, draw: np.random.Generator) -> Array:
    key = draw.exponential(size=(GATES, base.size)) / score**2
    change = np.zeros((GATES, base.size))
    for side, sign in ((base >= 0.5, -1.0), (base < 0.5, 1.0)):
        number = min(count, int(side.sum()))
        at = np.argsort(np.where(side, key, np.inf), axis=1)[:, :number]
        np.put_along_axis(change, at, sign, 1)
    return change


def _race(score: Array, wagers: Wagers, change: Array, draw: np.random.Generator) -> Array:
    """Return after how many questions each gate said `same`; all of them where it never did."""
    order = np.argsort(draw.exponential(size=change.shape) / score, axis=1)
    asked, rows = np.full(len(change), float(change.shape[1])), np.arange(len(change))
    for step in range(change.shape[1] - 1):
        wagers.add(order[:, step], change[rows, order[:, step]])
        won = (wagers.wealth_above[:, 0] >= 20.0) & (asked == change.shape[1])
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
    if gap is not None:  # a gap shows where the interval of a difference, about √2 of one's own, ends before zero
        found = plan_width(bank, gap / 2**0.5)
        base = "" if against is None else f" from {against.name}"
        lines.append(f"a gap of {gap:g} points{base}: {found.line()}")
    if gate is not None:
        lines += [one.line() for one in plan_gate(bank, gate, against)]
    if not lines:
        raise UsageError("--bank plans for --until-ci POINTS, --gate MARGIN or --gap POINTS: name one")
    return lines
