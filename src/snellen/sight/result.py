"""A test that was sat in, its part of exam.json out: value, interval, verdict, counts, curve. Plain data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..stats.intervals import Floats
from ..stats.psychometric import right_share
from ..stats.threshold_grid import LAPSES, SLOPES, Known, ThresholdGrid, threshold_mass
from .adaptive import NOT_CONSISTENT, AdaptiveTest, Settled, laws_of
from .advice import bound_words, careful
from .choice_plates import MIRRORED
from .exam_trials import BLANK, Outcome, counted, generator
from .fits import fit_ellipse, numerosity
from .plate import Axis, Reading
from .procedure import CEILING, FLOOR, MEASURED, OPEN, UNEVEN

DRAWS = 4000
POINT = 1.0
"""A point is one of 100 levels spread evenly, in the logarithm, over the axis of a test."""


class Behind(NamedTuple):
    """How many points a setting lies behind another, with the 95 % interval."""

    points: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Tell whether it is within a point of it, as far as the trials can say."""
        return "within" if self.high <= POINT else "further" if self.low > POINT else "not settled"


def why_left_out(results: Sequence[Mapping[str, Any] | None]) -> str:
    """Return why a test does not count for these settings; empty where it does."""
    for number, result in enumerate(results, 1):
        if result is None:
            return f"not asked in exam {number}"
        if "axis" not in result:
            return "has no threshold"
        if result["verdict"] not in (MEASURED, CEILING, FLOOR):
            return f"{result['verdict']} in exam {number}"
        if not (result.get("retest") or {}).get("consistent", True):
            return f"its re-test disagreed in exam {number}"
        first = results[0]
        if first is not None and result["axis"] != first["axis"]:
            return f"other levels in exam {number} than in exam 1"
    return ""


def points_read(name: str, result: Mapping[str, Any], number: int) -> Floats:
    """Return draws of how many of 100 levels are read, from the posterior; none where it fails when it is easy."""
    posterior = result.get("posterior")
    if posterior is None:
        return np.zeros(DRAWS)
    hardest, easiest = result["axis"]
    axis, draw = Axis(hardest, easiest), generator(number, name, "points")
    mass = np.array(posterior["mass"], np.float64)
    place = draw.choice(mass.size, DRAWS, p=mass / mass.sum()) + draw.random(DRAWS) - 0.5
    threshold = posterior["x"] + posterior["step"] * place
    share = (axis.x(easiest) - threshold) / (axis.x(easiest) - axis.x(hardest))
    return np.asarray(100.0 * np.clip(share, 0.0, 1.0), np.float64)


def mean_points(tests: Mapping[str, Mapping[str, Any]], names: Sequence[str], number: int) -> Floats:
    """Return draws of the mean over tests for the setting of that number."""
    return np.asarray(np.mean([points_read(name, tests[name], number) for name in names], 0), np.float64)


def span_of(draws: Floats) -> tuple[float, float, float]:
    """Return the mean and the 95 % interval of draws."""
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(draws.mean()), float(low), float(high)


def behind(draws: Floats, best: Floats) -> Behind:
    """Return how far a setting lies behind the best; the best lies behind itself by nothing."""
    return Behind(0.0, 0.0, 0.0) if draws is best else Behind(*span_of(best - draws))


HABIT = 0.7
"""One answer to blank pictures so often is a habit, and is named."""
CURVE_POINTS, CURVE_DRAWS = 33, 200


def threshold_result(running: AdaptiveTest) -> dict[str, Any]:
    """Return what exam.json says of a threshold test."""
    settled = running.settle()
    card = running.test.card
    result: dict[str, Any] = {"title": card.title, "unit": card.unit, "about": card.about, "verdict": settled.verdict}
    result |= {"value": None, "ci95": None, "x95": None, "x95_upper90": None, "bound": None, "reason": running.reason}
    result |= _counts(running.outcomes, card.glyphs) | {"rounds": len({o.planned.round for o in running.outcomes})}
    result |= {"axis": [card.hardest, card.easiest], "canvas": list(card.canvas)}
    result |= {"chance": _short(running.test.chance(card.easiest)), "drawn_px": _drawn_height(running)}
    tokens = [outcome.tokens for outcome in running.outcomes if outcome.tokens is not None]
    result["input_tokens"] = float(np.median(tokens)) if tokens else None
    result["levels"] = [_point(outcome) for outcome in running.outcomes if outcome.reading is not None]
    result["refused"] = _refused(running.outcomes)
    if len(running.wordings) == 1:
        result["wording"] = running.wordings[0]
    if settled.known is not None:
        result |= _figures(running, settled, settled.known)
        result |= _more(running)
        result |= _by_ellipse(result)
    return result


