"""A data file that is written while a run reads it: the run stops by name, and nothing of both states is mixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executor_runs import finish_run, start_run
from waiting import stored_trials, wait_until

ROWS = 6_000
"""More than are kept in memory: the file is read again while they are asked."""


def write_table(path: Path, answer: str) -> None:
    """Write over the file where it stands, as an editor or a script does."""
    options = ["one", "two", "three"]
    lines = (
        json.dumps({"id": f"q{n}", "question": f"Which {n}?", "options": options, "answer": answer})
        for n in range(ROWS)
    )
    with path.open("r+" if path.exists() else "w") as file:
        file.write("".join(f"{line}\n" for line in lines))


def test_a_table_changed_under_a_run_stops_it_and_its_numbers_are_never_mixed(
    mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    table, folder = tmp_path / "data.jsonl", tmp_path / "run"
    write_table(table, "A")
    server = mock_server("--answer", "A", "--ttft-ms", 100)
    told = [table, "--model", "openai/mock", "--base-url", server.base_url, "--no-cache", "--quiet"]
    command = [*told, "--max-workers", 32, "-o", folder]
    process = start_run(command)
    wait_until(lambda: stored_trials(folder) > 100, "some are stored")
    write_table(table, "B")
    code, _, err = finish_run(process)
    assert code == 2 and "changed after the run was planned" in err, err
    code, _, err = finish_run(start_run(command))
    assert code == 2 and "another configuration" in err, err
    assert stored_trials(folder) < ROWS
    write_table(table, "A")
    code, _, err = finish_run(start_run([*command, "--max-workers", 64]))
    assert code == 0, err
    figure = json.loads((folder / "results.json").read_text())["tasks"]["data"]["metrics"]["accuracy"]
    assert (figure["value"], figure["n"]) == (pytest.approx(1.0), ROWS)
