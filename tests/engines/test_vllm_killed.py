"""A real vLLM server killed in the middle of a run and started again: the same command finishes it, nothing twice."""

from __future__ import annotations

import json
import sqlite3
import subprocess

import pytest

from command_line import COMMAND, run_command
from engine_questions import NAME, records_of, write_rows
from engine_servers import free_port, serving, vllm_command
from waiting import CEILING_S, stored_trials, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries
ROWS = 60


def test_a_killed_server_costs_nothing_but_time(checkpoint_of, tmp_path):
    rows, run, port, log = write_rows(tmp_path, ROWS), tmp_path / "run", free_port(), tmp_path / "log"
    command = vllm_command(checkpoint_of("idefics3"), port)
    model = ["--model", f"vllm-server/{NAME}", "--base-url", f"http://127.0.0.1:{port}/v1", "--temperature", "0"]
    asked = ["run", str(rows), *model, "--constrain", "options", "--max-workers", "2", "--no-cache"]
    with serving(command, port, log) as first:
        with (tmp_path / "said").open("wb") as said:
            running = subprocess.Popen([*COMMAND, *asked, "-o", str(run)], stderr=said, stdout=said)
        wait_until(lambda: stored_trials(run) >= 5 or running.poll() is not None, "some trials are stored")
        first.kill()
        code = running.wait(timeout=CEILING_S)
    kept = stored_trials(run)
    told = (tmp_path / "said").read_text()
    assert code != 0 and "Traceback" not in told, told
    assert 5 <= kept < ROWS, (kept, told)
    with serving(command, port, log) as second:
        assert run_command([*asked, "-o", run, "--quiet"]) == 0
        assert run_command([*asked, "-o", tmp_path / "whole", "--quiet"]) == 0
        assert second.process.poll() is None
    _check(run, tmp_path / "whole")
    print(f"vLLM's server killed after {kept} of {ROWS} trials (exit {code}), started again: all scored, none twice")


def _check(run, whole):
    continued, at_once = records_of(run), records_of(whole)
    assert {record["outcome"] for record in continued} == {"scored"}
    assert len({record["sample"] for record in continued}) == len(continued) == ROWS
    with sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True) as database:
        assert database.execute("SELECT COUNT(*) FROM predictions").fetchone() == (ROWS,)
    assert [(record["text"], record["value"]) for record in continued] == [
        (record["text"], record["value"]) for record in at_once
    ]
    tasks = [json.loads((folder / "results.json").read_text())["tasks"] for folder in (run, whole)]
    assert tasks[0]["rows"]["metrics"] == tasks[1]["rows"]["metrics"]
