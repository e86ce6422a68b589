"""A bank to what it is good for: models held out, banks spoiled on purpose; and its card, with what it cannot do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from msgspec import Struct

from ...stats.bank_estimate import cross_fit, estimates
from ...stats.item_bank import Array, Predictor, fit_predictor
from ...store.bank_file import Bank

TRIALS = 1_000
ASKED = 200
CHUNK = 50
HELD = ("strongest quarter", "random quarter", "weakest quarter")


class HeldOut(Struct, frozen=True):
    """What a bank gave for models that it did not know."""

    held_out: str
    asked: int
    half_width: float
    random_half_width: float
    questions: float
    """The share of questions that gives random sampling's width."""
    coverage: float
    trials: int

    def line(self) -> str:
        """Say it in one line."""
        widths = f"±{100 * self.half_width:.1f} (random ±{100 * self.random_half_width:.1f})"
        share = f"{100 * self.questions:.0f} % of the questions, covers {100 * self.coverage:.1f} %"
        return f"{self.held_out} held out, {self.asked} asked: {widths}, {share} ({self.trials:,} trials)"


class Checked(Struct, frozen=True):
    """A bank's check: held-out models by kind, and the same with a bank that is spoiled in four ways."""

    held_out: list[HeldOut]
    spoiled: list[HeldOut]

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        worst = max(self.spoiled, key=lambda one: one.questions)
        least = min(one.coverage for one in self.spoiled)
        told = f"spoiled on purpose ({len(self.spoiled)} ways): at most {100 * worst.questions:.0f} % of the questions"
        return [*(one.line() for one in self.held_out), f"{told}, covers at least {100 * least:.1f} %"]


def check(bank: Bank, *, asked: int = ASKED, trials: int = TRIALS, seed: int = 0) -> Checked:
    """Hold models out and see what the bank says of them, and what a spoiled one would."""
    draw = np.random.default_rng(seed)
    complete = bank.values[:, ~np.isnan(bank.values).all(axis=0)]
    items = complete.shape[1]
    count = max(10, min(asked, items // 2))
    order = np.argsort(np.nanmean(complete, axis=1), kind="stable")
    quarter = max(1, len(order) // 4)
    cuts = dict(zip(HELD, (order[-quarter:], draw.permutation(len(order))[:quarter], order[:quarter]), strict=True))
    found = [
        _held(name, fit_predictor(np.delete(complete, cut, 0)), complete[cut], (count, trials), draw)
        for name, cut in cuts.items()
    ]
    rest, strongest = np.delete(complete, cuts[HELD[0]], 0), complete[cuts[HELD[0]]]
    spoiled = [
        _held(name, fit_predictor(bad), strongest, (count, trials), draw) for name, bad in spoil(rest, draw).items()
    ]
    return Checked(found, spoiled)


def spoil(bank: Array, draw: np.random.Generator) -> dict[str, Array]:
    """Return the bank spoiled in four ways: none of them may cost truth, or more than one part in a hundred."""
    other = (draw.random(bank.shape) < draw.beta(1.0, 1.0, bank.shape[1])).astype(np.float64)
    return {
        "random labels": (draw.random(bank.shape) < np.nanmean(bank)).astype(np.float64),
        "permuted items": bank[:, draw.permutation(bank.shape[1])],
        "inverted": 1.0 - bank,
        "another benchmark": other,
    }


def _held(name: str, predictor: Predictor, held: Array, draws: tuple[int, int], draw: np.random.Generator) -> HeldOut:
    """Draw prefixes of what held-out models answered; holes of theirs are no items of their benchmark."""
    asked, trials = draws
    covered: list[bool] = []
    widths, plain_widths = [], []
    for start in range(0, trials, CHUNK):
        rows = held[np.arange(start, min(start + CHUNK, trials)) % len(held)]
        filled = np.where(np.isnan(rows), 0.0, rows)
        index = np.argsort(draw.random(rows.shape), axis=1)[:, :asked]
        found = estimates(cross_fit(predictor, index, np.take_along_axis(filled, index, 1)), rows.shape[1])
        for row, truth in enumerate(filled.mean(axis=1)):
            interval, plain = found.interval(row), found.interval(row, plain=True)
            if interval is None or plain is None:
                continue
            covered.append(interval[0] <= truth <= interval[1])
            widths.append(interval[1] - interval[0])
            plain_widths.append(plain[1] - plain[0])
    ratio = float(np.mean(widths) / np.mean(plain_widths))
    half, random_half = float(np.mean(widths)) / 2, float(np.mean(plain_widths)) / 2
    return HeldOut(name, asked, half, random_half, ratio**2, float(np.mean(covered)), len(covered))


CANNOT = (
    "it cannot score a model: it narrows an interval around answers that were asked",
    "it says nothing of questions that are not in it, or changed since: they are counted as outside",
    "a model unlike all of these gains nothing from it; trust in the bank is printed with every score",
    "models of one family answer alike: its number of models is not its number of opinions",
)


def card_lines(bank: Bank) -> list[str]:
    """Return the card: whose answers, when, under which licences, and what it cannot do."""
    meta: dict[str, Any] = bank.meta
    known = ~np.isnan(bank.values)
    means = np.nanmean(bank.values, axis=1)
    head = f"bank of {meta.get('task') or 'a table'} ({meta.get('metric')}), built {str(meta.get('created'))[:10]}"
    by_id = sum(not item.content for item in bank.items)
    lines = [
        f"{head}: {len(bank.models)} models × {len(bank.items):,} questions, {100 * known.mean():.1f} % of cells known",
        f"its models score {100 * means.min():.1f} to {100 * means.max():.1f}, median {100 * np.median(means):.1f}",
        f"gold version {meta.get('gold') or 'unknown'}; prompt and protocol {meta.get('how') or 'unknown'}",
        "answers that were read are kept" if bank.answers else "neither replies nor answers are kept",
    ]
    if by_id:
        lines.append(f"{by_id:,} questions are known by their id alone: whether they changed cannot be told")
    for key in ("source", "licence", "date", "protocol"):
        counts = Counter(str(model.facts.get(key, "not stated")) for model in bank.models)
        lines.append(f"{key}: " + ", ".join(f"{name} ({count})" for name, count in counts.most_common(6)))
    lines += [f"note: {note}" for note in meta.get("notes", [])]
    return [*lines, *CANNOT]
