"""Ctrl-C ends every command that takes its time: within seconds, by 130, without a traceback."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from figures import note_figure
from forked import Forge, forge
from made_runs import make_run, make_task
from waiting import CEILING_S, requests_seen, wait_until
from workshop_fixtures import write_sources

MOST_S = 5.0
"""How long a command may take after Ctrl-C, on a machine that is not crowded."""


def interrupt(smith: Forge, arguments: list[object], busy: Callable[[], Any]) -> tuple[int, float]:
    """Start a command, send SIGINT when it is busy, and return its exit code and how long it took to end."""
    pid = smith.start(arguments)
    wait_until(busy, f"{arguments[0]} at work")
    sent = monotonic()
    code = smith.stop_after(pid, 0.0, signal.SIGINT)
    return code, monotonic() - sent


def check(name: str, smith: Forge, code: int, took: float, codes: tuple[int, ...]) -> str:
    assert code in codes, f"{name}: exit {code}: {smith.said()[-2000:]}"
    assert "Traceback" not in smith.said(), smith.said()[-2000:]
    assert took < CEILING_S / 4
    return f"{name} {took:.1f} s"


def asking(home: Path, base_url: str) -> dict[str, list[object]]:
    """Commands in front of a server that accepts and never answers."""
    rows = [{"id": str(n), "question": f"Is it {n}?", "options": ["yes", "no"], "answer": "A"} for n in range(40)]
    (home / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    served: list[object] = ["--model", "openai/mock", "--base-url", base_url]
    load = [*served, "--warmup", 0, "--no-pictures", "--duration", 600]
    return {
        "run": ["run", home / "data.jsonl", *served, "-o", home / "run", "--no-cache"],
        "run --stream": ["run", home / "data.jsonl", *served, "-o", home / "stream", "--no-cache", "--stream"],
        "perf": ["perf", "synthetic", *load, "--concurrency", 4, "-o", home / "perf"],
        "perf sweep": ["perf", "sweep", "synthetic", *load, "--slo", "ttft=500ms", "-o", home / "sweep"],
        "curate draft": ["curate", "draft", write_sources(home, 6), home / "shop", *served, "--no-cache"],
    }


def test_ctrl_c_in_front_of_a_server_that_never_answers(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    server = mock_server("--fault", "hang")
    told = []
    with forge(tmp_path / "said.txt") as smith:
        for name, arguments in asking(tmp_path, server.base_url).items():
            before = requests_seen(server.base_url)
            busy = lambda before=before: requests_seen(server.base_url) > before  # noqa: E731
            code, took = interrupt(smith, arguments, busy)
            told.append((took, check(name, smith, code, took, (130,))))
    check_times("a server that never answers", told)


def check_times(what: str, told: list[tuple[float, str]]) -> None:
    note_figure("fault", f"Ctrl-C: {what}", ", ".join(text for _, text in told))
    if os.environ.get("SNELLEN_FIGURES"):
        assert max(took for took, _ in told) <= MOST_S + 1.0, told


def test_ctrl_c_ends_servers(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    make_run(tmp_path / "runs" / "one", model="openai/one", skill=0.5, count=5, task=make_task(repeats=1))
    servers = {"mock-server": ["mock-server"], "view": ["view", tmp_path / "runs"]}
    told = []
    with forge(tmp_path / "said.txt") as smith:
        for name, arguments in servers.items():
            (tmp_path / "said.txt").write_text("")
            code, took = interrupt(smith, list(arguments), lambda: "127.0.0.1" in smith.said())
            told.append((took, check(name, smith, code, took, (0, 130))))
    check_times("servers", told)


def test_ctrl_c_ends_work_without_a_server_wherever_it_strikes(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", model="openai/one", skill=0.5, count=60, task=make_task(repeats=2))
    rows = ({"id": str(n), "question": f"Is it {n}?", "options": ["yes", "no"], "answer": "A"} for n in range(20_000))
    (tmp_path / "large.jsonl").write_text("\n".join(map(json.dumps, rows)))
    work: dict[str, list[object]] = {
        "docs needle": ["docs", "needle", "--lengths", "8k", "--depths", 5, "--kinds", "kv-number", "-o", tmp_path / "n"],
        "data check": ["data", "check", tmp_path / "large.jsonl"],
        "score": ["score", folder],
        "report": ["report", folder],
        "leaderboard": ["leaderboard", tmp_path],
        "run of a local model": ["run", tmp_path / "large.jsonl", "--model", "blind/first", "-o", tmp_path / "b", "--no-cache"],
    }  # fmt: skip
    draw, told = random.Random(1), []
    with forge(
        tmp_path / "said.txt", "snellen.kits.pages.docs_command", "snellen.cli.data", "snellen.cli.score"
    ) as smith:
        for name, arguments in work.items():
            pid, delay = smith.start(arguments), draw.uniform(0.05, 0.5)
            ended = smith.wait(delay)
            sent = monotonic()
            code = smith.stop_after(pid, 0.0, signal.SIGINT) if ended is None else ended
            took = monotonic() - sent
            if code != -signal.SIGINT:  # else it struck before the command line was entered
                told.append((took, check(name, smith, code, took, (0, 130) if ended is None else (0, 1))))
    check_times("work without a server", told)
