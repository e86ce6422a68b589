"""An exam, or two, to a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from ...engine.state import RunState
from ...model.served.prices import money
from ...sight.advice import safe_words, say, silence_words
from .exam_page import ease, verdict_words

BAR = 22
HALF = "half at"
LINES = 8
"""So many sentences of a prescription are printed; the page has all."""


def summary_lines(exam: Mapping[str, Any], state: RunState, seconds: float) -> Iterator[str]:
    """Yield the summary: a head, a line a test, the prescription."""
    counts = exam["counts"]
    asked = f"{state.done + state.resumed:,} trials ({state.resumed:,} from the store, {state.cached:,} cached)"
    lost = f"{counts['no_answer']:,} without an answer · {counts['failed']:,} failed"
    yield f" eye exam · {exam['model']} · seed {exam['seed']} · {asked} · {_duration(seconds)} · {lost}"
    if not exam["complete"]:
        yield f" not finished: {exam['ended']}; what was measured stays measured"
    silence = silence_words(exam)
    if silence:
        yield f" {silence}"
    wide = max((len(verdict_words(one)) for one in exam["tests"].values() if _span(one)), default=0)
    wide = max(wide, len(HALF))
    yield f" {'test':17s} {HALF:>{wide}s}   {'95 %':<19s} {'95 % right at':>13s}  easy {'─' * (BAR - 9)} hard"
    for name, result in exam["tests"].items():
        yield _line(name, result, wide)
    drift = exam.get("drift")
    if drift and drift["moved"]:
        names = ", ".join(name for name, one in drift["tests"].items() if one["moved"])
        yield f" moved while it was measured (early {drift['early']:.0%}, late {drift['late']:.0%} right): {names}"
    resolution = exam["resolution"]
    if resolution:
        limit = "" if resolution["limit_px"] is None else f" at {resolution['limit_px']:,.0f} px"
        rule = resolution["rule"] if resolution["rules_told_apart"] or not limit else "by which side is not known,"
        yield f" pictures are shrunk: {rule}{limit} (p of any shrinking {resolution['shrinks']:.2f})"
    for line in exam["prescription"][:LINES]:
        yield f" Rx {line['sentence']}"
    if len(exam["prescription"]) > LINES:
        yield f" Rx and {len(exam['prescription']) - LINES} more on the page"


def _span(result: Mapping[str, Any]) -> str:
    return " – ".join(say(end) for end in result["ci95"]) if result["ci95"] else ""


def _line(name: str, result: Mapping[str, Any], wide: int) -> str:
    if result["value"] is None and result["verdict"] != "at ceiling":
        return f" {name:17s} {result['verdict']}: {result['reason'] or 'see the page'}"
    span = _span(result)
    # a bound has no interval: its words take both columns
    said = f"{verdict_words(result):>{wide}s}   {span:<19s}" if span else f"{verdict_words(result):<{wide + 22}s}"
    return f" {name:17s} {said} {safe_words(result):>13s}  {_bar(result)}"


def _bar(result: Mapping[str, Any]) -> str:
    """Return the interval and the threshold as characters on the axis of the test."""
    if "axis" not in result:
        return ""
    cells = [" "] * BAR
    if result["value"] is None:
        near = _cell(result, result["bound"])
        cells[near:] = [*"─" * (BAR - 1 - near), "▸"]
        return "".join(cells)
    low, high = sorted(_cell(result, end) for end in result["ci95"])
    cells[low : high + 1] = ["─"] * (high - low + 1)
    cells[_cell(result, result["value"])] = "●"
    return "".join(cells)


def _cell(result: Mapping[str, Any], level: float) -> int:
    return min(BAR - 1, max(0, round(ease(result, level) * (BAR - 1))))


def comparison_lines(compared: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line a test of two exams, the differences first."""
    yield f" eye exams · A {compared['first']} · B {compared['second']}"
    yield f" {compared['summary']}"
    for note in compared["notes"]:
        yield f" {note}"
    first, second = (max([14, *(len(row[side]) for row in compared["tests"].values())]) for side in "ab")
    yield f" {'test':17s} {'A':>{first}s} {'B':>{second}s} {'times better (B)':>18s}   95 %              p (Holm)"
    for name, row in compared["tests"].items():
        begun = f" {name:17s} {row['a']:>{first}s} {row['b']:>{second}s}"
        if row["ratio"] is None:
            star = "*" if row["differs"] else ""
            yield f"{begun} {row['words']}{star}"
            continue
        star = "*" if row["differs"] else " "
        span = f"{row['ci95'][0]:.2f} – {row['ci95'][1]:.2f}"
        yield f"{begun} {row['ratio']:>17.2f}{star}   {span:<17s} {row['p']:.3g}"


def price_lines(priced: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings with their points and what they cost, the cheapest first, and what follows."""
    yield f" {priced['summary']}"
    yield f" {'exam':24s} {'points':>7s}   {'95 %':<13s} {'1,000 requests':>14s}   behind the best"
    marks = {priced["cheapest"]: "← cheapest within a point", priced["best"]: "← best"}
    if priced["cheapest"] == priced["best"]:
        marks = {priced["best"]: "← best, and cheapest within a point"}
    for number, one in sorted(enumerate(priced["settings"]), key=lambda pair: pair[1]["cost_of_1000_requests"]):
        span = f"{one['ci95'][0]:.1f} – {one['ci95'][1]:.1f}"
        gap = f"{one['behind']:.1f} [{one['behind_ci95'][0]:.1f}, {one['behind_ci95'][1]:.1f}] {one['verdict']}"
        cost = money(one["cost_of_1000_requests"])
        name = PurePath(one["folder"]).name
        yield f" {name:24s} {one['points']:>7.1f}   {span:<13s} {cost:>14s}   {gap} {marks.get(number, '')}".rstrip()
    yield f" {priced['point']}: {', '.join(priced['tests'])}"
    for name, why in priced["left_out"].items():
        yield f" left out: {name}: {why}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
