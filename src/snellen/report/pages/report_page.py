"""A stored run to report.html: one file that needs no network, no script and no server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.builtins import parts_of
from ...core.errors import SnellenError
from ...core.markup import Child, Html, join, shorten, tag
from ...core.registry import Registry
from ...core.tasks import RunHeader
from ...core.text import plural
from ...scoring.aggregates.counted import counted
from ...scoring.aggregates.headline import headline
from ...scoring.aggregates.summary import summarize
from ...scoring.stored import read_columns
from ...scoring.tables.gathered import GatheredTask
from ...scoring.tables.table import Outcome, TrialColumns
from ...store.reader import RunReader
from ..files import write_atomically
from ..query import rows_of_outcome
from ..stored_results import Results, read_results
from ..terminal import SURENESS, sureness_cells
from ..written import RESTS_ON, percent_metric, protocol_lines, reading_name, rests_on, written, written_interval
from . import draw
from .gallery import Budget, gallery, read_trial
from .ledger import Note, read_notes, wrong_gold
from .overview import TaskOverview, overview_of
from .parts import (
    DRAWN,
    captioned,
    cost_lines,
    data_table,
    derived_table,
    document,
    figure_card,
    figure_parts,
    group_table,
    head,
    metric_table,
    notes_table,
    numbers,
    outcome_bar,
    reply_text,
    row,
    row_outcome,
    scrolled,
    tiles,
)
from .sheet import sheet_table

if TYPE_CHECKING:
    from ...scoring.compare.paired import Comparison


def without_samples(columns: TrialColumns, left_out: Collection[str]) -> dict[str, Any]:
    """Return the metrics of a task over all its samples but some, counted as the task's own are."""
    out = np.array([name in left_out for name in columns.samples], np.bool_)
    table = counted(columns.by_sample)
    metrics: dict[str, Any] = summarize({columns.metric: table.take(~out[table.sample])})["metrics"]
    return metrics


def second_headline(
    result: Mapping[str, Any], left_out: Collection[str], columns_by: Callable[[str], TrialColumns]
) -> Html | None:
    """Return the headline without the marked samples, in words beside the first; None where none is marked.

    `columns_by` returns the trials of the task by a metric: that of the headline need not be its first.
    """
    columns = columns_by(headline(result)[0] or "")
    marked = [name for name in columns.samples if name in left_out]
    if not marked:
        return None
    name, first = headline(result)
    told = f"{plural(len(marked), 'sample')} marked as having a wrong gold answer"
    again = without_samples(columns, marked).get(name or "")
    if name is None or again is None or again["value"] is None:
        return tag("p", f"{told}; {name or 'the headline'} cannot be counted without them.", class_="notice calm")
    words = f"Without {told}: {name} {written(name, again)}"
    interval = f" [{written_interval(name, again)}]" if again.get("ci95") else ""
    with_them = f" (with them {written(name, first)}, n {first['n']:,})"
    return tag("p", tag("b", words), f"{interval}, n {again['n']:,}{with_them}", class_="notice calm second")


PICTURE_BYTES = 2_000_000
"""How much of the file pictures may take."""
EVERY_REPLY = 150
"""Up to so many trials are listed in the file itself."""
CALM = {"questions": "f1", "variants": "f3", "sampling": "f2"}


def write_report(
    run: RunReader,
    *,
    results: Results | None = None,
    gathered: Mapping[str, GatheredTask] = MappingProxyType({}),
    picture_bytes: int = PICTURE_BYTES,
    compared: Mapping[str, Sequence[Comparison]] | None = None,
    registry: Registry | None = None,
) -> Path:
    """Write report.html beside run.db and return its path; tasks `gathered` while scored are not read again.

    `compared` is the comparison with a baseline, to stand in the report; `registry` knows what plug-ins say of tasks.
    """
    path = run.folder / "report.html"
    told: dict[str, Any] = {"picture_bytes": picture_bytes, "compared": compared, "registry": registry}
    page = render_report(run, results=results, gathered=gathered, **told)
    body = page.encode("utf-8")
    write_atomically(path, lambda file: file.write(body))
    return path


