"""Whole exams of ten kinds of observers (and plain ones) whose truth is known: coverage, bias, what advice asks for, drift, the recipe.

    python benchmarks/exam_kinds.py                     # 28 exams a kind and mode: 560
    python benchmarks/exam_kinds.py --exams 500 --kind drift --mode standard --tests acuity

Every exam is sat by the exam's own tests: letters, canvases, orientation, early levels again, the recipe. Only the
drawing and the reading of replies are left out: an observer gets the level as it would be drawn and says how many of the
glyphs it got right. Bars, set before measuring: intervals cover 0.93 to 0.97 of all thresholds of a mode; bias within
0.04; the recipe reaches what it promises in 0.90 of the exams that made one; drift that doubles a threshold is told in
0.90, other exams in at most 0.05; the height that advice asks for is at most 1.4 times what is needed, in the median;
advice is missing in less than a fifth of the exams.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from snellen.sight.adaptive import AdaptiveTest
from snellen.sight.advice import advised_recipe, beyond_easiest
from snellen.sight.cards import eye_test
from snellen.sight.drift import judge_drift, late_count, trials_to_repeat
from snellen.sight.exam_trials import Outcome, Planned, generator
from snellen.sight.plate import Reading
from snellen.sight.procedure import MEASURED
from snellen.sight.recipe_round import RECIPE_TRIALS, letters_in_line, line_interval
from snellen.sight.result import result_of_both, threshold_result
from snellen.sight.row_plates import STEP, STEPS
from snellen.sight.sitting import rules_of_test
from snellen.sight.special import resolution_result

SQUARES = ("resolution-448", "resolution-896", "resolution-1792", "resolution-3584")
TESTS: dict[str, tuple[str, ...]] = {"quick": ("acuity", *SQUARES, "orientation")}
TESTS["standard"] = (*TESTS["quick"], "resolution-wide", "resolution-tall")
Size = tuple[float, float]
Curve = Callable[[Any], Any]
_LN2 = math.log(2.0)
CURVES: dict[str, Curve] = {
    "logistic": lambda z: 1.0 / (1.0 + np.exp(-z)),
    "weibull": lambda z: 1.0 - np.exp(-_LN2 * np.exp(np.minimum(z / (2 * _LN2), 5.0))),
    "gumbel": lambda z: np.exp(-_LN2 * np.exp(-np.maximum(z / (2 * _LN2), -5.0))),
}
"""Shares of what can be seen, one half at 0."""


def _templates() -> tuple[Any, Any]:
    """Return ln d' and how much better than chance the best of ten noisy templates is, by signal detection."""
    strengths, z = np.linspace(-3.0, 2.5, 400), np.linspace(-9.0, 20.0, 3000)
    normal = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    below = np.cumsum(normal) * (z[1] - z[0])
    right = [np.sum(np.interp(z - math.exp(s), z, normal) * below**9) * (z[1] - z[0]) for s in strengths]
    return strengths, np.clip((np.array(right) - 0.1) / 0.9, 0.0, 1.0)


STRENGTH, BY_TEMPLATE = _templates()
HALF_STRENGTH = float(np.interp(0.5, BY_TEMPLATE, STRENGTH))


class Kind(NamedTuple):
    """How pictures are brought to another size, and what is odd about the observer."""

    rule: str = "none"
    limit: float = 1.0
    drift: float = 1.0
    """The threshold of a test grows by this factor while `DRIFT_TRIALS` rows are asked, or all single trials."""
    half_field: float = 1.0
    """The left half of every picture needs letters so much larger."""
    templates: bool = False

    def loss(self, size: Size) -> float:
        """Return how many times smaller a picture is seen than it was sent."""
        sides = {"long side": max(size), "short side": min(size), "area": math.sqrt(size[0] * size[1])}
        if self.rule in sides:
            return max(1.0, sides[self.rule] / self.limit)
        return {"none": 1.0, "halving": 2.0, "fixed size": max(size) / self.limit}[self.rule]


KINDS = {f"fixed size {side}": Kind("fixed size", side) for side in (336.0, 448.0, 896.0)}
KINDS = {name.removesuffix(".0"): kind for name, kind in KINDS.items()} | {
    "long side 1092": Kind("long side", 1092.0),
    "short side 768": Kind("short side", 768.0),
    "area 1092": Kind("area", 1092.0),
    "halving": Kind("halving"),
    "none": Kind(),
    "drift": Kind(drift=2.0),
    "half field": Kind(half_field=1.6),
    "pixel noise": Kind(templates=True),
}
DRIFT_TRIALS = {"rows": 40, "single": 150}


