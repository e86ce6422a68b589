"""Two finished exams in, which thresholds differ beyond noise out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import DataError, UsageError
from ..model.served.prices import Bill, Prices, money, parse_price
from ..report.pages.exam_page import verdict_words
from ..report.stored_results import stored_exam
from ..sight.advice import say
from ..sight.procedure import CEILING
from ..sight.result import Behind, behind, mean_points, span_of, why_left_out
from ..sight.sitting import PREFIX
from ..stats.intervals import Floats, holm
from ..stats.threshold_grid import cell_quantiles
from ..store.reader import RunReader

LEVEL = 0.05


def read_exam(folder: Path) -> dict[str, Any]:
    """Return the exam.json of a folder; a folder without one is refused."""
    content = stored_exam(folder)
    if content is None:
        raise UsageError(f"{folder} holds no exam.json: name the folder of a `snellen exam`")
    return content


def compare_exams(first: Path, second: Path) -> dict[str, Any]:
    """Compare the thresholds that both exams measured, from their posteriors; Holm over all of them."""
    if first.resolve() == second.resolve():
        raise UsageError(f"{first} is named twice: an exam differs from itself in nothing, name two")
    one, other = read_exam(first), read_exam(second)
    shared = [name for name in one["tests"] if name in other["tests"]]
    if not shared:
        raise UsageError(f"{first} and {second} have no test in common")
    rows = {name: _row(one["tests"][name], other["tests"][name]) for name in shared}
    for name, p in zip(shared, holm([rows[name]["p"] for name in shared]), strict=True):
        rows[name] |= {"p": p, "differs": p is not None and p < LEVEL}
    order = sorted(shared, key=lambda name: (not rows[name]["differs"], rows[name]["p"] is None))
    return {
        "first": one["model"],
        "second": other["model"],
        "summary": _summary(rows),
        "notes": list(_notes({"A": one, "B": other})),
        "tests": {name: rows[name] for name in order},
    }


def _notes(exams: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the ratios do not show: an exam that ended early, tests that only one of them has."""
    for side, exam in exams.items():
        if not exam["complete"]:
            yield f"{side} is not finished: {exam['ended']}"
    for side, other in (("A", "B"), ("B", "A")):
        alone = [name for name in exams[side]["tests"] if name not in exams[other]["tests"]]
        if alone:
            yield f"only in {side}, not compared: {', '.join(alone)}"


def _row(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"a": verdict_words(a), "b": verdict_words(b), "ratio": None, "ci95": None, "p": None}
    row |= {"differs": False, "words": _why_not_compared(a, b)}
    open_sides = [one.get("bound") is not None for one in (a, b)]
    if row["words"]:
        return row | {"ratio_bound": None}
    places, mass = _difference(a["posterior"], b["posterior"])
    low, middle, high = map(float, cell_quantiles(places, mass, (0.025, 0.5, 0.975)))
    worse = _mass_below(0.0, places, mass)
    p = 2 * min(worse, 1 - worse)
    row |= {"p": max(p, 1e-6), "ratio_bound": None}
    if any(open_sides):
        better = (b if open_sides[1] else a)["verdict"] == CEILING
        at_least = better == open_sides[1]  # B's ratio is open upwards where B is at ceiling, or A fails
        return row | _one_sided(places, mass, at_least=at_least)
    ratio, ends = math.exp(middle), [round(math.exp(low), 4), round(math.exp(high), 4)]
    return row | {"ratio": round(ratio, 4), "ci95": ends, "words": ""}


def _why_not_compared(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """Return why two results of a test get no ratio; nothing where they do."""
    if not any("posterior" in one or one["value"] is None for one in (a, b)):
        return f"not compared: no threshold; 95 % of A {_span(a)}, of B {_span(b)}"
    if all(one.get("bound") is not None for one in (a, b)):
        return "not compared: both are beyond the levels drawn"
    lacking = " and ".join(side for side, one in (("A", a), ("B", b)) if not _is_known(one))
    return f"not compared: {lacking} found no threshold" if lacking else ""


def _span(result: Mapping[str, Any]) -> str:
    return " – ".join(map(say, result["ci95"])) if result["ci95"] else "none"


def _mass_below(place: float, places: Any, mass: Any) -> float:
    """Return how much of a distribution on a grid lies below a place, its cells reaching half a step either way."""
    half = (places[1] - places[0]) / 2
    return float(np.interp(place, np.r_[places - half, places[-1] + half], np.r_[0.0, np.cumsum(mass)]))


def _is_known(result: Mapping[str, Any]) -> bool:
    """Whether a test has a threshold or a bound of it, and the distribution behind."""
    return "posterior" in result and (result["value"] is not None or result.get("bound") is not None)


def _one_sided(places: Any, mass: Any, *, at_least: bool) -> dict[str, Any]:
    """Return how many times better B is at least, or at most (95 %), where one threshold is beyond the levels drawn."""
    bound = round(math.exp(float(cell_quantiles(places, mass, (0.05 if at_least else 0.95,))[0])), 4)
    words = f"at {'least' if at_least else 'most'} {bound:.2f} times better (B)"
    return {"ratio_bound": [bound, None] if at_least else [None, bound], "words": words}


def _difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the distribution of t_A - t_B in x: positive where B's threshold is the harder level."""
    step = a["step"]
    if abs(step - b["step"]) > 1e-9:
        raise DataError("the two exams were fitted on different grids: run one of them again")
    mass = np.convolve(np.array(a["mass"]), np.array(b["mass"])[::-1])
    start = a["x"] - (b["x"] + step * (len(b["mass"]) - 1))
    return start + step * np.arange(mass.size), mass / mass.sum()


def _times(row: Mapping[str, Any]) -> tuple[float, str]:
    """Return how many times better B is, and whether that is a bound."""
    if row["ratio"] is not None:
        return row["ratio"], ""
    least, most = row["ratio_bound"]
    return (most if least is None else least), "at least "


def _summary(rows: Mapping[str, Mapping[str, Any]]) -> str:
    apart = {name: _times(row) for name, row in rows.items() if row["differs"]}
    better = ", ".join(f"{name} ({more}{say(ratio)}×)" for name, (ratio, more) in apart.items() if ratio > 1)
    worse = ", ".join(f"{name} ({more}{say(1 / ratio)}×)" for name, (ratio, more) in apart.items() if ratio <= 1)
    same = [row["ci95"][1] / row["ratio"] for row in rows.values() if row["ratio"] is not None and not row["differs"]]
    parts = [f"{side} is better in {names}" for side, names in (("B", better), ("A", worse)) if names]
    if same:
        parts.append(f"no difference shown in {len(same)} tests (ratios known to ±{100 * (max(same) - 1):.0f} %)")
    return "; ".join(parts) or "nothing could be compared"


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
        "summary": _summary_of(settings, best, chosen),
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


def _summary_of(settings: Sequence[Setting], best: int, chosen: int) -> str:
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
