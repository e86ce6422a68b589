"""Two banks of the same models, with the picture and without it, to which questions need it: a test over models.

One model's reply to one question is a class and no proof; two dozen models are one (a sign test for each question).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.errors import UsageError
from ...core.types import Estimate
from ...core.variants import PICTURE
from ...report.files import atomic_file
from ...stats.paired import discoveries, kept_share, sign_by_chance
from .bank_file import Bank, arm_of, differs
from .item_bank import Array

FALSE_DISCOVERY = 0.10
MOST_MODELS = 0.75
"""A question that so many of the models answer without the picture is called answered without it."""


class PictureWorth(Struct, frozen=True):
    """What the picture is worth to many models, and to which questions."""

    arm: str
    models: int
    questions: int
    with_it: float
    without: float
    kept: Estimate
    """Which share of the mean score is kept without the picture; its interval is over questions."""
    kept_range: tuple[float, float]
    """The same of single models, the least and the most."""
    classes: dict[str, float]
    """Shares of all pairs of model and question: right with the picture alone, both ways, without it alone, never."""
    needs: list[str]
    """Questions that more models lose than win without the picture, at 10 % false discoveries."""
    blind: list[str]
    """Questions that three of four models answer without it."""
    left_out: int
    """Questions or models that only one of the banks knows."""

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        low, high = self.kept.ci95 or (self.kept.value or 0.0,) * 2
        share = f"{100 * (self.kept.value or 0.0):.0f} % [{100 * low:.0f}, {100 * high:.0f}]"
        least, most = (f"{100 * end:.0f}" for end in self.kept_range)
        kinds = ", ".join(f"{kind} {100 * part:.1f} %" for kind, part in self.classes.items())
        told = [
            f"{self.models} models, {self.questions:,} questions: {100 * self.with_it:.1f} with the picture, "
            f"{100 * self.without:.1f} in arm {self.arm}",
            f"kept without it: {share} of the score (single models {least} to {most} %)",
            f"pairs of model and question: {kinds}",
            f"questions that need the picture: {_of(self.needs, self.questions)} (sign test over models, 10 % false)",
            f"answered without it by {100 * MOST_MODELS:.0f} % of the models: {_of(self.blind, self.questions)}",
        ]
        return told + (
            [f"{self.left_out:,} models or questions are in one bank only and left out"] * bool(self.left_out)
        )


def _of(names: Sequence[str], whole: int) -> str:
    return f"{len(names):,} ({100 * len(names) / whole:.0f} %)"


def picture_worth(full: Bank, without: Bank, output: Path | None = None) -> PictureWorth:
    """Compare two banks question by question; with `output` write those that most models do not answer blind."""
    if arm_of(full) != PICTURE or arm_of(without) == PICTURE:
        arms = f"banks of arms {arm_of(full)} and {arm_of(without)}"
        raise UsageError(f"{arms}: name the one with the picture first, then one made by `bank build --arm none`")
    names, seen, blind, left_out = _common(full, without)
    both = ~(np.isnan(seen) | np.isnan(blind))
    asked = np.flatnonzero(both.any(axis=0))
    items = [names[at] for at in asked.tolist()]
    seen, blind, both = seen[:, asked], blind[:, asked], both[:, asked]
    right, right_blind = seen > 0.5, blind > 0.5
    lost, won = ((first & ~second & both).sum(axis=0) for first, second in ((right, right_blind), (right_blind, right)))
    needed = discoveries(
        [sign_by_chance(*pair) for pair in zip(lost.tolist(), won.tolist(), strict=True)], FALSE_DISCOVERY
    )
    shares = (right_blind & both).sum(axis=0) / both.sum(axis=0)
    kept = kept_share(seen[both], blind[both], 0.0, np.nonzero(both)[1])  # with holes: of the same pairs as the means
    by_model = [np.nanmean(np.where(both, part, np.nan), axis=1) for part in (seen, blind)]
    ratios = by_model[1] / np.where(by_model[0] > 0, by_model[0], np.nan)
    found = PictureWorth(
        arm_of(without),
        len(seen),
        len(items),
        float(seen[both].mean()),
        float(blind[both].mean()),
        msgspec.structs.replace(kept, n=len(items)),
        (float(np.nanmin(ratios)), float(np.nanmax(ratios))),
        _classes(right[both], right_blind[both]),
        [one for one, keep in zip(items, needed, strict=True) if keep],
        [one for one, share in zip(items, shares, strict=True) if share >= MOST_MODELS],
        left_out,
    )
    if output is not None:
        _write_subset(output, items, found)
    return found


def _common(full: Bank, without: Bank) -> tuple[list[str], Array, Array, int]:
    """Return the questions and results that both banks know, and how many models and questions one alone knows."""
    rows = [{model.name: at for at, model in enumerate(bank.models)} for bank in (full, without)]
    columns = [{item.id: at for at, item in enumerate(bank.items)} for bank in (full, without)]
    models = [name for name in rows[0] if name in rows[1]]
    items = [
        name
        for name, at in columns[0].items()
        if name in columns[1] and not differs(full.items[at], without.items[columns[1][name]])
    ]
    if not models or not items:
        what = "model" if items else "question"
        raise UsageError(f"no {what} is in both banks: build both of the same runs")
    parts = [
        bank.values[np.ix_([row[name] for name in models], [column[name] for name in items])]
        for bank, row, column in zip((full, without), rows, columns, strict=True)
    ]
    alone = len(rows[0].keys() ^ rows[1].keys()) + len(columns[0]) + len(columns[1]) - 2 * len(items)
    return items, parts[0], parts[1], alone


def _classes(right: NDArray[np.bool_], blind: NDArray[np.bool_]) -> dict[str, float]:
    return {
        "needs": float((right & ~blind).mean()),
        "keeps": float((right & blind).mean()),
        "harmed": float((~right & blind).mean()),
        "neither": float((~right & ~blind).mean()),
    }


def _write_subset(path: Path, items: Sequence[str], found: PictureWorth) -> None:
    """Write the questions that most models do not answer without the picture, as a subset that a run can ask."""
    out = set(found.blind)
    notes = f"By {found.models} models; left out: answered by {100 * MOST_MODELS:.0f} % of them in arm {found.arm}."
    card = {
        "title": "Questions that need their picture",
        "notes": notes,
        "ids": [one for one in items if one not in out],
    }
    with atomic_file(path) as file:
        file.writelines(b"%s = %s\n" % (name.encode(), msgspec.json.encode(value)) for name, value in card.items())