def _drawn_height(running: AdaptiveTest) -> float | None:
    """Return the median height of the glyphs that a test of something else was drawn with: it holds for no smaller."""
    drawn = [float(one.detail["height_px"]) for one in running.counted if "height_px" in one.detail]
    by_height = any(abs(one.level - float(one.detail.get("height_px", 0.0))) < 1e-3 for one in running.counted)
    return None if by_height or not drawn else _short(float(np.median(drawn)))


WHOLE_ROWS = 0.35
"""Glyphs that fall together more than this: rows are read whole or not at all, and their number tells less."""
COUNTED = ("trials", "right", "wrong", "no_answer", "failed", "rounds")
SITTING = ("verdict", "value", "ci95", "x95", "x95_upper90", "retest", "trials")


def result_of_both(first: AdaptiveTest, second: AdaptiveTest) -> dict[str, Any]:
    """Return what exam.json says of a test sat twice, because its first re-test did not agree: both are shown.

    The second counts where it found a value; advice rests on it only where the two intervals meet.
    """
    both = threshold_result(first), threshold_result(second)
    told = both[1] if both[1]["value"] is not None else both[0]
    sums = {name: both[0][name] + both[1][name] for name in COUNTED}
    if "glyphs" in told:
        sums["glyphs"] = {name: count + both[1]["glyphs"][name] for name, count in both[0]["glyphs"].items()}
    shown = [{name: one.get(name) for name in SITTING} for one in both]
    if told is both[1] and told["retest"] and not _meet(both[0]["ci95"], told["ci95"]):
        told["retest"] = told["retest"] | {"consistent": False}
    blank = {"blanks": both[0]["blanks"], "habit": both[0]["habit"]}
    return told | sums | blank | {"sittings": shown}


def _meet(first: list[float] | None, second: list[float]) -> bool:
    return first is None or (first[0] <= second[1] and second[0] <= first[1])


def _figures(running: AdaptiveTest, settled: Settled, known: Known) -> dict[str, Any]:
    level = running.test.card.axis.level
    figures: dict[str, Any] = {
        "slope": _short(known.slope[0]),
        "lapse": _short(known.lapse[0]),
        "rho": _short(known.correlation[0]),
        "gradual": settled.gradual,
        "whole_rows": bool(known.correlation[0] > WHOLE_ROWS),
        "wordings": _wordings(running),
        "retest": _retest(running, settled),
        "posterior": _posterior(running),
        "curve": _curve(running),
    }
    if settled.verdict in (MEASURED, UNEVEN, OPEN):
        ends = sorted((level(float(known.low[0])), level(float(known.high[0]))))
        figures["ci95"] = [_short(end) for end in ends]
    if settled.verdict == MEASURED:
        figures["value"] = _short(level(float(known.middle[0])))
    if settled.verdict in (MEASURED, CEILING):
        figures |= _far_figures(running, settled, known)
    if settled.bound is not None:
        axis = running.test.card.axis
        towards_larger = (axis.sign > 0) == (settled.verdict == CEILING)
        figures["bound"] = careful(level(settled.bound), running.test.card.unit, up=towards_larger)
        figures["reason"] = _reason_of(running, settled.verdict, figures["bound"])
    return figures