class Observer:
    """One observer: half of its letters are read at `letter` px as seen, of its rings at `ring` px."""

    def __init__(self, kind: Kind, draw: np.random.Generator) -> None:
        self.kind, self.draw = kind, draw
        self.letter, self.ring = math.exp(draw.uniform(math.log(4), math.log(9))), draw.uniform(9.0, 20.0)
        self.slope = math.exp(draw.uniform(math.log(4.0), math.log(11.0)))
        self.law = str(draw.choice(list(CURVES)))
        self.lapse = draw.choice([0.0, 0.01, 0.03])
        self.together = float(draw.choice([0.0, 0.0, 0.8]))
        """How much rows differ (standard deviation of logits)."""

    def seen(self, name: str, size: Size, level: Any, moved: float = 0.0, shift: Any = 0.0) -> Any:
        """Return the share of glyphs seen at a level, rows all over the field together unless `shift` says where."""
        half = math.log((self.ring if name == "orientation" else self.letter) * self.kind.loss(size)) + moved
        reach = np.log(level) - half
        if self.kind.templates and name != "orientation":
            return np.interp(reach + shift / self.slope + HALF_STRENGTH, STRENGTH, BY_TEMPLATE)
        return CURVES[self.law](self.slope * reach + shift)

    def mean_seen(self, name: str, size: Size, level: Any) -> Any:
        """Return the share over all rows: those of the worse half, and those that happen to be harder."""
        spread = self.together if name != "orientation" else 0.0
        shifts = spread * np.linspace(-3.5, 3.5, 41)
        weight = np.exp(-0.5 * np.linspace(-3.5, 3.5, 41) ** 2)
        worse = self.slope * math.log(self.kind.half_field) if name != "orientation" else 0.0
        each = np.asarray(level)[..., None]
        whole = [self.seen(name, size, each, 0.0, shifts - lost) @ weight / weight.sum() for lost in (0.0, worse)]
        return (whole[0] + whole[1]) / 2

    def level_of(self, name: str, size: Size, share: float) -> float:
        """Return where so much of what can be seen is seen."""
        levels = np.exp(np.linspace(math.log(0.5), math.log(4000.0), 4000))
        return float(np.interp(share, self.mean_seen(name, size, levels), levels))

    def right(self, name: str, size: Size, level: float, asked: int, glyphs: int, guess: float) -> int:
        """Return how many of the glyphs of one trial it gets right."""
        trials = DRIFT_TRIALS["rows" if glyphs > 1 else "single"]
        moved = math.log(self.kind.drift) * min(1.0, asked / trials)
        worse = self.slope * math.log(self.kind.half_field) * float(self.draw.random() < 0.5) if glyphs > 1 else 0.0
        shift = self.together * self.draw.standard_normal() - worse if glyphs > 1 else 0.0
        share = float(self.seen(name, size, level, moved, shift))
        return int(self.draw.binomial(glyphs, guess + (1 - guess - self.lapse) * share))


class Sat(NamedTuple):
    """What an exam found, and of whom."""

    observer: Observer
    results: dict[str, dict[str, Any]]
    drift: dict[str, Any] | None
    recipe: dict[str, Any] | None
    trials: int


def sit(observer: Observer, mode: str, seed: int) -> Sat:
    """Sit a whole exam as `sight.sitting` does, without pictures."""
    started: dict[str, AdaptiveTest] = {}
    again: dict[str, AdaptiveTest] = {}
    for name in TESTS[mode]:
        test = eye_test(name)
        started[name] = AdaptiveTest(name, test, seed, rules_of_test(name, test.card, mode), blanks=False)
        _ask_rounds(observer, started[name], 0)
        if not started[name].consistent:
            again[name] = started[name].again()
            _ask_rounds(observer, again[name], len(started[name].outcomes))
    measured = [name for name, running in started.items() if running.ready and not running.reason]
    for name in measured:
        running = started[name]
        count = late_count(len(measured), rows=running.grid.glyphs > 1)
        planned = running.plan_late(trials_to_repeat(running.outcomes, count, running.rules.batch), again.get(name))
        before = len(running.outcomes) + len(again[name].outcomes if name in again else ())
        running.take_late([_outcome(observer, running, one, before + place) for place, one in enumerate(planned)])
    drift = judge_drift(started, seed)
    results = {}
    for name, running in started.items():
        told = result_of_both(running, again[name]) if name in again else threshold_result(running)
        results[name] = told | ({"drift": drift["tests"][name]} if drift and name in drift["tests"] else {})
    recipe = _recipe(observer, results, mode)
    return Sat(observer, results, drift, recipe, sum(one["trials"] for one in results.values()))


def _ask_rounds(observer: Observer, running: AdaptiveTest, before: int) -> None:
    while planned := running.plan():
        asked = before + len(running.outcomes)
        running.take([_outcome(observer, running, one, asked + place) for place, one in enumerate(planned)])


def _outcome(observer: Observer, running: AdaptiveTest, planned: Planned, asked: int) -> Outcome:
    card, glyphs = running.test.card, running.grid.glyphs
    level = planned.level
    if glyphs > 1:  # as `row_plates.varied_level` draws it
        most = STEPS // 2 if level * math.exp(STEP * STEPS / 2) <= card.easiest else 0
        level *= math.exp(STEP * int(observer.draw.integers(most - STEPS, most + 1)))
    guess = running.test.chance(level)
    right = observer.right(running.name, card.canvas, level, asked, glyphs, guess)
    return Outcome(planned, float(f"{level:.6g}"), Reading(float(right), glyphs, guess, "told"))


