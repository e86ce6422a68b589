"""A run to files for papers: its tables in one form, and its figures as SVG in light colours with their data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.markup import Html
from ...scoring.aggregates.headline import SIDE_METRICS, headline
from ...store.reader import RunReader
from ..files import write_atomically
from ..pages.overview import overview_of
from ..pages.sheet import Sheet, render
from ..pages.vega import to_csv
from ..stored_results import read_results
from ..terminal import AT_TIMES, count_text, read_text, told_counts
from ..written import RESTS_ON, rests_on, written, written_interval

ENDINGS = {"csv": "csv", "markdown": "md", "latex": "tex"}
LATEX_FRAME = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs}
\usepackage[landscape,margin=1cm]{geometry}
\begin{document}
\small
\input{%s}
\end{document}
"""


def run_sheets(results: Mapping[str, Any]) -> list[Sheet]:
    """Return the tables of a run: all tasks by their headline where there are several, then task by task."""
    tasks = results["tasks"]
    sheets = [_summary(results)] if len(tasks) > 1 else []
    for name, result in tasks.items():
        sheets.append(_metrics(f"{results['model']} on {name}", result["metrics"]))
        sheets += _groups(name, result.get("groups", {}))
    return sheets


def _summary(results: Mapping[str, Any]) -> Sheet:
    rows = []
    for task, result in results["tasks"].items():
        name, estimate = headline(result)
        metric = name or "–"
        shown = (written(metric, estimate), written_interval(metric, estimate), *map(count_text, rests_on(estimate)))
        rows.append((task, metric, *shown))
    head = ("task", "metric", "value", "95 % interval", *RESTS_ON)
    return Sheet(f"{results['model']}: all tasks", head, tuple(rows))


def _metrics(title: str, metrics: Mapping[str, Any]) -> Sheet:
    counts = ["n", *told_counts(metrics.values(), ("failed", *AT_TIMES))]
    rows = []
    for name, estimate in metrics.items():
        counted = [count_text(estimate.get(count, 0)) for count in counts]
        shown = (written_interval(name, estimate), written_interval(name, estimate, "bounds"), read_text(estimate))
        rows.append((name, written(name, estimate), *shown, *counted))
    head = ("metric", "value", "95 % interval", "bounds", "read", *(count.replace("_", " ") for count in counts))
    return Sheet(title, head, tuple(rows))


def _groups(task: str, groups: Mapping[str, Mapping[str, Any]]) -> Iterator[Sheet]:
    for key, values in groups.items():
        if len(values) < 2:
            continue
        metric = next((name for name in next(iter(values.values())) if not name.endswith(SIDE_METRICS)), "")
        rows = [
            (value, written(metric, one[metric]), written_interval(metric, one[metric]), f"{one[metric]['n']:,}")
            for value, one in values.items()
            if metric in one
        ]
        yield Sheet(f"{task}: {metric} by {key}", (key, metric, "95 % interval", "trials"), tuple(rows))


def write_tables(sheets: list[Sheet], form: str, target: Path) -> list[Path]:
    """Write tables in one form and return the files; LaTeX also gets a frame that compiles by itself."""
    path = target.with_name(f"{target.name}.{ENDINGS[form]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    body = render(sheets, form).encode("utf-8", "replace")
    write_atomically(path, lambda file: file.write(body))
    if form != "latex":
        return [path]
    frame = target.with_name(f"{target.name}-alone.tex")
    whole = (LATEX_FRAME % path.name).encode()
    write_atomically(frame, lambda file: file.write(whole))
    return [path, frame]


STYLE = """
text { font-family: "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: #5b6070; } .ink { fill: #1b1d22; }
.axis { stroke: #dedbd2; stroke-width: 1; } .strongaxis { stroke: #5b6070; stroke-width: 1; }
.halo { stroke: #ffffff; stroke-width: 2; } .dot { fill: #0072b2; }
.span { stroke: #0072b2; stroke-opacity: .35; stroke-width: 6; stroke-linecap: round; }
.line { fill: none; stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round; }
.band { opacity: .15; stroke: none; } .half { stroke: #d55e00; stroke-width: 1.5; stroke-dasharray: 5 4; }
"""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5659b", "#8a6d00", "#3f8fbf")
_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def standalone_svg(drawing: Html) -> str:
    """Return a drawing as a file of its own, coloured as on white paper."""
    colours = "".join(f".f{n} {{ fill: {c}; }} .s{n} {{ stroke: {c}; }}\n" for n, c in enumerate(COLOURS, 1))
    head, rest = str(drawing).split(">", 1)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    shape = f' width="{size[1]}" height="{size[2]}"' if size else ""
    return f'{head} xmlns="http://www.w3.org/2000/svg"{shape}><style>{STYLE}{colours}</style>{rest}\n'


def write_figures(folder: Path, output: Path) -> list[Path]:
    """Write every figure of a run as SVG and its data as CSV; return the files."""
    files: list[Path] = []
    output.mkdir(parents=True, exist_ok=True)
    with RunReader(folder) as reader:
        header = reader.header()
        results = read_results(reader, header)
        for task in header.tasks:
            for figure in overview_of(reader, task, results).figures:
                stem = _NAME.sub("-", f"{task.name}-{figure.name}").strip(".")
                bodies = {".svg": standalone_svg(figure.drawing), ".csv": to_csv(figure.rows)}
                for ending, body in bodies.items():
                    path = output / f"{stem}{ending}"
                    path.write_text(body, encoding="utf-8", errors="replace")
                    files.append(path)
    return files
