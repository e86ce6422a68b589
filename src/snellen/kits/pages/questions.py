"""The page-image jobs as library calls: settings, data and page folders in, the scripts' own result files out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pybase64

from ...api.chosen_model import create_model
from ...api.run import RunResult, Watcher, run_settings
from ...api.settings import RunSettings, refuse_others
from ...core.builtins import default_registry
from ...core.protocols import Model
from ...core.types import Estimate, Image, Request, TrialKey, Turn
from ...core.vega import Spec
from ...data.images.encode import ImageDoor
from ...report.files import write_atomically
from ...report.pages.vega import curves, heat_map, interval_bars, save_plot
from ...scoring.aggregates.means import split
from ...scoring.aggregates.robustness import curve, ladders
from ...scoring.stored import stored_tables
from ...scoring.tables.table import ScoreTable
from ...stats.intervals import estimate_mean
from ...store.reader import RunReader
from .document_ladder import variant_differences
from .pages import find_variants, read_pages
from .script_files import choice_file, needle_file, read_asked
from .texts import read_records

MAIN = "accuracy"
Rows = list[dict[str, Any]]


def write_plots(run: Path, output: Path) -> list[Path]:
    """Write every plot the run has data for, as SVG, PNG, CSV and Vega-Lite."""
    with RunReader(run) as reader:
        tables = {task.name: _table(reader, task.name) for task in reader.header().tasks}
    files: list[Path] = []
    for name, table in tables.items():
        if table is not None:
            for plot, (spec, rows) in plots_of(table).items():
                files += save_plot(spec, rows, output / f"{name}-{plot}")
    return files


def plots_of(table: ScoreTable) -> dict[str, tuple[Spec, Rows]]:
    """Return the specification and rows of every plot that the table has data for, by name."""
    found: dict[str, tuple[Spec, Rows]] = {}
    for variant, part in split(table, "variant"):
        stem = f"-{variant}".replace("=", "_").replace(":", "_") if len(table.variants) > 1 else ""
        for name, x, y in (("depth-length", "length", "depth"), ("row-column", "column", "row")):
            if x in table.tags and y in table.tags:
                rows = cells(part, x, y)
                found[name + stem] = (heat_map(rows, x, y, title=_title(name, variant), labels=_LABELS), rows)
    severities = severity_rows(table)
    if severities:
        found["severity"] = (curves(severities, "severity", title="Accuracy by severity", labels=_LABELS), severities)
    if len(table.variants) > 1:
        rows = variant_rows(table)
        found["variants"] = (interval_bars(rows, "variant", title="Accuracy by variant", axis_title="accuracy"), rows)
    return found


def cells(table: ScoreTable, x: str, y: str) -> Rows:
    """Return mean and count of every (x, y), numbers sorted as numbers; None and 0 where nobody measured.

    Failed trials are wrong.
    """
    (codes_x, values_x), (codes_y, values_y) = table.tags[x], table.tags[y]
    rows = []
    for across in _sorted(values_x):
        for down in _sorted(values_y):
            chosen = (codes_x[table.sample] == list(values_x).index(across)) & (
                codes_y[table.sample] == list(values_y).index(down)
            )
            mean = float(table.value[chosen].mean()) if chosen.any() else None
            rows.append({x: _shown(x, across), y: _shown(y, down), "value": mean, "n": int(chosen.sum())})
    return rows


def severity_rows(table: ScoreTable) -> Rows:
    """Return the curve of every perturbation family with its clustered interval."""
    rows = []
    for ladder in ladders(table):
        for severity, estimate in curve(ladder).items():
            rows.append({"series": ladder.family, "severity": severity, **_bounds(estimate)})
    return rows


def variant_rows(table: ScoreTable) -> Rows:
    """Return the accuracy of every variant with its document-clustered interval."""
    rows = []
    for variant, part in split(table, "variant"):
        rows.append({"variant": variant, **_bounds(estimate_mean(part.value.astype(np.float64), part.cluster))})
    return rows


def _table(reader: RunReader, task: str) -> ScoreTable | None:
    table = stored_tables(reader, task).get(MAIN)
    return table.take(table.scored) if table is not None and table.scored.any() else None


def _bounds(estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.ci95 or (estimate.value, estimate.value)
    return {"value": estimate.value, "low": low, "high": high, "n": estimate.n}


def _sorted(values: Any) -> list[str]:
    return sorted((value for value in values if value != "(none)"), key=lambda value: (_number(value), value))


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("inf")


def _shown(tag: str, value: str) -> str:
    number = _number(value)
    if number == float("inf"):
        return value
    return f"{number:.0%}" if tag in ("depth", "row", "column") else f"{number:g}"


def _title(name: str, variant: str) -> str:
    what = {"depth-length": "Needle depth × document length", "row-column": "Where on the page the needle stands"}[name]
    return what if variant == "base" else f"{what} ({variant})"


_LABELS: Mapping[str, str] = {
    "length": "document length (tokens)",
    "depth": "needle depth",
    "row": "from top of page",
    "column": "from left of page",
    "severity": "severity",
    "value": "accuracy",
    "series": "perturbation",
}


TRANSCRIBE = "Transcribe the text in the image."


class Files(NamedTuple):
    """Where a job's data and pages lie, and where its results go (multiple choice: a folder, needles: a file)."""

    data: Path
    images: Path
    output: Path


