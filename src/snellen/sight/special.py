"""Tests that look for no threshold of their own: how each is asked, and its part of exam.json."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.frames import read_frame
from ..stats.intervals import Floats
from ..stats.psychometric import logistic_curve
from .coordinates import Locating, coordinates_result
from .exam_trials import Outcome, count_glyphs
from .fits import TOLD_APART, Evenness, fit_field, fit_hinge
from .fixed import FIELD_TRIALS, TURN_TRIALS, TURNS, FixedTest, TurnedRow, fixed_head, turns_result
from .plate import EyeTest, Reading
from .procedure import FLOOR, MEASURED, OPEN, UNEVEN
from .recipe_round import RECIPE_TRIALS, RecipePage, RecipeTest, recipe_result
from .result import posterior_mass
from .scenes import CELLS, FieldTest

LEAST_ANSWERS = 12
"""Fewer answers than this tell no field."""
EVEN_SURE, UNEVEN_BELOW = 0.8, 0.4
"""How probable an even field must be to be called even, and below which it is called uneven."""
FIELD_CHANCE = 0.1
FIELD_LEAST = 0.25
"""So much of what the acuity of the canvas promises above chance must be read before places are compared."""
LINE_SURE = 0.8
"""So probable must one line of a field be before it is named."""
TOKENS_GROW = 1.3
"""Twice the side is four times the area: tokens that grow by less than this do not follow it."""
TOKENS_OFF = 0.1
"""Tokens follow a limit where they are within this share of what it gives: sides go to whole patches."""
AGREE = 0.3
"""Two witnesses of one size agree when they differ by less than this in the logarithm."""


def field_result(running: FixedTest, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Return how much larger letters must be in each part of the canvas."""
    result = fixed_head(running)
    told = [o for o in running.outcomes if o.reading is not None]
    unknown = _why_no_field(running, told, needed)
    if unknown:
        return result | unknown
    columns = [_field_row(outcome) for outcome in told]
    x, cell, right, glyphs = (np.array(column, np.float64) for column in zip(*columns, strict=True))
    curve = (math.log(needed["value"]), float(needed["slope"]), float(needed["lapse"]))
    field = fit_field(x, cell, right, int(glyphs[0]), curve)
    verdict = MEASURED if field.even > EVEN_SURE else UNEVEN if field.even < UNEVEN_BELOW else OPEN
    low, high = np.array(field.low), np.array(field.high)
    marked = np.argwhere((low > 1) | (high < 1)).tolist()
    worst = max(max(row) for row in field.factor)
    figures = {"factor": field.factor, "low": field.low, "high": field.high, "even": round(field.even, 4)}
    line = _line_figures(field.evenness) if verdict == UNEVEN else None
    figures |= {"anywhere": round(worst, 3)} if line is None else {}
    return result | figures | {"verdict": verdict, "value": round(worst, 3), "marked": marked, "line": line}


