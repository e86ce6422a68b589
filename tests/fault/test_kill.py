"""A run killed at random moments and repeated ends as if it had never been interrupted."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import PIL.Image
import pytest

SAMPLES, WORKERS = 500, 64
COMMAND = [sys.executable, "-c", "from snellen.cli.main import main; main()", "run"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    draw = random.Random(3)
    for number in range(10):
        PIL.Image.new("RGB", (16, 16), (number * 20, 9, 9)).save(tmp_path / f"{number}.png")
    rows = [
        {
            "id": f"q{number}",
            "image": f"{number % 10}.png",
            "question": f"Which thing is number {number}?",
            "options": [f"thing {number}-{letter}" for letter in "abcd"],
            "answer": draw.choice("ABCD"),
            "topic": f"t{number % 3}",
        }
        for number in range(SAMPLES)
    ]
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def command(data: Path, base_url: str, folder: Path, *more: str) -> list[str]:
    flags = [
        "--model",
        "openai/mock",
        "--base-url",
        base_url,
        "--max-workers",
        str(WORKERS),
        "-o",
        str(folder),
        "--json",
        "--quiet",
        "--no-cache",
    ]
    return [*COMMAND, str(data), *flags, *more]


def finish(arguments: list[str]) -> dict[str, object]:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kill_many_times(arguments: list[str], kills: int, seed: int) -> int:
    """Start the run and kill it at random moments; return how many times it was really killed."""
    draw, killed = random.Random(seed), 0
    for _ in range(kills):
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            # The start of Python takes most of the time; the moments lie around the asking itself.
            process.wait(timeout=draw.uniform(0.2, 1.3))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
    return killed


def check_killed_run(data: Path, mock_server: Callable[..., object], tmp_path: Path, kills: int, itl_ms: float) -> None:
    log = tmp_path / "seen.jsonl"
    clean = mock_server("--ttft-ms", 20)
    reference = finish(command(data, clean.base_url, tmp_path / "whole"))
    server = mock_server("--ttft-ms", itl_ms, "--log", log)
    arguments = command(data, server.base_url, tmp_path / "killed")
    killed = kill_many_times(arguments, kills, seed=1)
    result = finish(arguments)
    assert killed > 0
    assert json.dumps(result["tasks"], sort_keys=True) == json.dumps(reference["tasks"], sort_keys=True)
    assert result["status"]["complete"]
    keys = list(
        sqlite3.connect(tmp_path / "killed" / "run.db").execute("SELECT task, sample, variant, repeat FROM predictions")
    )
    assert len(keys) == len(set(keys)) == SAMPLES
    seen = Counter(
        json.loads(line)["path"]
        for line in log.read_text().splitlines()
        if "chat" in json.loads(line).get("path", "chat")
    )
    assert SAMPLES <= sum(seen.values()) <= SAMPLES + killed * WORKERS
    whole, again = ((tmp_path / name / "records.jsonl").read_text().splitlines() for name in ("whole", "killed"))
    assert [strip_time(line) for line in whole] == [strip_time(line) for line in again]


def strip_time(line: str) -> dict[str, object]:
    record = json.loads(line)
    record.pop("latency_s")
    return record


def test_a_run_killed_a_few_times_equals_the_whole_one(
    data: Path, mock_server: Callable[..., object], tmp_path: Path
) -> None:
    check_killed_run(data, mock_server, tmp_path, kills=8, itl_ms=150)


@pytest.mark.crash
@pytest.mark.slow
def test_a_run_killed_a_hundred_times_equals_the_whole_one(
    data: Path, mock_server: Callable[..., object], tmp_path: Path
) -> None:
    check_killed_run(data, mock_server, tmp_path, kills=100, itl_ms=1500)


def test_kill_while_scoring_leaves_the_same_results(
    data: Path, mock_server: Callable[..., object], tmp_path: Path
) -> None:
    server = mock_server()
    reference = finish(command(data, server.base_url, tmp_path / "run"))
    score = [sys.executable, "-c", "import snellen, sys; snellen.score(sys.argv[1])", str(tmp_path / "run")]
    kill_many_times(score, 6, seed=2)
    subprocess.run(score, check=True, timeout=60)
    assert json.loads((tmp_path / "run" / "results.json").read_text())["tasks"] == reference["tasks"]


def test_ctrl_c_drains_and_exits_130_and_the_run_continues(
    data: Path, mock_server: Callable[..., object], tmp_path: Path
) -> None:
    server = mock_server("--ttft-ms", 300)
    arguments = command(data, server.base_url, tmp_path / "run")
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    database = tmp_path / "run" / "run.db"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (database.exists() and _rows(database)):
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert time.monotonic() - started < 8
    assert "run the same command again" in errors
    stored = _rows(database)
    assert 0 < stored < SAMPLES
    assert finish(arguments)["status"]["complete"]


def _rows(database: Path) -> int:
    try:
        return int(
            sqlite3.connect(f"file:{database}?mode=ro", uri=True)
            .execute("SELECT COUNT(*) FROM predictions")
            .fetchone()[0]
        )
    except sqlite3.OperationalError:
        return 0


def test_two_writers_at_once_never_write_twice(data: Path, mock_server: Callable[..., object], tmp_path: Path) -> None:
    server = mock_server("--ttft-ms", 200)
    arguments = command(data, server.base_url, tmp_path / "run")
    first = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (tmp_path / "run" / "run.lock").exists() or not (tmp_path / "run" / "run.lock").read_text():
        os.sched_yield()
    second = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 3
    assert f"process {first.pid}" in second.stderr
    assert first.wait(timeout=60) == 0
