"""A task that was asked in one protocol, read in another: its reader, fallback and figures; the replies stay."""

from __future__ import annotations

from msgspec import structs

from ...core.tasks import Task
from ...data.catalog import Catalog

READ_BY = ("scorers", "score_options", "fallback", "figures", "headline")


def read_in(task: Task, protocol: str) -> Task:
    """Return a task as a protocol of its card reads it; its name says in which it was asked."""
    if protocol in ("", task.protocol):
        return task
    card = Catalog().task(task.name, protocol=protocol)
    asked = f"asked in {task.protocol}" if task.protocol else "asked in none"
    parts = {name: getattr(card, name) for name in READ_BY}
    return structs.replace(task, protocol=f"{protocol}, {asked}", **parts)
