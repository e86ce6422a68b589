"""The figures of a run to SVG files of their own: the drawings of the page with its light colours, no extra needed."""

from __future__ import annotations

import re
from pathlib import Path

from ...core.markup import Html
from ...store.reader import RunReader
from ..pages.overview import overview_of
from ..pages.vega import to_csv
from ..stored_results import read_results

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
