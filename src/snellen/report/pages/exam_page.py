"""exam.json to prescription.html: one page, no script, what to do first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...core.markup import Child, Html, tag
from ...core.tasks import RunHeader
from ...sight.advice import moved, safe_words, say, silence_words
from ..files import write_atomically
from . import draw
from . import exam_figures as figures
from .html_document import document
from .tables import head, numbers, row, scrolled

LINES = 8
MEANING = (
    "A threshold is the level at which half of what can be right above chance is right; advice rests on the level at "
    "which 95 % is, and of that on the upper end (90 %). Contrast is of code values: there is no display. The pictures "
    "are clean, generated, and new for this seed: figures do not carry over to photographs. Figures are of the model "
    "with these settings and this server."
)


def write_prescription(folder: Path, exam: Mapping[str, Any], header: RunHeader) -> Path:
    """Write prescription.html beside exam.json."""
    path = folder / "prescription.html"
    body = render_prescription(exam, header).encode("utf-8")
    write_atomically(path, lambda file: file.write(body))
    return path


def render_prescription(exam: Mapping[str, Any], header: RunHeader) -> str:
    """Return the page as text."""
    parts: list[Child] = [_masthead(exam, header), exam_notices(exam), prescription_box(exam)]
    tests = exam["tests"]
    parts += [tag("h2", "All tests"), figures.strip(tests), tests_table(tests)]
    curves = [figures.curve(name, result) for name, result in tests.items() if result["levels"]]
    parts += [tag("h2", "Curves"), figures.joined(curves)] if curves else []
    parts += _maps(exam)
    parts += [tag("p", MEANING, class_="muted small"), *_method(exam.get("method") or {}), _again(header)]
    return document(f"{exam['model']} – eye exam", parts)


def _masthead(exam: Mapping[str, Any], header: RunHeader) -> Html:
    counts = exam["counts"]
    begun = header.created.replace("T", " ").replace("+00:00", " UTC")
    state = "complete" if exam["complete"] else exam["ended"]
    facts = [state, begun, f"seed {exam['seed']}", exam["mode"], f"{counts['trials']:,} trials"]
    facts += [f"{counts['no_answer']:,} without an answer", f"{counts['failed']:,} failed"]
    kinds = ["chip good" if exam["complete"] else "chip bad", *["chip"] * (len(facts) - 1)]
    chips = tag("ul", *(tag("li", fact, class_=kind) for fact, kind in zip(facts, kinds, strict=True)), class_="chips")
    title = tag("div", tag("p", "Eye exam", class_="kicker"), tag("h1", exam["model"]), chips)
    return tag("header", draw.logo(), title, class_="masthead")


def exam_notices(exam: Mapping[str, Any]) -> Html | None:
    """Say what limits the figures: an early end, refusals, habits, re-tests that disagree."""
    words = [] if exam["complete"] else [f"Not finished: {exam['ended']}. What was measured stays measured."]
    silence = silence_words(exam)
    words += [f"{silence[0].upper()}{silence[1:]}"] if silence else []
    named: dict[str, list[str]] = {}
    for name, result in exam["tests"].items():
        for note in (*_asked_notes(result), *_fit_notes(result)):
            named.setdefault(note, []).append(name)
    words += [f"{', '.join(names)}: {note}." for note, names in named.items()]
    return tag("ul", *(tag("li", one) for one in words), class_="notice", role="note") if words else None


def _asked_notes(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what went otherwise than asked: failures, habits, a re-test that disagrees."""
    if result.get("refused"):
        yield f"{result['refused']['trials']} trials failed ({result['refused']['why']})"
    if result.get("habit"):
        yield f"answers “{result['habit']['answer']}” to {result['habit']['share']:.0%} of blank pictures"
    if moved(result):
        told = result["drift"]
        shares = f"early {told['early']:.0%} right, late {told['late']:.0%} at the same {told['levels']} levels"
        yield f"moved while it was measured: {shares} (p {told['p']:.2g}); no advice rests on it"
    again = result.get("retest")
    if again and not again["consistent"]:
        yield f"not consistent: re-test read {again['right']:.0%}, expected {again['expected']:.0%}"


