"""Verdicts of gates to words: a terminal, a comment on a pull request, a JUnit file."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from ...core.markup import Child, tag
from ...report.pages import draw
from ...report.pages.html_document import document
from ...stats.gate import BETTER, OPEN, SAME, WORSE
from .gate import GateResult

MARKS = {SAME: "✅", BETTER: "✅", WORSE: "❌", OPEN: "❔"}
SHOWN_FLIPS = 20
MEANINGS = {
    SAME: "not worse by the margin or more",
    BETTER: "not worse by the margin, and better",
    WORSE: "worse than the base",
    OPEN: "the questions asked do not settle it",
}


def joint_exit_code(found: Sequence[GateResult]) -> int:
    """Return 1 if anything is worse, else 4 if anything is not settled, else 0."""
    codes = {one.exit_code for one in found}
    return next((code for code in (1, 4) if code in codes), 0)


def render(found: Sequence[GateResult], form: str) -> str:
    """Return the verdicts in one of the forms: text, github, junit."""
    return {"text": _text, "github": _github, "junit": _junit}[form](found)


def _text(found: Sequence[GateResult]) -> str:
    lines = []
    for one in found:
        name = f"{one.task}: " if len(found) > 1 else ""
        lines.append(f"{name}{one.line()}")
        lines += [f"  {line}" for line in detail_lines(one)]
    return "\n".join(lines)


def detail_lines(one: GateResult) -> list[str]:
    """Say what the line means and what it rests on."""
    lines = [
        f"{MEANINGS[one.verdict]}; margin {one.margin:g} points, false verdicts at most {100 * one.error:g} %",
        f"{len(one.worse)} answers got worse and {len(one.better)} better among {one.asked:,} asked ({one.metric})",
    ]
    if one.failed or one.unread:
        lines.append(f"{one.failed:,} calls failed and {one.unread:,} replies were not read: they count as not right")
    return [*lines, *one.notes]


def _github(found: Sequence[GateResult]) -> str:
    """Return Markdown for $GITHUB_STEP_SUMMARY or a comment."""
    rows = ["| | task | verdict | difference (points) | margin | asked |", "|---|---|---|---|---|---|"]
    for one in found:
        interval = "exact" if one.interval is None else f"{one.interval[0]:+.1f} … {one.interval[1]:+.1f}"
        asked = f"{one.asked:,} of {one.questions:,}"
        head = f"| {MARKS[one.verdict]} | {_cell(one.task)} | **{one.verdict}** "
        rows.append(f"{head}| {one.difference:+.1f} ({interval}) | {one.margin:g} | {asked} |")
    parts = [f"### Gate: {_cell(found[0].candidate)} against {_cell(found[0].base)}", "", *rows]
    for one in found:
        parts += ["", *(f"- {_cell(line)}" for line in detail_lines(one))]
        for word, flips in (("worse", one.worse), ("better", one.better)):
            if flips:
                shown = ", ".join(f"`{_cell(flip.sample)}`" for flip in flips[:SHOWN_FLIPS])
                more = f" and {len(flips) - SHOWN_FLIPS} more" if len(flips) > SHOWN_FLIPS else ""
                head = f"<details><summary>{len(flips)} {word} on {_cell(one.task)}</summary>"
                parts += ["", head, "", shown + more, "", "</details>"]
    return "\n".join(parts)


def _cell(text: str) -> str:
    return escape(text).replace("|", "\\|").replace("`", "'").replace("\n", " ")


def _junit(found: Sequence[GateResult]) -> str:
    failures = sum(one.exit_code == 1 for one in found)
    skipped = sum(one.exit_code == 4 for one in found)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="snellen gate" tests="{len(found)}" failures="{failures}" skipped="{skipped}">',
    ]
    for one in found:
        lines.append(f"  <testcase classname={quoteattr(one.candidate)} name={quoteattr(one.task)}>")
        words = quoteattr(one.line())
        if one.exit_code == 1:
            body = escape("\n".join([*detail_lines(one), *(f"worse: {flip.sample}" for flip in one.worse)]))
            lines.append(f"    <failure message={words}>{body}</failure>")
        elif one.exit_code == 4:
            lines.append(f"    <skipped message={words}/>")
        lines.append(f"    <system-out>{escape(one.line())}</system-out>")
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>"])


def gate_parts(one: GateResult) -> list[Child]:
    """Return the verdict as parts of a page."""
    chips = (f"margin {one.margin:g} points", f"{one.asked:,} of {one.questions:,} asked", one.metric)
    title = tag(
        "div",
        tag("p", f"Gate on {one.task}", class_="kicker"),
        tag("h1", f"{one.candidate}: {one.verdict}"),
        tag("ul", *(tag("li", chip, class_="chip") for chip in chips), class_="chips"),
    )
    parts: list[Child] = [tag("header", draw.logo(), title, class_="masthead")]
    parts += [tag("p", f"Against {one.base}. {one.line()}.", class_="notice", role="note")]
    parts += [tag("ul", *(tag("li", line) for line in detail_lines(one)))]
    for word, flips in (("worse", one.worse), ("better", one.better)):
        rows = [
            tag("tr", tag("td", flip.sample), tag("td", f"{flip.base:g}"), tag("td", f"{flip.candidate:g}"))
            for flip in flips
        ]
        if rows:
            head = tag("tr", *(tag("th", text, scope="col") for text in ("question", "base", "candidate")))
            parts += [tag("h2", f"Answers that got {word}"), tag("table", tag("thead", head), tag("tbody", *rows))]
    return parts


def gate_page(one: GateResult) -> str:
    """Return the page that lies beside the run."""
    return document(f"Gate: {one.candidate} – Snellen", gate_parts(one))
