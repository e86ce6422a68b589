"""Stored runs to what people keep of them: report.html, a leaderboard, a data frame, files of other systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.builtins import default_registry
from ..core.errors import SnellenError, UsageError, did_you_mean
from ..core.types import TrialKey
from ..report.exported_run import write_export
from ..report.pages.comparison import sheets_of
from ..report.pages.gallery import Shown, read_trial
from ..report.pages.ledger import exported_notes
from ..report.pages.overview import overview_of
from ..report.pages.ranking import Board, Entry, make_board
from ..report.pages.report_page import PICTURE_BYTES, write_report
from ..report.pages.vega import save_plot
from ..report.paper.comparison_report import write_comparison
from ..report.paper.run_files import run_sheets, write_figures, write_tables
from ..report.run_briefs import LOADED, run_folders
from ..report.stored_results import read_results
from ..report.trial_files import frame as _frame
from ..scoring.compare.paired import Comparison
from ..scoring.compare.protocol_parts import MovedParts, moved_parts
from ..scoring.compare.run_pairs import ComparedPart, compare_parts, compare_runs
from ..scoring.judges.extractor import extractor_folders
from ..scoring.protocols.readings import judge_folders, kept_reading, own_reading
from ..store.reader import RunReader
from .stored_results import results_of

DEPTH = 3


def report(folder: str | Path, *, picture_bytes: int = PICTURE_BYTES, baseline: str | Path | None = None) -> Path:
    """Write report.html of a run and return its path; nothing is asked or scored. It may stand beside a `baseline`."""
    compared = None if baseline is None else compare_runs([Path(baseline), Path(folder)])
    with RunReader(folder) as run:
        return write_report(run, picture_bytes=picture_bytes, compared=compared)


def comparison_report(folders: Sequence[str | Path], output: str | Path, *, picture_bytes: int = PICTURE_BYTES) -> Path:
    """Write one page that compares runs, with the samples on which they differ; return its path."""
    paths = [Path(folder) for folder in folders]
    if len(paths) < 2:
        raise UsageError("name at least two runs to compare")
    results = compare_runs(paths)
    return write_comparison(dict(zip(run_names(paths), paths, strict=True)), results, Path(output), picture_bytes)


def run_names(folders: Sequence[Path]) -> list[str]:
    """Return how a comparison calls runs: by their folders' names, by whole paths where two are the same."""
    short = [folder.name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


def tables(folders: Sequence[str | Path], form: str, output: str | Path) -> list[Path]:
    """Write the tables of a run, or of the comparison of several, as csv, markdown or latex; return the files."""
    paths = [Path(folder) for folder in folders]
    sheets = run_sheets(results_of(paths[0])) if len(paths) == 1 else sheets_of(compare_runs(paths), run_names(paths))
    return write_tables(sheets, form, Path(output) / "tables")


def figures(folder: str | Path, output: str | Path) -> list[Path]:
    """Write every figure of a run as SVG and its data as CSV; no extra is needed."""
    return write_figures(Path(folder), Path(output))


def notes_file(folder: str | Path, output: str | Path) -> Path:
    """Write what people said of a run and its trials as JSON lines; return the file."""
    path = Path(output) / "notes.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(exported_notes(Path(folder)), encoding="utf-8")
    return path


def plots(folder: str | Path, output: str | Path) -> list[Path]:
    """Write every figure of a run as CSV, Vega-Lite, SVG and PNG (extra `plots`)."""
    with RunReader(folder) as reader:
        results = read_results(reader, reader.header())
        files: list[Path] = []
        for task in reader.header().tasks:
            for figure in overview_of(reader, task, results).figures:
                files += save_plot(figure.spec, figure.rows, Path(output) / f"{task.name}-{figure.name}")
        return files


def export(
    folder: str | Path, form: str, output: str | Path, details: Mapping[str, str] | None = None
) -> tuple[list[Path], list[str]]:
    """Write a run in a registered form, as jsonl, csv or parquet; return the files and what to say of them.

    `details` is what only you know: `dataset` of a hub result, `organization` of a record, `endpoint` of a collector.
    """
    return write_export(Path(folder), form, Path(output), details or {}, default_registry())


def frame(run: str | Path) -> Any:
    """Return all trials of a run as a data frame (pandas or polars, whichever is there), else as a list of dicts.

    Example:
        >>> len(snellen.frame(snellen.run("my.jsonl", "blind/first").folder))
        2
    """
    return _frame(run)


def compare(
    *runs: str | Path,
    task: str | None = None,
    metric: str | None = None,
    scored_only: bool = False,
    reading: str | None = None,
) -> dict[str, list[Comparison]]:
    """Return, for every task that the runs share, the comparison of each pair on each metric, paired by sample.

    Example:
        >>> runs = [snellen.run("my.jsonl", f"blind/{rule}").folder for rule in ("first", "longest")]
        >>> [one.paired for one in snellen.compare(*runs, metric="accuracy")["my"]]
        [2]
    """
    return compare_runs(runs, task=task, metric=metric, scored_only=scored_only, reading=reading)


def compare_beside(*runs: str | Path, task: str | None = None) -> list[ComparedPart]:
    """Return what kits say of runs beside each other, by task; nothing where every task was asked in a way of ours."""
    return compare_parts(runs, task)


def moved_by_protocol(*runs: str | Path) -> dict[str, MovedParts]:
    """Return, for tasks that two runs asked in different protocols, which part moved the number; else nothing."""
    return moved_parts((Path(runs[0]), Path(runs[1]))) if len(runs) == 2 else {}


def read_sample(
    folder: str | Path, sample: str, *, task: str = "", variant: str | None = None, repeat: int | None = None
) -> list[Shown]:
    """Return the stored trials of one sample, whole; `repeat` counts from 1. A sample without any is refused."""
    with RunReader(folder) as reader:
        shown = [read_trial(reader, key) for key in _keys(reader, sample, task, variant, repeat)]
    return [trial for trial in shown if trial is not None]


def _keys(reader: RunReader, sample: str, task: str, variant: str | None, repeat: int | None) -> list[TrialKey]:
    query = "SELECT task, variant, repeat FROM predictions WHERE sample = ?"
    rows = reader.rows(f"{query} ORDER BY task, variant <> 'base', variant, repeat", (sample,))
    keys = [TrialKey(name, sample, kind, number) for name, kind, number in rows]
    own = [key for key in keys if not task or key.task == task]
    chosen = [key for key in own if variant in (None, key.variant) and repeat in (None, key.repeat + 1)]
    if not chosen:
        raise UsageError(f"{reader.folder} has no such trial of sample {sample!r}{_instead(reader, sample, keys)}")
    return chosen


def _instead(reader: RunReader, sample: str, keys: Sequence[TrialKey]) -> str:
    """Return what there is instead of a trial: others of the same sample, or a sample of a name like it."""
    if not keys:
        known = [row[0] for row in reader.rows("SELECT DISTINCT sample FROM predictions LIMIT 100000")]
        return did_you_mean(sample, known)
    some = [f"task {key.task}, {key.variant}, inference {key.repeat + 1}" for key in keys[:3]]
    more = f"; and {len(keys) - len(some)} more" if len(keys) > len(some) else ""
    return f": there is {'; '.join(some)}{more}"


def find_runs(folders: Sequence[str | Path]) -> list[Path]:
    """Return all run folders in or below the named ones, sorted."""
    found: set[Path] = set()
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise UsageError(f"no folder {folder}: name a run, or the folder that holds runs, mostly `runs`")
        found.update(run_folders(folder, DEPTH))
        # what a judge or an extractor said of a run is no run to rank
        found -= {said for run in found for said in (*judge_folders(run), *extractor_folders(run))}
    if not found:
        raise UsageError(f"no runs in {', '.join(map(str, folders))}: a run folder holds run.db")
    return sorted(found)


def leaderboard(folders: str | Path | Sequence[str | Path], reading: str | None = None) -> tuple[Board, dict[str, str]]:
    """Return the board of all runs in or below the named folders, and why some could not be read.

    `reading` names a kept reading of the runs instead of their own.

    Example:
        >>> runs = [snellen.run("my.jsonl", f"blind/{rule}").folder for rule in ("first", "longest")]
        >>> board, problems = snellen.leaderboard(runs)
        >>> [line.model for line in board.lines], problems
        (['blind/first', 'blind/longest'], {})
    """
    entries, problems = [], {}
    found = find_runs([folders] if isinstance(folders, str | Path) else folders)
    short = len({folder.name for folder in found}) == len(found)
    for folder in found:
        if any((folder / name).exists() for name in LOADED):
            problems[str(folder)] = "the replies of a load are not ranked"
            continue
        try:
            entries.append(_entry(folder, folder.name if short else str(folder), reading))
        except SnellenError as error:
            problems[str(folder)] = str(error)
    return make_board(entries), problems


def _entry(folder: Path, name: str, reading: str | None) -> Entry:
    with RunReader(folder) as reader:
        header = reader.header()
        kept = None if reading in (None, own_reading(reader).name) else reading
        return Entry(name, header, read_results(reader, header) if kept is None else kept_reading(folder, kept)[1])
