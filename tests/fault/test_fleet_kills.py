"""Drivers and replicas of `--executor processes` and `ray` killed all along the plan: the run of one process, row for row.

A hundred kills of each by processes in `make crash`; a quarter of them by Ray, whose drivers take seconds to start.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from executor_runs import descendants, finish_run, start_run, write_questions, write_sleeper
from figures import note_figure
from forked import Forge, forge
from killing import A_RUN, MANY, Killed, Work, kill_and_repeat, outcome, stored_rows, stored_so_far
from ray_nodes import Nodes, ray_nodes
from waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.slow]
TRIALS, REPLICAS = 400, "snellen.kits.scale.processes"
MANY_BY_RAY = max(1, MANY // 4)


def sleepers(home: Path, *executor: object, seconds: float = 0.01) -> Work:
    """Questions to a plug-in that sleeps, by some executor; the results are those of one process."""
    told = ["run", write_questions(home, TRIALS), *write_sleeper(home, seconds), "--quiet"]
    return Work(lambda folder: [*told, *executor, "-o", folder], TRIALS, alone=lambda folder: [*told, "-o", folder])


def places_of(draw: random.Random, killed: Killed, kills: int) -> list[int]:
    """Return where the next run is killed."""
    return sorted(draw.randrange(TRIALS) for _ in range(min(A_RUN, kills - len(killed.places))))


def test_a_driver_of_processes_killed_a_hundred_times_changes_no_number(tmp_path: Path) -> None:
    work = sleepers(tmp_path, "--executor", "processes", "--replicas", 2)
    started = monotonic()
    with forge(tmp_path / "said.txt") as smith:
        killed = kill_and_repeat(smith, work, tmp_path, MANY, seed=5)
    note_figure("crash", "SIGKILL, driver of processes", f"{killed.told} ({monotonic() - started:.0f} s)")


def kill_replicas(smith: Forge, work: Work, folder: Path, places: list[int], draw: random.Random) -> list[int]:
    """Run once and kill a replica at each place; return how much was stored at each kill."""
    pid, done = smith.start(work.command(folder)), list[int]()
    for place in places:
        if smith.watch(pid, lambda place=place: stored_so_far(folder) >= place) is None:
            return done
        wait_until(lambda: descendants(pid, REPLICAS), "a replica lives")
        os.kill(draw.choice(descendants(pid, REPLICAS)), signal.SIGKILL)
        done.append(stored_so_far(folder))
    assert smith.wait() == 0, smith.said()[-3000:]
    return done


def test_replicas_of_processes_killed_a_hundred_times_change_no_number(tmp_path: Path) -> None:
    work, draw, killed = (
        sleepers(tmp_path, "--executor", "processes", "--replicas", 2),
        random.Random(6),
        Killed(TRIALS),
    )
    started = monotonic()
    with forge(tmp_path / "said.txt") as smith:
        assert work.alone is not None
        smith.run(work.alone(tmp_path / "alone"))
        while len(killed.places) < MANY:
            killed.rounds += 1
            folder = tmp_path / f"round{killed.rounds}"
            killed.places += kill_replicas(smith, work, folder, places_of(draw, killed, MANY), draw)
            check_equal(folder, tmp_path / "alone", killed)
    note_figure("crash", "SIGKILL, replicas of processes", f"{killed.told} ({monotonic() - started:.0f} s)")


def check_equal(folder: Path, alone: Path, killed: Killed) -> None:
    """Every trial is stored, once, and a reader sees what one process has made."""
    rows = stored_rows(folder)
    assert len(rows) == TRIALS
    killed.checked += len(rows)
    assert outcome(folder) == outcome(alone)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    pytest.importorskip("ray")
    with ray_nodes(2) as cluster:
        yield cluster


def kill_run(
    command: list[object], folder: Path, places: list[int], killed: Killed, strike: Callable[[int], bool]
) -> None:
    """Run with a kill at each place; a killed driver is started again, and what was stored is there still."""
    known, process = stored_rows(folder), start_run(command)
    for place in places:
        wait_until(
            lambda place=place, process=process: process.poll() is not None or stored_so_far(folder) >= place,
            f"{place} stored trials",
            600,
        )
        if process.poll() is not None:
            break
        if strike(process.pid):
            assert finish_run(process)[0] == -signal.SIGKILL
        now = stored_rows(folder)
        assert all(now.get(key) == body for key, body in known.items()), "a stored reply is gone or changed"
        known, killed.checked = now, killed.checked + len(now)
        killed.places.append(len(now))
        if process.poll() is not None:
            process = start_run(command)
    code, _, err = finish_run(process)
    assert code == 0, err


@pytest.mark.parametrize("who", ["driver", "replicas"])
def test_ray_killed_again_and_again_changes_no_number(who: str, nodes: Nodes, tmp_path: Path) -> None:
    work = sleepers(tmp_path, "--executor", "ray", "--ray-address", nodes.address, "--replicas", 2)
    draw, killed, started = random.Random(7), Killed(TRIALS), monotonic()

    def strike(driver: int) -> bool:
        if who == "driver":
            os.kill(driver, signal.SIGKILL)
        else:
            nodes.kill_replica(draw)
        return who == "driver"

    with forge(tmp_path / "said.txt") as smith:
        assert work.alone is not None
        smith.run(work.alone(tmp_path / "alone"))
    while len(killed.places) < MANY_BY_RAY:
        killed.rounds += 1
        folder = tmp_path / f"round{killed.rounds}"
        folder.mkdir()
        places = places_of(draw, killed, MANY_BY_RAY)
        kill_run(work.command(folder)[1:], folder, places, killed, strike)
        check_equal(folder, tmp_path / "alone", killed)
    wait_until(lambda: not nodes.replicas(), "replicas end with their drivers")
    note_figure("crash", f"SIGKILL, {who} of Ray", f"{killed.told} ({monotonic() - started:.0f} s)")
