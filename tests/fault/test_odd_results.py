"""A results.json in which somebody, or a broken disk, changed a number: commands that read it end by their own words."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import snellen
from command_line import run_command
from figures import note_figure

ODD: tuple[Any, ...] = (None, True, "x", "", -1, 1e308, 10**30, float("nan"), float("inf"), [], {})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every number."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def with_other(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a copy with another value at a path."""
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = other
    return copy


@pytest.mark.parametrize("tried", [40, pytest.param(10_000, marks=pytest.mark.slow)])
def test_odd_numbers_in_results_break_no_command(
    tried: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": n, "question": f"Q{n}?", "options": ["x", "y"], "answer": "AB"[n % 2], "kind": n % 3} for n in range(9)
    ]
    Path("t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    snellen.run("t.jsonl", "blind/first", output_dir=Path("runs/r"), num_infers=2, detailed_keys=("kind",))
    file = Path("runs/r/results.json")
    whole = json.loads(file.read_text())
    numbers = list(places(whole))
    cases = [(path, other) for path in numbers for other in ODD]
    if tried < len(cases):
        cases = random.Random(7).sample(cases, tried)
    for path, other in cases:
        file.write_text(json.dumps(with_other(whole, path, other)))
        for command in (["show", "runs/r"], ["leaderboard", "runs/r"]):
            assert run_command(command) in (0, 1, 2, 3), (command, path, other)
            assert "Traceback" not in capsys.readouterr().err
    if len(cases) == len(numbers) * len(ODD):
        calls = f"`show` and `leaderboard`: {2 * len(cases):,} calls, 0 tracebacks"
        note_figure("fault", f"each of {len(numbers)} numbers of results.json replaced by {len(ODD)} odd values", calls)
