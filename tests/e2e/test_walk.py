"""The walk through the code that docs/architecture.md describes is the one a run takes."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from PIL import Image

from snellen.cli.main import main
from snellen.mock.process import ServerProcess

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"


def walk_of_the_page() -> list[str]:
    section = PAGE.read_text("utf-8").partition("## The walk of")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w.]+:[\w.]+)` ", section, re.MULTILINE)


def test_a_run_enters_the_functions_of_the_page_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mock_server: Callable[..., ServerProcess]
) -> None:
    walk = walk_of_the_page()
    assert 15 <= len(walk) <= 25
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    Image.new("RGB", (32, 32), (200, 0, 0)).save("red.png")
    row = {"question": "Which colour?", "image": "red.png", "options": ["red", "blue"], "answer": "A"}
    Path("my.jsonl").write_text(json.dumps(row))
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            module = str(frame.f_globals.get("__name__", "")).removeprefix("snellen.")
            entered.setdefault(f"{module}:{frame.f_code.co_qualname}")

    server = mock_server("--model-name", "x")
    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with pytest.raises(SystemExit) as end:
            main(["run", "my.jsonl", "--model", "openai/x", "--base-url", server.base_url])
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    assert end.value.code == 0
    missing = [name for name in walk if name not in entered]
    assert not missing, f"never entered: {missing}"
    assert [name for name in entered if name in walk] == walk
