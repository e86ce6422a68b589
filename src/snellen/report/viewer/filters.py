"""A walk to what narrows it: buttons for outcomes with their counts, and a form whose filters combine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...core.markup import Html, shorten, tag
from ...scoring.aggregates.error_groups import KINDS
from ...scoring.tables.table import TrialColumns
from ..pages.ledger import TRIAL_KINDS
from ..query import OUTCOMES
from .run_library import OpenRun
from .shell import link
from .walk import Walk, chosen_groups

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
    options = [tag("option", KINDS[kind].title, value=kind, selected=kind == chosen) for kind in offered]
    return tag("select", tag("option", "any", value="", selected=not chosen), *options, name="why")


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
        yield tag("label", "metric", _select("metric", list(columns.metrics), columns.metric, none=False))


def _select(name: str, values: list[str], chosen: str, *, none: bool = True, cut: str = "", blank: str = "any") -> Html:
    offered = [*values, *([chosen] if chosen and chosen not in values else [])]
    options = [
        tag("option", shorten(value.removeprefix(cut), 60), value=value, selected=value == chosen) for value in offered
    ]
    return tag("select", tag("option", blank, value="", selected=not chosen) if none else None, *options, name=name)