def _fit_notes(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the fit says of its own figures."""
    if result.get("sittings"):
        yield f"sat twice, the first re-test did not agree: {_sittings(result)}"
    if result.get("whole_rows"):
        yield "rows are read whole or not at all; the interval may be too narrow"
    if (result.get("wordings") or {}).get("differ"):
        spans = "; ".join(f"{say(one['ci95'][0])}–{say(one['ci95'][1])}" for one in result["wordings"]["each"])
        yield f"the wording of the question matters: {spans} {result['unit']} (95 %), a wording each"
    if result.get("gradual"):
        yield "gradual, no sharp threshold"


def _sittings(result: Mapping[str, Any]) -> str:
    """Return what each sitting of a test found, in its unit."""
    found = ["no value" if one["value"] is None else say(one["value"]) for one in result["sittings"]]
    return f"first {found[0]}, then {found[1]} {result['unit']}"


def prescription_box(exam: Mapping[str, Any]) -> Html:
    """Return the sentences, each with its evidence, what to do first first."""
    lines = exam["prescription"]
    items = [
        tag("li", tag("b", line["sentence"]), " ", tag("span", f"({line['evidence']})", class_="muted small"))
        for line in lines[:LINES]
    ]
    more = [
        tag("li", line["sentence"], " ", tag("span", f"({line['evidence']})", class_="muted small"))
        for line in lines[LINES:]
    ]
    rest = tag("details", tag("summary", f"{len(more)} more"), tag("ul", *more), open=True) if more else None
    body = tag("ol", *items) if items else tag("p", "Nothing was settled that could be advised.")
    return tag("section", tag("h2", "Prescription"), body, rest, class_="card rx")


def tests_table(tests: Mapping[str, Any], caption: str = "All tests") -> Html:
    """Return verdicts, thresholds and counts, a row a test."""
    fitted = ("half at", "95 %", "95 % right at", "slope", "lapse")
    counted = ("asked", "right", "wrong", "no answer", "failed")
    columns = head("test", "verdict", *((name, "n") for name in (*fitted, *counted)))
    body = [_row(name, result) for name, result in tests.items()]
    return scrolled(caption, tag("caption", caption), columns, tag("tbody", *body))


def _row(name: str, result: Mapping[str, Any]) -> Html:
    span = " – ".join(say(end) for end in result["ci95"]) if result["ci95"] else "–"
    value = "–" if result["value"] is None else f"{say(result['value'])} {result['unit']}"
    shape = [say(result["slope"]), f"{result['lapse']:.0%}"] if "slope" in result else ["–", "–"]
    cells = [value, span, safe_words(result), *shape, *_counted(result)]
    # a column of its own for remarks would push the counts off the page
    verdict = [result["verdict"], *([tag("div", result["reason"], class_="small")] if result["reason"] else [])]
    return row(name, tag("td", *verdict), *numbers(cells))


def _counted(result: Mapping[str, Any]) -> list[str]:
    """Return what was asked and what came of it: of rows their glyphs, so that parts add up to the whole."""
    own = result.get("glyphs") or {**result, "asked": result["trials"]}
    rows = f" in {result['trials']:,} rows" if "glyphs" in result else ""
    return [f"{own['asked']:,}{rows}", *(f"{own[key]:.6g}" for key in ("right", "wrong", "no_answer", "failed"))]


class Map(NamedTuple):
    """A drawing that a test has besides its curve: title, the part of the result it needs, and who draws it."""

    title: str
    needs: str
    draw: Callable[[Mapping[str, Any]], Html]


MAPS = {
    "field": Map("Visual field", "factor", figures.field_map),
    "quarter-turns": Map("Quarter turns", "turns", figures.turned_shares),
    "colour": Map("Colour", "ellipse", figures.colour_plane),
    "count": Map("Numbers said", "numbers", figures.said),
}


def _maps(exam: Mapping[str, Any]) -> list[Child]:
    shown = [_figure("Picture size", figures.hinge(exam["resolution"]))] if exam["resolution"] else []
    for name, known in MAPS.items():
        drawn = test_map(name, exam["tests"].get(name, {}))
        shown += [_figure(known.title, drawn)] if drawn else []
    return [tag("h2", "Maps"), figures.joined(shown)] if shown else []


def test_map(name: str, result: Mapping[str, Any]) -> Html | None:
    """Return the drawing that a test has besides its curve, where it was measured well enough for one."""
    known = MAPS.get(name)
    return known.draw(result) if known and known.needs in result else None


def _figure(title: str, drawing: Html) -> Html:
    return tag("figure", tag("h3", title), drawing, class_="card")


def _method(method: Mapping[str, Any]) -> list[Child]:
    """Return how it was measured, in words that a paper can use, with the command and what to cite."""
    if not method:
        return []
    settings = ", ".join(f"{name} {value}" for name, value in method["settings"].items() if value is not None)
    facts = tag("p", f"Snellen {method['version']}; {settings}.", class_="muted small")
    cited = tag("details", tag("summary", "BibTeX"), tag("pre", method["bibtex"], class_="reply"), open=True)
    command = tag("pre", method["command"], class_="reply")
    return [tag("h2", "Method"), tag("p", method["text"], class_="small"), facts, command, cited]


def _again(header: RunHeader) -> Html | None:
    return tag("p", f"Asked with: {header.command}", class_="muted small") if header.command else None
