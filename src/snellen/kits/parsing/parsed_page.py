"""A page that was read, beside its picture: gold and reply block by block, differences marked, tables laid together.

Replies are shown as text and as tables made here: nothing that a model wrote is ever run as HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.markup import Child, Html, shorten, tag
from ...core.types import BASE_VARIANT, Form, Sample, TrialKey
from ...report.pages.gallery import Shown, read_trial
from ...report.viewer.same_sample import word_difference
from ...report.viewer.shell import link, shell, trial_address
from ...report.viewer.stage import pictures_part
from .blocks import Block, Kind, read_page
from .page_score import PageScore, TableMatch, expanded, score_page
from .pairing import Match
from .scorers import gold_of
from .states import state_of, without_thinking

MOST_ROWS, MOST_COLUMNS = 80, 30
LISTED = 200


def has_pages(run: Any) -> bool:
    """Tell whether a run has a task of parsed pages."""
    return any(task.form is Form.PARSE for task in run.header().tasks)


_KEYS = "SELECT task, sample, variant, repeat FROM predictions WHERE task = ? ORDER BY sample, variant, repeat LIMIT ?"


def parsed(library: Any, request: Any) -> Html:
    """Show the pages of a run, or one of them (`?sample=`)."""
    with library.run(request.path_params["key"]).held() as run:
        task = next(task for task in run.header().tasks if task.form is Form.PARSE)
        asked = request.query_params
        keys = [TrialKey(*row) for row in run.reader.rows(_KEYS, (task.name, LISTED))]
        wanted = (asked.get("sample"), asked.get("variant") or BASE_VARIANT)
        key = next((key for key in keys if (key.sample, key.variant) == wanted), keys[0] if keys else None)
        shown = read_trial(run.reader, key) if key else None
        if shown is None:
            return shell("Pages read", [tag("h1", "Pages read"), tag("p", "No page has been read yet.")])
        head = tag("h1", f"{shown.sample.id}: what was read")
        return shell("Pages read", [head, _chooser(run, keys, shown), *_page(run, shown)])


def _chooser(run: Any, keys: Sequence[TrialKey], shown: Shown) -> Html:
    links: list[Child] = []
    for key in keys:
        name = key.sample if key.variant == BASE_VARIANT else f"{key.sample} {key.variant}"
        chosen = key == shown.prediction.key
        links += [tag("b", name) if chosen else link(name, trial_address(run, key, "parsed")), " "]
    return tag("p", *links, class_="small")


def _page(run: Any, shown: Shown) -> Iterator[Child]:
    text = without_thinking(shown.prediction.text or "") or ""
    found = score_page(gold_of(shown.sample), read_page(text))
    facts = f"page {found.page:.1f} of 100 · {len(found.missed)} blocks missed · {len(found.invented)} invented"
    yield tag("p", f"{facts} · {state_of(text, shown.prediction.finish)}")
    for words in found.reply.removed:
        yield tag("p", f"taken off before reading: {shorten(words, 120)}", class_="small muted")
    for words in found.reply.notes:
        yield tag("p", words, class_="small muted")
    yield tag("p", tag("del", "missing"), " ", tag("ins", "read instead, or invented"), class_="small muted")
    blocks = tag("div", *block_rows(found), class_="card")
    yield tag("div", tag("div", pictures_part(run, shown)), blocks, class_="two")
    sides = (("Gold", found.gold), ("Reply", found.reply.blocks))
    pages = [tag("section", tag("h3", name), *map(rendered, side), class_="card") for name, side in sides]
    yield tag("details", tag("summary", "Both as pages"), tag("div", *pages, class_="two"))
    sources = (("Gold as written", gold_source(shown.sample)), ("Reply as written", text))
    for name, source in sources:
        yield tag("details", tag("summary", name), tag("pre", shorten(source, 30_000), tabindex=0))


def gold_source(sample: Sample) -> str:
    """Return a sample's gold page as text."""
    return "\n\n".join(sample.answers)


def block_rows(found: PageScore) -> Iterator[Html]:
    """Yield a row for each gold block with what stands for it, then one for each block that was invented."""
    by_gold: dict[int, Match | TableMatch] = {match.gold[0]: match for match in found.matches}
    by_gold |= {one.gold: one for one in found.tables}
    later = {n for match in found.matches for n in match.gold[1:]}
    for place, block in enumerate(found.gold):
        if place in later:
            continue
        match = by_gold.get(place)
        if match is None:
            yield _row(block, "missed", tag("del", block.text or "(empty)"))
        elif isinstance(match, TableMatch):
            yield _row(block, f"TEDS {match.teds:.2f}", table_difference(block, found.reply.blocks[match.reply]))
        else:
            gold = " ".join(found.gold[n].text for n in match.gold)
            reply = " ".join(found.reply.blocks[n].text for n in match.reply)
            yield _row(block, f"alike {match.alike:.2f}", word_difference(gold, reply))
    for place in found.invented:
        yield _row(found.reply.blocks[place], "invented", tag("ins", found.reply.blocks[place].text or "(empty)"))


def _row(block: Block, told: str, shown: Child) -> Html:
    name = block.category or ("heading" if block.level else block.kind.value)
    mono = " mono" if block.kind is Kind.FORMULA else ""
    return tag("div", tag("header", f"{name} · {told}", class_="small muted"), tag("div", shown, class_=f"block{mono}"))


def table_difference(gold: Block, reply: Block) -> Html:
    """Return two tables laid on each other: cells that differ show what is missing and what was read instead."""
    wanted, read = expanded(gold.rows), expanded(reply.rows)
    spots = {*wanted, *read}
    rows = range(min(MOST_ROWS, max((row for row, _ in spots), default=-1) + 1))
    columns = range(min(MOST_COLUMNS, max((column for _, column in spots), default=-1) + 1))
    body = [tag("tr", *(_cell(wanted.get((r, c)), read.get((r, c))) for c in columns)) for r in rows]
    return tag("div", tag("table", tag("tbody", *body)), class_="scroll")


def _cell(gold: str | None, reply: str | None) -> Html:
    if gold == reply:
        return tag("td", gold or "")
    return tag("td", word_difference(gold or "", reply or "") if gold and reply else _only(gold, reply))


def _only(gold: str | None, reply: str | None) -> Child:
    return tag("del", gold) if gold else tag("ins", reply or "")


def rendered(block: Block) -> Html:
    """Return a block as it looks: a heading, a text, a formula, or a table with its spans."""
    if block.kind is Kind.TABLE:
        cells = [[tag("td", cell.text, rowspan=cell.rows, colspan=cell.columns) for cell in row] for row in block.rows]
        return tag("div", tag("table", tag("tbody", *(tag("tr", *row) for row in cells[:MOST_ROWS]))), class_="scroll")
    if block.level:
        return tag("h4", block.text)
    return tag("p", block.source if block.kind is Kind.FORMULA else block.text, class_="mono" if block.tokens else None)
