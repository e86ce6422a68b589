"""The notebook of the docs: every cell runs, and what it shows is what the docs show."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


def tool() -> Any:
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    spec = importlib.util.spec_from_file_location("notebook_tool", ROOT / "tools" / "notebook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(cell: Any) -> list[str]:
    """Return what a cell shows as plain text, without what differs from run to run."""
    outputs = [output for output in cell.get("outputs", ()) if output.output_type == "execute_result"]
    return [str(output.data.get("text/plain", "")).partition(":")[0] for output in outputs]


def test_the_notebook_runs_and_shows_what_the_docs_show(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notebooks = tool()
    import nbformat

    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path))
    stored = nbformat.read(ROOT / "docs" / "notebook.ipynb", as_version=4)
    assert [cell.source for cell in stored.cells] == [text for _, text in notebooks.CELLS], (
        "run tools/notebook.py again"
    )
    fresh = notebooks.execute(notebooks.make_notebook())
    assert [shown(cell) for cell in fresh.cells] == [shown(cell) for cell in stored.cells]
    pages = [
        output.data["text/html"]
        for cell in stored.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    assert any("data:image/webp" in page for page in pages), "a sample is shown with its picture"
    assert not any("/root" in page or "/home" in page for page in pages)
