"""Results to plain tables: the summary of all tasks, the metrics of each, and its groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...scoring.aggregates.headline import SIDE_METRICS, headline
from ..files import write_atomically
from ..pages.sheet import Sheet, render
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
