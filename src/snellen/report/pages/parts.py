"""Estimates, replies and outcomes to the pieces of a page that report.html and the viewer share."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np

from ...core.markup import Child, Html, join, shorten, tag
from ...core.text import plural
from ...core.types import TrialKey
from ...model.served.prices import money
from ...scoring.aggregates.headline import MACRO, SIDE_METRICS
from ...scoring.tables.table import Mask, Outcome, TrialColumns
from ..terminal import AT_TIMES, count_text, told_counts
from ..written import percent_metric, rests_on, unread_of, written, written_interval, written_share
from . import draw
from .figures import Figure
from .ledger import TRIAL_KINDS, Note, key_words, notes_on

COST_COLUMNS = ("cost", "cost a right answer")
Cost = Mapping[str, Any]


def cost_cells(cost: Cost | None) -> tuple[str, str]:
    """Return the cost and that of a right answer; `≥` where some replies have no known price."""
    if cost is None:
        return "–", "–"
    least = "≥ " if cost["unpriced"] else ""
    share = cost["per_right_answer"]
    return least + money(cost["value"], cost["currency"]), "–" if share is None else money(share, cost["currency"])


def cost_lines(results: Mapping[str, Any]) -> Iterator[str]:
    """Say what the run cost, each task where there are several, what was not paid again, and what has no price."""
    if extractors := results.get("cost_of_extractors"):
        least = "≥ " if extractors["unpriced"] else ""
        value = least + money(extractors["value"], extractors["currency"])
        yield f"cost of the extractor: {value} for {plural(extractors['replies'], 'reply')}"
    whole = results.get("cost")
    if whole is None:
        return
    parts = {name: task["cost"] for name, task in results["tasks"].items() if task.get("cost")}
    for name, cost in (*(parts.items() if len(parts) > 1 else ()), ("all replies", whole)):
        value, share = cost_cells(cost)
        yield f"cost of {name}: {value}" + (f", {share} a right answer" if share != "–" else "")
    if whole["paid"] != whole["value"]:
        yield f"paid: {money(whole['paid'], whole['currency'])}; the other replies came from the response cache"
    if whole["unpriced"]:
        yield f"{plural(whole['unpriced'], 'reply')} without a known price (no token count, or too long): not in it"


DRAWN = tag("span", "drawn", class_="hidden")
"""The head of a column of drawings: there for who listens, not for who looks."""


def head(*names: Child | tuple[Child, str]) -> Html:
    """Return the head of a table; a pair is a name and the class of its column."""
    pairs = [name if isinstance(name, tuple) else (name, None) for name in names]
    return tag("thead", tag("tr", *(tag("th", name, scope="col", class_=kind) for name, kind in pairs)))


def numbers(cells: Iterable[Child]) -> list[Html]:
    """Return cells set as numbers."""
    return [tag("td", cell, class_="n") for cell in cells]


def row(name: Child, *cells: Child, class_: str | None = None, name_class: str | None = None) -> Html:
    """Return a row that is named by its first cell."""
    return tag("tr", tag("th", name, scope="row", class_=name_class), *cells, class_=class_)


def scrolled(label: str, *table: Child, class_: str = "scroll") -> Html:
    """Return a table in a frame that scrolls by keyboard too; `label` names it for who cannot see it."""
    return tag("div", tag("table", *table), class_=class_, tabindex=0, role="region", aria_label=label)


def captioned(caption: str, names: Html, rows: Iterable[Child], *, class_: str = "scroll") -> Html:
    """Return a whole table in such a frame, named by the caption above it."""
    return scrolled(caption, tag("caption", caption), names, tag("tbody", *rows), class_=class_)


MOST_ROWS = 200


def marks_form(action: str, back: str, key: TrialKey, notes: Sequence[Note]) -> Html:
    """Return the form that sets the marks of one trial; it leads back to where it was shown."""
    here = {note.kind: note for note in notes_on(notes, key)}
    boxes = [
        tag("label", tag("input", type="checkbox", name=kind, value="1", checked=kind in here), f" {words}")
        for kind, words in TRIAL_KINDS.items()
        if kind != "note"
    ]
    text = here["note"].text if "note" in here else ""
    told: dict[str, str | int] = {
        "task": key.task,
        "sample": key.sample,
        "variant": key.variant,
        "repeat": key.repeat,
        "back": back,
    }
    hidden = [tag("input", type="hidden", name=name, value=value) for name, value in told.items()]
    note = tag("label", "note ", tag("textarea", text, name="note", rows=2, maxlength=4000))
    fields = (*hidden, tag("div", *boxes, class_="marks"), note, tag("button", "Keep marks"))
    return tag("form", *fields, method="post", action=action, class_="filters markform")


def marks_shown(key: TrialKey, notes: Sequence[Note]) -> Html | None:
    """Return what was said of one trial."""
    found = notes_on(notes, key)
    if not found:
        return None
    made = [tag("li", tag("b", TRIAL_KINDS[note.kind]), f": {note.text}" if note.text else "") for note in found]
    return tag("ul", *made, class_="notice calm plain")


def notes_table(notes: Sequence[Note], to: Callable[[Note], str] | None = None) -> Iterator[Child]:
    """Yield the notes on the trials of a run as a table; `to` gives the address of the trial of one."""
    said = [note for note in notes if note.sample]
    if not said:
        return
    rows = []
    for note in said[:MOST_ROWS]:
        name: Child = tag("a", key_words(note), href=to(note)) if to else key_words(note)
        texts = (TRIAL_KINDS.get(note.kind, note.kind), note.text, note.at[:16].replace("T", " "))
        rows.append(row(name, *(tag("td", text, class_="text") for text in texts), name_class="mono"))
    yield tag("h2", "Notes and marks")
    caption = plural(len(said), "note") + (f", the first {MOST_ROWS:,} here" if len(said) > MOST_ROWS else "")
    table = scrolled("Notes", tag("caption", caption), head("trial", "mark", "note", "when"), tag("tbody", *rows))
    yield tag("div", table, class_="card")


def marked_trials(columns: TrialColumns, notes: Sequence[Note], kind: str) -> Mask:
    """Return which trials have a mark of a kind, or any."""
    task = columns.task.name
    found = np.zeros(len(columns), np.bool_)
    for note in notes:
        if note.task == task and note.sample and kind in ("any", note.kind):
            here = columns.rows_with("sample", note.sample)
            if note.variant:
                here &= columns.rows_with("variant", note.variant) & (columns.repeat == note.repeat)
            found |= here
    return found


def document(title: str, parts: list[Child]) -> Html:
    """Return a page that holds its own style and forbids everything else."""
    style = static("snellen.css")
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    )
    made = "Made by Snellen, the eye chart for vision-language models."
    footer = tag("footer", f"{made} This file is complete: it loads nothing and runs no script.")
    main = tag("main", *parts, footer, id="main", class_="wrap")
    body = tag("body", tag("a", "Skip to the results", href="#main", class_="skip"), main)
    return Html("<!doctype html>\n" + tag("html", head, body, lang="en"))


@cache
def static(name: str) -> str:
    """Return one of our own style or script files."""
    return (files("snellen.report") / "static" / name).read_text(encoding="utf-8")


Results = Mapping[str, Any]
MOST_GROUPS = 60
"""Rows of a group table that are shown at once; the rest is counted and in results.json."""
SIGNS = dict(zip(Outcome, "✓◐✗?!…–", strict=True))
"""An outcome is never shown by its colour alone."""
PLAIN = ("acuity_px", "contrast_threshold", "instability")
PLAIN_ENDS = ("_read", "_strict", "_micro", "_majority", "_rate", "_calibrated")


def metric_table(metrics: Mapping[str, Any], caption: str) -> Html:
    """Return all metrics with their intervals and counts; shares that are 0 for all are left out."""
    shown = [pair for pair in metrics.items() if pair[1]["value"] or not pair[0].endswith("_rate")]
    plain = [pair for pair in shown if not _derived(pair[0], metrics)]
    return _estimates(plain or shown, caption, "metric")


def derived_table(metrics: Mapping[str, Any]) -> Html | None:
    """Return the metrics derived from repeats, variants and groups, folded away."""
    shown = [pair for pair in metrics.items() if _derived(pair[0], metrics)]
    if not shown or len(shown) == len(metrics):
        return None
    words = f"{len(shown)} more: repeats, variants, degradations, means over groups"
    summary = tag("summary", "Derived metrics ", tag("span", words, class_="muted"))
    return tag("details", summary, _estimates(shown, "Derived metrics", "metric"))


def _derived(name: str, metrics: Mapping[str, Any]) -> bool:
    """Tell what is not measured trial by trial: means over groups, ladders of degradation, votes, variance."""
    return not (f"{name}_strict" in metrics or name.startswith(PLAIN) or name.endswith(PLAIN_ENDS))


def group_table(key: str, groups: Mapping[str, Mapping[str, Any]], to: Callable[[str, str], str] | None = None) -> Html:
    """Return the groups of one key by their main metric; `to` gives the address of a group's trials."""
    metric = next((name for name in next(iter(groups.values())) if not name.endswith(SIDE_METRICS)), "")
    rows = [
        (value, {**estimates[metric], "lost": rests_on(estimates[metric])[2]})
        for value, estimates in groups.items()
        if metric in estimates
    ]
    links = {} if to is None else {value: to(key, value) for value, _ in rows[:MOST_GROUPS]}
    table = _estimates(rows[:MOST_GROUPS], f"{metric} by {key}", key, metric, links)
    more = f"and {len(rows) - MOST_GROUPS:,} more groups: see results.json"
    return join((table, tag("p", more, class_="muted small"))) if len(rows) > MOST_GROUPS else table


