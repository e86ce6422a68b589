"""Runs by several executors: the questions, a model that sleeps, what is killed, and what two runs must have in common."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command_line import COMMAND
from waiting import CEILING_S, wait_until

SLEEPER = '''
import time

class Sleeper:
    """Answers by the question and the pixels alone, after a while for each."""

    def raw_batch_generate(self, image, prompt, temperature=None, max_new_tokens=None):
        time.sleep({seconds} * len(prompt))
        seen = [sum(picture.tobytes()) if picture is not None else 0 for picture in image]
        return ["ABCD"[(sum(map(ord, text)) + pixels) % 4] for text, pixels in zip(prompt, seen)]

def get_sleeper(model_config):
    return Sleeper()
'''


def write_sleeper(folder: Path, seconds: float) -> list[str]:
    """Write a plug-in that sleeps so long a question; return the flags that use it."""
    (folder / "sleeper.py").write_text(SLEEPER.format(seconds=seconds))
    return ["--plugin", str(folder / "sleeper.py"), "--model", "plugin/sleeper", "--batch-size", "4", "--no-cache"]


def write_questions(folder: Path, count: int, picture: str | None = None) -> Path:
    """Write questions whose right answer is always the first option."""
    path = folder / "questions.jsonl"
    with path.open("w") as file:
        for number in range(count):
            row: dict[str, Any] = {"id": f"q{number}", "question": f"Which thing is number {number}?"}
            row |= {"options": ["one", "two", "three", "four"], "answer": "A"}
            file.write(json.dumps(row | ({"image": picture} if picture else {})) + "\n")
    return path


def start_run(arguments: Sequence[object], **environment: str) -> subprocess.Popen[str]:
    """Start `snellen run` in a process of its own."""
    return subprocess.Popen(
        [*COMMAND, "run", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def finish_run(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a run; return its exit code, what it printed, and what it said on stderr."""
    out, err = process.communicate(timeout=2 * CEILING_S)
    return process.returncode, out, err


def replies(folder: Path) -> dict[tuple[Any, ...], Any]:
    """Return what every stored trial was answered, without what differs between any two runs (times)."""
    database = sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True)
    try:
        rows = database.execute("SELECT task, sample, variant, repeat, body FROM predictions").fetchall()
    finally:
        database.close()
    found = {}
    for *key, body in rows:
        prediction = json.loads(body)
        kept = {
            name: prediction.get(name) for name in ("text", "loglikelihoods", "failure", "finish", "usage", "images")
        }
        assert tuple(key) not in found, "a trial is stored once"
        found[tuple(key)] = kept
    return found


def tasks_of(folder: Path) -> Any:
    """Return the figures of a run."""
    return json.loads((folder / "results.json").read_text())["tasks"]


def descendants(parent: int, name: str) -> list[int]:
    """Return the processes below one whose command line holds a name."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            ancestor = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue
        if ancestor == parent and name in command:
            found.append(int(entry.name))
    return found


def kill_replica(driver: int, name: str = "snellen.kits.scale.processes") -> int:
    """Kill one replica of a driver as soon as it has one; return its process."""
    wait_until(lambda: descendants(driver, name), "a replica lives")
    victim = descendants(driver, name)[0]
    os.kill(victim, signal.SIGKILL)
    return victim
