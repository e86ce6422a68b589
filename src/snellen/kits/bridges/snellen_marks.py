"""What a file that Snellen wrote in the form of another tool says of its own task, so that it can be read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.builtins import is_shipped

_MADE_HERE = frozenset(("exam", "rationale", "annotated", "peer"))
"""Scorers that need more than the trials: a reading of such a run keeps the file's own verdicts."""


def own_scoring(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a task that a file may set: names of scorers and aggregates that there are."""
    scorers = [name for name in task.get("scorers") or () if is_shipped("scorer", name) and name not in _MADE_HERE]
    if not scorers or len(scorers) != len(task.get("scorers") or ()):
        return {}
    aggregates = tuple(name for name in task.get("aggregates") or () if is_shipped("aggregate", name))
    return {"scorers": tuple(scorers), **({"aggregates": aggregates} if aggregates else {})}