def _estimates(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    caption: str,
    first: str,
    metric: str = "",
    links: Mapping[str, str] = MappingProxyType({}),
) -> Html:
    lost = ("unread", "lost", *AT_TIMES[1:]) if metric else ("unread", "failed", *AT_TIMES)
    rows = [(name, {**estimate, "unread": unread_of(estimate)}) for name, estimate in rows]
    counted = ["n", *told_counts((estimate for _, estimate in rows), lost)]
    names = ["value", "95 % interval", *(name.replace("_", " ") for name in counted)]
    columns = head(first, *((name, "n") for name in names), DRAWN)
    spans = _spans([(metric or name, estimate) for name, estimate in rows])
    body = [
        _estimate_row(
            name, estimate, metric or name, spans.get(_unit(metric or name, estimate)), counted, to=links.get(name)
        )
        for name, estimate in rows
    ]
    return captioned(caption, columns, body)


def _unit(metric: str, estimate: Mapping[str, Any]) -> str:
    """Metrics of one unit are drawn on one scale: shares, or what has the same name before a slash."""
    return "share" if percent_metric(metric, estimate) else metric.partition("/")[0]


def _spans(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, tuple[float, float]]:
    ends: dict[str, list[float]] = {"share": [0.0, 1.0]}
    for metric, estimate in rows:
        bounds = estimate.get("ci95") or [estimate.get("value")]
        ends.setdefault(_unit(metric, estimate), []).extend(bound for bound in bounds if bound is not None)
    return {
        unit: (min(values), max(values)) for unit, values in ends.items() if len(set(values)) > 2 or unit == "share"
    }


