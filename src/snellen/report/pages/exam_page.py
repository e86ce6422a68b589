"""exam.json to prescription.html: one page, no script, what to do first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...core.markup import Child, Html, join, tag
from ...core.tasks import RunHeader
from ...sight.advice import bound_words, moved, safe_words, say, silence_words
from ...sight.board import lab_to_rgb
from ..files import write_atomically
from . import draw
from .draw import Axis, binned
from .parts import captioned, document, head, numbers, row

Result = Mapping[str, Any]
STRIP_WIDTH, ROW, LABEL, VALUE = 800, 22, 150, 235
SMALL_WIDTH, SMALL_HEIGHT = 236, 150


def svg(shapes: Sequence[Html], width: float, height: float, label: str) -> Html:
    """Return one figure with a name for who cannot see it."""
    size = f"0 0 {width:g} {height:g}"
    return tag("svg", tag("title", label), *shapes, viewBox=size, class_="plot", role="img", aria_label=label)


def _text(  # noqa: PLR0917 - as short as what it writes
    words: str, x: float, y: float, size: float = 11, anchor: str = "start", class_: str | None = None
) -> Html:
    return tag("text", words, x=round(x, 1), y=round(y, 1), font_size=size, text_anchor=anchor, class_=class_)


def ease(result: Result, level: float) -> float:
    """Return where a level stands on its axis: 0 is the easiest level, 1 the hardest: further right is better."""
    hardest, easiest = result["axis"]
    return math.log(level / easiest) / math.log(hardest / easiest)


def strip(results: Mapping[str, Result]) -> Html:
    """Draw every threshold with its interval on one strip, from the easiest to the hardest level of its own axis."""
    shown = [(name, result) for name, result in results.items() if "axis" in result]
    height = ROW * len(shown) + 34
    left, right = LABEL, STRIP_WIDTH - VALUE
    shapes = [_text("easiest level", left, 12), _text("hardest level", right, 12, anchor="end")]
    for number, (name, result) in enumerate(shown):
        y = 30 + ROW * number
        shapes.append(_text(name, left - 10, y + 4, anchor="end", class_="ink"))
        shapes.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="axis"))
        shapes += _strip_row(result, y, left, right)
        shapes.append(_text(verdict_words(result).removeprefix("at ceiling: "), right + 10, y + 4))
    label = "All thresholds with their intervals, each on its own axis"
    drawn = svg(shapes, STRIP_WIDTH, height, label)  # a narrow screen scrolls it, so that its words can be read
    return tag("div", drawn, class_="plotframe", tabindex=0, role="group", aria_label=label)


def _strip_row(result: Result, y: float, left: float, right: float) -> list[Html]:
    shapes = []
    if result["ci95"]:
        ends = sorted(_along(result, end, left, right) for end in result["ci95"])
        shapes.append(tag("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_="span"))
    if result["value"] is not None:
        words = tag("title", f"{say(result['value'])} {result['unit']}")
        at = _along(result, result["value"], left, right)
        shapes.append(tag("circle", words, cx=at, cy=y, r=4.5, class_="dot halo"))
    elif result["verdict"] == "at ceiling":
        near = _along(result, result["bound"], left, right)
        shapes.append(tag("line", x1=near, x2=right, y1=y, y2=y, class_="span"))
        shapes.append(tag("path", d=f"M{right - 9} {y - 5} L{right} {y} L{right - 9} {y + 5}", class_="f1"))
    elif result["verdict"] == "not measurable":
        shapes.append(tag("circle", cx=left, cy=y, r=4.5, class_="f2"))
    return shapes


def _along(result: Result, level: float, left: float, right: float) -> float:
    return round(left + (right - left) * min(1.0, max(0.0, ease(result, level))), 1)


def verdict_words(result: Result) -> str:
    """Return a threshold with its unit, or the verdict."""
    if result["value"] is not None:
        return f"{say(result['value'])} {result['unit']}"
    if result.get("bound") is not None:
        return f"{result['verdict']}: {bound_words(result['verdict'], result['bound'], result['unit'])}"
    return str(result["verdict"])


def curve(name: str, result: Result, here: float | None = None) -> Html:
    """Draw the trials by level, the curve with its band, chance, the threshold, where 95 % is right, and one level."""
    levels = [row for row in result["levels"] if row]
    easiest, hardest = result["axis"][1], result["axis"][0]
    x = Axis("", min(easiest, hardest), max(easiest, hardest), log=True)
    y = Axis("", 0.0, 1.0)
    left, right, top, floor = 26.0, SMALL_WIDTH - 12.0, 20.0, SMALL_HEIGHT - 26.0
    shapes = [_text(f"{result['title']} ({result['unit']})", 4, 12, 11.5, class_="ink")]
    for share in (0.0, 0.5, 1.0):
        height = y.at(share, floor, top)
        shapes += [tag("line", x1=left, x2=right, y1=height, y2=height, class_="axis")]
        shapes += [_text(f"{share:g}", left - 4, height + 3, 9, "end")]
    for tick in x.ticks()[:: max(1, len(x.ticks()) // 5)]:
        shapes.append(_text(say(tick), x.at(tick, left, right), floor + 12, 9, "middle"))
    if result.get("curve"):
        shapes += _band(result["curve"], x, y, (left, right, top, floor))
    for level, share, count in binned(levels):
        radius = min(7.0, 1.5 + math.sqrt(count) * 0.45)
        words = tag("title", f"{say(level)}: {share:.0%} of {count:g}")
        spot = {"cx": x.at(level, left, right), "cy": y.at(share, floor, top)}
        shapes.append(tag("circle", words, **spot, r=round(radius, 1), class_="f2", fill_opacity=0.65))
    for mark, kind in ((result["value"], "half"), (result.get("x95_upper90"), "axis")):
        if mark is not None:
            at = x.at(mark, left, right)
            shapes.append(tag("line", x1=at, x2=at, y1=top, y2=floor, class_=kind))
    if here is not None:
        at = x.at(min(x.high, max(x.low, here)), left, right)
        shapes.append(
            tag("path", tag("title", f"this trial: {say(here)}"), d=f"M{at - 5:g} {floor + 1:g} h10 l-5 -8 z")
        )
    return svg(shapes, SMALL_WIDTH, SMALL_HEIGHT, f"{name}: share right by level; {verdict_words(result)}")


def _band(rows: Sequence[Sequence[float]], x: Axis, y: Axis, box: tuple[float, float, float, float]) -> list[Html]:
    left, right, top, floor = box
    at = [(x.at(row[0], left, right), [y.at(value, floor, top) for value in row[1:]]) for row in rows]
    edge = [(place, values[2]) for place, values in at] + [(place, values[1]) for place, values in reversed(at)]
    line = " ".join(f"{place:g},{values[0]:g}" for place, values in at)
    return [
        tag("polygon", points=" ".join(f"{a:g},{b:g}" for a, b in edge), class_="band f1"),
        tag("polyline", points=line, class_="line s1"),
    ]


def field_map(result: Result) -> Html:
    """Draw how much larger letters must be in each cell; a cell that does not differ is only framed."""
    size, shapes = 56, []
    for line, values in enumerate(result["factor"]):
        for column, value in enumerate(values):
            marked = [line, column] in [list(cell) for cell in result["marked"]]
            depth = round(min(0.75, abs(math.log(value)) * 1.2), 3) if marked else 0.0
            x, y = column * size, line * size
            kind = "f2" if value > 1 else "f1"
            box = {"x": x + 1, "y": y + 1, "width": size - 2, "height": size - 2, "rx": 4}
            shapes.append(tag("rect", **box, class_=kind, fill_opacity=depth))
            shapes.append(tag("rect", **box, class_="axis", fill="none"))
            shapes.append(_text(f"{value:.2f}", x + size / 2, y + size / 2 + 4, 12, "middle", "ink"))
    words = "Letter height needed in each part of the canvas against the median; marked where it differs"
    return svg(shapes, size * 5, size * 5, words)


def turned_shares(result: Result) -> Html:
    """Draw the share of letters read at every quarter turn with its interval."""
    turns = result["turns"]
    left, right, shapes = 52.0, 250.0, list[Html]()
    share = Axis("", 0.0, 1.0)
    for tick in (0.0, 0.5, 1.0):
        at = share.at(tick, left, right)
        shapes.append(tag("line", x1=at, x2=at, y1=6, y2=36 * len(turns), class_="axis"))
        shapes.append(_text(f"{tick:g}", at, 36 * len(turns) + 14, 10, "middle"))
    for number, (turn, one) in enumerate(turns.items()):
        y = 22 + 34 * number
        ends = [share.at(end, left, right) for end in one["ci95"]]
        words = tag("title", f"{turn}°: {one['share']:.0%} of the letters of {one['rows']} rows")
        shapes.append(_text(f"{turn}°", left - 8, y + 4, 12, "end", "ink"))
        shapes.append(tag("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_="span"))
        shapes.append(tag("circle", words, cx=share.at(one["share"], left, right), cy=y, r=4.5, class_="dot halo"))
        shapes.append(_text(str(one["verdict"]), right + 10, y + 4, 11))
    return svg(shapes, 340, 36 * len(turns) + 22, "Share of letters read at every quarter turn")


def colour_plane(result: Result) -> Html:
    """Draw the a*b* plane in its colours with the ellipse of thresholds."""
    ellipse, middle, reach = result["ellipse"], 130, 32.0
    scale, shapes = (middle - 8) / reach, []
    for a in range(-32, 33, 4):
        for b in range(-32, 33, 4):
            if math.hypot(a, b) <= reach:
                red, green, blue = (round(value) for value in lab_to_rgb(62.0, a, b))
                spot = {"x": round(middle + a * scale - 8, 1), "y": round(middle - b * scale - 8, 1)}
                shapes.append(tag("rect", **spot, width=16, height=16, fill=f"rgb({red},{green},{blue})"))
    for radius, kind in ((ellipse["radius"], "line s2"), (ellipse["interval"][1], "axis")):
        long_axis, short = radius * math.sqrt(ellipse["ratio"]), radius / math.sqrt(ellipse["ratio"])
        turn = f"rotate({-ellipse['angle']:g} {middle} {middle})"
        size = {"rx": round(long_axis * scale, 1), "ry": round(short * scale, 1)}
        shape = tag("ellipse", cx=middle, cy=middle, **size, transform=turn, fill="none", stroke="black", class_=kind)
        shapes.append(shape)
    for words, x, y in (("red", 252, 134), ("yellow", 130, 12), ("green", 8, 134), ("blue", 130, 256)):
        shapes.append(_text(words, x, y, 11, "end" if x > 200 else "start" if x < 20 else "middle", "ink"))
    longer = f"{say(ellipse['ratio'])} times longer along {ellipse['axis']}"
    label = f"Threshold of colour by direction: ΔE {say(ellipse['radius'])}, {longer}"
    return svg(shapes, 2 * middle, 2 * middle, label)


def hinge(resolution: Result) -> Html:
    """Draw the height at which half is read against the side of the canvas, both logarithmic, with the limit."""
    points = sorted(resolution["points"], key=lambda point: math.sqrt(point[0] * point[1]))
    sides = [math.sqrt(width * height) for width, height, *_ in points]
    x = Axis("", min(sides) / 1.2, max(sides) * 1.2, log=True)
    y = Axis("", min(p[3] for p in points) / 1.3, max(p[4] for p in points) * 1.3, log=True)
    left, right, top, floor = 44.0, 330.0, 16.0, 190.0
    shapes = [tag("line", x1=left, x2=right, y1=floor, y2=floor, class_="strongaxis")]
    for side, (width, height, value, low, high) in zip(sides, points, strict=True):
        at = x.at(side, left, right)
        ends = [y.at(end, floor, top) for end in (low, high)]
        shapes.append(tag("line", x1=at, x2=at, y1=ends[0], y2=ends[1], class_="span"))
        words = tag("title", f"{width} x {height}: {say(value)} px")
        shapes.append(tag("circle", words, cx=at, cy=y.at(value, floor, top), r=4.5, class_="dot halo"))
        if width == height:
            shapes.append(_text(f"{width}", at, floor + 14, 10, "middle"))
    if resolution["limit_px"]:
        at = x.at(resolution["limit_px"], left, right)
        shapes.append(tag("line", x1=at, x2=at, y1=top, y2=floor, class_="half"))
        shapes.append(_text(f"{resolution['limit_px']:,.0f} px", at + 6, top + 10, 11, class_="ink"))
    shapes += [_text(say(tick), left - 8, y.at(tick, floor, top) + 3, 10, "end") for tick in y.ticks()]
    shapes.append(_text("side of a square canvas (px)", (left + right) / 2, floor + 32, 11, "middle", "ink"))
    return svg(shapes, 340, 230, "Height at which half is read, by size of the canvas")


def said(result: Result) -> Html:
    """Draw how often each number was said when discs were counted."""
    replies = list(result["numbers"]["replies"].items())[:40]
    most = max((count for _, count in replies), default=1)
    width = max(8.0, 300 / max(1, len(replies)))
    shapes = []
    for place, (word, count) in enumerate(replies):
        height = 90 * count / most
        box = {"x": round(10 + place * width, 1), "y": round(100 - height, 1), "height": round(height, 1)}
        shapes.append(tag("rect", tag("title", f"{word}: {count}"), **box, width=round(width - 2, 1), class_="f1"))
        if place % max(1, len(replies) // 12) == 0:
            shapes.append(_text(word, 10 + place * width, 112, 9))
    return svg(shapes, 20 + width * max(1, len(replies)), 118, "Numbers that were said")


def joined(parts: Sequence[Html]) -> Html:
    """Return figures side by side."""
    return tag("div", join(parts), class_="examgrid")


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
    parts += [tag("h2", "All tests"), strip(tests), tests_table(tests)]
    curves = [curve(name, result) for name, result in tests.items() if result["levels"]]
    parts += [tag("h2", "Curves"), joined(curves)] if curves else []
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


FITTED = ("half at", "95 %", "95 % right at", "slope", "lapse")


def tests_table(tests: Mapping[str, Any], caption: str = "All tests") -> Html:
    """Return verdicts, thresholds and counts, a row a test."""
    counted = ("asked", "right", "wrong", "no answer", "failed")
    columns = head("test", "verdict", *((name, "n") for name in (*FITTED, *counted)))
    body = [_row(name, result) for name, result in tests.items()]
    return captioned(caption, columns, body)


def _row(name: str, result: Mapping[str, Any]) -> Html:
    """Return one test: its unit below its name and its remark where it has room, so that counts stay in sight."""
    named, remark = [name, tag("div", result["unit"], class_="small")], result["reason"]
    told = [result["verdict"]]
    if result["value"] is None and not result["ci95"] and "slope" not in result:
        fitted = [tag("td", remark or "–", class_="small", colspan=len(FITTED))]
    else:
        span = " – ".join(say(end) for end in result["ci95"]) if result["ci95"] else "–"
        value = "–" if result["value"] is None else say(result["value"])
        shape = [say(result["slope"]), f"{result['lapse']:.0%}"] if "slope" in result else ["–", "–"]
        fitted = numbers([value, span, safe_words(result), *shape])
        told += [tag("div", remark, class_="small")] if remark else []
    return row(named, tag("td", *told), *fitted, *numbers(_counted(result)))


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
    "field": Map("Visual field", "factor", field_map),
    "quarter-turns": Map("Quarter turns", "turns", turned_shares),
    "colour": Map("Colour", "ellipse", colour_plane),
    "count": Map("Numbers said", "numbers", said),
}


def _maps(exam: Mapping[str, Any]) -> list[Child]:
    shown = [_figure("Picture size", hinge(exam["resolution"]))] if exam["resolution"] else []
    for name, known in MAPS.items():
        drawn = test_map(name, exam["tests"].get(name, {}))
        shown += [_figure(known.title, drawn)] if drawn else []
    return [tag("h2", "Maps"), joined(shown)] if shown else []


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
