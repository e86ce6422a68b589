"""A run folder to its results as they stand: little is imported, because most who look only look."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..report.stored_results import read_results
from ..scoring.readings import file_of, kept_reading, own_reading
from ..store.reader import RunReader


def results_of(folder: str | Path, reading: str | None = None) -> dict[str, Any]:
    """Return the results of a run as they stand, those of a run that goes on included; or of a kept reading."""
    if reading is not None:
        return kept_reading(Path(folder), reading)[1]
    with RunReader(folder) as reader:
        return read_results(reader, reader.header())


def results_file(folder: str | Path, results: Mapping[str, Any]) -> Path:
    """Return the file that holds results: that of the run's own reading, or of another."""
    with RunReader(folder) as reader:
        name = results["run"]["reading"]["name"]
        return file_of(Path(folder), "results", "json", None if name == own_reading(reader).name else name)