def _why_no_field(running: FixedTest, told: Sequence[Outcome], needed: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the verdict where nothing can be said of a field, else None."""
    if len(told) < LEAST_ANSWERS or needed.get("value") is None:
        return {"reason": running.reason or "the acuity of this canvas is not known"}
    answered = sum(o.reading is not None and o.reading.answer is not None for o in told)
    if answered < LEAST_ANSWERS:
        # Silence is credited with chance, everywhere alike: an even field that nobody saw.
        return {"verdict": FLOOR, "reason": f"{answered} of {len(told)} replies hold letters"}
    return _why_too_little(told, needed)


def _why_too_little(told: Sequence[Outcome], needed: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the verdict where hardly a letter is read anywhere: guesses differ by place, and tell of no field."""
    x, _, right, glyphs = (np.array(column, np.float64) for column in zip(*map(_field_row, told), strict=True))
    curve = logistic_curve(needed["slope"] * (x - math.log(needed["value"])))
    hoped = (1.0 - FIELD_CHANCE - needed["lapse"]) * float(curve @ glyphs)
    if float(right.sum()) - FIELD_CHANCE * float(glyphs.sum()) > FIELD_LEAST * hoped:
        return None
    counts = count_glyphs(told, int(glyphs[0]))
    expected = round(hoped + FIELD_CHANCE * float(glyphs.sum()))
    why = f"{counts.right} of {counts.asked} letters right, where the acuity of this canvas lets one expect {expected}"
    return {"verdict": FLOOR, "reason": why}


def _line_figures(found: Evenness) -> dict[str, Any] | None:
    """Return the row, column, border or seam that a field differs along, where one is likelier than all else."""
    if found.line_probability <= LINE_SURE:
        return None
    told = {"factor": round(found.line_factor, 3), "probability": round(found.line_probability, 4)}
    return {"name": found.line} | told


def _field_row(outcome: Outcome) -> tuple[float, float, float, float]:
    """Return x, the number of the cell, the letters right, and how many there are."""
    reading = outcome.reading or Reading(0.0, 1, 0.0, None)
    cell = outcome.detail["row"] * CELLS + outcome.detail["column"]
    return math.log(outcome.level), float(cell), reading.right, float(reading.glyphs)


def resolution_result(results: Mapping[str, Any], canvases: Mapping[str, tuple[int, int]]) -> dict[str, Any] | None:
    """Return the rule by which pictures are shrunk, from the acuity on several canvases; None where few are known."""
    known = {name: size for name, size in canvases.items() if results.get(name, {}).get("value") is not None}
    squares = {size for size in known.values() if size[0] == size[1]}
    if len(squares) < 3:
        return None
    places = np.arange(math.log(1.2), math.log(400.0), 0.01)
    mass = [posterior_mass(results[name], places) for name in known]
    hinge = fit_hinge(list(known.values()), places, mass)
    told = {
        "rule": hinge.rule,
        "probability": round(hinge.probability, 4),
        "limit_px": None if hinge.limit is None else round(hinge.limit, 1),
        "ci95": None if hinge.interval is None else [round(end, 1) for end in hinge.interval],
        "acuity_px": round(hinge.acuity, 3),
        "points": [[*size, results[name]["value"], *results[name]["ci95"]] for name, size in known.items()],
        "rules_told_apart": hinge.probability >= TOLD_APART,
        "shrinks": round(hinge.shrinks, 4),
        "law": [list(row) for row in hinge.law],
    }
    pointed = results.get("coordinates") or results.get("locate")
    witnesses = {"coordinates": coordinate_witness(pointed, hinge.limit)}
    return told | witnesses | {"tokens": token_witness(results, known, hinge.limit)}


def token_witness(
    results: Mapping[str, Any], canvases: Mapping[str, tuple[int, int]], limit: float | None
) -> dict[str, Any] | None:
    """Return the input tokens of square canvases, and from which side on they no longer grow."""
    squares = sorted((size[0], name) for name, size in canvases.items() if size[0] == size[1])
    rows = [(side, results[name].get("input_tokens")) for side, name in squares]
    if len(rows) < 3 or any(tokens is None for _, tokens in rows):
        return None
    grows = [after[1] > TOKENS_GROW * before[1] for before, after in itertools.pairwise(rows)]
    if not any(grows):  # a server that counts no pictures, or all alike, is no witness
        return {"by_side": rows, "stop_growing_after": None, "agrees": None}
    stop = next((rows[place][0] for place, more in enumerate(grows) if not more), None)
    return {"by_side": rows, "stop_growing_after": stop, "agrees": _follow_limit(rows, limit)}


def _follow_limit(rows: Sequence[tuple[int, float]], limit: float | None) -> bool | None:
    """Tell whether tokens grow with the area up to a limit near this one; None where they grow by no limit at all."""
    if limit is None:
        return None
    sides, tokens = np.array([side for side, _ in rows], float), np.array([count for _, count in rows], float)
    tried = np.geomspace(250.0, sides[-1], 120)
    off = np.array([_worst_miss(np.minimum(sides, one) ** 2, tokens) for one in tried])
    if off.min() > TOKENS_OFF:
        return None
    return bool(off[np.abs(np.log(tried / limit)) < AGREE].min(initial=np.inf) <= TOKENS_OFF)


def _worst_miss(area: Floats, tokens: Floats) -> float:
    """Return how far tokens are at most from a constant for the words and so many for the area, as a share."""
    about = np.vstack([np.ones(area.size), area / area.max()]).T
    parts = np.maximum(0.0, np.linalg.lstsq(about / tokens[:, None], np.ones(area.size), rcond=None)[0])
    return float(np.max(np.abs(about @ parts / tokens - 1.0)))


def coordinate_witness(places: Mapping[str, Any] | None, limit: float | None) -> dict[str, Any] | None:
    """Return the side of the picture that coordinates speak of, where they are in pixels after a resize of its own."""
    frame = read_frame(places["card"]) if places and places.get("card") else None
    side = None if frame is None else frame.side or (math.sqrt(frame.area) if frame.area else None)
    if side is None:
        return None
    agrees = None if limit is None else abs(math.log(side / limit)) < AGREE
    return {"side_px": round(side, 1), "agrees": agrees}


class FixedKind(NamedTuple):
    """A kind of test that asks so many trials, whatever the replies."""

    trials: Mapping[str, int] | None
    """By mode; without them one of each place."""
    places: Callable[[Any], int]
    """Over how many places it asks."""
    result: Callable[[Any, Mapping[str, Any]], dict[str, Any]]
    """Makes its part of exam.json, told the results of the tests before it."""
    made: type[FixedTest] = FixedTest


def _field_of(running: FixedTest, results: Mapping[str, Any]) -> dict[str, Any]:
    return field_result(running, results.get(running.test.card.needs[0], {}))


FIXED_KINDS: Mapping[type, FixedKind] = {
    Locating: FixedKind(None, lambda test: test.places, lambda running, _: coordinates_result(running)),
    FieldTest: FixedKind(FIELD_TRIALS, lambda _: CELLS * CELLS, _field_of),
    RecipePage: FixedKind(RECIPE_TRIALS, lambda _: 1, lambda running, _: recipe_result(running), RecipeTest),
    TurnedRow: FixedKind(TURN_TRIALS, lambda _: len(TURNS), lambda running, _: turns_result(running)),
}
"""The class of a test -> how it is asked; any other test looks for a threshold."""


def fixed_kind(test: EyeTest) -> FixedKind | None:
    """Return how a test is asked that has a fixed number of trials; None for one that looks for a threshold."""
    return next((kind for made, kind in FIXED_KINDS.items() if isinstance(test, made)), None)