def render_report(
    run: RunReader,
    *,
    results: Results | None = None,
    gathered: Mapping[str, GatheredTask] = MappingProxyType({}),
    picture_bytes: int = PICTURE_BYTES,
    compared: Mapping[str, Sequence[Comparison]] | None = None,
    registry: Registry | None = None,
) -> str:
    """Return the whole page as text."""
    header = run.header()
    results = results or read_results(run, header)
    budget = Budget(picture_bytes)
    tasks = [overview_of(run, task, results, gathered.get(task.name)) for task in header.tasks]
    parts: list[Child] = [_masthead(header, results), *_warnings(results)]
    notes, problem = _notes(run.folder)
    parts += [problem]
    parts += [summary_table(tasks)] if len(tasks) > 1 else []
    if compared:
        parts += _baseline(compared)
    for one in tasks:
        parts += task_sections(run, one, budget, alone=len(tasks) == 1, notes=notes, registry=registry)
    parts += [_failures(run, tasks), _settings(header, results), _reproduce(header, run.folder)]
    return document(f"{header.model} – Snellen", parts)


def _baseline(compared: Mapping[str, Sequence[Comparison]]) -> Iterator[Child]:
    """Yield the tests against a baseline; A is the baseline, B this run."""
    from .comparison import pair_sheet  # most reports stand alone

    yield tag("h2", "Beside the baseline")
    for task, comparisons in compared.items():
        yield tag("div", sheet_table(pair_sheet(task, comparisons)), class_="card")


def _notes(folder: Path) -> tuple[list[Note], Html | None]:
    """Return the notes of a run; where they cannot be read, the page says so and is written all the same."""
    try:
        return read_notes(folder), None
    except SnellenError as error:
        return [], tag("p", f"Notes and marks are left out: {error}", class_="notice")


def _masthead(header: RunHeader, results: Results) -> Html:
    complete = results["status"]["complete"]
    words = "complete" if complete else ", ".join(_lacking(results))
    state = tag("li", words, class_="chip good" if complete else "chip bad")
    begun, seed = header.created.replace("T", " ").replace("+00:00", " UTC"), header.config.get("seed", 0)
    about = [begun, f"run {header.id}", f"seed {seed}", f"read as {reading_name(results)}"]
    about += [task.name for task in header.tasks]
    chips = tag("ul", state, *(tag("li", fact, class_="chip") for fact in about), class_="chips")
    title = tag("div", tag("p", "Snellen report", class_="kicker"), tag("h1", header.model), chips)
    return tag("header", draw.logo(), title, class_="masthead")


def _lacking(results: Results) -> Iterator[str]:
    """Yield what a run lacks: trials that were not asked, and replies that did not come."""
    waiting, failed = (sum(results["status"].get(name, {}).values()) for name in ("not_yet_asked", "failed"))
    if waiting:
        yield f"{plural(waiting, 'trial')} not yet asked"
    if failed:
        yield f"{plural(failed, 'call')} failed"


def _warnings(results: Results) -> Iterator[Html]:
    """Yield what a reader must know before the numbers: that there are more to come, and what the server did."""
    words = list(results["run"].get("warnings", ()))
    words += [f"Sent otherwise than asked: {change}" for change in results["run"].get("adjusted", ())]
    if not results["status"]["complete"]:
        lacking = " and ".join(_lacking(results))
        of = "Numbers below are of the replies it has. The same command continues it."
        words[:0] = [f"This run is not complete: {lacking}. {of}"]
    yield from (tag("p", text, class_="notice", role="note") for text in words)


def task_sections(
    reader: RunReader,
    one: TaskOverview,
    budget: Budget,
    *,
    alone: bool,
    notes: Sequence[Note] = (),
    registry: Registry | None = None,
) -> Iterator[Child]:
    """Yield everything about one task, in the order one asks: how good, where, why, which."""
    metrics, title = one.result["metrics"], one.task.title or one.task.name
    yield tag("h2", "Result" if alone else title)
    yield hero(one)
    if notes and (marked := wrong_gold(notes, one.task.name)):
        yield second_headline(one.result, marked, partial(_columns_by, reader, one))
    yield from kit_sections(reader, one, registry)
    yield from sureness_section(one)
    if one.other_figures:
        yield tag("div", *(figure_card(figure) for figure in one.other_figures), class_="grid")
    yield tag("h2", "All metrics")
    yield tag("div", metric_table(metrics, "Metrics with their 95 % intervals"), derived_table(metrics), class_="card")
    yield from groups_section(one)
    yield from spread_section(one)
    yield from cards_section(reader, one.columns, budget)
    if notes:
        yield from notes_table([note for note in notes if note.task == one.task.name])
    yield from _every_reply(reader, one.columns)
    yield from (data_table(figure.rows, f"Data of “{figure.title}”") for figure in one.figures)


