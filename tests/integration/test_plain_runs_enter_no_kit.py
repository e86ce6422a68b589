"""What few need costs a plain run no step: no module of a kit is imported, and its results have the core's keys."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from snellen.core.builtins import RESULT_KEYS

ROWS = [{"question": f"Which is right, {n}?", "options": ["red", "green", "blue"], "answer": "green"} for n in range(3)]
CHILD = """
import sys
from snellen.cli.main import main
try:
    main()
finally:
    print(*(name for name in sys.modules if name.startswith("snellen.kits.") and name.count(".") > 2), file=sys.stderr)
"""


def test_a_plain_run_imports_no_module_of_a_kit(tmp_path: Path) -> None:
    rows, folder = tmp_path / "my.jsonl", tmp_path / "r"
    rows.write_text("\n".join(map(json.dumps, ROWS)), "utf-8")
    told = ("run", str(rows), "--model", "blind/longest", "-o", str(folder), "--no-cache", "--json")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *told], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "snellen.kits" not in done.stderr
    for task in json.loads((folder / "results.json").read_bytes())["tasks"].values():
        assert {*task} <= RESULT_KEYS