def _wordings(running: AdaptiveTest) -> dict[str, Any] | None:
    """Return the threshold in each wording with its interval, and whether two of them do not meet; None below two."""
    level, told = running.test.card.axis.level, running.by_wording()
    if len(told) < 2:
        return None
    lowest, highest = max(low for _, low, _ in told.values()), min(high for _, _, high in told.values())
    each = [
        {"wording": wording, "value": _short(level(middle)), "ci95": sorted((_short(level(low)), _short(level(high))))}
        for wording, (middle, low, high) in told.items()
    ]
    return {"differ": lowest > highest, "each": each}


def _reason_of(running: AdaptiveTest, verdict: str, bound: float) -> str:
    """Return what a bound says, and why nothing harder was asked, or the test ended before its time, where that is."""
    told, taken = bound_words(verdict, bound, running.test.card.unit), running.taken
    why = running.reason
    if not why and taken is not None and verdict == CEILING:
        last = [outcome.failure for outcome in running.outcomes if outcome.reading is None][-1]
        why = f"what was harder failed: {last}"
    return f"{told}; {why}" if why else told


def _far_figures(running: AdaptiveTest, settled: Settled, known: Known) -> dict[str, Any]:
    """Return where 95 % is right; nothing where even its upper end is harder than all that was drawn."""
    assert settled.drawn is not None  # noqa: S101 - what was settled from trials was drawn
    hardest, level = settled.drawn.hardest, running.test.card.axis.level
    if known.far_bound[0] <= hardest:
        return {}
    ends = [known.far_low[0], known.far[0], known.far_bound[0], known.far_high[0]]
    if settled.verdict == CEILING:
        ends = [max(hardest, end) for end in ends]
    low, middle, bound, high = (_short(level(float(end))) for end in ends)
    return {"x95": middle, "x95_upper90": bound, "x95_ci95": sorted((low, high))}


Read = tuple[Outcome, Reading]


def _more(running: AdaptiveTest) -> dict[str, Any]:
    """Return what only some tests have: the ellipse of colour, mirrored answers, numbers said, slips and swaps."""
    read = [(outcome, outcome.reading) for outcome in running.counted if outcome.reading is not None]
    more = _ellipse(read) if running.name == "colour" else {}
    more |= _mirrored(read) if running.name == "orientation" else {}
    told = [(float(outcome.truth), reading.detail["count"]) for outcome, reading in read if "count" in reading.detail]
    if told:
        more["numbers"] = dict(numerosity(told))
    for name in ("slip", "swap"):
        marks = [bool(reading.detail[name]) for _, reading in read if name in reading.detail]
        more |= {f"{name}s": sum(marks)} if marks else {}
    return more


def _ellipse(read: Sequence[Read]) -> dict[str, Any]:
    rows = [(outcome.level, float(outcome.detail["hue"]), reading.right) for outcome, reading in read]
    level, hue, right = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    return {"ellipse": {key: _rounded(value) for key, value in fit_ellipse(level, hue, right)._asdict().items()}}


def _by_ellipse(result: dict[str, Any]) -> dict[str, Any]:
    """Let the ellipse have the last word on colour: one curve over all hues is flatter than any of them."""
    if "ellipse" not in result or result["value"] is None:
        return {}
    ellipse = result["ellipse"]
    hardest, easiest = sorted(result["axis"])
    if not hardest <= ellipse["radius"] <= easiest:
        # the mean over hues was measured, the radius of an ellipse through them lies where nothing was drawn
        return {"verdict": OPEN, "value": None, "reason": "the ellipse is not within the levels drawn"}
    return {"value": ellipse["radius"], "ci95": ellipse["interval"], "over_all_hues": result["value"]}


def _mirrored(read: Sequence[Read]) -> dict[str, Any]:
    wrong = [(o.truth, reading.answer) for o, reading in read if reading.answer and not reading.right]
    could = [MIRRORED[truth] == answer for truth, answer in wrong if truth in MIRRORED]
    return {"mirrored": {"share": _short(sum(could) / len(could)), "of": len(could)}} if could else {}


