"""Exams of one model under several settings in, the cheapest of them within a point of the best out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import DataError, UsageError
from ..model.served.prices import Bill, Prices, money, parse_price
from ..sight.sitting import PREFIX
from ..sight.standing import Behind, behind, mean_points, span_of, why_left_out
from ..stats.intervals import Floats
from ..store.reader import RunReader
from .exams import read_exam

POINT_WORDS = (
    "a point is one of 100 levels spread evenly (in the logarithm) over the axis of a test; "
    "the mean over the tests that every exam settled"
)
REQUESTS = 1000


class Setting(NamedTuple):
    """One exam: what was examined, its points, what 1,000 of its requests cost, and how far it is behind the best."""

    folder: Path
    model: str
    points: tuple[float, float, float]
    cost: float
    behind: Behind


def price_exams(folders: Sequence[Path], prices: Sequence[str]) -> dict[str, Any]:
    """Return the settings with points and cost, the best, and the cheapest that is shown to be within a point of it."""
    if len(folders) < 2:
        raise UsageError("name at least two exams to find the cheapest setting")
    priced = _prices(folders, prices)
    exams = [read_exam(folder) for folder in folders]
    names, left_out = _counted(exams, folders)
    costs = [_cost(folder, names, price) for folder, price in zip(folders, priced, strict=True)]
    draws = [mean_points(exam["tests"], names, number) for number, exam in enumerate(exams)]
    best = _best(draws)
    settings = [
        Setting(folder, exam["model"], span_of(own), cost, behind(own, draws[best]))
        for folder, exam, own, cost in zip(folders, exams, draws, costs, strict=True)
    ]
    near = [number for number, one in enumerate(settings) if one.behind.verdict == "within"]
    chosen = min(near, key=lambda number: (settings[number].cost, -settings[number].points[0]))
    return {
        "point": POINT_WORDS,
        "tests": names,
        "left_out": left_out,
        "settings": [_plain(one) for one in settings],
        "best": best,
        "cheapest": chosen,
        "summary": _summary(settings, best, chosen),
    }


def _prices(folders: Sequence[Path], prices: Sequence[str]) -> list[Prices]:
    """Return a price for every exam: one for all, or one for each in their order."""
    read = [price for price in map(parse_price, prices) if price is not None]
    if len(read) not in (1, len(folders)):
        raise UsageError(f"{len(read)} prices for {len(folders)} exams: give --price once for all, or once for each")
    return read * len(folders) if len(read) == 1 else read


def _counted(exams: Sequence[Mapping[str, Any]], folders: Sequence[Path]) -> tuple[list[str], dict[str, str]]:
    every = dict.fromkeys(name for exam in exams for name in exam["tests"])
    reasons = {name: why_left_out([exam["tests"].get(name) for exam in exams]) for name in every}
    names = [name for name, why in reasons.items() if not why]
    if not names:
        told = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        raise UsageError(f"{', '.join(map(str, folders))} have no test that all of them settled ({told})")
    return names, {name: why for name, why in reasons.items() if why}


def _cost(folder: Path, names: Sequence[str], prices: Prices) -> float:
    """Return what 1,000 requests cost, every test weighing the same: exams ask different numbers of them."""
    with RunReader(folder) as reader:
        costs = [_cost_of_test(reader, name, prices, folder) for name in names]
    return REQUESTS * sum(costs) / len(costs)


def _cost_of_test(reader: RunReader, name: str, prices: Prices, folder: Path) -> float:
    bill, unknown = Bill(prices), 0
    for trial in reader.trials(PREFIX + name):
        if trial.prediction.failure is None:
            unknown += not prices.covers(trial.prediction.usage)
            bill.add(trial.prediction)
    if unknown or not bill.replies:
        counts = f"{unknown:,} of {bill.replies:,} replies of {name} come without a count of tokens"
        raise DataError(f"{folder} cannot be priced: {counts if bill.replies else f'{name} has no reply'}")
    return bill.worth / bill.replies


def _best(draws: Sequence[Floats]) -> int:
    means = [float(own.mean()) for own in draws]
    return means.index(max(means))


def _plain(one: Setting) -> dict[str, Any]:
    points, low, high = (round(value, 2) for value in one.points)
    told = {"folder": str(one.folder), "model": one.model, "points": points, "ci95": [low, high]}
    ends = [round(one.behind.low, 2), round(one.behind.high, 2)]
    cost = {"cost_of_1000_requests": float(f"{one.cost:.6g}")}
    return told | cost | {"behind": round(one.behind.points, 2), "behind_ci95": ends, "verdict": one.behind.verdict}


def _summary(settings: Sequence[Setting], best: int, chosen: int) -> str:
    top, pick = settings[best], settings[chosen]
    if chosen == best:
        first = f"no cheaper setting is shown to be within a point of the best, {_named(top)}"
    else:
        gap = f"{pick.behind.points:.1f} points behind [{pick.behind.low:.1f}, {pick.behind.high:.1f}]"
        first = f"cheapest within a point of the best: {_named(pick)}, {gap}; the best is {_named(top)}"
    open_ones = [one for one in settings if one.behind.verdict == "not settled" and one.cost < pick.cost]
    more = [
        f"{one.folder.name} is cheaper ({money(one.cost)}), but whether it is within a point is not settled: "
        f"{one.behind.points:.1f} behind [{one.behind.low:.1f}, {one.behind.high:.1f}]; sit both with --fine"
        for one in open_ones
    ]
    return "; ".join([first, *more])


def _named(one: Setting) -> str:
    return f"{one.folder.name} ({one.points[0]:.1f} points, {money(one.cost)} for 1,000 requests)"
