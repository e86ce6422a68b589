"""Writes docs/notebook.ipynb: runs its cells in a folder of their own and keeps what they show (nbclient)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TARGET = Path(__file__).resolve().parents[1] / "docs" / "notebook.ipynb"
RECEIPTS = """import json
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

import snellen

shops, rows = ["Tesco", "Lidl", "Rewe", "Migros"], []
for n in range(12):
    shop, total, size = shops[n % 4], f"{7 + n}.{10 + 7 * n}", round(24 * 0.86**n)
    page = Image.new("RGB", (480, 240), "white")
    for line, text in enumerate([shop, f"ITEMS {n + 2}", f"TOTAL {total}"]):
        ImageDraw.Draw(page).text((40, 30 + 60 * line), text, fill="black", font=ImageFont.load_default(size=size))
    page.save(f"{n}.png")
    row = {"image": f"{n}.png", "print": "small" if size < 9 else "large"}
    rows.append(row | {"id": f"total-{n}", "question": "What is the TOTAL?", "answer": total})
    rows.append(row | {"id": f"shop-{n}", "question": "Which shop is it from?", "options": shops, "answer": shop})
Path("receipts.jsonl").write_text("\\n".join(map(json.dumps, rows)));"""
CELLS = (
    (
        "markdown",
        "# Snellen in a notebook\n\nTwelve receipts in ever smaller print, and a model that sees: the embedded reader "
        "(`pip install 'snellen[ocr]'`). For one of your own: "
        '`snellen.run("receipts.jsonl", "openai/NAME", base_url="http://localhost:8000/v1")`.',
    ),
    ("code", RECEIPTS),
    ("markdown", "`snellen.run` works inside the notebook's event loop; what it returns shows itself."),
    ("code", 'reader = snellen.run("receipts.jsonl", "reader", output_dir="runs/reader")\nreader'),
    ("code", 'accuracy = reader.metrics["receipts"]["accuracy"]\naccuracy.value, accuracy.ci95, accuracy.n'),
    ("markdown", "Why answers are wrong, and the wrong ones as a data frame."),
    ("code", "reader.errors()"),
    ("code", 'reader.wrong()[["sample", "expected", "answer", "print"]]'),
    ("markdown", "One sample with its picture."),
    ("code", 'reader.show("total-9")'),
    ("markdown", "Does it need the picture? A model that never looks, compared question by question."),
    ("code", 'blind = snellen.run("receipts.jsonl", "blind/first", output_dir="runs/blind")\nblind.compare(reader)'),
    ("markdown", "A stored run is the same object; all trials are a data frame of pandas or polars."),
    ("code", 'snellen.load("runs/reader").frame().groupby("print")["accuracy"].mean()'),
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
