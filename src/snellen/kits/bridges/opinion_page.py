"""A second opinion to one page: two numbers, what lies between them, and the replies to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.markup import Child, Html, shorten, tag
from ...core.text import plural
from ...data.foreign.damage_counts import damage_lines
from ...report.pages import draw
from ...report.pages.html_document import document
from ...report.pages.parts import facts, reply_text
from ...report.pages.tables import head, numbers, row, scrolled
from ...report.written import written, written_interval, written_share
from .disagreement import NEITHER, Opinion
from .opinion_words import FAVOURS, HOW, SHOWN_KINDS

LONGEST_REPLY = 1_200
SHOWN_QUESTION = 160


class Shown:
    """The first few disagreements of each kind."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[tuple[str, bool], list[Opinion]] = {}

    def add(self, opinion: Opinion) -> None:
        """Keep an opinion if there is room among its kind."""
        kept = self._kept.setdefault((opinion.kind, opinion.favour != NEITHER), [])
        if len(kept) < self._most:
            kept.append(opinion)

    def of_kind(self, kind: str) -> list[Opinion]:
        """Return what is shown of a kind: those that move the number first."""
        return [*self._kept.get((kind, True), []), *self._kept.get((kind, False), [])][: self._most]


def render_opinion(summary: Mapping[str, Any], shown: Shown) -> str:
    """Return the whole page as text."""
    parts: list[Child] = [_masthead(summary), tag("p", summary["in_words"], class_="notice", role="note")]
    parts += [tag("h2", "Two numbers"), _numbers(summary), tag("h2", "What lies between"), _between(summary)]
    for kind in SHOWN_KINDS:
        parts += _replies(kind, summary, shown.of_kind(kind))
    parts += _about(summary)
    return document(f"Second opinion: {summary['model']} on {summary['peer_task']} – Snellen", parts)


def _masthead(summary: Mapping[str, Any]) -> Html:
    about = (summary["title"], summary["peer_task"], plural(summary["trials"], "row"), f"rules of {summary['seen']}")
    chips = tag("ul", *(tag("li", fact, class_="chip") for fact in about), class_="chips")
    title = tag("div", tag("p", "Second opinion", class_="kicker"), tag("h1", summary["model"]), chips)
    return tag("header", draw.logo(), title, class_="masthead")


def _numbers(summary: Mapping[str, Any]) -> Html:
    peer, ours = summary["peer"], summary["ours"]
    rows = [
        _number(f"{summary['title']}, {HOW[peer['how']]}", peer["value"], "–", peer["n"]),
        *(
            _number(f"{summary['title']}, reported in {name}", value, "–", None)
            for name, value in summary["reported"].items()
        ),
        _number(
            "Snellen, of every reply: one without a readable answer is not right",
            ours["value"],
            written_interval("accuracy", ours),
            ours["n"],
        ),
    ]
    if summary["strict"]:
        strict = summary["strict"]
        words = "Snellen, failed calls counted as wrong too"
        rows.append(_number(words, strict["value"], written_interval("accuracy", strict), strict["n"]))
    for name, split in summary["splits"].items():
        rows.append(_number(f"{summary['title']}, split {name or '(none)'}", split["peer"], "–", split["peer_n"]))
        rows.append(_number(f"Snellen, split {name or '(none)'}", split["ours"], "–", split["ours_n"]))
    columns = head("whose", ("value", "n"), ("95 % interval", "n"), ("n", "n"))
    return tag("div", scrolled("Two numbers", columns, tag("tbody", *rows)), class_="card")


def _number(name: str, value: float | None, interval: str, count: int | None) -> Html:
    shown = "–" if value is None else written_share(value)
    return row(name, *numbers([shown, interval, "–" if count is None else f"{count:,}"]))


def _between(summary: Mapping[str, Any]) -> Html:
    kinds = [
        row(summary["kinds"][kind]["what"], *numbers(_counts(summary["kinds"][kind])))
        for kind in SHOWN_KINDS
        if summary["kinds"][kind]["count"]
    ]
    steps = [
        row(
            step["what"],
            *numbers([f"{step['trials']:,}", f"{step['change'] * 100:+.2f}", written_share(step["after"])]),
        )
        for step in summary["steps"]
        if step["trials"]
    ]
    parts: list[Child] = []
    if kinds:
        columns = head("what", *((name, "n") for name in ("replies", *FAVOURS)))
        parts.append(scrolled("Disagreements by kind", columns, tag("tbody", *kinds)))
    if steps:
        columns = head("one cause after the other", *((name, "n") for name in ("replies", "points", "then")))
        parts.append(scrolled("From their number to ours", columns, tag("tbody", *steps)))
    return tag("div", *(parts or [tag("p", "Nothing: every reply is read and counted alike.")]), class_="card")


def _counts(entry: Mapping[str, Any]) -> list[str]:
    return [f"{entry[name]:,}" for name in ("count", *FAVOURS)]


def _replies(kind: str, summary: Mapping[str, Any], opinions: list[Opinion]) -> Iterator[Child]:
    entry = summary["kinds"][kind]
    if not opinions:
        return
    yield tag("h2", entry["what"][:1].upper() + entry["what"][1:])
    more = "" if len(opinions) == entry["count"] else f", the first {len(opinions):,} of {entry['count']:,}"
    where = f"all are in {summary['files']['list']}, and `snellen view` shows each with its picture"
    yield tag("p", f"{plural(len(opinions), 'row')}{more}; {where}.", class_="muted")
    columns = head("row", "question", "right answer", "they read", "we read", "favours", "reply")
    body = tag("tbody", *(_reply(opinion) for opinion in opinions))
    yield tag(
        "details", tag("summary", plural(len(opinions), "row")), scrolled(entry["what"], columns, body), open=True
    )


def _reply(opinion: Opinion) -> Html:
    name = opinion.sample + (f" · {opinion.repeat + 1}" if opinion.repeat else "")
    ours = opinion.our_read or (opinion.our_reason or "–") if opinion.our_value is None else opinion.our_read
    theirs = f"{opinion.peer_read or '–'} ({_value(opinion.peer_value)})"
    cells = [
        shorten(opinion.question, SHOWN_QUESTION) or "–",
        opinion.gold or "–",
        theirs,
        f"{ours or '–'} ({_value(opinion.our_value)})",
        opinion.favour,
    ]
    reply = tag("td", reply_text(opinion.reply, most=LONGEST_REPLY), class_="text")
    return row(name, *(tag("td", cell) for cell in cells), reply, name_class="mono")


def _value(value: float | None) -> str:
    if value is None:
        return "not scored"
    return {1.0: "right", 0.0: "wrong"}.get(value) or written("accuracy", {"value": value})


def _about(summary: Mapping[str, Any]) -> Iterator[Child]:
    lines = [*damage_lines(summary["damage"]), *summary["notes"]]
    yield tag("h2", "The file")
    told = (("file", summary["file"]), ("rows", summary["rows"]), ("failed calls", summary["failed"]))
    rules = ", ".join(f"{form}: {name}" for form, name in summary["rules"].items() if name)
    yield tag(
        "div", facts((*told, ("rules applied", rules))), tag("ul", *(tag("li", line) for line in lines)), class_="card"
    )
