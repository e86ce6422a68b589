"""The table of thirty replies in the README is what its script prints, and the replies are read as it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_holds_the_table_that_the_script_prints() -> None:
    spec = importlib.util.spec_from_file_location("thirty_replies", ROOT / "tools" / "thirty_replies.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.table() in (ROOT / "README.md").read_text("utf-8"), "print it again: python tools/thirty_replies.py"
    same, other, missed = script.counted(script.ours)
    assert (same + other + missed, same >= 27) == (30, True)
