"""How trials are shown to the bar that changes it: table or gallery, dense or roomy, which columns, grouped by what."""

from __future__ import annotations

from ...core.markup import Html, tag
from ..web.shelf import OpenRun
from ..web.shell import link
from ..web.trial_table import COLUMNS
from ..web.walk import Walk


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
    chosen = walk.look.columns or COLUMNS
    boxes = [
        tag("label", tag("input", type="checkbox", name="columns", value=name, checked=name in chosen), f" {name}")
        for name in COLUMNS
        if name != "trial"
    ]
    form = tag("form", *_kept(walk, "columns"), *boxes, tag("button", "Show these"), method="get", action=_to(run))
    return tag("details", tag("summary", "Columns"), form, class_="choice")


def _by(run: OpenRun, walk: Walk) -> Html | None:
    keys = list(run.groups(walk.task))
    if not keys:
        return None
    options = [tag("option", key, value=key, selected=key == walk.look.by) for key in keys]
    nothing = tag("option", "nothing", value="", selected=not walk.look.by)
    label = tag("label", "group by ", tag("select", nothing, *options, name="by"))
    fields = (*_kept(walk, "by"), label, tag("button", "Group", class_="quiet"))
    return tag("form", *fields, method="get", action=_to(run), data_filters=True)


def _to(run: OpenRun) -> str:
    return f"/run/{run.key}/trials"
