"""olmOCR-bench's own unit tests (allenai/olmocr f7cfe4c): what a page must contain, in which order, in which cell.

Faults are kept: a reply of one blank contains every text with a blank, and a formula that KaTeX cannot draw is found in
any reply with a formula.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rapidfuzz import fuzz

from ...core.errors import DataError, MissingExtra
from .katex import Drawn, Glyph, draw
from .omnidoc_text import parsed_html

Cell = tuple[int, int]
_ASCII = str.maketrans(
    dict.fromkeys("‘’‚", "'")
    | dict.fromkeys("“”„", '"')
    | {"＿": "_"}
    | dict.fromkeys("–—‑‒−", "-")
    | {"\u00b5": "\u03bc"}
)
_FOREIGN = re.compile(
    "[\u4e00-\u9fff\u3040-\u309f\u30a0-\u30ff\U0001f600-\U0001f64f\U0001f300-\U0001f5ff\U0001f680-\U0001f6ff"
    "\U0001f1e0-\U0001f1ff]"
)
MOST_REPEATS = 30


class Verdict(NamedTuple):
    """Whether a test passed, and why not."""

    passed: bool
    why: str = ""


def run_test(test: Mapping[str, Any], reply: str) -> Verdict:
    """Run one unit test on a reply. Raises DataError for a type that the bench does not have."""
    kind = str(test.get("type"))
    if kind not in TESTS:
        raise DataError(f"olmOCR-bench has no test of type {kind!r}: one of {', '.join(TESTS)}")
    return TESTS[kind](test, reply)


def normal(text: str) -> str:
    """Return a text as tests compare it: no marks of bold and italics, one blank for many, plain quotes and dashes."""
    text = re.sub(r"\s+", " ", re.sub(r"<br/?>", " ", text))
    for pattern in (r"\*\*(.*?)\*\*", r"__(.*?)__"):
        text = re.sub(pattern, r"\1", text)
    text = re.sub(r"</?[bi]>", "", text)
    for pattern in (r"\*(.*?)\*", r"_(.*?)_"):
        text = re.sub(pattern, r"\1", text)
    return unicodedata.normalize("NFC", text).translate(_ASCII)


def _threshold(test: Mapping[str, Any], text: str) -> float:
    return 1.0 - int(test.get("max_diffs", 0)) / (len(text) or 1)


def _present(test: Mapping[str, Any], reply: str) -> Verdict:
    query, text = normal(str(test["text"])), normal(reply)
    if not test.get("case_sensitive", True):
        query, text = query.lower(), text.lower()
    first, last = test.get("first_n"), test.get("last_n")
    if first or last:
        text = (text[:first] if first else "") + (text[-last:] if last else "")
    found = fuzz.partial_ratio(query, text) / 100.0 >= _threshold(test, query)
    passed = found == (test["type"] == "present")
    return Verdict(passed, "" if passed else f"{query[:40]!r} is {'there' if found else 'not there'}")


def _order(test: Mapping[str, Any], reply: str) -> Verdict:
    try:
        from fuzzysearch import find_near_matches
    except ImportError as error:
        raise MissingExtra("parse", "the order tests of olmOCR-bench") from error
    search: Callable[..., list[Any]] = find_near_matches
    text, most = normal(reply), int(test.get("max_diffs", 0))
    places = []
    for name in ("before", "after"):
        wanted = normal(str(test[name]))
        found = search(wanted, text, max_l_dist=most)
        if not found:
            return Verdict(False, f"{wanted[:40]!r} is not there")
        places.append([one.start for one in found])
    passed = min(places[0]) < max(places[1])
    return Verdict(passed, "" if passed else f"{test['before'][:40]!r} is not before {test['after'][:40]!r}")


_HEADINGS = ((r"^#{1,6}\s+(.+?)$", re.MULTILINE), (r"<h[1-6][^>]*>(.*?)</h[1-6]>", re.IGNORECASE | re.DOTALL))
_BOLD = (
    (r"\*\*(.*?)\*\*", re.DOTALL),
    (r"__(.*?)__", re.DOTALL),
    (r"<b[^>]*>(.*?)</b>", re.IGNORECASE | re.DOTALL),
    (r"<strong[^>]*>(.*?)</strong>", re.IGNORECASE | re.DOTALL),
)
_ITALIC = (
    (r"(?<!\*)\*(?!\*)(.*?)(?<!\*)\*(?!\*)", re.DOTALL),
    (r"(?<!_)_(?!_)(.*?)(?<!_)_(?!_)", re.DOTALL),
    (r"<i[^>]*>(.*?)</i>", re.IGNORECASE | re.DOTALL),
    (r"<em[^>]*>(.*?)</em>", re.IGNORECASE | re.DOTALL),
)
_FORMATS = {"heading": _HEADINGS, "bold": _BOLD, "italic": _ITALIC}


def _format(test: Mapping[str, Any], reply: str) -> Verdict:
    found = [text for pattern, flags in _FORMATS[str(test["format"])] for text in re.findall(pattern, reply, flags)]
    query, texts = normal(str(test["text"])), list(map(normal, found))
    if not test.get("case_sensitive", True):
        query, texts = query.lower(), [text.lower() for text in texts]
    least = _threshold(test, query)
    passed = any(fuzz.partial_ratio(query, text) / 100.0 >= least for text in texts)
    return Verdict(passed, "" if passed else f"{query[:40]!r} is no {test['format']}")


_RAISED = dict(zip("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹", strict=True))


def _footnote(test: Mapping[str, Any], reply: str) -> Verdict:
    marker = str(test["marker"])
    patterns = [rf"\[\^{re.escape(marker)}\](?!:)", rf"(?i:<sup[^>]*>{re.escape(marker)}</sup>)"]
    if all(letter in _RAISED for letter in marker):
        patterns.append(re.escape("".join(_RAISED[letter] for letter in marker)))
    places = [found.span() for pattern in patterns for found in re.finditer(pattern, reply)]
    if not places:
        return Verdict(False, f"no footnote mark {marker!r}")
    cuts: Mapping[str, Callable[[tuple[int, int], int], str]] = {
        "appears_before_marker": lambda span, size: _letters(reply[max(0, span[0] - 200) : span[0]])[-size:],
        "appears_after_marker": lambda span, size: _letters(reply[span[1] : span[1] + 200])[:size],
    }
    for name, cut in cuts.items():
        if not test.get(name):
            continue
        wanted = normal(str(test[name]))
        letters, least = _letters(wanted), _threshold(test, wanted)
        near = (cut(span, len(letters) * 2) for span in places)
        if not any(text and fuzz.partial_ratio(letters, text) / 100.0 >= least for text in near):
            return Verdict(False, f"{wanted[:40]!r} is not beside the mark {marker!r}")
    return Verdict(True)


def _letters(text: str) -> str:
    return "".join(letter for letter in normal(text) if letter.isalnum()).lower()


def _baseline(test: Mapping[str, Any], reply: str) -> Verdict:
    text = reply
    if test.get("max_length") is not None and test.get("max_length_skips_image_alt_tags"):
        text = re.sub(r"!\[.*?\]\(.*?\)", "", reply)
    length = sum(letter.isalnum() for letter in text)
    if test.get("max_length") is not None:
        return Verdict(length <= test["max_length"], f"{length} characters on a blank page")
    if not length:
        return Verdict(False, "no letters or digits")
    repeats = max(_repeats(reply, size) for size in range(1, 6))
    if repeats > test.get("max_repeats", MOST_REPEATS):
        return Verdict(False, f"the end is repeated {repeats} times")
    if test.get("check_disallowed_characters", True) and (found := _FOREIGN.search(reply)):
        return Verdict(False, f"has {found[0]!r}")
    return Verdict(True)


def _repeats(reply: str, size: int) -> int:
    """Return how often the last characters stand at the end in a row."""
    text = re.sub(r"\s+", " ", reply)
    last, count, end = text[-size:], 0, len(text)
    while len(last) == size and end >= size and text[end - size : end] == last:
        count, end = count + 1, end - size
    return count


class Grid(NamedTuple):
    """A table as cells with their neighbours."""

    texts: dict[Cell, str]
    headings: set[Cell]
    up: dict[Cell, set[Cell]]
    down: dict[Cell, set[Cell]]
    left: dict[Cell, set[Cell]]
    right: dict[Cell, set[Cell]]

    def walk(self, start: Cell, neighbours: Mapping[Cell, set[Cell]]) -> set[Cell]:
        """Return the headings in one direction, else the outermost cells."""
        headings, ends, seen = set(), set(), set()
        waiting = {start}
        while waiting:
            cell = waiting.pop()
            seen.add(cell)
            if cell in self.headings:
                headings.add(cell)
            if neighbours[cell]:
                waiting |= neighbours[cell] - seen
            else:
                ends.add(cell)
        return (headings - {start}) or (ends - {start})


class _Spec(NamedTuple):
    text: str
    rows: int
    columns: int
    heading: bool


MOST_SPAN = 1000
"""A span above it is taken as this: a browser does so too, and a bomb of spans fills no memory."""


def _grid(rows: list[list[_Spec]]) -> Grid | None:
    """Return rows of cells with spans as a grid of neighbours; None if there is no cell."""
    placed: dict[Cell, Cell] = {}
    specs: dict[Cell, _Spec] = {}
    for row, cells in enumerate(rows):
        column = 0
        for spec in cells:
            while (row, column) in placed:
                column += 1
            specs[row, column] = spec
            placed.update(
                ((row + down, column + right), (row, column))
                for down in range(spec.rows)
                for right in range(spec.columns)
            )
            column += spec.columns
    if not specs:
        return None
    width, height = max(column for _, column in placed) + 1, max(row for row, _ in placed) + 1
    beside: dict[str, dict[Cell, set[Cell]]] = {
        name: {cell: set() for cell in specs} for name in ("up", "down", "left", "right")
    }
    for cell, spec in specs.items():
        _enter_neighbours(cell, spec, placed, beside, (height, width))
    texts = {cell: spec.text for cell, spec in specs.items()}
    return Grid(texts, {cell for cell, spec in specs.items() if spec.heading}, **beside)


def _enter_neighbours(
    cell: Cell,
    spec: _Spec,
    placed: Mapping[Cell, Cell],
    beside: Mapping[str, dict[Cell, set[Cell]]],
    size: tuple[int, int],
) -> None:
    (row, column), (height, width) = cell, size
    lines = [
        *(("right", [(at, n) for n in range(column + spec.columns, width)]) for at in range(row, row + spec.rows)),
        *(("left", [(at, n) for n in range(column - 1, -1, -1)]) for at in range(row, row + spec.rows)),
        *(("down", [(n, at) for n in range(row + spec.rows, height)]) for at in range(column, column + spec.columns)),
        *(("up", [(n, at) for n in range(row - 1, -1, -1)]) for at in range(column, column + spec.columns)),
    ]
    for name, places in lines:
        found = next((placed[place] for place in places if placed.get(place, cell) != cell), None)
        if found is not None:
            beside[name][cell].add(found)


def _pipe_grids(reply: str) -> list[Grid]:
    groups: list[list[str]] = [[]]
    for line in reply.strip().split("\n"):
        if "|" in line:
            groups[-1].append(line)
        elif groups[-1]:
            groups.append([])
    grids = [_pipe_grid(lines) for lines in groups if len(lines) >= 2]
    return [grid for grid in grids if grid]


def _pipe_grid(lines: list[str]) -> Grid | None:
    rule = next(
        (n for n, line in enumerate(lines) if (bare := line.replace("|", "").strip()) and set(bare) <= set("- :")), -1
    )
    rows: list[list[_Spec]] = []
    for number, line in enumerate(lines):
        if number == rule or (line.strip() and set(line) <= set("- :|")):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        cells = cells[1:] if cells and not cells[0] else cells
        cells = cells[:-1] if cells and not cells[-1] else cells
        if cells:
            rows.append([_Spec(cell, 1, 1, not rows or not column) for column, cell in enumerate(cells)])
    return _grid(rows)


def _html_grids(reply: str) -> list[Grid]:
    found = []
    for table in parsed_html(reply).find_all("table"):
        rows = table.find_all("tr")
        specs = []
        for number, row in enumerate(rows):
            head = row.find_parent("thead") is not None
            cells = row.find_all(["th", "td"], recursive=False)
            specs.append([_spec(cell, head, len(rows) - number) for cell in cells])
        if grid := _grid(specs):
            found.append(grid)
    return found


def _spec(cell: Any, head: bool, left: int) -> _Spec:
    for line in cell.find_all("br"):
        line.replace_with("\n")
    rows = max(1, left) if str(cell.get("rowspan") or "").strip() == "0" else _span(cell.get("rowspan"))
    return _Spec(cell.get_text(separator="\n").strip(), rows, _span(cell.get("colspan")), cell.name == "th" or head)


def _span(value: Any) -> int:
    try:
        return min(MOST_SPAN, max(1, int(value)))
    except (TypeError, ValueError):
        return 1


_SIDES: Mapping[str, Callable[[Grid, Cell], set[Cell]]] = {
    "up": lambda grid, cell: grid.up[cell],
    "down": lambda grid, cell: grid.down[cell],
    "left": lambda grid, cell: grid.left[cell],
    "right": lambda grid, cell: grid.right[cell],
    "left_heading": lambda grid, cell: grid.walk(cell, grid.left),
    "top_heading": lambda grid, cell: grid.walk(cell, grid.up),
}


def _table(test: Mapping[str, Any], reply: str) -> Verdict:
    wanted = normal(str(test["cell"]))
    grids = [] if test.get("ignore_markdown_tables") else _pipe_grids(reply)
    grids += _html_grids(reply)
    asked = {name: normal(str(test[name])) for name in _SIDES if test.get(name)}

    def alike(text: str, query: str) -> bool:
        return fuzz.ratio(query, normal(text)) / 100.0 >= max(0.5, _threshold(test, query))

    for grid in grids:
        for cell, text in grid.texts.items():
            if alike(text, wanted) and all(
                any(alike(grid.texts[other], query) for other in _SIDES[name](grid, cell))
                for name, query in asked.items()
            ):
                return Verdict(True)
    return Verdict(False, f"no cell {wanted!r} with " + ", ".join(f"{name} {text!r}" for name, text in asked.items()))


def formulas_of(reply: str, dollars: bool = True) -> list[str]:
    """Return the formulas of a reply; those of one kind of delimiters are taken out before the next is looked for."""
    found: list[str] = []
    for pattern in (r"\\\((.+?)\\\)", r"\\\[(.+?)\\\]", *((r"\$\$(.+?)\$\$", r"\$(.+?)\$") if dollars else ())):
        found += [formula.strip() for formula in re.findall(pattern, reply, re.DOTALL)]
        reply = re.sub(pattern, "", reply, flags=re.DOTALL)
    return found


def _math(test: Mapping[str, Any], reply: str) -> Verdict:
    wanted = str(test["math"])
    found = formulas_of(reply, not test.get("ignore_dollar_delimited"))
    if wanted in found:
        return Verdict(True)
    if not found:
        return Verdict(False, "no formulas")
    drawn = draw([wanted, *found])
    ordered = sorted(found, key=lambda formula: -fuzz.ratio(formula, wanted))
    passed = any(is_drawn_alike(drawn[wanted], drawn[formula]) for formula in ordered)
    return Verdict(passed, "" if passed else f"no formula is drawn like {wanted[:60]!r}")


def is_drawn_alike(wanted: Drawn, found: Drawn) -> bool:
    """Return whether all that is drawn of one formula is drawn within the other."""
    if wanted.error:
        return True  # the fault of the original: a reference that cannot be drawn has no glyph that could be missing
    if found.error:
        return False
    inner = _inner(wanted.mathml)
    return (bool(inner) and inner in _inner(found.mathml)) or _embeds(wanted.glyphs, found.glyphs)


def _inner(mathml: str) -> str:
    body = re.sub(r"<annotation.*?</annotation>", "", mathml, flags=re.DOTALL)
    found = re.search(r"<semantics>(.*)</semantics>", body, re.DOTALL)
    return re.sub(r"\s+", "", found[1] if found else body)


def _beside(glyphs: tuple[Glyph, ...], tolerance: float = 5) -> list[dict[str, int]]:
    done = []
    for index, one in enumerate(glyphs):
        near: dict[str, tuple[float, int]] = {}
        for other, two in enumerate(glyphs):
            if index == other:
                continue
            across, along = two.x - one.x, two.y - one.y
            sides = []
            if abs(across) <= tolerance and along:
                sides.append(("up" if along < 0 else "down", abs(along)))
            if abs(along) <= tolerance and across:
                sides.append(("left" if across < 0 else "right", abs(across)))
            for side, distance in sides:
                if side not in near or distance < near[side][0]:
                    near[side] = distance, other
        done.append({side: other for side, (_, other) in near.items()})
    return done


MOST_STEPS = 200_000
"""Steps of the search for an embedding, after which there is none: the original would go on for ever."""


def _embeds(wanted: tuple[Glyph, ...], found: tuple[Glyph, ...]) -> bool:
    """Return whether every wanted glyph has a place of its own among those found, with the same neighbours."""
    places = {glyph.text: [n for n, other in enumerate(found) if other.text == glyph.text] for glyph in wanted}
    ours, theirs = _beside(wanted), _beside(found)
    assigned: list[int] = []

    def meets(place: int, side: str, other: int) -> bool:
        there = theirs[place].get(side)
        if there is None:
            return False
        return assigned[other] == there if other < len(assigned) else found[there].text == wanted[other].text

    def fits(index: int, place: int) -> bool:
        return place not in assigned and all(meets(place, side, other) for side, other in ours[index].items())

    waiting = [list(reversed(places[wanted[0].text]))] if wanted else []
    for _ in range(MOST_STEPS):
        if len(assigned) == len(wanted) or not waiting:
            return len(assigned) == len(wanted)
        if not waiting[-1]:
            waiting.pop()
            del assigned[max(0, len(waiting) - 1) :]
            continue
        index, place = len(waiting) - 1, waiting[-1].pop()
        if fits(index, place):
            assigned.append(place)
            if index + 1 < len(wanted):
                waiting.append(list(reversed(places[wanted[index + 1].text])))
    return False


TESTS: Mapping[str, Callable[[Mapping[str, Any], str], Verdict]] = {
    "present": _present,
    "absent": _present,
    "order": _order,
    "table": _table,
    "math": _math,
    "baseline": _baseline,
    "format": _format,
    "footnote": _footnote,
}
