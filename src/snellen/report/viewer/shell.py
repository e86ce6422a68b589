"""Parts of a page to the page: head, bar, crumbs, and addresses that hold keys and names only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import NamedTuple
from urllib.parse import quote, urlencode

from ...core.markup import Attribute, Child, Html, tag
from ...core.registry import Page, resolve_target
from ...core.types import TrialKey
from ..pages.draw import logo
from .liveness import is_written_now, last_written
from .run_library import OpenRun

PLACES = (("/", "Runs"), ("/leaderboard", "Leaderboard"))
KIT_PLACES: ContextVar[Sequence[tuple[str, str]]] = ContextVar("kit_places", default=())
"""The pages of kits that stand in the bar of the viewer that is asked: (address, label)."""


EXPORTED: ContextVar[bool] = ContextVar("exported", default=False)
"""Whether pages are made for a folder of files, which no viewer serves."""
POLICY = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; base-uri 'none'"
"""What a page of such a folder may load: files beside it."""


def served(*parts: Child) -> Sequence[Child]:
    """Return parts of a page that only a viewer can answer for; none where the page becomes a file."""
    return () if EXPORTED.get() else parts


def address(path: str, **query: object) -> str:
    """Return a local address; empty values are left out."""
    known = {key: value for key, value in query.items() if value not in ("", None, False)}
    return quote(path) + (f"?{urlencode(known, doseq=True, errors='replace')}" if known else "")


def trial_address(run: OpenRun, key: TrialKey, place: str = "trial", **more: object) -> str:
    """Return the permanent address of one trial, or of something that belongs to it."""
    variant = key.variant if key.variant != "base" else ""
    names = {"task": key.task, "sample": key.sample, "variant": variant, "repeat": key.repeat or ""}
    return address(f"/run/{run.key}/{place}", **names, **more)


def link(words: Child, to: str, **attributes: str | None) -> Html:
    """Return a link."""
    return tag("a", words, href=to, **attributes)


def run_crumbs(run: OpenRun, *more: Child, task: str = "") -> list[Child]:
    """Return the way from all runs to a page about one of them, or about one of its tasks."""
    return [link("Runs", "/"), link(run.name, address(f"/run/{run.key}", task=task)), *more]


def pager(before: tuple[str, str] | None, words: str, after: tuple[str, str] | None, *, label: str) -> Html:
    """Return the way to what stands before and after, each as words and address; None at an end."""
    ends = ((before, "prev"), (after, "next"))
    ways = [link(*way, rel=rel, class_="button quiet") if way else tag("span") for way, rel in ends]
    return tag("nav", ways[0], tag("span", words, class_="muted"), ways[1], class_="pager", aria_label=label)


def picture(run: OpenRun, key: TrialKey, words: str = "", *, n: int | None = None, **more: Attribute) -> Html:
    """Return a picture of a trial, small; `words` say what it is, and it is fetched when it comes into sight."""
    return tag("img", src=trial_address(run, key, "image", n=n, small=1), alt=words, loading="lazy", **more)


def choice(name: str, options: Mapping[str, str], chosen: str = "", *, blank: str | None = None) -> Html:
    """Return a list to choose from, value -> words; `blank` are the words for no choice, where that is one."""
    made = [tag("option", words, value=value, selected=value == chosen) for value, words in options.items()]
    none = None if blank is None else tag("option", blank, value="", selected=not chosen)
    return tag("select", none, *made, name=name)


class ListPage(NamedTuple):
    """One page of a long list: its number, of how many, and how many rows stand on one."""

    number: int
    last: int
    size: int

    @property
    def rows(self) -> slice:
        """Return which rows of the list stand on it."""
        return slice((self.number - 1) * self.size, self.number * self.size)

    def ways(self, to: Callable[[int], str], what: str = "", *, label: str) -> Html | None:
        """Return the ways to the pages before and after it; None where there are none."""
        if self.last == 1:
            return None
        more = f" {what}" if what else ""
        before = (f"← Previous{more}", to(self.number - 1)) if self.number > 1 else None
        after = (f"Next{more} →", to(self.number + 1)) if self.number < self.last else None
        return pager(before, f"page {self.number:,} of {self.last:,}", after, label=label)


def page_of(total: int, size: int, wanted: int) -> ListPage:
    """Return the page of a list that is wanted, or the nearest there is."""
    last = max(1, math.ceil(total / size))
    return ListPage(min(max(1, wanted), last), last, size)


def whole_number(told: str, otherwise: int) -> int:
    """Return a number that stands in an address or a form; another where none does, or one nobody means."""
    return int(told) if told.isdecimal() and len(told) < 9 else otherwise


def wanted_page(told: Mapping[str, str]) -> int:
    """Return which page of a list an address asks for."""
    return whole_number(told.get("page", ""), 1)


def trial_in(told: Mapping[str, str]) -> TrialKey:
    """Return which trial an address or a form names; one that is not understood is no trial's."""
    repeat = whole_number(told.get("repeat") or "0", -1)
    return TrialKey(told.get("task", ""), told.get("sample", ""), told.get("variant", "") or "base", repeat)


