"""Twenty minutes of a server that refuses and resets, with a kill a minute; and the limit against a real server's cap.

`make soak`; SNELLEN_SOAK_S makes it shorter or longer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import linear_regression, mean
from typing import Any

import pytest

from command_line import COMMAND
from figures import note_figure
from snellen.kits.mock.process import ServerProcess, mock_process
from snellen.store.damage import look_at_run
from waiting import CEILING_S, stored_trials, wait_until

SOAK_S = float(os.environ.get("SNELLEN_SOAK_S", "1200"))
KILL_EVERY_S = 60.0
pytestmark = [pytest.mark.soak, pytest.mark.slow]


def write_questions(path: Path, count: int) -> Path:
    rows = ({"id": f"q{n}", "question": f"Number {n}?", "options": ["one", "two"], "answer": "A"} for n in range(count))
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def start_run(data: Path, base_url: str, folder: Path, workers: int, cache: Path | None) -> subprocess.Popen[bytes]:
    told = ["run", str(data), "--model", "openai/mock", "--base-url", base_url, "--max-workers", str(workers)]
    told += ["-o", str(folder), "--quiet", "--max-retries", "20", *([] if cache else ["--no-cache"])]
    environment = {**os.environ, "SNELLEN_CACHE_DIR": str(cache or folder)}
    with folder.with_name(f"{folder.name}.txt").open("wb") as said:
        return subprocess.Popen([*COMMAND, *told], stdout=said, stderr=said, env=environment)


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def slope_mb(samples: Sequence[tuple[float, float]]) -> float:
    """Return how much memory ten minutes add, by the line through what came after the first quarter."""
    late = [sample for sample in samples if sample[0] >= samples[-1][0] / 4]
    return linear_regression(*zip(*late, strict=True)).slope * 600


@pytest.fixture
def mock_server() -> Iterator[Callable[..., ServerProcess]]:
    """Servers in processes of their own: the limit is timed, and minutes of load go through them."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(mock_process([str(argument) for argument in arguments]))


def test_soak(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    faults = ("--ttft-ms", 100, "--fault", "429@0.01", "--fault", "reset@0.005")
    steady, often = mock_server(*faults), mock_server(*faults)
    many = write_questions(tmp_path / "many.jsonl", int(SOAK_S * 100) + 1000)
    few = write_questions(tmp_path / "few.jsonl", int(SOAK_S * 10) + 200)
    whole = start_run(many, steady.base_url, tmp_path / "whole", 8, tmp_path / "cache")
    killed = start_run(few, often.base_url, tmp_path / "killed", 4, tmp_path / "cache-killed")
    wait_until(lambda: stored_trials(tmp_path / "whole") > 100, "the first replies")
    memory: list[tuple[float, float]] = []
    files: list[int] = []
    kept, kills, started = 0, 0, time.monotonic()
    while (now := time.monotonic() - started) < SOAK_S:
        assert whole.poll() is None, "the long run ended by itself"
        memory.append((now, resident_mb(whole.pid)))
        files.append(open_files(whole.pid))
        if now > (kills + 1) * KILL_EVERY_S:
            kills += killed.poll() is None
            killed.kill()
            killed.wait(CEILING_S)
            stored = stored_trials(tmp_path / "killed")
            assert stored >= kept, "stored replies are gone"
            kept = stored
            killed = start_run(few, often.base_url, tmp_path / "killed", 4, tmp_path / "cache-killed")
        time.sleep(2)
    drained = time.monotonic()
    whole.send_signal(signal.SIGINT)
    assert whole.wait(CEILING_S) == 130
    drain_s = time.monotonic() - drained
    assert killed.wait(3 * CEILING_S) == 0, (tmp_path / "killed.txt").read_text()[-2000:]
    check_soaked(tmp_path, int(SOAK_S * 10) + 200)
    late = files[len(files) // 4 :]
    told = f"{now / 60:.0f} min, {stored_trials(tmp_path / 'whole'):,} trials with 1 % 429 and 0.5 % resets"
    note_figure(
        "soak",
        "one run with the cache on",
        f"{told}: memory {memory[-1][1]:.0f} MB, {slope_mb(memory):+.2f} MB per 10 min; open files {min(late)}–{max(late)}",
    )
    note_figure(
        "soak",
        "a second run, killed every minute",
        f"{kills} kills, {stored_trials(tmp_path / 'killed'):,} trials planned and stored: 0 lost, 0 twice",
    )
    note_figure("soak", "Ctrl-C at the end", f"drained, stored, scored and written in {drain_s:.1f} s, exit 130")
    assert slope_mb(memory) < 1.0
    assert max(late) - min(late) <= 16


def check_soaked(home: Path, planned: int) -> None:
    results = json.loads((home / "killed" / "results.json").read_text())
    assert results["status"]["complete"] and stored_trials(home / "killed") == planned
    assert all(task["metrics"]["accuracy"]["failed"] == 0 for task in results["tasks"].values())
    assert look_at_run(home / "killed").sound and look_at_run(home / "whole").sound


def ask(base_url: str, path: str) -> dict[str, int]:
    with urllib.request.urlopen(base_url.removesuffix("/v1") + path, timeout=CEILING_S) as response:
        return dict(json.loads(response.read()))


def watch(base_url: str, seconds: float) -> list[tuple[float, int, int, int]]:
    """Return (time, running, asked, refused) ten times a second."""
    seen, started = [], time.monotonic()
    while (now := time.monotonic() - started) < seconds:
        stats = ask(base_url, "/mock/stats")
        seen.append((now, stats["running"], stats.get("requests", 0), stats.get("status_429", 0)))
        time.sleep(0.1)
    return seen


def window(seen: list[tuple[float, int, int, int]], start: float, length: float) -> tuple[float, float]:
    """Return the mean number in flight and the share refused in a stretch of time."""
    inside = [row for row in seen if start <= row[0] < start + length]
    asked = inside[-1][2] - inside[0][2]
    return mean(row[1] for row in inside), (inside[-1][3] - inside[0][3]) / max(asked, 1)


def test_the_limit_finds_a_hidden_cap_and_follows_it_down(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    server = mock_server("--ttft-ms", 400, "--max-concurrency", 40, "--retry-after", "none")
    data = write_questions(tmp_path / "data.jsonl", 20_000)
    process = start_run(data, server.base_url, tmp_path / "run", 256, None)
    try:
        wait_until(lambda: ask(server.base_url, "/mock/stats").get("requests", 0) > 0, "the first request")
        high = watch(server.base_url, 60)
        ask(server.base_url, "/mock/max_concurrency/10")
        low = watch(server.base_url, 45)
    finally:
        process.kill()
        process.wait(CEILING_S)
    reached = next(second for second in range(60) if window(high, second, 1)[0] >= 36)
    share = high[-1][3] / high[-1][2]
    settled = next(second for second in range(36) if _is_settled(*window(low, second, 9)))
    average = window(high, 20, 40)[0]
    told = f"90 % of it in flight after {reached + 1} s; {share:.2%} refused in 60 s; {average:.0f} in flight on average from 20 s on"
    note_figure("soak", "a hidden cap of 40 concurrent requests", told)
    note_figure(
        "soak", "the cap falls to 10", f"settled after {settled} s (at most 2 % refused, at least 7.5 in flight)"
    )
    assert share <= 0.02 and settled <= 30


def _is_settled(running: float, refused: float) -> bool:
    return refused <= 0.02 and running >= 7.5
