"""Groups of answers that are not right to what people read of them: one line after a run, a table with examples."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ..core.markup import shorten
from ..core.text import plural
from ..scoring.aggregates.error_groups import ErrorGroup, Mistake
from .terminal import plain

NAMED = 3
"""Groups that the line after a run names."""
EXAMPLES = 3
"""Trials that a group shows."""


def error_line(groups: Sequence[ErrorGroup]) -> str:
    """Return the largest groups in one line; nothing where every answer is right, or nothing explains them."""
    if not any(group.kind != "other" for group in groups):
        return ""
    total = sum(len(group.trials) for group in groups)
    named = [f"{group.title} {len(group.trials):,}" for group in groups[:NAMED]]
    rest = total - sum(len(group.trials) for group in groups[:NAMED])
    return f"{total:,} not right: {' · '.join([*named, *([f'more {rest:,}'] if rest else [])])}"


def next_step(groups: Sequence[ErrorGroup]) -> str:
    """Return what to do about the largest group for which something can be done, if it holds a tenth of all."""
    return next((f"{group.title}: {group.step}" for group in groups if group.step and group.share >= 0.1), "")


def error_table(task: str, groups: Sequence[ErrorGroup]) -> Table:
    """Return the groups of a task with their rule, share and first examples."""
    total = sum(len(group.trials) for group in groups)
    table = Table(title=f"{task}: why {plural(total, 'answer')} {'is' if total == 1 else 'are'} not right")
    for name in ("group", "trials", "share", "when a trial is in it, and examples"):
        table.add_column(name, justify="right" if name in ("trials", "share") else "left")
    for group in groups:
        shown = "\n".join([group.rule, *(f"  {example(one)}" for one in group.trials[:EXAMPLES])])
        table.add_row(group.title, f"{len(group.trials):,}", f"{group.share:.0%}", plain(shown))
    return table


def example(one: Mistake) -> str:
    """Return a trial in a line: its sample, what was expected, what was said."""
    said = one.given if one.given is not None and one.given != one.reply else one.reply
    return f"{one.key.sample}: {shorten(' | '.join(one.expected), 40)!r} expected, {shorten(said, 60)!r} given"
