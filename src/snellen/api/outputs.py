"""Stored runs to what people keep of them: report.html, a leaderboard, a data frame, files of other systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import SnellenError, UsageError
from ..report.boards.ranking import Board, Entry, make_board
from ..report.exports.seed_files import export_run
from ..report.exports.trial_files import frame as _frame
from ..report.pages.overview import overview_of, read_results
from ..report.pages.report_page import PICTURE_BYTES, write_report
from ..report.pages.vega import save_plot
from ..scoring.stored import read_columns
from ..store.reader import RunReader

DEPTH = 3


def report(folder: str | Path, *, picture_bytes: int = PICTURE_BYTES) -> Path:
    """Write report.html of a run and return its path; nothing is asked or scored."""
    return write_report(Path(folder), picture_bytes=picture_bytes)


def plots(folder: str | Path, output: str | Path) -> list[Path]:
    """Write every figure of a run as CSV, Vega-Lite, SVG and PNG (extra `plots`)."""
    with RunReader(folder) as reader:
        results = read_results(reader, reader.header())
        files: list[Path] = []
        for task in reader.header().tasks:
            for figure in overview_of(reader, read_columns(reader, task), results).figures:
                files += save_plot(figure.spec, figure.rows, Path(output) / f"{task.name}-{figure.name}")
        return files


def export(folder: str | Path, form: str, output: str | Path) -> list[Path]:
    """Write a run in the form of another system, or as jsonl, csv or parquet."""
    return export_run(Path(folder), form, Path(output))


def frame(run: str | Path) -> Any:
    """Return all trials of a run as a data frame (pandas or polars, whichever is there), else as a list of dicts.

    Example:
        >>> len(snellen.frame(snellen.run("my.jsonl", "blind/first").folder))
        2
    """
    return _frame(run)


def find_runs(folders: Sequence[str | Path]) -> list[Path]:
    """Return all run folders in or below the named ones, sorted."""
    found: set[Path] = set()
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise UsageError(f"no folder {folder}: name a run folder or one that holds runs")
        for depth in range(DEPTH + 1):
            found.update(path.parent for path in folder.glob("/".join(["*"] * depth + ["run.db"])))
    if not found:
        raise UsageError(f"no runs in {', '.join(map(str, folders))}: a run folder holds run.db")
    return sorted(found)


def leaderboard(folders: Sequence[str | Path]) -> tuple[Board, dict[str, str]]:
    """Return the board of all runs in or below the named folders, and why some could not be read."""
    entries, problems = [], {}
    found = find_runs(folders)
    short = len({folder.name for folder in found}) == len(found)
    for folder in found:
        try:
            entries.append(_entry(folder, folder.name if short else str(folder)))
        except SnellenError as error:
            problems[str(folder)] = str(error)
    return make_board(entries), problems


def _entry(folder: Path, name: str) -> Entry:
    with RunReader(folder) as reader:
        header = reader.header()
        return Entry(name, header, read_results(reader, header))
