"""Results and the rules of the catalog in, the sentences of the prescription out, each with its evidence."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from ..core.config import convert, read_config_file
from ..core.version import __version__
from .drift import ALARM
from .fixed import turn_words
from .plate import Axis, fill
from .procedure import CEILING, FLOOR, MEASURED, OPEN, PRECISION
from .recipe import Recipe, page_recipe, recipe_words
from .recipe_round import RECIPE_TRIALS
from .row_plates import jpeg_quality_at_least, jpeg_quality_of


@cache
def _words() -> Mapping[str, str]:
    return read_config_file(str(files("snellen") / "catalog/exam/method.toml"))


def method_of(
    mode: str, seed: int, half_width: float | None, command: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what exam.json says of how it was made: version, settings, command, a paragraph, BibTeX."""
    width = f"{half_width or PRECISION[mode]:g}"
    text = fill(_words()["text"], {"width": width, "alarm": f"{ALARM:g}", "pages": RECIPE_TRIALS[mode]})
    cited = fill(_words()["bibtex"], {"version": __version__, "mode": mode, "seed": seed})
    told = {"version": __version__, "settings": dict(settings), "command": command}
    return told | {"text": text.strip(), "bibtex": cited.strip()}


def exam_command(model: str, mode: str, seed: int, tests: Sequence[str], more: Mapping[str, Any]) -> str:
    """Return the command that sits this exam, however it was started."""
    words = ["snellen", "exam", "--model", model]
    words += [] if mode == "standard" else [f"--{mode}"]
    words += ["--tests", ",".join(tests)] if tests else []
    words += ["--seed", str(seed)]
    for name, value in more.items():
        words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    return shlex.join(words)


SETTLED = 2.5
"""A bound so many times away from its median decides nothing yet."""
SHRINKS = 0.8
"""So probable must shrinking, by whatever rule, be before it is said; and its absence before that is."""
FAINT = 0.25
"""The share of the range that the ink of a faint scan takes: what a factor of stretching is told for."""


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """When a sentence is said."""

    id: str
    test: str
    verdict: str
    sentence: str
    rank: int
    figure: str = ""
    above: float | None = None
    below: float | None = None


class Line(Struct, frozen=True):
    """One sentence of the prescription."""

    id: str
    test: str
    sentence: str
    evidence: str
    rank: int


class _Rules(Struct, frozen=True, forbid_unknown_fields=True):
    rule: tuple[Rule, ...]


@cache
def advice_rules() -> tuple[Rule, ...]:
    """Return the rules of the catalog."""
    table = read_config_file(str(files("snellen") / "catalog/exam/advice.toml"))
    return convert(table, _Rules, "catalog/exam/advice.toml").rule


def prescribe(results: Mapping[str, Any], resolution: Mapping[str, Any] | None) -> list[Line]:
    """Return the lines of the prescription, what to do first first."""
    lines = [*_recipe(results, resolution), *_by_rules(results), *_shrinking(resolution), *_open_ends(results)]
    lines += _picture_against_text(results)
    return sorted(lines, key=lambda line: (line.rank, line.id))


def _by_rules(results: Mapping[str, Any]) -> list[Line]:
    lines = []
    for rule in advice_rules():
        result = results.get(rule.test)
        if result is None or _advised_as(result) != rule.verdict or not _decided(result) or not _within(rule, result):
            continue
        if not answered_trials(result):  # who said nothing did nothing wrong: there is no advice in that
            continue
        words = words_of(result)
        evidence = "; ".join(filter(None, (evidence_of(result), condition_of(result))))
        lines.append(Line(rule.id, rule.test, fill(rule.sentence, words), evidence, rule.rank))
    return lines


def condition_of(result: Mapping[str, Any]) -> str:
    """Return on what a figure was measured: it is promised there and nowhere else."""
    canvas, drawn = result.get("canvas"), result.get("drawn_px")
    letters = f", letters of {drawn:.0f} px" if drawn else ""
    size = f"on drawn pictures of {canvas[0]:,} × {canvas[1]:,} px as sent" if canvas else ""
    return f"{size}{letters}, nothing else made harder" if size else ""


