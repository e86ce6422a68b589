"""A stored run scored again, without asking the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.builtins import default_registry
from ..report.files import write_records, write_results
from ..report.page import write_report
from ..score.run import score_run


def score(
    folder: str | Path, *, profile: str | None = None, scorers: Sequence[str] = (), plugins: Sequence[str | Path] = ()
) -> dict[str, Any]:
    """Score every stored reply of a run again, write results.json and records.jsonl, and return the results."""
    registry = default_registry()
    for plugin in plugins:
        registry.load_plugin(plugin)
    results = score_run(Path(folder), registry, profile=profile, scorers=scorers)
    write_results(Path(folder), results)
    write_records(Path(folder))
    write_report(Path(folder), results=results)
    return results