def _recipe(observer: Observer, results: dict[str, Any], mode: str) -> dict[str, Any] | None:
    """Return what the recipe promises, what is truly reached with it, and what was measured when it was asked."""
    canvases = {name: eye_test(name).card.canvas for name in TESTS[mode] if name.startswith("resolution-")}
    recipe = advised_recipe(results, resolution_result(results, canvases))
    if recipe is None:
        return None
    size = (float(recipe.part_px[0]), float(recipe.part_px[1]))
    seen = float(observer.mean_seen("acuity", size, recipe.capital_px))
    letters = letters_in_line(recipe.part_px[0], recipe.capital_px)
    lines = range(RECIPE_TRIALS[mode])
    right = [observer.right("acuity", size, recipe.capital_px, 10**6, letters, 0.1) for _ in lines]
    told = line_interval(np.array(right, float), np.full(len(right), float(letters)), results["acuity"]["rho"])
    reached = 0.1 + (0.9 - observer.lapse) * seen
    return {"promised": recipe.accuracy, "reached": reached, "interval": told[1], "parts": recipe.columns * recipe.rows}


def figures_of(sat: list[Sat]) -> dict[str, Any]:
    """Return the figures of one kind."""
    inside, off, ratio, silent = [], [], [], 0
    for one in sat:
        for name, result in one.results.items():
            if result["verdict"] == MEASURED:
                size = eye_test(name).card.canvas
                true = one.observer.level_of(name, size, 0.5)
                inside.append(result["ci95"][0] <= true <= result["ci95"][1])
                off.append(math.log(result["value"] / true))
        letters = one.results.get("acuity")
        if letters is None:
            continue
        needed = one.observer.level_of("acuity", (672.0, 672.0), 0.95)
        if letters.get("x95_upper90"):
            ratio.append(letters["x95_upper90"] / needed)
        within = (
            needed < 0.8 * letters["axis"][1]
        )  # where the easiest level does not suffice there is nothing to advise
        silent += within and (not letters.get("x95_upper90") or beyond_easiest(letters))
    made = [one.recipe for one in sat if one.recipe]
    return {
        "exams": len(sat),
        "thresholds": len(inside),
        "coverage": float(np.mean(inside)),
        "bias": float(np.mean(off)),
        "height": float(np.median(ratio)) if ratio else 0.0,
        "held": float(np.mean(np.array(ratio) >= 1.0)) if ratio else 0.0,
        "without advice": silent / len(sat),
        "recipes": len(made),
        "kept": float(np.mean([one["reached"] >= one["promised"] for one in made])) if made else 0.0,
        "asked covers": float(np.mean([a["interval"][0] <= a["reached"] <= a["interval"][1] for a in made]))
        if made
        else 0.0,
        "moved": float(np.mean([bool(one.drift and one.drift["moved"]) for one in sat])),
        "trials": float(np.mean([one.trials for one in sat])),
    }


def measure(exams: int, only: str, mode_only: str, seed: int) -> dict[str, Any]:
    """Sit all exams, and return the figures of every kind and of all that stay as they are."""
    table: dict[str, Any] = {}
    for mode in TESTS:
        steady: list[Sat] = []
        for number, (name, kind) in enumerate(KINDS.items()):
            if only not in ("", name) or mode_only not in ("", mode):
                continue
            people = [Observer(kind, generator(seed, mode, name, who)) for who in range(exams)]
            sat = [sit(one, mode, seed * 10_000 + number * 1000 + who) for who, one in enumerate(people)]
            steady += sat if kind.drift == 1.0 else []
            table[f"{mode}, {name}"] = figures_of(sat)
            show(f"{mode}, {name}", table[f"{mode}, {name}"])
        if len(steady) > exams:
            table[f"{mode}, all but drift"] = figures_of(steady)
            show(f"{mode}, all but drift", table[f"{mode}, all but drift"])
    return table


def show(name: str, figures: dict[str, Any]) -> None:
    """Print one row."""
    sys.stdout.write(f"{name:28s} " + "  ".join(f"{key} {value:.3g}" for key, value in figures.items()) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Print the table, and write it where told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exams", type=int, default=28, help="of every kind and mode")
    parser.add_argument("--kind", choices=sorted(KINDS), default="")
    parser.add_argument("--mode", choices=sorted(TESTS), default="")
    parser.add_argument("--tests", help="only these, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", type=Path, help="write the table as JSON")
    arguments = parser.parse_args()
    if arguments.tests:
        TESTS.update({mode: tuple(arguments.tests.split(",")) for mode in TESTS})
    began = time.process_time()
    table = measure(arguments.exams, arguments.kind, arguments.mode, arguments.seed)
    sys.stdout.write(f"{time.process_time() - began:.0f} s CPU\n")
    if arguments.o:
        arguments.o.write_text(json.dumps(table, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
