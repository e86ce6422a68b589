"""An address to what is looked at: task, metric, filters and order, kept from table to trial and back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from starlette.datastructures import QueryParams

from ...core.markup import Html, shorten, tag
from ...core.types import TrialKey
from ...scoring.aggregates.error_groups import KINDS
from ...scoring.tables.table import Mask, TrialColumns
from ..pages.ledger import TRIAL_KINDS
from ..pages.parts import marked_trials
from ..query import OUTCOMES, SORTS, Query, Rows, Sifted, sift
from .run_library import OpenRun
from .shell import address, choice, link, trial_address

PAGE, GALLERY_PAGE = 50, 200
WORDS = {
    "slower": "at least {} s",
    "longer": "at least {} tokens",
    "text": "“{}”",
    "sort": "by {}",
    "marked": "marked: {}",
    "why": "why: {}",
}
"""How a filter is told; the others are told by their value."""


class Look(NamedTuple):
    """How the trials are shown: as a table or a gallery, how dense, which columns, and by what they are counted."""

    gallery: bool = False
    dense: bool = False
    columns: tuple[str, ...] = ()
    """The chosen columns; empty: all that have something to say."""
    by: str = ""

    @property
    def kept(self) -> dict[str, object]:
        """Return it as the names and values of an address."""
        named: dict[str, object] = {"view": "gallery" if self.gallery else "", "dense": "1" if self.dense else ""}
        return named | {"columns": ",".join(self.columns), "by": self.by}

    @property
    def page(self) -> int:
        """Return how many trials stand on one page."""
        return GALLERY_PAGE if self.gallery else PAGE


class Walk(NamedTuple):
    """The trials one looks through, and in which order."""

    task: str
    metric: str
    query: Query
    look: Look = Look()

    @property
    def kept(self) -> dict[str, object]:
        """Return all but the task as the names and values of an address; what says nothing is left out."""
        query = self.query
        named: dict[str, object] = {"outcome": query.outcome if query.outcome != "all" else "", "rule": query.rule}
        named |= {"group": chosen_groups(query), "text": query.text}
        named |= {"regex": "1" if query.is_pattern and query.text else ""}
        named |= {"flipped": "1" if query.flipped else "", "slower": query.slower, "longer": query.longer}
        named |= {"sort": query.sort if query.sort != "plan" else "", "order": "down" if query.descending else ""}
        named |= {"marked": query.marked, "why": query.why, **self.look.kept, "metric": self.metric}
        return {key: value for key, value in named.items() if value not in ("", None, [])}

    @property
    def words(self) -> str:
        """Return the filters in words, for a breadcrumb; empty where there are none."""
        told = {key: value for key, value in self.kept.items() if key not in ("metric", "order", *self.look.kept)}
        groups = told.pop("group", [])
        told |= {"flipped": "flipped"} if "flipped" in told else {}
        told |= {"why": KINDS[self.query.why].title} if self.query.why else {}
        told |= {"text": f"/{told['text']}/"} if told.pop("regex", "") else {}
        said = WORDS | ({"text": "{}"} if self.query.is_pattern else {})
        single = [said.get(key, "{}").format(value) for key, value in told.items()]
        return ", ".join([*single, *(groups if isinstance(groups, list) else [])])

    def to(self, run: OpenRun, **other: object) -> str:
        """Return the address of these trials as a table, with some of it changed."""
        return address(f"/run/{run.key}/trials", **{"task": self.task, **self.kept, **other})

    def trial(self, run: OpenRun, key: TrialKey) -> str:
        """Return the address of one trial on this walk."""
        return trial_address(run, key, "trial", **self.kept)


class Walked(NamedTuple):
    """A walk with the rows it found."""

    columns: TrialColumns
    rows: Rows
    counts: dict[str, int]
    """How many trials each outcome would show."""


def chosen_groups(query: Query) -> list[str]:
    """Return the groups that were chosen, as an address names them."""
    return [f"{key}={value}" for key, value in ((query.key, query.group), *query.also) if key]


def walk_of(run: OpenRun, told: QueryParams) -> Walk:
    """Return what an address asks to see; what is not understood falls back to everything."""
    pairs = [(key, value) for key, _, value in (one.partition("=") for one in told.getlist("group")) if key]
    first, also = (pairs[0], tuple(pairs[1:])) if pairs else (("", ""), ())
    outcome, sort = told.get("outcome", "all"), told.get("sort", "plan")
    outcome = "unread" if outcome == "unparsed" else outcome  # as addresses of 0.2 call it
    longer = _number(told.get("longer", ""))
    query = Query(
        outcome if outcome in OUTCOMES and outcome != "flipped" else "all",
        told.get("rule", ""),
        first[0],
        first[1],
        told.get("text", ""),
        sort if sort in SORTS else "plan",
        told.get("order") == "down",
        also,
        bool(told.get("flipped")) or outcome == "flipped",
        _number(told.get("slower", "")),
        math.ceil(longer) if longer is not None else None,
        bool(told.get("regex")),
        told["marked"] if told.get("marked") in ("any", *TRIAL_KINDS) else "",
        told["why"] if told.get("why") in KINDS else "",
    )
    return Walk(run.task(told.get("task", "")).name, told.get("metric", ""), query, _look_of(told))


def _look_of(told: QueryParams) -> Look:
    columns = tuple(name for name in ",".join(told.getlist("columns")).split(",") if name)
    return Look(told.get("view") == "gallery", bool(told.get("dense")), columns, told.get("by", ""))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < 1e9 else None


def walk_through(run: OpenRun, walk: Walk) -> Walked:
    """Find the trials of a walk."""
    columns = run.columns(walk.task, walk.metric)

    def look() -> Sifted:
        return sift(
            columns,
            walk.query,
            search=lambda text: _searched(run, walk, text),
            costs=lambda: run.costs(walk.task),
            marks=lambda kind: marked_trials(columns, run.notes(), kind),
            errors=lambda kind: np.isin(columns.row, [one.row for one in run.mistakes(walk.task, kind)]),
        )

    # Marks change without the run.
    found = look() if walk.query.marked else run.last_sifted(walk.task).again((columns.metric, walk.query), look)
    return Walked(columns, *found)


def place_of(columns: TrialColumns, key: TrialKey) -> int | None:
    """Return where a trial stands in the columns; None where it is not stored."""
    of_key = columns.rows_with("sample", key.sample) & columns.rows_with("variant", key.variant)
    rows = np.flatnonzero(of_key & (columns.repeat == key.repeat))
    return int(rows[0]) if rows.size else None


def _searched(run: OpenRun, walk: Walk, text: str) -> Mask:
    search = run.search(walk.task)
    return search.match(text) if walk.query.is_pattern else search.find(text)


MOST_CHOICES = 500
"""A list longer than this is no longer a list to choose from; the text field takes the rest."""
MOST_KEYS = 6
"""So many tags have a list of their own; further ones share one."""


def outcome_buttons(run: OpenRun, walk: Walk, counts: Mapping[str, int]) -> Html:
    """Return a button for each outcome that some trial has, with how many it would show; other filters stay."""
    chosen = walk.query.outcome
    offered = [name for name in OUTCOMES if name in ("all", chosen) or counts[name]]
    made = [
        counted_button(name, counts[name], walk.to(run, outcome="" if name == "all" else name), here=name == chosen)
        for name in offered
        if name != "flipped"
    ]
    return tag("nav", *made, class_="bar-of-buttons", aria_label="Outcomes")


def counted_button(words: str, count: int, to: str, *, here: bool = False, loud: bool = False) -> Html:
    """Return a button that says how many trials are behind it; `here` is where one is already."""
    shown = (words.capitalize(), " ", tag("span", f"{count:,}", class_="count"))
    return link(shown, to, class_="button" if here or loud else "button quiet", aria_current="true" if here else None)


def filter_form(run: OpenRun, columns: TrialColumns, walk: Walk, counts: Mapping[str, int]) -> Html:
    """Return the form of all filters but the outcome, which it keeps."""
    query = walk.query
    kept = {"task": walk.task, **{key: walk.kept.get(key) for key in ("outcome", "sort", "order", *walk.look.kept)}}
    hidden = [tag("input", type="hidden", name=name, value=str(value)) for name, value in kept.items() if value]
    rules = sorted({*columns.rules, *columns.reasons})[:MOST_CHOICES]
    number = {"type": "number", "min": "0", "step": "any", "class_": "short"}
    fields = [
        tag("label", "rule or reason", _select("rule", rules, query.rule)),
        *_groups(run.groups(walk.task), chosen_groups(query)),
        tag("label", "seconds, at least", tag("input", name="slower", value=_number_text(query.slower), **number)),
        tag("label", "tokens, at least", tag("input", name="longer", value=_number_text(query.longer), **number)),
        tag("label", "text in question, id or reply", _text(query.text)),
        tag("label", "text is", tag("span", _box("regex", query.is_pattern), " a regular expression")),
        *_metric_choice(columns),
        *_marks(run, query.marked),
        *_why(run, walk),
    ]
    if counts["flipped"] or query.flipped:
        words = f" flipped only ({counts['flipped']:,})"
        fields.append(tag("label", "right and wrong", tag("span", _box("flipped", query.flipped), words)))
    to = f"/run/{run.key}/trials"
    everything = (*hidden, *fields, tag("button", "Filter"))
    return tag("form", *everything, method="get", action=to, class_="filters", role="search", data_filters=True)


def _marks(run: OpenRun, chosen: str) -> Iterator[Html]:
    """Yield the choice of a mark, where somebody gave any."""
    here = {note.kind for note in run.notes() if note.sample}
    if here or chosen:
        offered = [kind for kind in TRIAL_KINDS if kind in here]
        yield tag("label", "marked", _select("marked", [*offered, "any"], chosen, blank="–"))


def _why(run: OpenRun, walk: Walk) -> Iterator[Html]:
    """Yield the choice of why an answer is not right, where groups are known."""
    groups = run.errors(walk.task)
    if groups or walk.query.why:
        yield tag("label", "why not right", why_choice([group.kind for group in groups], walk.query.why))


def why_choice(kinds: Sequence[str], chosen: str = "") -> Html:
    """Return the choice of why an answer is not right."""
    offered = [*kinds, *([chosen] if chosen and chosen not in kinds else [])]
    return choice("why", {kind: KINDS[kind].title for kind in offered}, chosen, blank="any")


def _number_text(number: float | None) -> str:
    return "" if number is None else f"{number:g}"


def _text(text: str) -> Html:
    return tag("input", type="search", name="text", value=text, id="search")


def _box(name: str, chosen: bool) -> Html:
    return tag("input", type="checkbox", name=name, value="1", checked=chosen)


def _groups(groups: Mapping[str, list[str]], chosen: list[str]) -> Iterator[Html]:
    """Yield a list for each tag, one for all further ones, and what was chosen that no list can show."""
    lists = {key: [f"{key}={value}" for value in values] for key, values in groups.items()}
    own = dict(list(lists.items())[:MOST_KEYS])
    if others := [value for key, values in lists.items() if key not in own for value in values]:
        own["other group"] = others
    left = list(chosen)
    for key, values in own.items():
        current = next((one for one in left if one in values), "")
        left = [one for one in left if one != current]
        yield tag("label", key, _select("group", values[:MOST_CHOICES], current, cut=f"{key}="))
    for one in left:
        yield tag("input", type="hidden", name="group", value=one)


def _metric_choice(columns: TrialColumns) -> Iterator[Html]:
    if len(columns.metrics) > 1:
        yield tag("label", "metric", _select("metric", list(columns.metrics), columns.metric, blank=None))


def _select(name: str, values: list[str], chosen: str, *, cut: str = "", blank: str | None = "any") -> Html:
    offered = [*values, *([chosen] if chosen and chosen not in values else [])]
    options = {value: shorten(value.removeprefix(cut), 60) for value in offered}
    return choice(name, options, chosen, blank=blank)
