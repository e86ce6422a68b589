"""Kills drawn over the whole of a piece of work: nothing stored is lost, nothing is stored twice, the results are equal."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from time import monotonic
from typing import Any

from forked import Forge
from waiting import requests_seen, stored_trials

WORKERS = 16
MANY = int(os.environ.get("SNELLEN_KILLS", "100"))
A_RUN = 8
"""Kills of one run: its places are drawn together, or each would only be drawn from what the one before it left."""


@dataclass(frozen=True)
class Work:
    """One kind of work: its command for a folder, how much it stores, and who is asked."""

    command: Callable[[Path], list[object]]
    planned: int
    base_url: str = ""
    imports: tuple[str, ...] = ()
    alone: Callable[[Path], list[object]] | None = None
    """The command whose results it must have, where that is another one."""


@dataclass
class Killed:
    """What was killed so far and where."""

    planned: int
    places: list[int] = field(default_factory=list)
    rounds: int = 0
    checked: int = 0

    @property
    def spread(self) -> str:
        """Return how much was done when the kills came, by quartiles."""
        shares = [100 * place / self.planned for place in self.places]
        middle = quantiles(shares, n=4) if len(shares) > 1 else shares
        return f"{min(shares):.0f}–{max(shares):.0f} % done, quartiles {', '.join(f'{share:.0f}' for share in middle)}"

    @property
    def told(self) -> str:
        """Return the figure."""
        runs = f"{len(self.places)} kills at {self.spread}, in {self.rounds} runs of {self.planned}"
        return f"{runs}: 0 lost of {self.checked:,} rows compared, 0 twice, all results equal"


@dataclass(frozen=True)
class Pace:
    """How long an uninterrupted run took to its first stored trial, from there to the last, and from there to its end."""

    start_s: float
    work_s: float
    end_s: float

    def delay(self, draw: random.Random, place: int, known: int, planned: int) -> float:
        """Return how long to wait at a place: over the start if it lies behind, over the end if it is the last."""
        if place <= known:
            return draw.uniform(0, self.start_s)
        return draw.uniform(0, self.end_s if place >= planned else self.work_s / 20)


def stored_so_far(folder: Path) -> int:
    """How many trials all runs in a folder have stored."""
    return sum(stored_trials(path.parent) for path in folder.rglob("run.db")) if folder.exists() else 0


def stored_rows(folder: Path) -> dict[tuple[Any, ...], bytes]:
    """Every reply a folder holds, by its key: what was acknowledged."""
    found: dict[tuple[Any, ...], bytes] = {}
    for path in sorted(folder.rglob("run.db")):
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            rows = list(
                database.execute("SELECT task, sample, variant, repeat, body FROM predictions WHERE failed = 0")
            )
        except sqlite3.OperationalError:  # killed before the tables were there
            rows = []
        finally:
            database.close()
        keys = [(path.parent.name if path.parent != folder else "", *row[:4]) for row in rows]
        assert len(keys) == len(set(keys)), "a trial is stored twice"
        found |= {key: bytes(row[4]) for key, row in zip(keys, rows, strict=True)}
    return found


def outcome(folder: Path) -> object:
    """What a reader takes from a finished folder, without what tells the time."""
    if (folder / "drafts.jsonl").exists():
        return sorted((folder / "drafts.jsonl").read_text().splitlines())
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    for record in records:
        record.pop("latency_s")
    return json.loads((folder / "results.json").read_text())["tasks"], records


def time_of(smith: Forge, command: list[object], done: Callable[[], int], planned: int) -> Pace:
    """Run a command to its end and return where its time went."""
    started = monotonic()
    pid = smith.start(command)
    first = smith.watch(pid, lambda: done() > 0)
    last = smith.watch(pid, lambda: done() >= planned)
    if last:
        assert smith.wait() == 0, smith.said()[-3000:]
    ended = monotonic()
    begun, finished = first or ended, last or ended
    return Pace(begun - started, max(0.0, finished - begun), ended - finished)


def kill_and_repeat(smith: Forge, work: Work, home: Path, kills: int, seed: int) -> Killed:
    """Kill the work at places drawn over all of it, again and again, and compare everything after every kill."""
    whole = home / "whole"
    pace = time_of(smith, work.command(whole), lambda: stored_so_far(whole), work.planned)
    if work.alone is not None:
        whole = home / "alone"
        smith.run(work.alone(whole))
    wanted = outcome(whole)
    assert len(stored_rows(whole)) == work.planned
    draw, killed = random.Random(seed), Killed(work.planned)
    while len(killed.places) < kills:
        killed.rounds += 1
        folder = home / f"round{killed.rounds}"
        places = sorted(draw.randint(0, work.planned) for _ in range(min(A_RUN, kills - len(killed.places))))
        kill_at(places, smith, work, folder, pace, killed, draw)
        assert outcome(folder) == wanted
        assert len(stored_rows(folder)) == work.planned
    if work.base_url:
        seen, most = requests_seen(work.base_url), (killed.rounds + 1) * (work.planned + 10)
        assert seen <= most + len(killed.places) * WORKERS, "more was asked again than was in flight"
    return killed


def kill_at(
    places: list[int], smith: Forge, work: Work, folder: Path, pace: Pace, killed: Killed, draw: random.Random
) -> None:
    """Kill one run at each place in turn, then let it end."""
    known: dict[tuple[Any, ...], bytes] = {}
    for place in places:
        pid = smith.start(work.command(folder))
        delay_s = pace.delay(draw, place, len(known), work.planned)
        code = smith.stop_between(pid, lambda: stored_so_far(folder), place, len(known), delay_s)
        now = stored_rows(folder)
        lost = [key for key, body in known.items() if now.get(key) != body]
        assert not lost, f"{len(lost)} stored replies are gone or changed: {lost[:3]}"
        known, killed.checked = now, killed.checked + len(now)
        if code == 0:
            return
        assert code == -signal.SIGKILL, f"exit {code}: {smith.said()[-3000:]}"
        killed.places.append(len(now))
    smith.run(work.command(folder))