def _estimate_row(
    name: str,
    estimate: Mapping[str, Any],
    metric: str,
    span: tuple[float, float] | None,
    counted: Sequence[str],
    *,
    to: str | None = None,
) -> Html:
    drawn = draw.interval(estimate.get("value"), estimate.get("ci95"), *span) if span else ""
    counts = (count_text(estimate.get(key, 0)) for key in counted)
    cells = numbers([written(metric, estimate), written_interval(metric, estimate), *counts])
    side = metric == name and (name.endswith(SIDE_METRICS) or MACRO in name)
    shown = name if to is None else tag("a", name, href=to)
    return row(shown, *cells, tag("td", drawn, class_="bar"), class_="side" if side else None)


def figure_card(figure: Figure, links: Html | None = None) -> Html:
    """Return a figure with its caption, key and data."""
    return tag("figure", *figure_parts(figure, links), class_="card")


def figure_parts(figure: Figure, links: Html | None = None) -> tuple[Html | None, ...]:
    """Return title, key, drawing and caption."""
    names = [tag("li", draw.swatch(i), name) for i, name in enumerate(figure.series)]
    key = tag("ul", *names, class_="key") if len(names) > 1 else None
    title = tag("div", tag("h3", figure.title), links, class_="plothead")
    frame = tag("div", figure.drawing, class_="plotframe", tabindex=0, role="group", aria_label=figure.title)
    return title, key, frame, tag("figcaption", figure.caption)


