"""Drafting killed at random moments and repeated ends with every item, and pays for no stored reply twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import COMMAND, json_of
from waiting import lines_of, wait_until
from workshop_fixtures import write_sources

ITEMS, WORKERS = 120, 4


@pytest.mark.crash
@pytest.mark.slow  # of `make crash`; in `make test` the workshop stops a drafting and goes on
def test_killed_drafting_goes_on(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    sources, log = write_sources(tmp_path, ITEMS), tmp_path / "seen.jsonl"
    server = mock_server("--drafter", "good", "--ttft-ms", 25, "--log", log)
    flags = [
        "curate",
        "draft",
        sources,
        tmp_path / "shop",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "--no-cache",
    ]
    arguments = [*map(str, flags), "--max-workers", str(WORKERS)]
    draw, killed = random.Random(5), 0
    for _ in range(4):
        asked = lines_of(log) + draw.randrange(1, ITEMS // 3)
        process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(
            lambda asked=asked, process=process: lines_of(log) >= asked or process.poll() is not None, "questions"
        )
        process.kill()
        killed += process.wait() == -signal.SIGKILL
    made = json_of(*arguments)
    assert killed > 0 and made["drafts"] == ITEMS and made["set_aside"] == 0
    asked = Counter(json.loads(line)["body_sha256"] for line in log.read_text().splitlines())
    assert len(asked) == 2 * ITEMS
    assert sum(asked.values()) - len(asked) <= killed * WORKERS  # only what was in flight is asked again
    assert json_of(*arguments)["requests"] == 0
