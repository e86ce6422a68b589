"""Rows of a walk to a table: thumbnail, what was asked where it differs, what came back; every row is a link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ...core.markup import Child, Html, join, shorten, tag
from ...core.types import Failure, Timing, TrialKey, Usage
from ...scoring.tables.table import TrialColumns
from ..pages.parts import outcome_tag, scrolled
from .run_library import OpenRun
from .shell import EXPORTED, link, trial_address
from .walk import Walk

WORTH = 40
"""Shared texts shorter than this stay where they are: a question is easier to read whole."""
SHOWN = 160
AS_ABOVE = "as above"


class Apart(NamedTuple):
    """What the questions of a page begin and end with, and what is left of each."""

    begin: str
    end: str
    rest: list[str]

    @property
    def all_same(self) -> bool:
        """Tell whether every row asks the same."""
        return bool(self.begin) and not self.end and not any(self.rest)

    def note(self) -> Html | None:
        """Return what was left out of the rows, in words."""
        if self.all_same:
            return tag("p", tag("b", "Every question here: "), shorten(self.begin, 600), class_="small")
        parts = [f"{how} “{shorten(text, 300)}”" for how, text in (("begins", self.begin), ("ends", self.end)) if text]
        return tag("p", tag("b", "Every question here "), " and ".join(parts), class_="small") if parts else None

    def cells(self, *, again: bool = False) -> list[str]:
        """Return what a row shows: only what differs, and what stands in the row above only if `again`."""
        shown, before = [], None
        for text in self.rest:
            words = ("… " if self.begin else "") + text + (" …" if self.end else "")
            shown.append(AS_ABOVE if text == before and not again else shorten(words, SHOWN))
            before = text
        return shown


def tell_apart(questions: Sequence[str]) -> Apart:
    """Take off the questions what all of them begin and end with, at the ends of words."""
    texts = list(questions)
    if len(texts) < 2:
        return Apart("", "", texts)
    if len(set(texts)) == 1:
        return Apart(texts[0], "", [""] * len(texts)) if texts[0] else Apart("", "", texts)
    begin = _whole_words(texts)
    rest = [text[len(begin) :] for text in texts]
    end = _whole_words([text[::-1] for text in rest])[::-1]
    return Apart(begin.strip(), end.strip(), [text[: len(text) - len(end)].strip() for text in rest])


def _whole_words(texts: Sequence[str]) -> str:
    """Return what all texts begin with, up to its last space, or nothing if it is not worth taking off."""
    first, last = min(texts), max(texts)  # what these two share, all that sort between them share
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    shared = first[:length]
    cut = max((place for place, sign in enumerate(shared) if sign.isspace()), default=-1) + 1
    return shared[:cut] if cut >= WORTH else ""


SORTED = {"outcome": "value", "trial": "sample", "seconds": "latency", "tokens": "tokens"}
"""What a column sorts by."""
COLUMNS = ("picture", "outcome", "trial", "question", "expected", "read as", "rule", "reply", "seconds", "tokens")
SCORE = "score:"
"""Begins the name of a column that holds another metric of the same trials."""
MOST_SCORES = 6
_STORED = "SELECT body, request FROM predictions WHERE rowid = ?"
_SCORES = "SELECT metric, value, reason FROM scores WHERE task = ? AND sample = ? AND variant = ? AND repeat = ?"


class _Picture(msgspec.Struct):
    """One picture, of which only that it is there is read."""


class _Turn(msgspec.Struct):
    images: list[_Picture] = []


class _Asked(msgspec.Struct):
    messages: list[_Turn] = []


class _Body(msgspec.Struct):
    text: str | None = None
    failure: Failure | None = None
    usage: Usage | None = None
    timing: Timing | None = None


class Line(NamedTuple):
    """One row as it is stored."""

    row: int
    body: _Body
    pictures: int


def trial_table(run: OpenRun, columns: TrialColumns, rows: Sequence[int], walk: Walk, caption: Html) -> Html:
    """Return the trials of one page; columns that were not chosen, or in which no row has anything, are left out."""
    lines = [read_line(run, columns, row) for row in rows]
    asked = tell_apart([columns.facts[int(columns.sample[row])].question for row in rows])
    others, questions = score_columns(columns), asked.cells(again=EXPORTED.get())  # there rows are hidden
    cells = [
        _cells(run, columns, line, question) | _other_scores(run, columns.key(line.row), others)
        for line, question in zip(lines, questions, strict=True)
    ]
    empty = [("picture", not any(line.pictures for line in lines)), ("question", asked.all_same)]
    empty += [(name, not any(one[name] for one in cells)) for name in others]
    shown = _shown_columns(walk, others, [name for name, holds in empty if holds])
    body = [_row(run, columns.key(row), one, shown, walk) for row, one in zip(rows, cells, strict=True)]
    kind = "scroll card trials dense" if walk.look.dense else "scroll card trials"
    frame = scrolled("Trials", caption, _head(run, walk, shown), tag("tbody", *body), class_=kind)
    return join((asked.note(), frame))


def _shown_columns(walk: Walk, others: Sequence[str], empty: Sequence[str]) -> list[str]:
    every = all_columns(others)
    chosen = {*walk.look.columns, "trial"} if walk.look.columns else set(every)
    return [name for name in every if name in chosen and name not in empty]


def all_columns(others: Sequence[str]) -> list[str]:
    """Return every column a table of trials may have: other scores stand beside the outcome."""
    place = COLUMNS.index("outcome") + 1
    return [*COLUMNS[:place], *others, *COLUMNS[place:]]


def score_columns(columns: TrialColumns) -> list[str]:
    """Return a column for each metric of a task but the one that decides the outcome, the first few."""
    return [f"{SCORE}{name}" for name in columns.metrics if name != columns.metric][:MOST_SCORES]


def _other_scores(run: OpenRun, key: TrialKey, others: Sequence[str]) -> dict[str, Child]:
    """Return what other scorers say of a trial; one that could not judge says why when pointed at."""
    found = run.reader.rows(_SCORES, msgspec.structs.astuple(key)) if others else ()
    stored = {f"{SCORE}{metric}": (value, reason) for metric, value, reason in found}
    return {name: _score_cell(*stored[name]) if name in stored else None for name in others}


def _score_cell(value: float | None, reason: str | None) -> Child:
    return tag("span", "–", title=reason or "", class_="muted") if value is None else f"{value:.3g}"


def read_line(run: OpenRun, columns: TrialColumns, row: int) -> Line:
    """Read the part of one stored trial that a list shows."""
    found = next(run.reader.rows(_STORED, (int(columns.row[row]),)), None)
    if found is None:
        return Line(row, _Body(), 0)
    asked = msgspec.json.decode(found[1], type=_Asked)
    return Line(row, msgspec.json.decode(found[0], type=_Body), sum(len(turn.images) for turn in asked.messages))


def _cells(run: OpenRun, columns: TrialColumns, line: Line, question: str) -> dict[str, Child]:
    row, body = line.row, line.body
    sample = columns.facts[int(columns.sample[row])]
    text = body.text if body.text is not None else body.failure.message if body.failure else ""
    read = columns.text("answer", row) or columns.text("reason", row) or ""
    return {
        "picture": small_picture(run, columns.key(row), line.pictures),
        "outcome": _outcome(columns, row),
        "trial": (_more(columns, columns.key(row)), tag("div", _outcome(columns, row), class_="narrow")),
        "question": tag("span", question, class_="muted") if question == AS_ABOVE else question,
        "expected": shorten(", ".join(sample.answers), 60),
        "read as": shorten(read, 60),
        "rule": columns.text("rule", row) or "",
        "reply": shorten(text, 200),
        "seconds": f"{body.timing.done - body.timing.sent:.2f}" if body.timing else "",
        "tokens": f"{body.usage.output_tokens:,}" if body.usage and body.usage.output_tokens else "",
    }


def _outcome(columns: TrialColumns, row: int) -> Html:
    return outcome_tag(int(columns.outcome[row]), float(columns.value[row]))


def _more(columns: TrialColumns, key: TrialKey) -> Html | None:
    variant = key.variant if key.variant != "base" else ""
    repeat = f"#{key.repeat + 1}" if columns.task.repeats > 1 else ""
    words = " ".join(filter(None, (variant, repeat)))
    return tag("div", words, class_="muted small") if words else None


def small_picture(run: OpenRun, key: TrialKey, count: int) -> Html | None:
    """Return the first picture, small; it is fetched when it comes into sight."""
    if not count:
        return None
    source = trial_address(run, key, "image", small=1)
    more = tag("span", f"+{count - 1}", class_="small muted", title=f"{count} pictures") if count > 1 else None
    return join((tag("img", src=source, alt="", loading="lazy", decoding="async", width=88, height=60), more))


def _row(run: OpenRun, key: TrialKey, cells: dict[str, Child], shown: Sequence[str], walk: Walk) -> Html:
    made = []
    for name in shown:
        if name == "trial":
            made.append(
                tag("th", link(key.sample, walk.trial(run, key), class_="mono whole"), cells[name], scope="row")
            )
        elif name in ("question", "expected", "read as", "rule", "reply"):
            made.append(tag("td", tag("div", cells[name], class_="clamp"), class_=f"text c-{name.replace(' ', '-')}"))
        else:
            kind = "n" if name in ("seconds", "tokens") or name.startswith(SCORE) else f"c-{name}"
            made.append(tag("td", cells[name], class_=kind))
    return tag("tr", *made, class_="row")


def _head(run: OpenRun, walk: Walk, shown: Sequence[str]) -> Html:
    query, cells = walk.query, []
    for words in shown:
        if words.startswith(SCORE):
            other = words.removeprefix(SCORE)
            name = link(other.replace("_", " "), walk.to(run, metric=other), title=f"Show outcomes by {other}")
            cells.append(tag("th", name, scope="col", class_="n h-score"))
            continue
        sort, place = SORTED.get(words, ""), f"h-{words.replace(' ', '-')}"
        if not sort:
            cells.append(tag("th", words, scope="col", class_=place))
            continue
        here = query.sort == sort
        arrow, order = (" ↓", "descending") if query.descending else (" ↑", "ascending")
        to = walk.to(run, sort=sort, order="down" if here and not query.descending else "")
        kind = f"n {place}" if sort in ("latency", "tokens") else place
        name = link(words + (arrow if here else ""), to)
        cells.append(tag("th", name, scope="col", class_=kind, aria_sort=order if here else None))
    return tag("thead", tag("tr", *cells))


def gallery_grid(run: OpenRun, columns: TrialColumns, rows: Sequence[int], walk: Walk, caption: Html) -> Html:
    """Return the trials of one page as pictures side by side; those out of sight are not fetched."""
    cells = [_cell(run, columns, read_line(run, columns, row), walk) for row in rows]
    told = tag("p", caption.removeprefix("<caption>").removesuffix("</caption>"), class_="muted small")
    grid = tag("ul", *cells, class_="thumbs dense" if walk.look.dense else "thumbs")
    return join((told, grid))


def _cell(run: OpenRun, columns: TrialColumns, line: Line, walk: Walk) -> Html:
    row, key = line.row, columns.key(line.row)
    sample = columns.facts[int(columns.sample[row])]
    read = columns.text("answer", row) or columns.text("reason", row) or ""
    expected = shorten(", ".join(sample.answers), 40)
    words = tag("span", f"{shorten(read, 40)} (expected {expected})" if expected else shorten(read, 40), class_="small")
    more = tag("span", f"+{line.pictures - 1}", class_="small muted") if line.pictures > 1 else None
    name = tag("span", key.sample, class_="mono small")
    outcome = outcome_tag(int(columns.outcome[row]), float(columns.value[row]))
    inside = join((_picture(run, line, columns), tag("span", outcome, " ", more), name, words))
    return tag("li", link(inside, walk.trial(run, key), title=shorten(sample.question, 200)))


def _picture(run: OpenRun, line: Line, columns: TrialColumns) -> Html:
    if not line.pictures:
        return tag("span", "no picture", class_="none muted small")
    source = trial_address(run, columns.key(line.row), "image", small=1)
    return tag("img", src=source, alt="", loading="lazy", decoding="async", width=220, height=150)