def answered_trials(counts: Mapping[str, Any]) -> float:
    """Return how many trials got an answer, right or wrong."""
    return float(counts["right"] + counts["wrong"])


def silence_words(exam: Mapping[str, Any]) -> str:
    """Return what to look at where an exam got no answer at all; nothing where it got one."""
    counts = exam["counts"]
    if not counts["trials"] or answered_trials(counts):
        return ""
    if counts["failed"] == counts["trials"]:
        why = next((one["refused"]["why"] for one in exam["tests"].values() if one.get("refused")), "no reply")
        return f"nothing was measured: every trial failed, the last with {why}"
    return "nothing was measured: no trial got an answer; does the server hand pictures to this model?"


def _advised_as(result: Mapping[str, Any]) -> str:
    """Return the verdict that advice goes by: beyond the levels drawn, 95 % may still be right well within them."""
    measured = result["verdict"] == CEILING and result.get("x95_upper90") is not None
    return MEASURED if measured else str(result["verdict"])


def beyond_easiest(result: Mapping[str, Any]) -> bool:
    """Tell whether the level that advice rests on is easier than any that was drawn."""
    if result.get("x95_upper90") is None or "axis" not in result:
        return False
    axis = Axis(*result["axis"])
    return axis.x(result["x95_upper90"]) > axis.x(axis.easiest) + 1e-9


def safe_words(result: Mapping[str, Any]) -> str:
    """Return the level at which 95 % is right, or that even the easiest is not surely."""
    if result.get("x95_upper90") is None:
        return "–"
    return f"not at {say(result['axis'][1])}" if beyond_easiest(result) else say(careful_safe(result))


def _open_ends(results: Mapping[str, Any]) -> list[Line]:
    lines = []
    for name, result in results.items():
        if result.get("x95") is None or _decided(result):
            continue
        lines.append(Line(f"open-{name}", name, _open_sentence(name, result), evidence_of(result), 20))
    return lines


def _open_sentence(name: str, result: Mapping[str, Any]) -> str:
    if beyond_easiest(result):
        easiest = f"{say(result['axis'][1])} {result['unit']}"
        return f"{result['title']}: even at {easiest}, the easiest level, 95 % is not surely right."
    if moved(result):
        return f"{result['title']}: moved while it was measured; no advice, run it again."
    low, high = result.get("x95_ci95") or result["ci95"]
    sentence = f"{result['title']}: not settled, {say(low)} to {say(high)} {result['unit']}"
    return f"{sentence}; run again with --fine --tests {name}."


def _recipe(results: Mapping[str, Any], resolution: Mapping[str, Any] | None) -> list[Line]:
    """Return the one recipe for a page; where no parts would do, that there is none."""
    acuity = results.get("acuity")
    if acuity is None or not _letters_decided(acuity):
        return []
    recipe, asked = advised_recipe(results, resolution), results.get("recipe") or {}
    if recipe is None:
        words = "A4 at 10 pt: no cutting into parts makes its letters large enough; send larger print."
        return [Line("recipe", "acuity", words, evidence_of(acuity), 0)]
    known = "composed from letters and shrinking" if resolution else "shrinking was not tested: holds for any"
    if asked.get("value") is None:
        promise = f"promised: {math.floor(100 * recipe.accuracy)} % of letters, not asked."
        return [Line("recipe", "acuity", f"{recipe_words(recipe)}; {promise}", f"{known}; {evidence_of(acuity)}", 0)]
    evidence = f"{known}, then asked: {asked['trials']} lines of {asked['line_letters']} letters; {evidence_of(acuity)}"
    return [Line("recipe", "recipe", f"{recipe_words(recipe)}: {reached_words(asked)}", evidence, 0)]


def _letters_decided(acuity: Mapping[str, Any]) -> bool:
    return _advised_as(acuity) == MEASURED and _decided(acuity) and answered_trials(acuity) > 0


