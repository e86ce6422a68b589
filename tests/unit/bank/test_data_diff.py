"""Two versions of a file to what changed in it, pictures among it."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import PIL.Image

from snellen.kits.bank.data_diff import diff_data


def png(shade: int) -> bytes:
    """Return a picture of one shade."""
    file = io.BytesIO()
    PIL.Image.new("L", (8, 8), shade).save(file, "PNG")
    return file.getvalue()


def version(folder: Path, shade: int, **changes: Any) -> Path:
    """Write one version: a row with a picture's file, one with a picture in it, one without; the second may change."""
    folder.mkdir()
    (folder / "a.png").write_bytes(png(shade))
    inside = f"data:image/png;base64,{base64.b64encode(png(shade)).decode()}"
    row = {"question": "Which?", "options": ["one", "two"], "answer": "one"}
    rows = [
        row | {"id": "file", "image": "a.png"},
        row | {"id": "inside", "image": inside},
        row | {"id": "text"} | changes,
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder / "rows.jsonl"


def test_pictures_options_and_golds_that_changed_are_named(tmp_path: Path) -> None:
    old = version(tmp_path / "old", 10)
    assert diff_data("-", old, version(tmp_path / "same", 10)).changed == []
    found = diff_data("-", old, version(tmp_path / "new", 20, options=["one", "three"], answer="three"))
    assert {change.sample: change.what for change in found.changed} == {
        "file": ["pictures"],
        "inside": ["pictures"],
        "text": ["gold", "options"],
    }
    assert found.counts == {"gold": 1, "options": 1, "question": 0, "pictures": 2}
    assert "3 changed (1 gold, 1 options, 2 pictures)" in found.lines()[0]
    assert found.lines(most=1)[-1].strip().startswith("and 2 more")


def test_a_picture_that_is_gone_is_a_change_and_no_end(tmp_path: Path) -> None:
    old, new = version(tmp_path / "old", 10), version(tmp_path / "new", 10)
    (new.parent / "a.png").unlink()
    (change,) = diff_data("-", old, new).changed
    assert change.sample == "file" and "missing: a.png" in change.new["pictures"]
