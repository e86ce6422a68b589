"""A run killed at random moments and repeated ends as if it had never been interrupted."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from command_line import COMMAND
from waiting import CEILING_S, lines_of, stored_trials, wait_until

SAMPLES, WORKERS = 500, 64


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
    return [*COMMAND, "run", str(data), *flags, *more]


def finish(arguments: list[str]) -> dict[str, object]:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=CEILING_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kill_when(arguments: list[str], holds: Callable[[int], bool]) -> bool:
    """Start the process and kill it as soon as the condition holds for its pid; say whether it was still there to kill."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: holds(process.pid) or process.poll() is not None, "the moment to kill")
    process.kill()
    return process.wait() == -signal.SIGKILL


def moments(folder: Path, log: Path, kills: int, seed: int) -> Iterable[Callable[[int], bool]]:
    """Yield moments of a run's life: its start, so many questions asked, and (at most eight times) answers stored."""
    draw, lock = random.Random(seed), folder / "run.lock"
    for number in range(kills):
        asked = lines_of(log) + draw.randrange(1, WORKERS)
        stored = stored_trials(folder)
        if number % max(2, kills // 8) == 1:
            yield lambda _, stored=stored: stored_trials(folder) > stored
        elif number % 3 == 0:
            yield lambda pid: lock.exists() and lock.read_text().split()[:1] == [str(pid)]
        else:
            yield lambda _, asked=asked: lines_of(log) >= asked


def check_killed_run(data: Path, mock_server: Callable[..., Any], tmp_path: Path, kills: int, itl_ms: float) -> None:
    log = tmp_path / "seen.jsonl"
    clean = mock_server("--ttft-ms", 20)
    reference = finish(command(data, clean.base_url, tmp_path / "whole"))
    server = mock_server("--ttft-ms", itl_ms, "--log", log)
    arguments = command(data, server.base_url, tmp_path / "killed")
    killed = sum(kill_when(arguments, moment) for moment in moments(tmp_path / "killed", log, kills, seed=1))
    result = finish(arguments)
    assert killed >= kills // 2
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
    data: Path, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    check_killed_run(data, mock_server, tmp_path, kills=4, itl_ms=150)


@pytest.mark.crash
@pytest.mark.slow
def test_a_run_killed_a_hundred_times_equals_the_whole_one(
    data: Path, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    check_killed_run(data, mock_server, tmp_path, kills=100, itl_ms=1500)


def test_kill_while_scoring_leaves_the_same_results(
    data: Path, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    server = mock_server()
    reference = finish(command(data, server.base_url, tmp_path / "run"))
    score = [sys.executable, "-c", "import snellen, sys; snellen.score(sys.argv[1])", str(tmp_path / "run")]
    started = time.monotonic()
    subprocess.run(score, check=True, timeout=CEILING_S)
    whole_s = time.monotonic() - started
    draw = random.Random(2)
    for _ in range(6):  # the moments are shares of what scoring takes on this machine
        moment = time.monotonic() + draw.uniform(0.2, 1.0) * whole_s
        kill_when(score, lambda _, moment=moment: time.monotonic() > moment)
    subprocess.run(score, check=True, timeout=CEILING_S)
    assert json.loads((tmp_path / "run" / "results.json").read_text())["tasks"] == reference["tasks"]


def test_ctrl_c_drains_and_exits_130_and_the_run_continues(
    data: Path, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    log = tmp_path / "seen.jsonl"
    server = mock_server("--ttft-ms", 1000, "--log", log)
    arguments = command(data, server.base_url, tmp_path / "run")
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: stored_trials(tmp_path / "run"), "the first stored trial")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=CEILING_S)
    assert process.returncode == 130, errors
    assert "run the same command again" in errors
    stored = stored_trials(tmp_path / "run")
    assert 0 < stored < SAMPLES
    assert lines_of(log) <= stored + WORKERS, "nothing new is asked after the signal"
    assert finish(arguments)["status"]["complete"]


def test_two_writers_at_once_never_write_twice(data: Path, mock_server: Callable[..., Any], tmp_path: Path) -> None:
    server = mock_server("--ttft-ms", 200)
    arguments = command(data, server.base_url, tmp_path / "run")
    first = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lock = tmp_path / "run" / "run.lock"
    wait_until(lambda: lock.exists() and lock.read_text().strip(), "the first writer's lock")
    first.send_signal(signal.SIGSTOP)  # so that it cannot end while the second one starts
    second = subprocess.run(arguments, capture_output=True, text=True, timeout=CEILING_S, check=False)
    first.send_signal(signal.SIGCONT)
    assert second.returncode == 3
    assert f"process {first.pid}" in second.stderr
    assert first.wait(timeout=CEILING_S) == 0
    assert stored_trials(tmp_path / "run") == SAMPLES
