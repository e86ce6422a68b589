"""One run to its page: the number, the figures, the groups, and the ways onward to single trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from starlette.datastructures import QueryParams

from ...core.errors import SnellenError, UsageError
from ...core.markup import Child, Html, shorten, tag
from ...core.text import plural
from ...core.types import Request, TrialKey
from ...extract.profiles import PROFILES
from ...scoring.protocols.readings import stored_readings
from ..pages.ledger import Note, wrong_gold
from ..pages.overview import TaskOverview
from ..pages.parts import (
    captioned,
    derived_table,
    facts,
    figure_card,
    head,
    metric_table,
    notes_table,
    numbers,
    row,
    scrolled,
)
from ..pages.report_page import (
    groups_section,
    hero,
    kit_sections,
    second_headline,
    settings_folded,
    spread_section,
    sureness_section,
)
from ..written import reading_name, written, written_change
from .exam_parts import exam_parts
from .label_page import label_links
from .run_library import OpenRun
from .shell import (
    EXPORTED,
    address,
    choice,
    kit_links,
    link,
    notes_notice,
    progress_bar,
    run_crumbs,
    served,
    shell,
    trial_address,
)
from .walk import counted_button, walk_of, walk_through


def known_profile(name: str) -> str:
    """Return the name of a profile, or refuse it with those that are known."""
    if name not in PROFILES:
        raise UsageError(f"no profile {name!r}; known: {', '.join(PROFILES)}")
    return name


def profile_choice(run: OpenRun, task: str) -> Html:
    """Return the form that reads a run's replies as another tool does."""
    fields = (
        tag("input", type="hidden", name="task", value=task),
        tag("label", "read the replies as", choice("profile", {name: name for name in PROFILES})),
        tag("button", "Score again"),
    )
    return tag("form", *fields, method="get", action=f"/run/{run.key}/again", class_="filters")


def again_page(run: OpenRun, profile: str, *, may_write: bool) -> Html:
    """Return the results as stored and as another profile reads them, side by side."""
    before, after = run.results(), run.rescored(profile)
    parts: list[Child] = [
        tag("h1", f"{run.name} read as {profile}"),
        tag("p", "The stored replies, scored again. Nothing was asked, nothing was written.", class_="muted"),
    ]
    names = head("metric", (before["run"]["profile"], "n"), (profile, "n"), ("difference", "n"))
    for task, result in after["tasks"].items():
        old, new = before["tasks"].get(task, {}).get("metrics", {}), result["metrics"]
        rows = [row(name, *_pair(name, old.get(name), new.get(name))) for name in dict.fromkeys([*old, *new])]
        parts += [tag("h2", task), scrolled(f"Metrics of {task}", names, tag("tbody", *rows), class_="card scroll")]
    if may_write:
        fields = (
            tag("input", type="hidden", name="profile", value=profile),
            tag("button", f"Keep the scores of {profile} in this run"),
        )
        parts.append(tag("form", *fields, method="post", action=f"/run/{run.key}/again"))
    return shell(f"{run.name} as {profile}", parts, crumbs=run_crumbs(run, f"as {profile}"))


def _pair(name: str, old: dict[str, float] | None, new: dict[str, float] | None) -> list[Html]:
    shown = ["–" if one is None else written(name, one) for one in (old, new)]
    return numbers([*shown, written_change(name, old, new)])


def asked_parts(run: OpenRun, task: str) -> Iterator[Child]:
    """Yield the protocol of a task in words, its first prompt as it was sent, and all settings, folded away."""
    one = run.task(task)
    about: list[tuple[str, Any]] = [
        ("form", one.form.value),
        ("asked by", one.infer),
        ("scored by", ", ".join(one.scorers)),
    ]
    about += [("inferences", one.repeats), ("variants", shorten(", ".join(one.variants), 400))]
    yield tag("h2", "How it was asked")
    yield facts(about)
    first = next(
        run.reader.rows("SELECT request FROM predictions WHERE +task = ? ORDER BY rowid LIMIT 1", (task,)), None
    )
    if first is not None:
        yield tag("details", tag("summary", "The first prompt as it was sent"), *_prompt(first[0]))
    yield from settings_folded(run.header(), run.reader.meta("continued_with") or ())


