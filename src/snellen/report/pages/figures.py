"""A stored task to its figures: each a drawing for the page, its rows as data, and the way to a Vega-Lite file."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.markup import Html
from ...core.types import OFFERED, Estimate, Form, Sample, Score
from ...core.variants import format_variant, parse_variant
from ...core.vega import Spec
from ...scoring.aggregates.calibration import reliability
from ...scoring.aggregates.counted import counted
from ...scoring.aggregates.means import headline_of, split
from ...scoring.aggregates.robustness import curve, ladders
from ...scoring.stored import read_costs
from ...scoring.tables.gathered import GatheredTask, OptionPositions
from ...scoring.tables.table import LIKELIHOOD, Costs, Outcome, ScoreTable, TrialColumns
from ...stats.intervals import estimate_mean
from ...store.reader import RunReader
from ..written import percent_metric
from . import vega
from .draw import Axis, Point, Series, bars, binned, confusion_grid, heat, interval_rows, paired_bars, plot

MOST_GROUPS, MOST_ANSWERS, MOST_POSITIONS = 20, 12, 26
FEWEST = 10
"""With fewer trials a figure of shares says nothing."""
LOST = {
    Outcome.UNREAD: "(unread)",
    Outcome.FAILED: "(failed)",
    Outcome.PENDING: "(not scored)",
    Outcome.UNJUDGED: "(not judged)",
}


Rows = list[dict[str, Any]]
LATENCY = "latency"
"""The figure that never stands first: it says nothing of how good a model is."""
GRIDS = (("length", "depth"), ("pages", "depth"), ("column", "row"))
"""Pairs of tags that make a map."""


class Figure(Struct, frozen=True):
    """One figure. `rows` are all that is drawn, so that anyone can draw it again."""

    name: str
    title: str
    caption: str
    drawing: Html
    rows: Rows
    make_spec: Callable[[], Spec] = dict
    series: tuple[str, ...] = ()

    @property
    def spec(self) -> Spec:
        """Return it as a Vega-Lite specification, made when somebody asks for one: pages show the drawing."""
        return self.make_spec()


def figures_of(
    reader: RunReader, columns: TrialColumns, table: ScoreTable | None, gathered: GatheredTask | None = None
) -> list[Figure]:
    """Return every figure the task has data for, the most telling first; what was `gathered` is not read again."""
    found: list[Figure] = []
    if "axis" in columns.tags:
        found += _acuity(reader, columns)
    if "exam" in columns.task.scorers:
        found += _examined(reader, columns)
    several = len(columns.variants) > 1
    if table is not None:
        if several:
            found += _robustness(table)
        found += [_map(table, *pair) for pair in GRIDS if all(name in table.tags for name in pair)]
        if len(columns) >= FEWEST:
            asked = counted(columns)  # what arms answer is no confusion of the model's
            positions = gathered.positions() if gathered and asked is columns else None
            found += answer_figures(reader, asked, table, positions)
    if gathered is None or LIKELIHOOD in gathered.confidences:
        found += _calibration(reader, columns)
    spent = gathered.costs() if gathered else read_costs(reader, columns)
    if several:
        found += _by_frames(columns, spent)
    return [*found, *_latency(spent)]


def answer_figures(
    reader: RunReader,
    columns: TrialColumns,
    table: ScoreTable,
    positions: Mapping[OptionPositions, int] | None = None,
) -> Iterator[Figure]:
    """Yield what the answers of a task show, as far as it has enough of them; `positions` may be given, or are read."""
    yield from _by_group(table)
    if columns.task.form in (*OFFERED, Form.YESNO, Form.AUTO):
        yield from _confusion(columns)
        yield from _positions(read_option_positions(reader, columns) if positions is None else positions)


def _by_group(table: ScoreTable) -> Iterator[Figure]:
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
    yield Figure("by-group", title, caption, drawing, rows, lambda: vega.group_points(rows, table.metric, key))


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


def _confusion(columns: TrialColumns) -> Iterator[Figure]:
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


def _confusion_figure(counts: Counter[tuple[str, str]], names: Sequence[str], reads: Sequence[str]) -> Figure:
    totals = {name: sum(counts[name, read] for read in reads) or 1 for name in names}
    cells = [(read, name, counts[name, read], counts[name, read] / totals[name]) for name in names for read in reads]
    drawing = confusion_grid(cells, label="Confusion: expected by row, read by column")
    rows = [{"expected": name, "read": read, "trials": count, "share": share} for read, name, count, share in cells]
    caption = "A row is what was expected, a column what was read; shares are of the row, all trials included."
    return Figure("confusion", "What is taken for what", caption, drawing, rows, lambda: vega.confusion(rows))


class _Shown(msgspec.Struct):
    """The part of a request that says where an option stood, as it is written: many requests show the same."""

    shown: msgspec.Raw = msgspec.Raw(b"[]")
    marks: msgspec.Raw = msgspec.Raw(b"[]")


def _positions(positions: Mapping[OptionPositions, int]) -> Iterator[Figure]:
    """Yield where the chosen options stood beside where the right ones did: a habit shows as a difference."""
    chosen: Counter[int] = Counter()
    right: Counter[int] = Counter()
    marks: dict[int, Counter[str]] = defaultdict(Counter)
    for (read, expected, marked), count in positions.items():
        chosen[read] += count
        right[expected] += count
        for number, mark in enumerate(marked):
            marks[number][mark] += count
    yield from _position_figure(chosen, right, marks)


def read_option_positions(reader: RunReader, columns: TrialColumns) -> Mapping[OptionPositions, int]:
    """Read from run.db what `GatheredTask.positions` has gathered while a task was scored."""
    counts: Counter[OptionPositions] = Counter()
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


def _position_figure(chosen: Counter[int], right: Counter[int], marks: Mapping[int, Counter[str]]) -> Iterator[Figure]:
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
    caption, title = (
        f"A position chosen much more often than it is right is a habit. {words}.",
        "Does it favour a position?",
    )
    yield Figure("positions", title, caption, drawing, rows, lambda: vega.bars_of_series(rows, "position"), series)


def _position_name(number: int, marks: Counter[str] | None) -> str:
    """Return the mark of a position, if all trials had the same there; else its number."""
    return next(iter(marks)) if marks and len(marks) == 1 else f"{number + 1}."


AXES = ("frames", "fps")
"""Axes of variants whose value is a number of frames, or of frames a second."""


class FramePoint(NamedTuple):
    """One variant: the rest of its axes, how many frames it shows, its metric, and its mean tokens, both ways."""

    series: str
    frames: float
    estimate: Estimate
    tokens: float | None


def frame_points(columns: TrialColumns, costs: Costs, axis: str) -> list[FramePoint]:
    """Return the variants that differ in a number of frames, in order; none where there are not two of a kind."""
    found = []
    for code, variant in enumerate(columns.variants):
        axes = dict(parse_variant(variant))
        number = _number(axes.pop(axis, ""))
        rows = np.flatnonzero(columns.variant == code)
        if number is not None and rows.size:
            found.append(FramePoint(format_variant(axes), number, _estimate(columns, rows), _tokens(costs, rows)))
    several = {point.series for point in found if sum(point.series == other.series for other in found) > 1}
    return sorted((point for point in found if point.series in several), key=lambda point: (point.series, point.frames))


def _estimate(columns: TrialColumns, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Estimate:
    scored = rows[columns.scored[rows]]
    return estimate_mean(columns.value[scored], columns.cluster[scored], n=int(scored.size))


def _tokens(costs: Costs, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float | None:
    """Return the mean tokens of question and reply; frames are in the question. None where one of them is not known."""
    asked = costs.input_tokens[rows]
    return float((asked + costs.tokens[rows]).mean()) if asked.size and bool((asked > 0).all()) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def curve_rows(points: list[FramePoint], x: str) -> Iterator[dict[str, float | str | None]]:
    """Yield the points of a curve over `frames` or `tokens`, as they are drawn; what has no value is left out."""
    for point in points:
        place = point.frames if x == "frames" else point.tokens
        if point.estimate.value is not None and place is not None:
            low, high = point.estimate.ci95 or (None, None)
            yield {"series": point.series, "x": place, "value": point.estimate.value, "low": low, "high": high}


def _acuity(reader: RunReader, columns: TrialColumns) -> Iterator[Figure]:
    samples = {sample.id: sample for sample in reader.samples(columns.task.name)}
    scores = reader.scores(columns.task.name)
    pairs = [(samples[score.key.sample], score) for score in scores if score.key.sample in samples]
    small = _acuity_figure(pairs, "base", "How small can it read?", "glyph height, px")
    faint = _acuity_figure(pairs, "contrast", "How faint can it read?", "contrast of the ink")
    yield from (figure for figure in (small, faint) if figure is not None)


def _acuity_figure(pairs: list[tuple[Sample, Score]], axis: str, title: str, name: str) -> Figure | None:
    from ...scoring.aggregates.acuity import curve_of

    points, fitted = curve_of(pairs, axis)
    if not points:
        return None
    low, high = points[0][0], max(points[-1][0], points[0][0] * 1.01)
    line = _logistic(fitted, low, high) if fitted else []
    series = Series("read", [Point(*point) for point in points], line)
    half = fitted[0] if fitted and low <= fitted[0] <= high else None
    words = f"Half is read at {half:.3g} ({name})." if half else "No threshold within the tested range."
    axes = Axis(name, low, high, log=True), Axis("read", 0, 1, percent=True)
    drawing = plot([series], *axes, label=f"{title} {words}", mark=half)
    drawn = (("measured", points), ("fit", line))
    rows: Rows = [{"series": series, "x": x, "value": y} for series, pairs in drawn for x, y in pairs]
    labels = {"x": name, "value": "read"}
    caption = f"Share of glyphs read; dots are measured, the line is a fitted logistic. {words}"
    spec = partial(vega.curves, _unbounded(rows), "x", title=title, labels=labels, log_x=True)
    return Figure(f"acuity-{axis}", title, caption, drawing, rows, spec)


def _examined(reader: RunReader, columns: TrialColumns) -> Iterator[Figure]:
    """Yield the trials of an eye exam by level; the curve with its band is in prescription.html."""
    samples = {sample.id: sample for sample in reader.samples(columns.task.name)}
    rows = [
        (float(str(samples[score.key.sample].tags["level"])), score.detail["right"], score.detail["glyphs"])
        for score in reader.scores(columns.task.name)
        if "right" in score.detail and score.key.sample in samples
    ]
    points = binned([row for row in rows if row[0] > 0])
    if len(points) < 2:
        return
    title, name = f"{columns.task.title}: right by level", "level"
    axes = Axis(name, points[0][0], points[-1][0], log=True), Axis("right", 0, 1, percent=True)
    drawing = plot([Series("right", [Point(level, share) for level, share, _ in points])], *axes, label=title)
    drawn: Rows = [{"series": "measured", "x": level, "value": share} for level, share, _ in points]
    labels = {"x": name, "value": "right"}
    spec = partial(vega.curves, _unbounded(drawn), "x", title=title, labels=labels, log_x=True)
    caption = "Share right at the levels the exam chose, chance included; the fitted curve is in prescription.html."
    yield Figure("exam-curve", title, caption, drawing, drawn, spec)


def _logistic(fitted: tuple[float, float], low: float, high: float) -> list[tuple[float, float]]:
    threshold, slope = fitted
    exponents = ((x, -slope * (math.log(x) - math.log(threshold))) for x in np.geomspace(low, high, 80))
    return [(float(x), 1.0 / (1.0 + math.exp(min(50.0, exponent)))) for x, exponent in exponents]


def _unbounded(rows: Rows) -> Rows:
    return [row | {"low": None, "high": None} for row in rows]


def _robustness(table: ScoreTable) -> Iterator[Figure]:
    series: list[Series] = []
    rows: Rows = []
    metric = table.metric
    for ladder in ladders(table):
        points = []
        for severity, estimate in curve(ladder).items():
            if estimate.value is not None:
                value, (low, high) = estimate.value, estimate.ci95 or (None, None)
                points.append(Point(float(severity), value, low, high))
                rows.append({"series": ladder.family, "severity": severity, "value": value, "low": low, "high": high})
        series.append(Series(ladder.family, points))
    if rows:
        top = max(row["severity"] for row in rows)
        axes = Axis("severity", 0, top), Axis(metric, 0, 1, percent=True)
        drawing = plot(series, *axes, label=f"{metric} by severity of each degradation")
        spec = partial(vega.curves, rows, "severity", title="Robustness", labels={"value": metric})
        caption = "Severity 0 is the untouched picture; bands are 95 % intervals."
        names = tuple(one.name for one in series)
        yield Figure("robustness", "What degradation does", caption, drawing, rows, spec, names)


def _by_frames(columns: TrialColumns, costs: Costs) -> Iterator[Figure]:
    """Yield what more frames of a video bring, and what they cost."""
    for axis in AXES:
        points = frame_points(columns, costs, axis)
        name = {"frames": "frames shown", "fps": "frames a second"}[axis]
        for x, label in (("frames", name), ("tokens", "tokens a question")):
            rows: Rows = list(curve_rows(points, x))
            if len({row["x"] for row in rows}) < 2:
                continue
            names = tuple(dict.fromkeys(row["series"] for row in rows))
            series = [
                Series(one, [Point(r["x"], r["value"], r["low"], r["high"]) for r in rows if r["series"] == one])
                for one in names
            ]
            low, high = min(row["x"] for row in rows), max(row["x"] for row in rows)
            title = f"{columns.metric} against {label}"
            axes = Axis(label, low, high, log=True), Axis(columns.metric, 0, 1, percent=True)
            labels = {"x": label, "value": columns.metric}
            spec = partial(vega.curves, rows, "x", title=title, labels=labels, log_x=True)
            caption = "One point a variant; the band is the 95 % interval."
            yield Figure(f"{axis}-{x}", title, caption, plot(series, *axes, label=title), rows, spec, names)


def _calibration(reader: RunReader, columns: TrialColumns) -> Iterator[Figure]:
    confidences, right = _confidences(reader, columns)
    if len(right) < 2:
        return
    filled = [part for part in reliability(confidences, right) if part.n]
    points = [Point(part.confidence or 0.0, part.accuracy or 0.0) for part in filled]
    measured = ({"confidence": part.confidence, "value": part.accuracy, "n": part.n} for part in filled)
    rows: Rows = [{"series": "measured", **part} for part in measured]
    series = [Series("measured", points), Series("perfectly calibrated", [], [(0.0, 0.0), (1.0, 1.0)])]
    label = f"Reliability: {columns.metric} against confidence, {len(right):,} trials"
    axes = Axis("confidence", 0, 1, percent=True), Axis(columns.metric, 0, 1, percent=True)
    drawing = plot(series, *axes, label=label)
    labels = {"value": columns.metric}
    spec = partial(vega.curves, _unbounded(rows), "confidence", title="Reliability", labels=labels)
    caption = "Points below the diagonal: surer than right. Points above: less sure than it could be."
    names = tuple(one.name for one in series)
    yield Figure("calibration", "Does it know when it is right?", caption, drawing, rows, spec, names)


_CONFIDENCES = (
    "SELECT c.value, c.detail FROM scores c JOIN samples s ON s.task = c.task AND s.id = c.sample "
    "WHERE c.task = ? AND c.metric = ? AND c.value IS NOT NULL AND instr(c.detail, CAST('\"confidence\"' AS BLOB)) "
    "ORDER BY s.position, c.variant, c.repeat, c.rowid"
)


def _confidences(reader: RunReader, columns: TrialColumns) -> tuple[list[float], list[float]]:
    rows = reader.rows(_CONFIDENCES, (columns.task.name, columns.metric))
    details = ((value, msgspec.json.decode(detail)) for value, detail in rows)
    known = [(float(detail["confidence"]), value) for value, detail in details if "confidence" in detail]
    return [pair[0] for pair in known], [pair[1] for pair in known]


def _map(table: ScoreTable, across: str, down: str) -> Figure:
    cells = []
    for x, part in split(table, across):
        for y, cell in split(part, down):
            scored = cell.value[cell.scored]
            cells.append((x, y, float(scored.mean()) if scored.size else None, len(cell)))
    cells.sort(key=lambda cell: (_as_number(cell[0]), _as_number(cell[1])))
    rows: Rows = [{across: x, down: y, "value": value, "n": n} for x, y, value, n in cells]
    title = f"{table.metric} by {across} and {down}"
    drawing = heat(cells, x_name=across, y_name=down, label=title)
    caption = "Each cell: mean of its scored trials, and how many."
    return Figure(f"map-{across}-{down}", title, caption, drawing, rows, lambda: vega.heat_map(rows, across, down))


def _as_number(value: str) -> tuple[float, str]:
    try:
        return float(value), ""
    except ValueError:
        return math.inf, value


def quantile(ordered: NDArray[np.float64], share: float) -> float:
    """Return what `np.quantile` returns, for values already in order; numpy's own loads its masked arrays first."""
    place = share * (ordered.size - 1)
    below = int(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, ordered.size - 1)])
    part = place - below
    return high - (high - low) * (1.0 - part) if part >= 0.5 else low + (high - low) * part


def _latency(costs: Costs) -> Iterator[Figure]:
    known = np.sort(costs.latency_s[~np.isnan(costs.latency_s)])
    if known.size < 2 or known[-1] <= 0:
        return
    top = quantile(known, 0.99) or float(known[-1])
    counts, edges = np.histogram(np.minimum(known, top), bins=min(24, max(5, known.size // 4)), range=(0.0, top))
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    triples = [(float(low), float(high), int(count)) for low, high, count in bins]
    rows: Rows = [{"from_s": low, "to_s": high, "trials": count} for low, high, count in triples]
    median, tail = quantile(known, 0.5), quantile(known, 0.95)
    words = f"Median {median:.3g} s, 95th percentile {tail:.3g} s over {known.size:,} replies that were not cached."
    drawing = bars(triples, Axis("seconds", 0.0, top), label=f"Histogram of latency. {words}")
    yield Figure(LATENCY, "How long a reply takes", words, drawing, rows, lambda: vega.seconds(rows))
