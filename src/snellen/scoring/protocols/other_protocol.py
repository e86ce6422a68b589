"""A task that was asked in one protocol, read in another of its card: its reader, fallback and figures."""

from __future__ import annotations

from msgspec import structs

from ...core.tasks import RunHeader, Task
from ...data.atlas.protocols import protocol_named
from ...data.catalog import Catalog


def read_in(task: Task, protocol: str, header: RunHeader) -> Task:
    """Return a task of a run as a protocol of its card reads it; its name says in which it was asked."""
    if protocol in ("", task.protocol):
        return task
    known = Catalog().protocols(task.name) if header.protocols is None else header.protocols.get(task.name, {})
    parts = structs.asdict(protocol_named(protocol, known, task.name))
    asked = f"asked in {task.protocol}" if task.protocol else "asked in none"
    return structs.replace(task, protocol=f"{protocol}, {asked}", **parts)


def card_note(task: Task, protocol: str, header: RunHeader) -> list[str]:
    """Say that a run holds no protocols, so that the card of this installation was taken for its own."""
    if header.protocols is not None or protocol in ("", task.protocol):
        return []
    what = f"this run does not hold the protocols of its card: {protocol} is that of the installed card {task.name}"
    return [f"{what}, which another version of Snellen may read otherwise"]
