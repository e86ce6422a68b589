"""What was imported of another harness, in lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.text import plural
from ..data.foreign.damage import damage_lines


def import_lines(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was imported, and what the file has lost."""
    failed = f", {plural(about['failed'], 'failed call')}" if about["failed"] else ""
    lost = about["planned"] - about["rows"]
    missing = f", {plural(lost, 'row')} without a prediction" if lost else ""
    rows = plural(about["rows"], "row")
    yield f"{about['harness']}: {rows} of {about['model']} on {about['peer_task']}{failed}{missing}"
    yield from (f"  damage, {line}" for line in damage_lines(about["damage"]))
    yield from (f"  note: {note}" for note in about["notes"])
