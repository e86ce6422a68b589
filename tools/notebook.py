"""Writes docs/notebook.ipynb: runs its cells in a folder of their own and keeps what they show (nbclient)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TARGET = Path(__file__).resolve().parents[1] / "docs" / "notebook.ipynb"
CELLS = (
    (
        "markdown",
        "# Snellen in a notebook\n\nFour pictures of our own, two models that see nothing, and what one learns.",
    ),
    (
        "code",
        "import json\nfrom pathlib import Path\n\nfrom PIL import Image, ImageDraw\n\nimport snellen\n\nrows = []\n"
        'for number, colour in enumerate(("red", "green", "blue", "orange")):\n'
        '    picture = Image.new("RGB", (160, 100), "white")\n'
        "    ImageDraw.Draw(picture).ellipse((50, 20, 110, 80), colour)\n"
        '    picture.save(f"{colour}.png")\n'
        '    options = ["red", "green", "blue", "orange"]\n'
        '    row = {"id": f"shape-{number}", "image": f"{colour}.png", "question": "Which colour is it?"}\n'
        '    rows.append(row | {"options": options, "answer": colour})\n'
        'Path("shapes.jsonl").write_text("\\n".join(map(json.dumps, rows)));',
    ),
    ("markdown", "`snellen.run` works inside the notebook's event loop; what it returns shows itself."),
    ("code", 'first = snellen.run("shapes.jsonl", "blind/first", output_dir="runs/first")\nfirst'),
    ("code", 'first.metrics["shapes"]["accuracy"]'),
    ("markdown", "All trials as a data frame, and the wrong ones."),
    ("code", 'first.wrong()[["sample", "expected", "answer", "rule"]]'),
    ("markdown", "One sample with its picture, and a paired comparison with another model."),
    ("code", 'first.show("shape-1")'),
    (
        "code",
        'longest = snellen.run("shapes.jsonl", "blind/longest", output_dir="runs/longest")\n'
        'comparison, *_ = first.compare(longest)["shapes"]\ncomparison.difference, comparison.p',
    ),
    ("code", 'board, problems = snellen.leaderboard("runs")\n[(line.model, line.mean) for line in board.lines]'),
    ("markdown", 'A stored run is looked at the same way: `snellen.RunResult.load("runs/first")`.'),
)


def make_notebook() -> nbformat.NotebookNode:
    """Return the notebook, not run yet."""
    made = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    cells = [made[kind](text, id=f"cell-{number}") for number, (kind, text) in enumerate(CELLS)]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=kernel)


def execute(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Run all cells in an empty folder; a cell that fails is an error."""
    with tempfile.TemporaryDirectory() as folder:
        how = {"timeout": 600, "kernel_name": "python3", "record_timing": False, "store_widget_state": False}
        NotebookClient(notebook, resources={"metadata": {"path": folder}}, **how).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("language_info", None)  # it names the Python of this machine
    return notebook


def main() -> int:
    """Write the executed notebook."""
    notebook = execute(make_notebook())
    TARGET.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
