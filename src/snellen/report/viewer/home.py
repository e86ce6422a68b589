"""The library to the table of its runs, page by page: found by a word, in order, by model or task, some hidden."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams

from ...core.errors import SnellenError
from ...core.markup import Child, Html, tag
from ...core.text import plural
from ...scoring.aggregates.headline import headline
from ...sight.sitting import PREFIX
from ..pages import draw
from ..pages.ledger import Note, read_notes
from ..pages.parts import DRAWN
from ..stored_results import stored_exam
from ..written import RESTS_ON, rests_on, written, written_interval
from .run_library import OpenRun, RunLibrary
from .shell import address, choice, link, page_of, progress_bar, shell, wanted_page

COLUMNS = ("compare", "run", "model", "task", "metric", "value", "95 % interval", DRAWN, *RESTS_ON, "begun")
HEADS = {"model": "broad", "metric": "broad", "95 % interval": "broad", DRAWN: "broad", "begun": "broad"}
HEADS |= dict.fromkeys(RESTS_ON, "n broad")
"""How columns are set; a phone shows model and interval beneath run and value, and leaves out the others."""
SORTS = {"begun": True, "run": False, "model": False, "task": False}
"""What the runs can be ordered by, and whether the first way is downwards: the newest run stands first."""
GROUPS = ("model", "task")
MOST_TASKS = 4
"""A run of more tasks is one row, which opens; an exam always is."""
ONE_LINE = 36
"""Names up to this length stay on one line; longer ones fold, none is cut."""
PAGE = 100
"""Runs on one page: each is opened to make sure that its numbers are those of its replies."""


class Sought(NamedTuple):
    """Which runs a page shows, and how."""

    text: str = ""
    sort: str = "begun"
    turned: bool = False
    group: str = ""
    hidden: bool = False
    page: int = 1

    def to(self, **other: object) -> str:
        """Return the address of this list, with some of it changed."""
        said: dict[str, object] = {"text": self.text, "sort": self.sort if self.sort != "begun" else ""}
        said |= {"turned": "1" if self.turned else "", "group": self.group, "hidden": "1" if self.hidden else ""}
        return address("/", **(said | other))


class Found(NamedTuple):
    """One run of the list, with what people said of it."""

    run: OpenRun
    notes: Sequence[Note]

    @property
    def tags(self) -> list[str]:
        """Return its tags."""
        return [note.text for note in self.notes if note.kind == "tag"]

    @property
    def hidden(self) -> bool:
        """Tell whether it is hidden."""
        return any(note.kind == "hidden" for note in self.notes)


def sought_in(told: QueryParams) -> Sought:
    """Return what an address asks for; what is not understood falls back to everything."""
    sort, group = told.get("sort", ""), told.get("group", "")
    known = sort if sort in SORTS else "begun", bool(told.get("turned")), group if group in GROUPS else ""
    return Sought(told.get("text", ""), *known, bool(told.get("hidden")), wanted_page(told))


def runs_page(library: RunLibrary, sought: Sought | None = None, *, may_write: bool = False) -> Html:
    """Return one page of the runs that hold a text, with boxes to choose some."""
    sought = sought or Sought()
    every = list(_with_notes(library))
    held, chosen = _sifted(every, sought)
    caption = tag("caption", _counted(len(every), len(held), len(chosen)))
    scroll, ways, unfinished = _table(library, chosen, caption, sought)
    form = tag("form", scroll, ways, *_doings(may_write), **_TO_COMPARE)
    search = _search(sought, any(one.hidden for one in every)) if every else None
    listed = library.listed_by_kits(sought.text)
    others = [section for section, _ in listed if section is not None]
    nothing = None if others else _nothing(sought, len(held))
    parts = [tag("h1", "Runs"), search, form if chosen else nothing, *others]
    parts += [_problems(library), _trash(library) if may_write else None]
    unfinished = unfinished or any(goes_on for _, goes_on in listed)
    return shell("Runs", parts, place="/", live="/state" if unfinished else None)


def _table(library: RunLibrary, chosen: list[Found], caption: Html, sought: Sought) -> tuple[Html, Html | None, bool]:
    """Return one page of the table, the ways to the others, and whether a run on it still goes on."""
    units = _in_series(chosen)
    page = page_of(len(units), PAGE, sought.page)
    rows, unfinished = _rows(library, units[page.rows], sought.group)
    table = tag("table", caption, _head(sought), tag("tbody", *rows))

    def to(number: int) -> str:
        return sought.to(page=number)

    return tag("div", table, class_="scroll card runs"), page.ways(to, "runs", label="Pages of runs"), unfinished


def _counted(every: int, held: int, shown: int) -> str:
    words = plural(every, "run") if shown == every else f"{shown:,} of {plural(every, 'run')}"
    return words + (f", {held - shown:,} hidden" if held > shown else "")


_TO_COMPARE = {"method": "get", "action": "/compare"}


def _with_notes(library: RunLibrary) -> Iterator[Found]:
    for run in library.listed():
        try:
            yield Found(run, [note for note in read_notes(run.folder) if not note.sample])
        except SnellenError as error:
            library.problems[f"notes of {run.name}"] = str(error)
            yield Found(run, [])


def _holds(one: Found, text: str) -> bool:
    """Look for every word in the names of the run, its model, its tasks and its tags."""
    brief = one.run.brief()
    names = " ".join((one.run.name, brief.model, *brief.tasks, *one.tags)).lower()
    return all(word in names for word in text.lower().split())


def _sifted(every: list[Found], sought: Sought) -> tuple[list[Found], list[Found]]:
    """Return the runs that hold the text, and in their order those of them that are shown."""
    held = [one for one in every if _holds(one, sought.text)]
    return held, _ordered([one for one in held if sought.hidden or not one.hidden], sought)


def _ordered(found: list[Found], sought: Sought) -> list[Found]:
    """Put the runs in order; by name, and so they stay where the order does not part them, and in their groups."""
    ordered = sorted(found, key=lambda one: _place(one.run, sought.sort), reverse=SORTS[sought.sort] != sought.turned)
    return sorted(ordered, key=lambda one: _place(one.run, sought.group)) if sought.group else ordered


def _place(run: OpenRun, by: str) -> str:
    brief = run.brief()
    return {"begun": brief.created, "model": brief.model, "task": ", ".join(brief.tasks)}.get(by, run.name)


def _in_series(chosen: Sequence[Found]) -> list[list[Found]]:
    """Return what has a row of its own: a run, or the levels of one load, which lie in one folder."""
    units: dict[Path, list[Found]] = {}
    for one in chosen:
        units.setdefault(one.run.folder.parent if one.run.is_load else one.run.folder, []).append(one)
    return list(units.values())


def _rows(library: RunLibrary, units: Sequence[Sequence[Found]], group: str) -> tuple[list[Html], bool]:
    """Return the rows of some runs; one that cannot be read is a problem, told below the table."""
    rows, unfinished, before = [], False, None
    for unit in units:
        one = unit[0]
        try:
            made, complete = _unit_rows(unit)
        except (SnellenError, sqlite3.Error, ValueError) as error:
            library.problems[one.run.name] = str(error)
            continue
        place = _place(one.run, group) if group else None
        if place != before:
            rows.append(tag("tr", tag("th", place, colspan=len(COLUMNS), scope="rowgroup"), class_="group"))
        rows, unfinished, before = [*rows, *made], unfinished or not complete, place
    return rows, unfinished


def _search(sought: Sought, some_hidden: bool) -> Html:
    field = tag("input", type="search", name="text", value=sought.text, id="search")
    box = tag("input", type="checkbox", name="hidden", value="1", checked=sought.hidden)
    fields: list[Child] = [tag("label", "run, model, task or tag", field)]
    fields.append(tag("label", "group by", choice("group", {name: name for name in GROUPS}, sought.group, blank="–")))
    if some_hidden or sought.hidden:
        fields.append(tag("label", "hidden runs", tag("span", box, " show")))
    if sought.sort != "begun":
        fields.append(tag("input", type="hidden", name="sort", value=sought.sort))
    made = (*fields, tag("button", "Search"))
    return tag("form", *made, method="get", action="/", class_="filters", role="search", data_filters=True)


def _doings(may_write: bool) -> Iterator[Html]:
    """Yield what can be done with the chosen runs; what changes something only where the viewer may write."""
    compare = (tag("button", "Compare the chosen runs"), " ", tag("button", "Matrix", formaction="/matrix"))
    yield tag("p", *compare, " ", tag("span", "two to six on the same task", class_="muted small"))
    if may_write:
        doings = (("hide", "Hide"), ("show", "Show again"), ("tag", "Add tag"), ("untag", "Take tag off"))
        made = [_doing(*doing) for doing in (*doings, ("trash", "Move to the trash"))]
        name = tag("label", "tag ", tag("input", name="tag", class_="short"))
        yield tag("div", tag("span", "The chosen runs:"), *made[:2], name, *made[2:], class_="bar-of-buttons")


def _doing(name: str, words: str) -> Html:
    return tag("button", words, formaction=f"/runs/{name}", formmethod="post", class_="quiet")


def _nothing(sought: Sought, held: int) -> Html:
    if held:
        return tag("p", f"All {plural(held, 'run')} found are hidden. ", link("Show them", sought.to(hidden="1")))
    if sought.text:
        return tag("p", "No run has this in its name, model, tasks or tags. ", link("Show all", "/"))
    return tag("p", "No runs here yet. Make one: ", tag("code", "snellen run eyechart --model reader"))


def _head(sought: Sought) -> Html:
    return tag("thead", tag("tr", *(_head_cell(name, sought) for name in COLUMNS)))


def _head_cell(name: str, sought: Sought) -> Html:
    """Return the head of a column; one that can be sorted by is a link, which turns the order the second time."""
    here = name == sought.sort
    if name not in SORTS:
        return tag("th", name, scope="col", class_=HEADS.get(name))
    to = sought.to(sort=name, turned="1" if here and not sought.turned else "")
    if not here:
        return tag("th", link(name, to), scope="col", class_=HEADS.get(name))
    down = SORTS[name] != sought.turned
    arrow, order = ("↓", "descending") if down else ("↑", "ascending")
    return tag("th", link(f"{name} {arrow}", to), scope="col", class_=HEADS.get(name), aria_sort=order)


def _unit_rows(unit: Sequence[Found]) -> tuple[list[Html], bool]:
    """Return the rows of a run or a series, and whether nothing of it still goes on."""
    if len(unit) > 1:
        levels = sorted(unit, key=lambda one: (len(one.run.name), one.run.name))
        return [_series_row(levels)], True
    run = unit[0].run
    with run.held():
        tasks = run.results()["tasks"]
        is_exam = all(task.startswith(PREFIX) for task in tasks)
        folded = len(tasks) > 1 and (is_exam or len(tasks) > MOST_TASKS)
        made = [_folded_row(unit[0], is_exam=is_exam)] if folded else list(_run_rows(unit[0]))
        return made, run.progress().complete


NO_ESTIMATE: Mapping[str, Any] = MappingProxyType({})


class Cells(NamedTuple):
    """What stands in the columns of one row."""

    box: Child
    name: Child
    folds: str
    """How the name is set."""
    model: str
    task: Child
    metric: str
    value: str
    estimate: Mapping[str, Any]
    begun: str


def _row(cells: Cells, *, hidden: bool) -> Html:
    estimate, metric = cells.estimate, cells.metric
    value = estimate.get("value")
    drawn = draw.interval(value, estimate.get("ci95"), 0.0, 1.0) if value is not None and 0 <= value <= 1 else ""
    interval = written_interval(metric, estimate) if estimate else ""
    made = (
        tag("td", cells.box),
        tag("th", cells.name, scope="row", class_=cells.folds),
        tag("td", cells.model, class_=f"{_fold(cells.model)} broad"),
        tag("td", cells.task, class_="tasks"),
        tag("td", metric, class_="nowrap broad"),
        tag("td", cells.value, *_beneath(interval, metric), class_="nowrap" if estimate else None),
        tag("td", interval, class_="nowrap broad"),
        tag("td", drawn, class_="bar broad"),
        *(tag("td", f"{count:,}", class_="n broad") for count in (rests_on(estimate) if estimate else ())),
        *(tag("td", "", class_="n broad") for _ in (() if estimate else RESTS_ON)),
        tag("td", cells.begun[:16].replace("T", " "), class_="nowrap muted broad"),
    )
    return tag("tr", *made, class_="row hidden-run" if hidden else "row")


def _box(run: OpenRun) -> Html:
    return tag("input", type="checkbox", name="run", value=run.key, aria_label=f"Compare {run.name}")


def _run_rows(one: Found) -> Iterator[Html]:
    """Yield a row for each task of a run."""
    run, header = one.run, one.run.header()
    for number, (task, result) in enumerate(run.results()["tasks"].items()):
        name, estimate = headline(result)
        metric = name or "–"
        more = [*_beneath(header.model), progress_bar(run), *_tags(one)] if number == 0 else []
        where = link(task, address(f"/run/{run.key}", task=task))
        title = (link(run.name, f"/run/{run.key}"), more)
        about = (_fold(run.name), header.model, where, metric, written(metric, estimate), estimate, header.created)
        yield _row(Cells(_box(run) if number == 0 else "", title, *about), hidden=one.hidden)


def _folded_row(one: Found, *, is_exam: bool) -> Html:
    """Return one row for a run of many tasks, which holds them all when it is opened."""
    run, header, tasks = one.run, one.run.header(), one.run.results()["tasks"]
    found = _exam_values(run) if is_exam else {}
    lines = [_task_line(run, task, result, found.get(task, "")) for task, result in tasks.items()]
    words = f"exam of {len(tasks)} tests" if is_exam else f"{len(tasks)} tasks"
    title = (link(run.name, f"/run/{run.key}"), *_beneath(header.model), progress_bar(run), *_tags(one))
    value = f"{sum(map(bool, found.values()))} of {len(tasks)} measured" if found else ""
    about = (_fold(run.name), header.model, _fold_out(words, lines), "", value, NO_ESTIMATE, header.created)
    return _row(Cells(_box(run), title, *about), hidden=one.hidden)


def _task_line(run: OpenRun, task: str, result: Mapping[str, Any], found: str = "") -> Html:
    """Return one task of a run with what was found, or its headline."""
    name, estimate = headline(result)
    value = found or (written(name, estimate) if name else "–")
    return tag(
        "li", link(task, address(f"/run/{run.key}", task=task)), " ", tag("b", value, title=name if not found else "")
    )


def _exam_values(run: OpenRun) -> dict[str, str]:
    """Return what each test of an exam measured, by its task; empty where it measured nothing, or is not over."""
    tests = (stored_exam(run.folder) or {"tests": {}})["tests"]
    return {
        f"{PREFIX}{name}": f"{test['value']:.3g} {test['unit']}" if test["verdict"] == "measured" else ""
        for name, test in tests.items()
    }


def _series_row(levels: Sequence[Found]) -> Html:
    """Return one row for the levels of a load, each chosen and opened on its own."""
    lines, first = [], levels[0].run
    for one in levels:
        with one.run.held():
            name, estimate = headline(next(iter(one.run.results()["tasks"].values()), {"metrics": {}}))
            value = tag("b", written(name, estimate), title=name) if name else ""
            to = link(one.run.folder.name, f"/run/{one.run.key}")
            lines.append(tag("li", _box(one.run), " ", to, " ", value))
    brief = first.brief()
    place = first.name.rpartition("/")[0] or first.folder.parent.name
    title = (place, *_beneath(brief.model))
    task = _fold_out(f"{', '.join(brief.tasks)}: load at {len(levels)} levels", lines)
    about = (_fold(place), brief.model, task, "", "see perf.html", NO_ESTIMATE, brief.created)
    return _row(Cells("", title, *about), hidden=all(one.hidden for one in levels))


def _fold_out(words: str, lines: Sequence[Html]) -> Html:
    return tag("details", tag("summary", words), tag("ul", *lines, class_="plain small"), class_="inrow")


def _beneath(*words: str) -> list[Html]:
    """Return what a phone shows beneath a value instead of in columns of its own."""
    return [tag("div", word, class_="narrow muted small") for word in words]


def _tags(one: Found) -> Iterator[Html]:
    if one.tags or one.hidden:
        made = [tag("li", link(name, address("/", text=name)), class_="chip") for name in one.tags]
        made += [tag("li", "hidden", class_="chip")] if one.hidden else []
        yield tag("ul", *made, class_="chips small")


def _fold(name: str) -> str:
    return "nowrap" if len(name) <= ONE_LINE else "fold"


def _problems(library: RunLibrary) -> Html | None:
    if not library.problems:
        return None
    items = [tag("li", tag("b", name), ": ", reason) for name, reason in sorted(library.problems.items())]
    return tag("div", tag("h2", "What cannot be shown"), tag("ul", *items), class_="notice")


def _trash(library: RunLibrary) -> Html | None:
    """Return what lies in the trash, each with the way back."""
    thrown = library.thrown()
    if not thrown:
        return None
    rows = [
        tag("li", tag("button", "Take back", name="run", value=key, class_="quiet"), " ", tag("code", str(folder)))
        for key, folder in thrown.items()
    ]
    form = tag("form", tag("ul", *rows, class_="plain"), method="post", action="/runs/restore")
    count = plural(len(thrown), "run")
    words = f"In the trash: {count}. Nothing is deleted: remove the folder by hand to be rid of it."
    return tag("details", tag("summary", words), form)