Address = Callable[[str, str, str], str]
"""The address of the trials that a filter finds by a value in a variant."""


def kit_sections(
    reader: RunReader, one: TaskOverview, registry: Registry | None = None, to: Address | None = None
) -> Iterator[Child]:
    """Yield what kits say of a task; `to` gives the address of trials."""
    for name, section in parts_of(one.task, "section", registry):
        if found := one.result.get(name):
            yield from section(reader, one.task, found, to)


def _columns_by(reader: RunReader, one: TaskOverview, metric: str) -> TrialColumns:
    other = metric != one.columns.metric and metric in one.columns.metrics
    return read_columns(reader, one.task, metric) if other else one.columns


def cards_section(reader: RunReader, columns: TrialColumns, budget: Budget) -> Iterator[Child]:
    """Yield the trials worth looking at as cards with their pictures: those that are wrong, those nobody could read."""
    kinds = (
        (
            "wrong",
            "What it got wrong",
            "The worst trials, one a sample. What decided the answer is marked in the reply.",
        ),
        ("unread", "What could not be read", "Replies from which no answer could be read; they count as not right."),
    )
    for outcome, title, words in kinds:
        if count := int(np.count_nonzero(rows_of_outcome(columns, outcome))):
            yield tag("h2", title)
            yield tag("p", f"{words} {plural(count, 'trial')} in all.", class_="muted")
            yield gallery(reader, columns, budget, outcome=outcome)


def summary_table(tasks: Sequence[TaskOverview]) -> Html:
    """Return every task with its headline, to be seen before all the rest."""
    rows = []
    for one in tasks:
        name, estimate = headline(one.result)
        metric = name or "–"
        share = name is not None and percent_metric(metric, estimate)
        drawn = draw.interval(estimate["value"], estimate.get("ci95"), 0.0, 1.0) if share else ""
        counts = (f"{count:,}" for count in rests_on(estimate))
        numbered = (written(metric, estimate), written_interval(metric, estimate), *counts)
        cells = (tag("td", metric), *numbers(numbered), tag("td", drawn, class_="bar"))
        rows.append(row(one.task.name, *cells))
    names = head("task", "metric", ("value", "n"), ("95 % interval", "n"), *((name, "n") for name in RESTS_ON), DRAWN)
    caption = f"All {len(rows)} tasks"
    return join((tag("h2", "Summary"), tag("div", captioned(caption, names, rows), class_="card")))


def hero(one: TaskOverview, links: Html | None = None) -> Html:
    """Return the number to remember, in figures and in words, beside the most telling figure."""
    name, estimate = headline(one.result)
    counts = Counter(one.columns.outcome.tolist())
    number, _, unit = written(name or "", estimate).partition(" ")
    unit = unit or ("px" if name == "acuity_px" else "")
    interval = f"95 % interval {written_interval(name or '', estimate)}"
    words = [
        tag("p", name or "no metric yet", class_="kicker"),
        tag("p", number, tag("small", unit), class_="big"),
        tag("p", interval if estimate.get("ci95") else "No interval: too few trials.", class_="muted"),
        tag("p", in_words(name, estimate, one)),
        *(tag("p", line, class_="muted") for line in (*protocol_lines(one.result), *_notes_on_numbers(one))),
        outcome_bar(counts),
    ]
    first = one.main_figure
    drawing = tag("figure", *figure_parts(first, links)) if first else None
    kind = "hero" if first else "hero alone"
    return tag("div", tag("div", tag("div", *words), drawing, class_=kind), class_="card")


def _notes_on_numbers(one: TaskOverview) -> list[str]:
    """Return what must be read beside the numbers: a judge that does not compare, a figure that could not be made.

    Advice on the spread has a place of its own.
    """
    notes = one.result.get("notes")
    said = notes if isinstance(notes, list) else []
    return [str(note) for note in said if not (one.advice and str(note).endswith(one.advice))]