def _prompt(body: bytes) -> Iterator[Child]:
    request = msgspec.json.decode(body, type=Request)
    for turn in request.messages:
        pictures = f" ({plural(len(turn.images), 'picture')})" if turn.images else ""
        inside = (tag("header", f"{turn.role}{pictures}"), tag("pre", shorten(turn.text, 8000)))
        yield tag("div", *inside, class_="message")
    yield tag("p", f"Parameters: {msgspec.json.encode(request.params).decode()}", class_="muted small")


LARGE = 20_000
"""From so many trials on, figures come after the numbers."""


MOST_DRAWN = 2_000_000
"""Figures of more trials are drawn only when somebody asks for them."""


def run_page(run: OpenRun, task: str, *, has_report: bool) -> Html:
    """Return the page of one run and one of its tasks."""
    header, progress = run.header(), run.progress()
    chips = [header.created.replace("T", " ")[:16], f"run {header.id}", plural(progress.stored, "trial")]
    parts: list[Child] = [
        tag("h1", header.model),
        tag("ul", *(tag("li", chip, class_="chip") for chip in chips), class_="chips"),
        progress_bar(run),
        notes_notice(run),
    ]
    name = run.task(task).name
    if len(header.tasks) > 1:
        tabs = [
            _button(other.name, address(f"/run/{run.key}", task=other.name), quiet=other.name != name)
            for other in header.tasks
        ]
        parts.append(tag("nav", *tabs, class_="bar-of-buttons", aria_label="Tasks"))
    parts += [*served(kit_links(run)), *exam_parts(run, name)]
    try:
        parts += _task_parts(run, _overview(run, name), has_report=has_report)
    except SnellenError as error:
        parts.append(tag("p", f"This task cannot be summed up: {error}", class_="notice"))
    kept = stored_readings(run.folder)
    beside = f"; kept beside it: {', '.join(kept)} (results-NAME.json)" if kept else ""
    parts.append(tag("p", tag("b", "Reading "), f"{reading_name(run.results())}{beside}"))
    parts.append(tag("p", tag("b", "Command "), tag("code", header.command or "not recorded", class_="mono")))
    parts += [*served(label_links(run)), *asked_parts(run, name)]
    live = None if progress.complete else address("/state", run=run.key)
    return shell(run.name, parts, crumbs=[link("Runs", "/"), run.name, name], live=live)


def _overview(run: OpenRun, task: str) -> TaskOverview:
    """Return the task with its figures, or, for a large run not summed up yet, without: they follow by themselves."""
    columns = run.columns(task)
    if len(columns) <= LARGE or run.has_overview(task):
        return run.overview(task)
    result = run.results()["tasks"].get(task) or {"metrics": {}, "groups": {}}
    return TaskOverview(columns.task, result, columns, [], "", ())


def figures_page(run: OpenRun, task: str) -> Html:
    """Return the figures of a large run as a page of their own, which the run's page takes in when it is ready."""
    one = run.overview(run.task(task).name)
    cards = [figure_card(figure, _figure_links(run, one.task.name, figure.name)) for figure in one.figures]
    parts = [tag("div", *cards, class_="grid"), *spread_section(one)]
    return shell(f"Figures of {run.name}", parts, crumbs=run_crumbs(run, "figures"))


def _task_parts(run: OpenRun, one: TaskOverview, *, has_report: bool) -> list[Child]:
    name, metrics = one.task.name, one.result["metrics"]
    forms = [
        _button(form.upper(), address(f"/run/{run.key}/download", format=form)) for form in ("csv", "parquet", "jsonl")
    ]
    cards = [figure_card(figure, _figure_links(run, name, figure.name)) for figure in one.other_figures]
    first = _figure_links(run, name, one.main_figure.name) if one.main_figure else None
    parts: list[Child] = [
        _ways_in(run, name),
        hero(one, first),
        *_errors(run, name),
        *_second_headline(run, one),
        *kit_sections(run.reader, one, run.registry, partial(_filtered, run, name)),
        *sureness_section(one),
        _coming(run, one) if not one.figures else tag("div", *cards, class_="grid"),
    ]
    parts += [
        tag("h2", "All metrics"),
        tag("div", metric_table(metrics, "Metrics with their 95 % intervals"), derived_table(metrics), class_="card"),
        *groups_section(one, lambda key, value: _group_address(run, name, key, value)),
        *spread_section(one),
        *notes_table([note for note in run.notes() if note.task == name], lambda note: _note_address(run, note)),
        *served(*_take_away(run, forms, has_report=has_report)),
    ]
    return [*parts, *served(tag("h2", "Read the replies another way"), profile_choice(run, name))]