def advised_recipe(results: Mapping[str, Any], resolution: Mapping[str, Any] | None) -> Recipe | None:
    """Return the recipe that letters and shrinking lead to; None where letters are not decided or no parts would do."""
    acuity = results.get("acuity")
    return page_recipe(acuity, resolution) if acuity is not None and _letters_decided(acuity) else None


def reached_words(asked: Mapping[str, Any]) -> str:
    """Return what the asked recipe reached, and whether that is what was promised."""
    low, high = (100 * end for end in asked["ci95"])
    reached = f"{100 * asked['value']:.0f} % of letters [{math.floor(low)}, {math.ceil(high)}]"
    if asked["kept"]:
        return f"{reached}."
    return f"{reached}, where letters alone promise {100 * asked['promised']:.0f} %: do not rely on it for full pages."


def _shrinking(resolution: Mapping[str, Any] | None) -> list[Line]:
    if resolution is None:
        return []
    none = resolution["shrinks"] <= 1 - SHRINKS
    sure = f"p {abs(none - resolution['shrinks']):.2f} from letters on {len(resolution['points'])} canvases"
    if none:
        longest = max(point[0] for point in resolution["points"])
        return [Line("size-any", "resolution", f"Picture size: no limit up to {longest:,} px.", sure, 2)]
    if resolution["shrinks"] < SHRINKS:
        return []
    if resolution["limit_px"] is None:
        words = (
            "Picture size: every picture is brought to one size, so letters count by their share of the longer side; "
            "crop to what matters, more pixels show nothing more."
        )
        return [Line("size-fixed", "resolution", words, sure, 2)]
    limit, (low, high) = round(resolution["limit_px"], -1), resolution["ci95"]
    rule = f"by {resolution['rule']}" if resolution["rules_told_apart"] else "(by which side is not known)"
    words = f"Picture size: pictures are shrunk to about {limit:,.0f} px a side {rule}; send no more, or crop."
    witnesses = [_witness(name, resolution.get(name)) for name in ("tokens", "coordinates")]
    sure = "; ".join([sure, *filter(None, witnesses)])
    return [Line("size", "resolution", words, f"95 %: {low:,.0f}–{high:,.0f} px; {sure}", 2)]


def _picture_against_text(results: Mapping[str, Any]) -> list[Line]:
    """Return how much longer a list may be as plain text than as a picture, where that is beyond noise."""
    both = [results.get(name) or {} for name in ("lookup-picture", "lookup-text")]
    drawn, written = both
    if drawn.get("value") is None or not written.get("axis"):
        return []
    least = written["bound"] if written["verdict"] == CEILING else (written.get("ci95") or [0.0])[0]
    if least is None or least <= drawn["ci95"][1]:
        return []
    times = careful(least / drawn["ci95"][1], "", up=False)
    words = f"Text as a picture: the same list may be at least {times:g} times longer as plain text; send text as text."
    return [Line("picture-text", "lookup-picture", words, "; ".join(map(result_words, both)), 8)]


def _witness(name: str, told: Mapping[str, Any] | None) -> str:
    if not told or told["agrees"] is None:
        return ""
    return f"{name} agree" if told["agrees"] else f"{name} do not agree"


def _decided(result: Mapping[str, Any]) -> bool:
    """Tell whether the bound that advice rests on is near enough to what it bounds, and the re-test agrees."""
    if result.get("x95") is None:
        return True
    if beyond_easiest(result):
        return False
    consistent = (result.get("retest") or {}).get("consistent", True) and not moved(result)
    return bool(consistent) and abs(math.log(result["x95_upper90"] / result["x95"])) < math.log(SETTLED)


def moved(result: Mapping[str, Any]) -> bool:
    """Tell whether early levels went otherwise when they were asked again at the end."""
    return bool((result.get("drift") or {}).get("moved"))


def _within(rule: Rule, result: Mapping[str, Any]) -> bool:
    if not rule.figure:
        return True
    value: Any = result
    for part in rule.figure.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        return False
    return (rule.above is None or value > rule.above) and (rule.below is None or value < rule.below)


