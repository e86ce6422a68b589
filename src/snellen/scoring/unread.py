"""What of a task could not be read, in words: how much, three of the replies, and the next step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from ..core.tasks import Task
from ..core.text import plural, show_text
from ..store.reader import RunReader
from .peers.peer_scores import PEER
from .table import ScoreTable

TOLD_FROM = 0.05
"""The share of the replies from which on a number says in its next line that they were not read."""
QUOTED = 3
LONGEST_QUOTE = 160
NEXT_STEPS = (
    (("trunc", "the reply was cut"), "most were cut off: raise --max-tokens and ask again"),
    (("empty", "no answer text"), "most are empty: look at the model's template, stop words and --max-tokens"),
    (("refus",), "most are refusals: see what the model refuses before comparing it"),
)
"""How the commonest reason begins -> what to do about it."""
READ_THEM = (
    "read a few; if they do hold an answer let a model read them "
    "(`snellen score RUN --judge NAME --judge-model MODEL`), else ask for its form in the prompt"
)
_REPLY = "SELECT body FROM predictions WHERE rowid = ?"


class _Reply(msgspec.Struct):
    text: str | None = None


def add_unread(
    result: dict[str, Any], task: Task, tables: Mapping[str, ScoreTable], reader: RunReader
) -> dict[str, Any]:
    """Add to a task's results what was not read of its headline, where that is more than a few replies."""
    table = table_of_headline(task, tables)
    if table is None:
        return result
    rows = _quoted_rows(table) if table.row.size else []
    found = describe_unread(table, [(row, _reply(reader, int(table.row[row]))) for row in rows])
    return result if found is None else result | {"unread": found, "notes": [found["why"], *result.get("notes", ())]}


def table_of_headline(task: Task, tables: Mapping[str, ScoreTable]) -> ScoreTable | None:
    """Return the table that the headline of a task is made of; without one that is known, that of most unread."""
    own = {name: table for name, table in tables.items() if not name.endswith(PEER) and len(table)}
    metric = next((figure.metric for figure in task.figures if figure.name == task.headline), task.headline)
    if metric in own:
        return own[metric]
    return max(own.values(), key=lambda table: int(np.count_nonzero(table.unread)), default=None)


def describe_unread(table: ScoreTable, quotes: Iterable[tuple[int, str]] = ()) -> dict[str, Any] | None:
    """Return how many replies were not read, why, some of them, and a sentence; None where they are at most a few."""
    unread, replies = int(np.count_nonzero(table.unread)), int(np.count_nonzero(table.read | table.unread))
    if unread <= TOLD_FROM * replies:
        return None
    reasons = Counter(table.reasons[code] if code >= 0 else "unparsed" for code in table.reason[table.unread].tolist())
    quoted = [
        {"sample": table.samples[table.sample[row]], "reason": table.reasons[table.reason[row]], "reply": text}
        for row, text in quotes
    ]
    step = _next_step(reasons)
    counted = "they count as not right" if table.scored[table.unread].any() else "they are outside of the figure"
    shown = "; ".join(f"{one['sample']}: “{_shortened(one['reply'])}” ({one['reason']})" for one in quoted)
    what = f"{unread:,} of {plural(replies, 'reply')} ({100 * unread / replies:.1f} %) could not be read"
    why = f"{table.metric}: {what}; {counted}.{f' For example {shown}.' if shown else ''} Next: {step}."
    return {
        "metric": table.metric,
        "n": unread,
        "replies": replies,
        "reasons": dict(reasons.most_common()),
        "quoted": quoted,
        "next": step,
        "why": why,
    }


def _quoted_rows(table: ScoreTable) -> list[int]:
    """Return the rows to quote: one of each of the commonest reasons, then the first of the others."""
    unread = np.flatnonzero(table.unread)
    codes, first, counts = np.unique(table.reason[unread], return_index=True, return_counts=True)
    chosen = [int(unread[first[place]]) for place in np.argsort(-counts, kind="stable")[:QUOTED]]
    more = [int(row) for row in unread[: QUOTED + len(codes)] if row not in chosen]
    return (chosen + more)[:QUOTED]


def _reply(reader: RunReader, row: int) -> str:
    found = next(reader.rows(_REPLY, (row,)), None)
    return "" if found is None else msgspec.json.decode(found[0], type=_Reply).text or ""


def _next_step(reasons: Counter[str]) -> str:
    commonest = reasons.most_common(1)[0][0].lower()
    return next((step for beginnings, step in NEXT_STEPS if commonest.startswith(beginnings)), READ_THEM)


def _shortened(text: str) -> str:
    said = " ".join(show_text(text).split())
    return said if len(said) <= LONGEST_QUOTE else f"{said[: LONGEST_QUOTE // 2]} … {said[-LONGEST_QUOTE // 2 :]}"