def data_table(rows: Sequence[Mapping[str, Any]], caption: str, most: int = 200) -> Html:
    """Return plain rows as a table, folded away."""
    names = list(dict.fromkeys(key for line in rows for key in line))
    body = [tag("tr", *(tag("td", _cell(line.get(name))) for name in names)) for line in rows[:most]]
    return tag("details", tag("summary", caption), scrolled(caption, head(*names), tag("tbody", *body)))


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def outcome_tag(outcome: int, value: float | None = None) -> Html:
    """Return an outcome as a coloured word with its sign."""
    kind = Outcome(outcome)
    word = kind.name.lower()
    if kind is Outcome.PARTLY and value is not None:
        word = f"{value:.0%}"
    return tag("span", f"{SIGNS[kind]} {word}", class_=f"tag {kind.name.lower()}")


def row_outcome(columns: TrialColumns, row: int) -> Html:
    """Return the outcome of a trial by its place in the columns."""
    return outcome_tag(int(columns.outcome[row]), float(columns.value[row]))


def outcome_bar(counts: Mapping[int, int]) -> Html:
    """Return the shares of all outcomes as one bar with its key in words."""
    total = sum(counts.values()) or 1
    present = [(Outcome(kind), count) for kind, count in sorted(counts.items()) if count]
    words = ", ".join(f"{count:,} {kind.name.lower()}" for kind, count in present)
    shares = [(f"legend-{kind.name.lower()}", count / total) for kind, count in present]
    bar = draw.stack(shares, label=f"Outcomes: {words}")
    key = [tag("li", outcome_tag(kind), f" {count:,} ({written_share(count / total)})") for kind, count in present]
    return join((bar, tag("ul", *key, class_="key")))


def reply_text(text: str | None, span: Sequence[int] | None = None, *, most: int = 1200, tall: bool = False) -> Html:
    """Return a reply as text, the part that decided the answer marked; a long one is cut around that part."""
    if text is None:
        return tag("p", "no reply", class_="muted")
    start, end = _clamp(span, len(text))
    if end > start:
        left, right = max(0, start - most // 2), min(len(text), end + most // 2)
        before, after = ("…" if left else "") + text[left:start], text[end:right] + ("…" if right < len(text) else "")
        inside: Html = join((before, tag("mark", text[start:end], title="this decided the answer"), after))
    else:
        inside = join((shorten(text, most),))
    shown = inside if text else tag("span", "(empty reply)", class_="muted")
    return tag("pre", shown, class_="reply tall" if tall else "reply", tabindex=0)


def _clamp(span: Sequence[int] | None, length: int) -> tuple[int, int]:
    if not isinstance(span, list | tuple) or len(span) != 2 or not all(isinstance(value, int) for value in span):
        return 0, 0
    start, end = span
    return (start, end) if 0 <= start < end <= length else (0, 0)


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """Return names and values as a list of definitions; what is unknown is left out."""
    known = (join((tag("dt", name), tag("dd", str(value)))) for name, value in pairs if value not in (None, ""))
    return tag("dl", *known, class_="facts")


def tiles(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return a row of numbers with their names below."""
    shown = (tag("li", tag("b", value), tag("span", name), class_="tile") for name, value in pairs)
    return tag("ul", *shown, class_="tiles")
