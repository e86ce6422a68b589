"""The trials one looks through to pages: filters, groups, a table or a gallery of which every row is a link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.markup import Child, Html, join, shorten, tag
from ...core.types import Failure, Timing, TrialKey, Usage
from ...scoring.aggregates.means import headline_of, split
from ...scoring.tables.table import ScoreTable, TrialColumns
from ..pages import draw
from ..pages.parts import DRAWN, captioned, head, numbers, row_outcome, scrolled
from ..patterns import PatternProblem
from ..query import SEARCHED, Query, Rows
from ..written import RESTS_ON, percent_metric, rests_on, written, written_interval
from .run_library import OpenRun
from .shell import EXPORTED, address, choice, link, notes_notice, page_of, picture, progress_bar, run_crumbs, shell
from .walk import Walk, Walked, chosen_groups, filter_form, outcome_buttons, walk_through

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
        "outcome": row_outcome(columns, row),
        "trial": (_more(columns, columns.key(row)), tag("div", row_outcome(columns, row), class_="narrow")),
        "question": tag("span", question, class_="muted") if question == AS_ABOVE else question,
        "expected": shorten(", ".join(sample.answers), 60),
        "read as": shorten(read, 60),
        "rule": columns.text("rule", row) or "",
        "reply": shorten(text, 200),
        "seconds": f"{body.timing.done - body.timing.sent:.2f}" if body.timing else "",
        "tokens": f"{body.usage.output_tokens:,}" if body.usage and body.usage.output_tokens else "",
    }


def _more(columns: TrialColumns, key: TrialKey) -> Html | None:
    variant = key.variant if key.variant != "base" else ""
    repeat = f"#{key.repeat + 1}" if columns.task.repeats > 1 else ""
    words = " ".join(filter(None, (variant, repeat)))
    return tag("div", words, class_="muted small") if words else None


def small_picture(run: OpenRun, key: TrialKey, count: int) -> Html | None:
    """Return the first picture, small; it is fetched when it comes into sight."""
    if not count:
        return None
    more = tag("span", f"+{count - 1}", class_="small muted", title=f"{count} pictures") if count > 1 else None
    return join((picture(run, key, decoding="async", width=88, height=60), more))


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
    outcome = row_outcome(columns, row)
    inside = join((_picture(run, line, columns), tag("span", outcome, " ", more), name, words))
    return tag("li", link(inside, walk.trial(run, key), title=shorten(sample.question, 200)))


def _picture(run: OpenRun, line: Line, columns: TrialColumns) -> Html:
    if not line.pictures:
        return tag("span", "no picture", class_="none muted small")
    return picture(run, columns.key(line.row), decoding="async", width=220, height=150)


MOST_GROUPS = 200


def group_chart(run: OpenRun, walk: Walk) -> Iterator[Child]:
    """Yield the groups of the tag that was chosen, over all outcomes of the trials that the other filters leave."""
    key = walk.look.by
    if not key or key not in run.groups(walk.task):
        return
    every = walk._replace(query=msgspec.structs.replace(walk.query, outcome="all"))
    columns, rows, _ = walk_through(run, every)
    order = np.lexsort((columns.repeat[rows], columns.variant[rows], columns.sample[rows]))
    table = columns.take(rows[order])  # the order that aggregates read
    parts = dict(_by_group(table) if key == "group" else split(table, key))
    shown = list(parts.items())[:MOST_GROUPS]
    body = [_group_row(run, walk, key, value, part) for value, part in shown]
    more = f", the first {MOST_GROUPS} of {len(parts):,}" if len(parts) > MOST_GROUPS else ""
    caption = f"{columns.metric or 'trials'} by {key}, all outcomes of the trials that the other filters leave{more}"
    names = head(key, ("value", "n"), ("95 % interval", "n"), DRAWN, *((name, "n") for name in RESTS_ON))
    yield captioned(caption, names, body, class_="scroll card bygroup")


def _by_group(table: ScoreTable) -> Iterator[tuple[str, ScoreTable]]:
    codes, texts = table.groups or (np.full(len(table.samples), -1, np.int32), ())
    of_trial = codes[table.sample]
    order = np.argsort(of_trial, kind="stable")
    found, starts = np.unique(of_trial[order], return_index=True)
    named: dict[str, list[NDArray[np.int64]]] = {}
    for code, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        named.setdefault((texts[code] if code >= 0 else "") or "none", []).append(rows)
    for name in sorted(named):
        yield name, table.take(np.sort(np.concatenate(named[name])))


def _group_row(run: OpenRun, walk: Walk, key: str, value: str, part: ScoreTable) -> Html:
    estimate = msgspec.to_builtins(headline_of(part)[part.metric])
    chosen = [one for one in chosen_groups(walk.query) if not one.startswith(f"{key}=")]
    to = walk.to(run, group=[*chosen, f"{key}={value}"])
    share = percent_metric(part.metric, estimate)
    drawn = draw.interval(estimate["value"], estimate.get("ci95"), 0.0, 1.0) if share else ""
    shown = (written(part.metric, estimate), written_interval(part.metric, estimate))
    name = tag("th", link(value, to), scope="row")
    counts = numbers(f"{count:,}" for count in rests_on(estimate))
    return tag("tr", name, *numbers(shown), tag("td", drawn, class_="bar"), *counts)


def look_bar(run: OpenRun, walk: Walk) -> Html:
    """Return the ways to show the same trials otherwise; filters and order stay."""
    look = walk.look
    views = [
        _way("Table", walk.to(run, view=""), here=not look.gallery),
        _way("Gallery", walk.to(run, view="gallery"), here=look.gallery),
        _way("Roomy", walk.to(run, dense=""), here=not look.dense),
        _way("Dense", walk.to(run, dense="1"), here=look.dense),
    ]
    columns = None if look.gallery else _columns(run, walk)
    return tag(
        "div", tag("nav", *views, aria_label="Show as", class_="looks"), columns, _by(run, walk), class_="lookbar"
    )


def _way(words: str, to: str, *, here: bool) -> Html:
    return link(words, to, class_="button quiet small", aria_current="true" if here else None)


def _kept(walk: Walk, *but: str) -> list[Html]:
    told = {"task": walk.task, **{key: value for key, value in walk.kept.items() if key not in but}}
    groups = told.pop("group", [])
    values = [*told.items(), *(("group", one) for one in (groups if isinstance(groups, list) else []))]
    return [tag("input", type="hidden", name=name, value=str(value)) for name, value in values]


def _columns(run: OpenRun, walk: Walk) -> Html:
    """Return the choice of columns; all of them are none chosen."""
    every = all_columns(score_columns(run.columns(walk.task, walk.metric)))
    chosen = walk.look.columns or every
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", name="columns", value=name, checked=name in chosen),
            f" {name.removeprefix(SCORE)}",
        )
        for name in every
        if name != "trial"
    ]
    form = tag("form", *_kept(walk, "columns"), *boxes, tag("button", "Show these"), method="get", action=_to(run))
    return tag("details", tag("summary", "Columns"), form, class_="choice")


def _by(run: OpenRun, walk: Walk) -> Html | None:
    keys = list(run.groups(walk.task))
    if not keys:
        return None
    options = {key: key for key in keys}
    label = tag("label", "group by ", choice("by", options, walk.look.by, blank="nothing"))
    fields = (*_kept(walk, "by"), label, tag("button", "Group", class_="quiet"))
    return tag("form", *fields, method="get", action=_to(run), data_filters=True)


def _to(run: OpenRun) -> str:
    return f"/run/{run.key}/trials"


def browse_page(run: OpenRun, walk: Walk, wanted: int = 1) -> Html:
    """Return one page of the trials that match."""
    (columns, rows, counts), problem = _found(run, walk)
    page = page_of(rows.size, walk.look.page, wanted)
    shown = rows[page.rows].tolist()
    show = gallery_grid if walk.look.gallery else trial_table
    table = show(run, columns, shown, walk, _caption(columns, rows, walk.query)) if shown else None
    everything = link("Show all", address(f"/run/{run.key}/trials", task=walk.task))
    ways = page.ways(lambda number: walk.to(run, page=number), label="Pages of trials")
    progress = run.progress()
    parts = [
        tag("h1", f"Trials of {walk.task}"),
        progress_bar(run),
        notes_notice(run),
        outcome_buttons(run, walk, counts),
        _folded(filter_form(run, columns, walk, counts), walk),
        look_bar(run, walk),
        *(() if problem else group_chart(run, walk)),
        ways,
        problem or table or tag("p", "No trial matches. ", everything),
        ways,
    ]
    live = None if progress.complete else address("/state", run=run.key)
    return shell(f"Trials of {run.name}", parts, crumbs=run_crumbs(run, "trials", task=walk.task), live=live)


def _folded(form: Html, walk: Walk) -> Html:
    """Return the form in a fold that only a phone shows: there it is shut where nothing is filtered."""
    kept = {*walk.kept} - {"metric", "sort", "order", "outcome", *walk.look.kept}
    return tag("details", tag("summary", "Filters"), form, open=True, class_="filterfold", data_fold=not kept)


def _found(run: OpenRun, walk: Walk) -> tuple[Walked, Html | None]:
    """Return what the walk finds; of a pattern that cannot be tried nothing, and why: its form stays, to be mended."""
    try:
        return walk_through(run, walk), None
    except PatternProblem as error:
        rest = walk_through(run, walk._replace(query=structs.replace(walk.query, text="")))
        return rest._replace(rows=rest.rows[:0]), tag(
            "p", f"Nothing was looked for: {error}", class_="notice", role="alert"
        )


def _caption(columns: TrialColumns, rows: Rows, query: Query) -> Html:
    told = f"{rows.size:,} of {len(columns):,} trials"
    searched = f"; the text was looked for in ids, questions and the first {SEARCHED:,} characters of each reply"
    return tag("caption", told + (searched if query.text else ""))