def in_words(name: str | None, estimate: Mapping[str, Any], one: TaskOverview) -> str:
    """Return the headline as one sentence."""
    if name is None or estimate.get("value") is None:
        return f"{plural(len(one.columns), 'trial')} stored; none gives a value yet."
    what = "Half of the glyphs are read at a height of" if name == "acuity_px" else f"The {name.replace('_', ' ')} is"
    unit = " px" if name == "acuity_px" else ""
    rest = lost_in_words(one.columns.outcome)
    few = percent_metric(name, estimate) and estimate["n"] < 100
    share = " With so few trials, take the interval, not the value." if few else ""
    measured = f"measured on {measured_on(estimate, len(one.columns))}, from {plural(len(one.columns.facts), 'sample')}"
    return f"{what} {written(name, estimate)}{unit}, {measured}. {rest}.{share}"


def lost_in_words(outcomes: NDArray[np.int8]) -> str:
    """Say how many replies could not be read, and how many calls gave none."""
    unread, failed = (int(np.count_nonzero(outcomes == kind)) for kind in (Outcome.UNREAD, Outcome.FAILED))
    noun = "reply" if unread == 1 else "replies"
    replies = f"{unread:,} {noun} could not be read" if unread else "Every reply could be read"
    return f"{replies}, and {plural(failed, 'call')} failed" if failed else replies


def measured_on(estimate: Mapping[str, Any], stored: int) -> str:
    """Return on how many of what a figure rests: `27 of 40 trials`; what an aggregate does not say is counted as n."""
    unit = estimate.get("unit") or "values"
    rest = [estimate.get(name) or 0 for name in ("unscored", "failed", "not_yet_asked", "left_out")]
    total = estimate["n"] + sum(rest) if estimate.get("unit") else estimate["n"]
    of = f"{estimate['n']:,} of {total:,}" if total > estimate["n"] else f"{estimate['n']:,}"
    return f"{of} {unit}" if unit == "trials" else f"{of} {unit} ({stored:,} trials stored)"


def groups_section(one: TaskOverview, to: Callable[[str, str], str] | None = None) -> Iterator[Child]:
    """Yield a table for each key that splits the samples; `to` gives the address of a group's trials."""
    groups = {key: values for key, values in one.result.get("groups", {}).items() if len(values) > 1}
    if groups:
        yield tag("h2", "By group")
        cards = (tag("div", group_table(key, values, to), class_="card") for key, values in groups.items())
        yield tag("div", *cards, class_="grid groups")


def sureness_section(one: TaskOverview) -> Iterator[Child]:
    """Yield how sure and how right answers were, by each source of confidence, with the risk at each share answered."""
    found = one.result.get("sureness")
    if not found:
        return
    yield tag("h2", "How sure, and how right")
    names = head("confidence by", *((name, "n") for name in SURENESS))
    rows = [row(source["source"], *numbers(sureness_cells(source))) for source in found]
    caption = "Calibration error over 15 bins; risk area: mean error over all shares answered, the surest first"
    shares = [f"{share * 100:.0f} %" for share, _ in found[0]["risk"]]
    risks = [row(source["source"], *numbers(f"{error * 100:.1f}" for _, error in source["risk"])) for source in found]
    risk_caption = "Error in per cent where only the surest share is answered"
    yield tag(
        "div",
        scrolled(caption, tag("caption", caption), names, tag("tbody", *rows)),
        scrolled(
            risk_caption,
            tag("caption", risk_caption),
            head("confidence by", *((share, "n") for share in shares)),
            tag("tbody", *risks),
        ),
        class_="card",
    )


def spread_section(one: TaskOverview) -> Iterator[Child]:
    """Yield where the spread comes from, in words and as a bar."""
    if not one.advice:
        return
    yield tag("h2", "Where the spread comes from")
    parts: list[Child] = []
    if one.shares:
        words = ", ".join(f"{share:.0%} {name}" for name, share in one.shares)
        key = []
        for name, share in one.shares:
            square = tag("rect", width=14, height=14, rx=3, class_=CALM[name])
            swatch = tag("svg", square, viewBox="0 0 14 14", aria_hidden="true")
            key.append(tag("li", swatch, f"{name} {share:.0%}"))
        shares = [(CALM[name], share) for name, share in one.shares]
        parts = [draw.stack(shares, label=f"Variance of single trials: {words}"), tag("ul", *key, class_="key")]
    yield tag("div", *parts, tag("p", one.advice), class_="card")


