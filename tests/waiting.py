"""Waiting for other processes by conditions: a slow machine waits longer and fails no test."""

from __future__ import annotations

import json
import sqlite3
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

CEILING_S = 240.0
"""How long anything may take on a loaded machine; only a real hang reaches it."""


def wait_until(condition: Callable[[], Any], what: str, ceiling_s: float = CEILING_S) -> None:
    """Return as soon as the condition holds; fail with `what` when it never does."""
    deadline = time.monotonic() + ceiling_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {ceiling_s:.0f} s"
        time.sleep(0.01)  # another process is at work: there is no clock to inject


def stored_trials(folder: Path) -> int:
    """How many trials a run in another process has stored so far; 0 before its database is there."""
    try:
        database = sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True)
    except sqlite3.OperationalError:
        return 0
    try:
        return int(database.execute("SELECT COUNT(*) FROM predictions").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        database.close()


def requests_seen(base_url: str) -> int:
    """How many requests a mock server has seen so far."""
    with urllib.request.urlopen(base_url.removesuffix("/v1") + "/mock/stats", timeout=CEILING_S) as response:
        return int(json.loads(response.read()).get("requests", 0))


def lines_of(log: Path) -> int:
    """How many lines a log has so far; 0 before it is there."""
    return log.read_bytes().count(b"\n") if log.exists() else 0