def downloads(path: str, **query: object) -> Html:
    """Return links to a table in each form it can be kept."""
    forms = (("csv", "CSV"), ("markdown", "Markdown"), ("latex", "LaTeX"))
    links = [link(words, address(path, **query, format=form), class_="button quiet") for form, words in forms]
    return tag("p", *links, class_="bar-of-buttons")


def kit_links(run: OpenRun) -> Html | None:
    """Return the links to what kits show of a run; None where they show nothing."""
    pages = _kit_pages(run)
    links = [link(page.label, to.replace("{key}", run.key), class_="button quiet") for to, page in pages]
    return tag("nav", *links, class_="bar-of-buttons", aria_label="More of this run") if links else None


def _kit_pages(run: OpenRun) -> list[tuple[str, Page]]:
    """Return the registered pages that are linked from a run, those left out whose `when` says no."""
    every = ((to, page) for to, page in run.registry.entries("page").items() if page.linked_from == "run")
    return [(to, page) for to, page in every if page.when is None or resolve_target(page.when)(run)]


def shell(
    title: str, parts: Sequence[Child], *, place: str = "", crumbs: Sequence[Child] = (), live: str | None = None
) -> Html:
    """Return a whole page of the viewer; `live` is the address that tells when there is something new."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY) if EXPORTED.get() else None,
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} – Snellen"),
        tag("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href="/static/snellen.css"),
        tag("script", src="/static/view.js", defer=True),
    )
    known = () if EXPORTED.get() else (*PLACES, *KIT_PLACES.get())
    places = [link(words, to, aria_current="page" if to == place else None) for to, words in known]
    brand = tag("a", logo(), "SNELLEN", href="/", class_="brand")
    bar = tag("header", brand, tag("nav", *places, aria_label="Pages") if places else None, class_="topbar")
    crumbs = crumbs[1:] if EXPORTED.get() else crumbs  # the first leads to all runs
    trail = [child for crumb in crumbs for child in (" › ", crumb)][1:]
    path = tag("p", *trail, class_="crumbs") if crumbs else None
    following = None if EXPORTED.get() else live
    main = tag("main", path, *parts, id="main", class_="wrap wide", data_live=following)
    body = tag("body", tag("a", "Skip to the content", href="#main", class_="skip"), bar, main, _keys())
    return Html("<!doctype html>\n" + tag("html", head, body, lang="en"))


KEYS = {
    "o": "open the first trial of a list",
    "j": "next trial or page",
    "k": "previous trial or page",
    "u": "up: from a trial to its list, from a list to its run",
    "m": "mark the trial (viewer started with --write)",
    "r": "the reply rendered, as it came, or raw",
    "/": "search",
    "?": "show or hide this list",
}


def _keys() -> Html:
    """Return the list of keys, which `?` shows."""
    lines = [tag("li", tag("kbd", key), f" {words}") for key, words in KEYS.items()]
    close = tag("form", tag("button", "Close"), method="dialog")
    return tag("dialog", tag("ul", *lines), close, id="keys", class_="keys", aria_label="Keys")


def progress_bar(run: OpenRun) -> Html | None:
    """Return how far a run is while it is not complete, and whether somebody still writes it."""
    progress = run.progress()
    if progress.complete:
        return None
    words = f"{progress.stored:,} of {progress.planned:,} trials stored, {run.failures():,} failed"
    bar = tag("progress", value=progress.stored, max=progress.planned, aria_label=words)
    parts = run.parts()
    words += f"; parts: {', '.join(f'{count:,} {state}' for state, count in parts.items())}" if parts else ""
    is_running = "running" in parts if parts else is_written_now(run.folder)
    if is_running:
        return tag("div", tag("span", f"running: {words}", class_="live"), bar, role="status", class_="progress")
    stopped = tag("span", "■ stopped", class_="tag failed")
    when = "" if parts else f"; last written {last_written(run.folder)}"
    told = tag("span", f" {words}{when}", class_="small")
    return tag("div", stopped, told, bar, role="status", class_="progress stopped")


def notes_notice(run: OpenRun) -> Html | None:
    """Say that the notes of a run cannot be read, where that is so."""
    problem = run.notes_problem
    return tag("p", f"The notes of this run cannot be read: {problem}", class_="notice") if problem else None