def _every_reply(reader: RunReader, columns: TrialColumns) -> Iterator[Child]:
    if not 0 < len(columns) <= EVERY_REPLY:
        return
    rows = []
    for place in range(len(columns)):
        shown = read_trial(reader, columns.key(place))
        if shown is not None:
            key = shown.prediction.key
            variant = "" if key.variant == "base" else f" · {key.variant}"
            name = f"{key.sample}{variant}{f' · {key.repeat + 1}' if key.repeat else ''}"
            outcome = tag("td", row_outcome(columns, place))
            reply = tag("td", reply_text(shown.text, shown.span, most=400), class_="text")
            rows.append(row(name, outcome, reply, name_class="mono"))
    yield tag("h2", "Every reply")
    table = scrolled("Every reply", head("trial", "outcome", "reply"), tag("tbody", *rows))
    yield tag("details", tag("summary", f"{plural(len(rows), 'trial')}, whole or to the first 400 characters"), table)


def _failures(reader: RunReader, tasks: list[TaskOverview]) -> Html:
    """Say how trials were lost: no reply, or a reply that could not be read."""
    lost: Counter[tuple[str, str]] = Counter()
    for one in tasks:
        for kind, label in (
            (Outcome.FAILED, "no reply"),
            (Outcome.UNREAD, "not read"),
            (Outcome.UNJUDGED, "not judged"),
        ):
            places = np.flatnonzero(one.columns.outcome == kind).tolist()
            lost.update((one.columns.text("reason", place) or "unknown", label) for place in places)
    mended = Counter((attempt[5], "failed attempt (retries included)") for attempt in reader.attempts())
    counts = [*lost.most_common(40), *mended.most_common()]
    rows = [row(reason, tag("td", label), *numbers([f"{count:,}"])) for (reason, label), count in counts]
    body: Child = tag("p", "Every trial got a reply, every reply could be read, and no attempt failed.")
    if rows:
        body = tag("table", head("class", "what happened", ("count", "n")), tag("tbody", *rows))
    return join((tag("h2", "Failures"), tag("div", body, class_="card")))


def version_lines(begun: Mapping[str, str], later: Iterable[Mapping[str, Any]]) -> str:
    """Return with what a run began, and for each time it was continued with something else, when and what."""
    lines = [f"{name} {version}" for name, version in begun.items()]
    before = begun
    for one in later:
        now = one["versions"]
        other = [f"{name} {version}" for name, version in now.items() if before.get(name) != version]
        other += [f"without {name}" for name in before if name not in now]
        lines.append(f"continued {one['at']}: {', '.join(other)}")
        before = now
    return "\n".join(lines)


def _settings(header: RunHeader, results: Results) -> Html:
    usage = results.get("usage", {})
    words = {"requests": "requests stored"}
    words |= {f"{kind}_tokens": f"{kind} tokens" for kind in ("input", "output", "reasoning")}
    counted = tiles((words[key], f"{usage[key]:,}") for key in words if usage.get(key))
    costs = [tag("p", line) for line in cost_lines(results)]
    folded = settings_folded(header, results.get("continued_with", ()))
    return join((tag("h2", "Settings and versions"), counted, *costs, *folded))


def settings_folded(header: RunHeader, later: Iterable[Mapping[str, Any]]) -> Iterator[Html]:
    """Yield all settings of a run and the versions it was asked with, folded away; `later` is how it was continued."""
    config = msgspec.json.format(msgspec.json.encode(header.config), indent=2).decode()
    told = {"All settings that change results": config, "Versions": version_lines(header.versions, later)}
    for name, body in told.items():
        yield tag("details", tag("summary", name), tag("pre", shorten(body, 40_000), class_="code", tabindex=0))


def _reproduce(header: RunHeader, folder: Path) -> Html:
    lines = [header.command or f"snellen run {' '.join(task.name for task in header.tasks)} --model {header.model}"]
    lines += [
        f"snellen score {folder}     # read the stored replies again",
        f"snellen view {folder}      # every trial, in the browser",
    ]
    words = f"The run's id {header.id} is the hash of all settings that change results: "
    intro = tag("p", f"{words}the same command gives the same id.")
    return join((tag("h2", "Reproduce"), intro, tag("pre", "\n".join(lines), class_="code", tabindex=0)))
