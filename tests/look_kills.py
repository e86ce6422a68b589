"""Trials with tools, killed with signal 9 before and after every commit of every turn, end as an unbroken run.

Run: python tests/look_kills.py [trials, 50] [workers, 1]   (six turns a trial, every arm; some minutes of one processor)
Each process goes on in the same folder and dies at its first commit: once before it (the reply in flight is lost), once
after it (nobody heard that it was written). So no boundary is left out. Replies come from a function, and are counted.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from look_doubles import ask_all, box_call, chat, look_task, sample, without_time
from snellen.core.looks import LOOK_ARMS
from snellen.data.images import encode
from snellen.store.reader import RunReader

TURNS = 6
BEFORE, AFTER, NEVER = "before", "after", "never"
BOX = {"box": [10, 10, 30, 30]}


class Killed(NamedTuple):
    """What came of all the kills."""

    kills: int
    asked: int
    """Requests of the run that was killed."""
    needed: int
    """Requests of the unbroken run."""
    equal: bool
    """Whether every stored trial and turn is byte by byte the unbroken run's, but for the time."""
    rows: int


def five_looks(body: dict[str, Any], number: int) -> Any:
    """Zoom into another region in every turn, and answer in the sixth."""
    results = sum(message["role"] == "tool" for message in body["messages"])
    if "tools" not in body or results == TURNS - 1:
        return chat("a cat")
    return chat(None, [box_call(0, 0, 900 - 100 * results, 500)])


def kill_everywhere(home: Path, trials: int, workers: int) -> Killed:
    """Kill a run at every commit, before and after it, and compare it with one that nobody killed."""
    encode.APART = False  # pictures are encoded in this process: it is forked
    pictures = [sample(home, number, size=(64, 48), meta=BOX) for number in range(trials)]
    task = look_task({"max_turns": TURNS}, LOOK_ARMS)

    def ask(folder: Path, dies: str) -> int:
        """Ask in a process of its own; return its exit code, negative for a signal."""
        child = os.fork()
        if child == 0:
            counted = _counting(home / f"{folder.name}.asked")
            code = 1
            try:
                ask_all(folder, counted, task, pictures, workers=workers, stop_after=_dying(dies))
                code = 0
            finally:
                os._exit(code)  # nothing of the parent may go on in a child
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert ask(home / "whole", NEVER) == 0
    kills, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        for dies in (BEFORE, AFTER):
            code = ask(home / "killed", dies)
            kills += code == -signal.SIGKILL
    assert code == 0, f"exit {code}"
    wanted, found = _stored(home / "whole"), _stored(home / "killed")
    asked, needed = ((home / f"{name}.asked").stat().st_size for name in ("killed", "whole"))
    return Killed(kills, asked, needed, wanted == found, len(wanted))


def _counting(log: Path) -> Callable[[dict[str, Any], int], Any]:
    """Return the server, which leaves a byte a request in a file."""
    file = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def says(body: dict[str, Any], number: int) -> Any:
        os.write(file, b".")
        return five_looks(body, number)

    return says


def _dying(when: str) -> Callable[[Any], None]:
    def prepare(writer: Any) -> None:
        insert = writer._insert

        def insert_and_die(group: Any) -> None:
            if when == BEFORE:
                os.kill(os.getpid(), signal.SIGKILL)
            insert(group)
            if when == AFTER:
                os.kill(os.getpid(), signal.SIGKILL)

        writer._insert = insert_and_die

    return prepare


def _stored(folder: Path) -> list[bytes]:
    """Return trials and turns as they are stored, but for when they came."""
    with RunReader(folder) as reader:
        trials = [(t.request, without_time(t.prediction)) for t in reader.trials("t")]
        turns = [
            (t.number, t.digest, t.request, without_time(t.prediction), t.looks)
            for key in sorted({trial[1].key for trial in trials})
            for t in reader.turns(key)
        ]
    return [msgspec.json.encode(row) for row in (*trials, *turns)]


def main() -> int:
    trials, workers = (int(text) for text in (*sys.argv[1:3], *("50", "1")[len(sys.argv[1:3]) :]))
    with tempfile.TemporaryDirectory() as home:
        found = kill_everywhere(Path(home), trials, workers)
    again = found.asked - found.needed
    passed = found.equal and found.kills >= 2 and again <= found.kills * workers
    print(f"{trials} trials x {TURNS} turns x {len(LOOK_ARMS)} arms, {workers} in flight: {found.kills:,} kills")
    print(
        f"{found.rows:,} stored rows {'equal' if found.equal else 'DIFFER'}; {again:,} requests asked again, {found.needed:,} needed"
    )
    print("PASS" if passed else "FAIL")
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