def run_choice(settings: RunSettings, files: Files, watcher: Watcher | None = None) -> tuple[RunResult, list[Path]]:
    """Ask LongBench-v2 questions about every variant below `images`.

    Writes `{variant}_mc_eval.json` and `comparison.json`.
    """
    variants = tuple(f"pages={name}" for name in find_variants(files.images))
    result = run_settings(_with_data(settings, "longbench-v2", files, files.output / "run", variants), watcher)
    return result, write_choice_files(result.folder, files.output)


def run_needles(settings: RunSettings, files: Files, config: str, watcher: Watcher | None = None) -> RunResult:
    """Ask needle questions about one folder of pages and write the scripts' one result file."""
    result = run_settings(_with_data(settings, "niah", files, files.output.with_suffix(".run"), ("base",)), watcher)
    with RunReader(result.folder) as reader:
        header = reader.header()
        asked = [trial for of_variant in read_asked(reader, "niah").values() for trial in of_variant]
        scorers = dict(settings.overrides).get("scorers", ())
        _write(files.output, needle_file(header.model, config, asked, header.id, scorers=scorers))
    return result


def write_choice_files(folder: Path, output: Path) -> list[Path]:
    """Write the result files of a stored run, at any time: one a variant, and the pairwise comparison."""
    with RunReader(folder) as reader:
        header = reader.header()
        written = []
        for variant, asked in read_asked(reader, "longbench-v2").items():
            written.append(output / f"{variant}_mc_eval.json")
            _write(written[-1], choice_file(variant, header.model, asked, header.id))
        table = stored_tables(reader, "longbench-v2").get("accuracy")
        if table is not None and len(table.variants) > 1:
            written.append(output / "comparison.json")
            _write(written[-1], [msgspec.to_builtins(pair) for pair in variant_differences(table)])
    return written


def plot_documents(run: Path, output: Path | None = None) -> list[Path]:
    """Draw a run's heat maps and curves into a folder (default: `plots` in the run) and return the files."""
    return write_plots(run, output or run / "plots")


@contextmanager
def transcriber(name: str) -> Iterator[Callable[[bytes], str]]:
    """Yield a function that reads the text of one encoded picture with a model, for instance `reader/tesseract`."""
    with asyncio.Runner() as runner:
        model = create_model(RunSettings(tasks=(), model=name), default_registry())
        try:
            runner.run(model.check())
            yield lambda data: runner.run(_transcribe(model, data))
        finally:
            runner.run(model.close())


def transcribe_documents(data: Path, images: Path, output: Path, reader: str) -> dict[str, int]:
    """Write the data file again with a `transcript` of each document as a reader sees it, for `control=transcript`."""
    folder = read_pages(images)
    records = read_records(data)
    with transcriber(reader) as transcribe:
        for record in records:
            pages = folder.documents.get(str(record.get("_id")), ())
            record["transcript"] = "\n\n".join(transcribe(page.path.read_bytes()) for page in pages)
    _write(output, records)
    return {"documents": len(records), "without_pages": sum(not record["transcript"] for record in records)}


async def _transcribe(model: Model, data: bytes) -> str:
    image = Image("data:image/png;base64," + pybase64.b64encode(data).decode())
    request = Request(TrialKey("transcribe", "page"), (Turn("user", TRANSCRIBE, (image,)),))
    prediction = await model.predict(request, await ImageDoor().encode_all(request, model.image_policy))
    return prediction.text or ""


def _with_data(settings: RunSettings, task: str, files: Files, folder: Path, variants: tuple[str, ...]) -> RunSettings:
    refuse_others(settings, "mc")
    own = ("dataset.path", str(files.data.resolve())), ("dataset.image_root", str(files.images.resolve()))
    overrides = (*own, *settings.overrides)
    return msgspec.structs.replace(settings, tasks=(task,), output_dir=folder, variants=variants, overrides=overrides)


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    body = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
    write_atomically(path, lambda file: file.write(body))