def habit_of(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """Return the answer that blank pictures get in most cases, if one does."""
    answers = [o.reading.answer for o in outcomes if o.planned.stage == BLANK and o.reading and o.reading.answer]
    if len(answers) < 3:
        return None
    word, count = Counter(answers).most_common(1)[0]
    return {"answer": word, "share": _short(count / len(answers))} if count > HABIT * len(answers) else None


def _counts(outcomes: Sequence[Outcome], glyphs: int) -> dict[str, Any]:
    own = counted([outcome for outcome in outcomes if outcome.planned.stage != BLANK], glyphs)
    blanks = sum(outcome.planned.stage == BLANK for outcome in outcomes)
    return own | {"blanks": blanks, "habit": habit_of(outcomes)}


def _point(outcome: Outcome) -> list[Any]:
    reading = outcome.reading
    if reading is None:
        return []
    return [_short(outcome.level), _short(reading.right), reading.glyphs, _short(reading.guess), outcome.planned.stage]


def _refused(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """Return what the server did not answer: from which level to which, and its last words."""
    failed = [outcome for outcome in outcomes if outcome.reading is None]
    if not failed:
        return None
    levels = [outcome.planned.level for outcome in failed]
    return {"trials": len(failed), "from": min(levels), "to": max(levels), "why": failed[-1].failure}


def _retest(running: AdaptiveTest, settled: Settled) -> dict[str, Any] | None:
    rows = len(running.retested)
    if not rows:
        return None
    figures = {"right": settled.retest_right, "expected": settled.retest_expected, "p": settled.retest_chance}
    told: dict[str, Any] = {name: _short(value) for name, value in figures.items()}
    return told | {"n": rows, "consistent": settled.retest_chance >= NOT_CONSISTENT}


def fine_belief(running: AdaptiveTest) -> tuple[ThresholdGrid, Any]:
    """Return the grid of a running test and what it learnt from all trials that count."""
    return running.grid, running.learn(running.grid, running.counted)


def _posterior(running: AdaptiveTest) -> dict[str, Any]:
    """Return the posterior of the threshold in x (of rows over several laws) without what is next to impossible."""
    grid = running.grid
    grids = laws_of(grid) if grid.glyphs > 1 else [grid]
    mass = threshold_mass([running.learn(one, running.counted) for one in grids])[0]
    kept = np.flatnonzero(mass > 1e-6)
    first, last = int(kept[0]), int(kept[-1]) + 1
    step = float(grid.thresholds[1] - grid.thresholds[0])
    return {
        "x": round(float(grid.thresholds[first]), 6),
        "step": round(step, 6),
        "mass": [round(float(m), 7) for m in mass[first:last]],
    }


def _curve(running: AdaptiveTest) -> list[list[float]]:
    """Return (level, share right, its 2.5 and 97.5 % points) over the axis, from draws of the posterior."""
    grid, belief = fine_belief(running)
    draw = generator(running.seed, running.name, "curve")
    mass = np.exp(belief[0] - belief[0].max())
    chosen = draw.choice(mass.size, CURVE_DRAWS, p=(mass / mass.sum()).ravel())
    threshold, inner, _ = np.unravel_index(chosen, mass.shape)
    axis = running.test.card.axis
    rows = []
    for x in np.linspace(grid.low, grid.end, CURVE_POINTS):
        reach = np.asarray(x - grid.thresholds[threshold], np.float64)
        guess = running.test.chance(axis.level(float(x)))
        share = right_share(reach, SLOPES[inner // LAPSES.size], guess, LAPSES[inner % LAPSES.size])
        low, middle, high = np.quantile(share, (0.025, 0.5, 0.975))
        rows.append([_short(axis.level(float(x))), _short(middle), _short(low), _short(high)])
    return rows


def posterior_mass(result: dict[str, Any], places: Floats) -> Floats:
    """Return the stored posterior of a threshold at other places of x, as densities."""
    stored = result["posterior"]
    own = stored["x"] + stored["step"] * np.arange(len(stored["mass"]))
    density = np.array(stored["mass"], np.float64) / stored["step"]
    return np.asarray(np.interp(places, own, density, left=0.0, right=0.0), np.float64)


def _short(value: float) -> float:
    """Return five digits: what follows is the machine's, not the model's."""
    return float(f"{float(value):.5g}") if math.isfinite(value) else 0.0


def _rounded(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_rounded(one) for one in value]
    return _short(value) if isinstance(value, float) else value