def _take_away(run: OpenRun, forms: Sequence[Html], *, has_report: bool) -> Iterator[Child]:
    """Yield the files of a run that can be downloaded, and how to share it."""
    notes = _button("Notes and marks", f"/run/{run.key}/notes") if run.notes() else None
    yield tag("h2", "Take it with you")
    yield tag("p", *forms, notes, class_="bar-of-buttons")
    if has_report:
        words = "To share this run, send report.html from its folder; all its trials: "
        yield tag("p", words, tag("code", "snellen view RUN --export site/"))


def _errors(run: OpenRun, task: str) -> Iterator[Child]:
    """Yield why answers are not right: each group with its rule, its share, and the way to its trials."""
    groups = run.errors(task)
    if not groups:
        return
    walk = walk_of(run, QueryParams({"task": task}))
    rows = [
        row(
            link(group.title.capitalize(), walk.to(run, why=group.kind)),
            *numbers((f"{len(group.trials):,}", f"{group.share:.0%}")),
            tag("td", group.rule, f" Next: {group.step}." if group.step else None),
        )
        for group in groups
    ]
    names = head("group", ("trials", "n"), ("share", "n"), "when a trial is in it")
    table = captioned("Answers that are not right, by the first rule that fits", names, rows)
    yield tag("h2", "Why is it wrong?")
    yield tag("div", table, class_="card")


def _second_headline(run: OpenRun, one: TaskOverview) -> Iterator[Child]:
    """Yield the headline without the samples whose gold answer is wrong."""
    if marked := wrong_gold(run.notes(), one.task.name):
        yield second_headline(one.result, marked, partial(run.columns, one.task.name))


def _coming(run: OpenRun, one: TaskOverview) -> Html | None:
    """Return the place that the figures of a large run take when they are drawn; without scripts, the way to them."""
    if len(one.columns) <= LARGE:
        return None
    to = address(f"/run/{run.key}/figures", task=one.task.name)
    if len(one.columns) > MOST_DRAWN:
        words = f" of {len(one.columns):,} trials take minutes and gigabytes; other pages of the run wait meanwhile."
        return tag("p", link("Figures", to), words)
    return tag("div", tag("p", link("Figures", to), " of so many trials take a moment."), data_load=to)


def _ways_in(run: OpenRun, task: str) -> Html:
    """Return the ways to the trials, each with its count; nothing is offered that is empty."""
    walk = walk_of(run, QueryParams({"task": task}))
    counts = walk_through(run, walk).counts
    ways = {"wrong": {"outcome": "wrong"}, "unread": {"outcome": "unread"}, "flipped": {"flipped": "1"}}
    ways |= {"failed": {"outcome": "failed"}}
    made = [counted_button("every trial", counts["all"], walk.to(run), loud=True)]
    made += [counted_button(kind, counts[kind], walk.to(run, **told)) for kind, told in ways.items() if counts[kind]]
    return tag("nav", *made, class_="bar-of-buttons", aria_label="Trials")


def _filtered(run: OpenRun, task: str, key: str, value: str, variant: str) -> str:
    """Return the address of the trials that a kit's filter finds in one variant."""
    return address(f"/run/{run.key}/trials", task=task, group=[f"{key}={value}", f"variant={variant}"])


def _group_address(run: OpenRun, task: str, key: str, value: str) -> str:
    return walk_of(run, QueryParams({"task": task})).to(run, group=f"{key}={value}")


def _note_address(run: OpenRun, note: Note) -> str:
    query = "SELECT variant, repeat FROM predictions WHERE task = ? AND sample = ? ORDER BY variant <> 'base' LIMIT 1"
    first = next(run.reader.rows(query, (note.task, note.sample)), ("base", 0))
    variant, repeat = (note.variant, note.repeat) if note.variant else first
    return trial_address(run, TrialKey(note.task, note.sample, variant, repeat))


def _button(words: str, to: str, *, quiet: bool = True) -> Html:
    return link(words, to, class_="button quiet" if quiet else "button")


def _figure_links(run: OpenRun, task: str, figure: str) -> Html | None:
    if EXPORTED.get():
        return None
    made = [
        link(words, address(f"/run/{run.key}/figure", task=task, name=figure, format=form))
        for form, words in (("csv", "CSV"), ("json", "Vega-Lite"))
    ]
    return tag("span", made[0], " · ", made[1], class_="small nowrap")