def words_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words a sentence may use."""
    words: dict[str, Any] = {"unit": result["unit"], "bound": say(result.get("bound") or 0.0)}
    canvas, drawn = result.get("canvas"), result.get("drawn_px")
    words["canvas"] = f"{canvas[0]:,} × {canvas[1]:,} px" if canvas else "the test's size"
    words["letters"] = f"clean letters of {drawn:.0f} px and more" if drawn else "clean, well legible letters"
    words["bound_quality"] = jpeg_quality_of(result.get("bound") or 400.0)
    if result["value"] is not None:
        words |= {"value": say(result["value"])}
    if result.get("x95_upper90") is not None:
        words |= _words_of_bound(careful_safe(result), result)
    if result.get("ci95"):
        words |= {"low": say(result["ci95"][0]), "high": say(result["ci95"][1])}
    if "ellipse" in result:
        words |= {"axis": result["ellipse"]["axis"], "ratio": say(result["ellipse"]["ratio"])}
    if "mirrored" in result:
        words["mirrored_percent"] = f"{100 * result['mirrored']['share']:.0f}"
    if result.get("line"):
        line = result["line"]["name"]
        words |= {"line": f"{'in' if line.endswith(('half', 'quarter')) else 'along'} the {line}"}
        words["line_factor"] = say(result["line"]["factor"])
    if "turns" in result:
        words["turns"] = turn_words(result["turns"])
    if "frame" in result:
        target = result.get("least_target_px") or math.ceil(2 * result["q95_px"])  # exams of 0.2 have the error alone
        words |= {"frame": result.get("in_words") or result["frame"], "target": target}
    return words


def _words_of_bound(safe: float, result: Mapping[str, Any]) -> dict[str, Any]:
    exact = float(result["x95_upper90"])
    up = math.ceil(exact - 1e-9)
    return {
        "safe": say(safe),
        "safe_up": f"{up:,}",
        "safe_down": f"{math.floor(exact + 1e-9):,}",
        "safe_percent": say(careful(100 * exact, "%", up=True)),
        "of_255": math.ceil(255 * exact),
        "faint_of_255": round(255 * FAINT),
        "stretch": say(careful(max(1.0, exact / FAINT), "", up=True)),
        "quality": jpeg_quality_at_least(exact),
    }


def evidence_of(result: Mapping[str, Any]) -> str:
    """Return what a sentence rests on: the threshold, its interval, and the trials."""
    trials = f"{result['trials']} trials"
    if result["verdict"] in (FLOOR, OPEN) or result["value"] is None:
        return f"{result['verdict']}{': ' + result['reason'] if result.get('reason') else ''}, {trials}"
    span = f" [{say(result['ci95'][0])}, {say(result['ci95'][1])}]" if result.get("ci95") else ""
    half = "half at " if result["verdict"] == MEASURED and result.get("x95") is not None else ""
    return f"{half}{say(result['value'])} {result['unit']}{span}, {trials}"


def bound_words(verdict: str, bound: float, unit: str) -> str:
    """Return what is known of a threshold that lies beyond the levels drawn."""
    return f"{'better' if verdict == CEILING else 'worse'} than {say(bound)} {unit}"


def result_words(result: Mapping[str, Any]) -> str:
    """Return a finished test in a few words."""
    return f"{result['verdict']}: {evidence_of(result)}" if result["value"] is not None else evidence_of(result)


def say(value: float) -> str:
    """Return a figure with about three digits."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


WHOLE = ("characters", "discs", "pictures")
"""What comes in whole numbers."""


def careful(value: float, unit: str, *, up: bool) -> float:
    """Return a bound with the digits of `say`, rounded away from the bolder claim: upwards or downwards."""
    digits = 0 if unit in WHOLE or abs(value) >= 1000 else 2 - math.floor(math.log10(abs(value)))
    scale = 10.0**digits
    near = round(value * scale, 6)
    return (math.ceil(near) if up else math.floor(near)) / scale


def careful_safe(result: Mapping[str, Any]) -> float:
    """Return the level at which 95 % is right, rounded towards the easier."""
    hardest, easiest = result["axis"]
    return careful(result["x95_upper90"], result["unit"], up=easiest > hardest)
