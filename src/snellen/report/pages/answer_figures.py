"""The answers of a task to figures: by group with intervals, which option is taken for which, and where it stands."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ...core.markup import Html
from ...core.types import OFFERED, Form
from ...core.vega import quantity
from ...scoring.aggregates.means import headline_of, split
from ...scoring.gathered import Stood
from ...scoring.table import Outcome, ScoreTable, TrialColumns
from ...store.reader import RunReader
from ..written import percent_metric
from .draw import confusion_grid, interval_rows, paired_bars

MOST_GROUPS, MOST_ANSWERS, MOST_POSITIONS = 20, 12, 26
FEWEST = 10
"""With fewer trials a figure of shares says nothing."""
LOST = {
    Outcome.UNREAD: "(unparsed)",
    Outcome.FAILED: "(failed)",
    Outcome.PENDING: "(not scored)",
    Outcome.UNJUDGED: "(not judged)",
}


class Answered(NamedTuple):
    """One figure before it gets its specification: rows are all that is drawn."""

    name: str
    title: str
    caption: str
    drawing: Html
    spec: dict[str, Any]
    rows: list[dict[str, Any]]
    series: tuple[str, ...] = ()


def answer_figures(
    reader: RunReader, columns: TrialColumns, table: ScoreTable, stood: Mapping[Stood, int] | None = None
) -> Iterator[Answered]:
    """Yield what the answers of a task show, as far as it has enough of them; `stood` is read where it is not given."""
    yield from _by_group(table)
    if columns.task.form in (*OFFERED, Form.YESNO, Form.AUTO):
        yield from _confusion(columns)
        yield from _positions(read_stood(reader, columns) if stood is None else stood)


def _by_group(table: ScoreTable) -> Iterator[Answered]:
    """Yield the tag whose groups differ most, each group with its interval."""
    found = [one for one in (_spread_of(table, key) for key in table.tags) if one is not None]
    if not found:
        return
    _, key, rows = max(found, key=lambda one: (one[0], one[1]))
    more = f" Of {len(found)} tags this one differs most; the others are below." if len(found) > 1 else ""
    title = f"{table.metric} by {key}"
    drawn = [(row["group"], row["value"], row["low"], row["high"], row["n"]) for row in rows]
    drawing = interval_rows(drawn, label=title)
    caption = f"Dots are means of the trials that count, lines their 95 % intervals.{more}"
    y = {"field": "group", "type": "nominal", "title": key}
    layers = [
        {"mark": "rule", "encoding": {"x": quantity("low", title=table.metric), "x2": {"field": "high"}, "y": y}},
        {"mark": "point", "encoding": {"x": quantity("value", title=table.metric), "y": y}},
    ]
    yield Answered("by-group", title, caption, drawing, {"data": {"values": rows}, "layer": layers}, rows)


def _spread_of(table: ScoreTable, key: str) -> tuple[float, str, list[dict[str, Any]]] | None:
    """Return how far the groups of a tag are apart, and their rows; None where they are no shares, or too few."""
    if not 2 <= len(table.tags[key][1]) <= MOST_GROUPS:
        return None
    rows = [_group_row(value, part) for value, part in split(table, key)]
    known = [row["value"] for row in rows if row["value"] is not None and row["n"] >= FEWEST]
    shares = all(percent_metric(table.metric, row | {"ci95": _ends(row)}) for row in rows)
    return (max(known) - min(known), key, rows) if len(known) > 1 and shares else None


def _ends(row: Mapping[str, Any]) -> tuple[float, float] | None:
    return None if row["low"] is None else (row["low"], row["high"])


def _group_row(value: str, part: ScoreTable) -> dict[str, Any]:
    estimate = headline_of(part)[part.metric]
    low, high = estimate.ci95 or (None, None)
    return {"group": value, "value": estimate.value, "low": low, "high": high, "n": estimate.n}


def _confusion(columns: TrialColumns) -> Iterator[Answered]:
    """Yield which answer was read for which, where there are few enough to be told apart."""
    expected = [sample.answers[0] if len(sample.answers) == 1 else "" for sample in columns.facts]
    names = sorted(set(expected))
    if not 2 <= len(names) <= MOST_ANSWERS or len(columns) < FEWEST or "" in names:
        return
    counts = _read_for(columns, expected)
    reads = [*names, *sorted({read for _, read in counts} - set(names))]
    if len(reads) <= MOST_ANSWERS + len(LOST):
        yield _confusion_figure(counts, names, reads)


def _read_for(columns: TrialColumns, expected: Sequence[str]) -> Counter[tuple[str, str]]:
    """Count every trial by what was expected and what was read, or why nothing was."""
    counts: Counter[tuple[str, str]] = Counter()
    for row, outcome in enumerate(columns.outcome.tolist()):
        read = LOST.get(Outcome(outcome)) or columns.text("answer", row) or "(none)"
        counts[expected[int(columns.sample[row])], read] += 1
    return counts


def _confusion_figure(counts: Counter[tuple[str, str]], names: Sequence[str], reads: Sequence[str]) -> Answered:
    totals = {name: sum(counts[name, read] for read in reads) or 1 for name in names}
    cells = [(read, name, counts[name, read], counts[name, read] / totals[name]) for name in names for read in reads]
    drawing = confusion_grid(cells, label="Confusion: expected by row, read by column")
    rows = [{"expected": name, "read": read, "trials": count, "share": share} for read, name, count, share in cells]
    axes = {name: {"field": name, "type": "nominal"} for name in ("read", "expected")}
    encoding = {"x": axes["read"], "y": axes["expected"], "color": quantity("share")}
    spec = {"data": {"values": rows}, "mark": "rect", "encoding": encoding}
    caption = "A row is what was expected, a column what was read; shares are of the row, all trials included."
    return Answered("confusion", "What is taken for what", caption, drawing, spec, rows)


class _Shown(msgspec.Struct):
    """The part of a request that says where an option stood, as it is written: many requests show the same."""

    shown: msgspec.Raw = msgspec.Raw(b"[]")
    marks: msgspec.Raw = msgspec.Raw(b"[]")


def _positions(stood: Mapping[Stood, int]) -> Iterator[Answered]:
    """Yield where the chosen options stood beside where the right ones did: a habit shows as a difference."""
    chosen: Counter[int] = Counter()
    right: Counter[int] = Counter()
    marks: dict[int, Counter[str]] = defaultdict(Counter)
    for (read, expected, marked), count in stood.items():
        chosen[read] += count
        right[expected] += count
        for number, mark in enumerate(marked):
            marks[number][mark] += count
    yield from _position_figure(chosen, right, marks)


def read_stood(reader: RunReader, columns: TrialColumns) -> Mapping[Stood, int]:
    """Read from run.db what `GatheredTask.stood` has gathered while a task was scored."""
    counts: Counter[Stood] = Counter()
    decode = msgspec.json.Decoder(tuple[str, ...]).decode
    for (shown_as, marked_as, read, expected), count in Counter(_choices(reader, columns)).items():
        shown = decode(shown_as)
        if read in shown and expected in shown:
            counts[shown.index(read), shown.index(expected), decode(marked_as)] += count
    return counts


def _choices(reader: RunReader, columns: TrialColumns) -> Iterator[tuple[bytes, bytes, str, str]]:
    """Yield of scored trials the options and marks as written, which option was read and which one was right."""
    decode = msgspec.json.Decoder(_Shown).decode
    scored = np.flatnonzero((columns.outcome <= Outcome.WRONG) & (columns.answer >= 0))
    read = dict(zip(columns.row[scored].tolist(), columns.answer[scored].tolist(), strict=True))
    right = dict(zip(columns.row[scored].tolist(), columns.sample[scored].tolist(), strict=True))
    for row, body in reader.rows("SELECT rowid, request FROM predictions WHERE +task = ?", (columns.task.name,)):
        answers = columns.facts[right[row]].answers if row in right else ()
        if len(answers) == 1:
            request = decode(body)
            yield bytes(request.shown), bytes(request.marks), columns.answers[read[row]], answers[0]


def _position_figure(
    chosen: Counter[int], right: Counter[int], marks: Mapping[int, Counter[str]]
) -> Iterator[Answered]:
    total, count = sum(chosen.values()), max((*chosen, *right), default=-1) + 1
    if total < FEWEST or not 2 <= count <= MOST_POSITIONS:
        return
    names = [_position_name(number, marks.get(number)) for number in range(count)]
    pairs = [(name, right[number] / total, chosen[number] / total) for number, name in enumerate(names)]
    series = ("the right option stands here", "this position was chosen")
    drawing = paired_bars(pairs, label="Share of right and of chosen options by position")
    rows = [
        {"position": name, "series": one, "share": share}
        for name, *shares in pairs
        for one, share in zip(series, shares, strict=True)
    ]
    widest = max(pairs, key=lambda pair: abs(pair[2] - pair[1]))
    words = f"{widest[0]} is chosen in {widest[2]:.0%} of {total:,} readable replies and right in {widest[1]:.0%}"
    x = {"field": "position", "type": "nominal"}
    encoding = {"x": x, "xOffset": {"field": "series"}, "y": quantity("share"), "color": {"field": "series"}}
    spec = {"data": {"values": rows}, "mark": "bar", "encoding": encoding}
    caption = f"A position chosen much more often than it is right is a habit. {words}."
    yield Answered("positions", "Does it favour a position?", caption, drawing, spec, rows, series)


def _position_name(number: int, marks: Counter[str] | None) -> str:
    """Return the mark of a position, if all trials had the same there; else its number."""
    return next(iter(marks)) if marks and len(marks) == 1 else f"{number + 1}."
