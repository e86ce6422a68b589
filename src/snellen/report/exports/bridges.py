"""The forms of other tools that a run is written in: name -> writer; each is imported where it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .exported_run import Details, ExportedRun, open_export

WRITERS: Final = {
    "eee": "eee_records",
    "inspect": "inspect_log",
    "hub": "hub_results",
    "otel": "otel_spans",
    "junit": "junit_gates",
    "croissant": "croissant_card",
}
"""Form -> the module in here whose `write` makes it."""
Write = Callable[[ExportedRun, Path, Details], list[Path]]


def write_bridge(folder: Path, form: str, output: Path, details: Details) -> tuple[list[Path], list[str]]:
    """Write a run in the form of another tool; return the files and what must be said of them."""
    write: Write = importlib.import_module(f"{__package__}.{WRITERS[form]}").write
    with open_export(folder) as run:
        files = write(run, output, details)
        notes = [f"{run.pictures_missing} pictures are not there any more"] if run.pictures_missing else []
        return files, [*run.notes, *notes]
