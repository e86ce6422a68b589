"""Publishing, repairing, scoring, merging and exporting, killed before every change of a file: good state, or continued.

A few places of each in `make test`, all of them in `make crash`.
"""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from figures import note_figure
from forked import Forge, forge
from snellen.api.settings import RunSettings
from snellen.kits.curate.decisions import Decision
from snellen.kits.curate.desk import ReviewSettings
from snellen.kits.curate.library import draft, gates, publish
from snellen.kits.curate.workshop import Workshop
from workshop_fixtures import write_sources

MODULES = (
    "snellen.api.machine",
    "snellen.api.score",
    "snellen.api.outputs",
    "snellen.kits.arrays.parts",
    "snellen.kits.arrays.commands",
)


class Killed(NamedTuple):
    """One kind of work: its command, what it begins with, and what is true after a kill and after the end."""

    command: list[object]
    start: Path
    """A folder that each round begins with a copy of, at `place`."""
    place: Path
    after_kill: Callable[[], None]
    at_end: Callable[[], object]
    ended: tuple[int, ...] = (0,)
    """Exit codes of the command when it is repeated after a kill that came late."""


def write_run(home: Path) -> list[object]:
    rows = [{"id": str(n), "question": "?", "options": [f"it is {n + 1}", "no"], "answer": "no"} for n in range(30)]
    (home / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["run", home / "my.jsonl", "--model", "blind/first", "-o", home / "run", "--quiet", "--no-cache"]


def told(folder: Path) -> Any:
    results = json.loads((folder / "results.json").read_text())["tasks"]
    return results, (folder / "records.jsonl").read_text()


def publishing(home: Path, smith: Forge, mock_server: Callable[..., Any]) -> Killed:
    asked = RunSettings(tasks=(), model="openai/mock", base_url=mock_server("--drafter", "good").base_url, cache=False)
    draft(write_sources(home, 8), home / "shop", asked)
    gates(home / "shop")
    desk = Workshop(home / "shop").open_desk(ReviewSettings(("ana",)))
    for place, item in enumerate(desk.items):
        desk.decide(Decision("review", item, "ana", "now", "accept", str(place), ""))
    desk.ledger.close()
    reason = {"despite_gates": "small"}
    publish(home / "shop", home / "out", licence="CC0", **reason)

    def files() -> dict[str, bytes]:
        found = [path for path in (home / "out").rglob("*") if path.is_file() and path.suffix not in (".md", ".json")]
        kept = [*found, home / "out" / "annotations.json"]
        return {str(path.relative_to(home)): path.read_bytes() for path in kept}

    shutil.copytree(home / "out", home / "start")
    wanted = files()

    def whole_or_none() -> None:
        assert not (home / "out").exists() or files() == wanted, "half a dataset"

    told_again = [
        "curate",
        "publish",
        home / "shop",
        "-o",
        home / "out",
        "--licence",
        "CC0",
        "--despite-gates",
        "small",
    ]
    return Killed(told_again, home / "start", home / "out", whole_or_none, files)


def repairing(home: Path, smith: Forge, _: Callable[..., Any]) -> Killed:
    command = write_run(home)
    smith.run(command)
    wanted = told(home / "run")
    database = sqlite3.connect(home / "run" / "run.db")
    database.execute("UPDATE predictions SET body = x'7b22' WHERE sample = '3'")
    database.commit()
    database.close()
    (home / "run" / "results.json").unlink()
    shutil.copytree(home / "run", home / "start")

    def never_begun_anew() -> None:
        if not (home / "run" / "run.db").exists():
            smith.start(command)
            assert smith.wait() == 3 and "snellen repair" in smith.said()

    def finish() -> object:
        smith.run(command)
        return told(home / "run") == wanted

    return Killed(["repair", home / "run"], home / "start", home / "run", never_begun_anew, finish, (0, 3))


def scoring(home: Path, smith: Forge, _: Callable[..., Any]) -> Killed:
    smith.run(write_run(home))
    shutil.copytree(home / "run", home / "start")

    def readable() -> None:
        assert told(home / "run")[0]

    def at_end() -> object:
        return told(home / "run"), sorted(path.name for path in (home / "run").iterdir() if path.name.startswith("."))

    return Killed(["score", home / "run"], home / "start", home / "run", readable, at_end)


def exporting(form: str) -> Callable[[Path, Forge, Callable[..., Any]], Killed]:
    def export(home: Path, smith: Forge, _: Callable[..., Any]) -> Killed:
        smith.run(write_run(home))
        shutil.copytree(home / "run", home / "start")

        def files() -> object:
            found = [path for path in (home / "run" / "export").rglob("*") if path.is_file()]
            return sorted((path.name, path.stat().st_size) for path in found)

        return Killed(["report", home / "run", "--export", form], home / "start", home / "run", lambda: None, files)

    return export


def merging(home: Path, smith: Forge, _: Callable[..., Any]) -> Killed:
    command = write_run(home)
    for index in range(3):
        smith.run([*command, "--shard", f"{index}/4"])
    smith.start([*command, "--shard", "3/4"], KILL_AT="1", KILL_IN="run.db.")  # asked, and killed before it joins them
    assert smith.wait() == -signal.SIGKILL
    shutil.copytree(home / "run", home / "start")

    def at_end() -> object:
        left = [path.name for path in (home / "run" / "run.d").iterdir() if path.suffix not in (".log", ".json")]
        return told(home / "run"), left

    return Killed(["merge", home / "run"], home / "start", home / "run", lambda: None, at_end)


KINDS = {
    "curate publish": publishing,
    "repair": repairing,
    "score": scoring,
    "merge": merging,
    "report --export csv": exporting("csv"),
    "report --export reform": exporting("reform"),
}


def rounds(work: Killed, smith: Forge, numbers: Iterator[int]) -> Iterator[int]:
    """Kill the work before each change in turn, from its beginning; ends with the first round that was not killed."""
    for number in numbers:
        shutil.rmtree(work.place, ignore_errors=True)
        shutil.copytree(work.start, work.place)
        smith.start(work.command, KILL_AT=str(number), KILL_IN=str(work.place.parent))
        code = smith.wait()
        if code != -signal.SIGKILL:
            assert code == 0, f"exit {code}: {smith.said()[-2000:]}"
            return
        yield number


def kill_everywhere(work: Killed, smith: Forge, every: int) -> int:
    """Kill at every n-th change and look at the state, and at what the same command makes of it; return how often."""
    shutil.rmtree(work.place, ignore_errors=True)
    shutil.copytree(work.start, work.place)
    smith.run(work.command)
    wanted, kills = work.at_end(), 0
    for number in rounds(work, smith, iter(range(1, 100_000, every))):
        work.after_kill()
        smith.start(work.command)
        code = smith.wait()
        assert code in work.ended, f"after a kill at change {number} exit {code}: {smith.said()[-2000:]}"
        assert work.at_end() == wanted, f"after a kill at change {number}"
        kills += 1
    assert kills, "nothing was killed"
    return kills


@pytest.mark.parametrize(("kind", "every"), [("curate publish", 25), ("repair", 4)])
def test_work_killed_at_some_changes_is_whole_or_continued(
    kind: str, every: int, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    with forge(tmp_path / "said.txt", *MODULES) as smith:
        kill_everywhere(KINDS[kind](tmp_path, smith, mock_server), smith, every)


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_work_killed_at_every_change_is_whole_or_continued(
    kind: str, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    with forge(tmp_path / "said.txt", *MODULES) as smith:
        kills = kill_everywhere(KINDS[kind](tmp_path, smith, mock_server), smith, every=1)
    note_figure(
        "crash", f"SIGKILL before every change, {kind}", f"{kills} kills: state whole or continued, all results equal"
    )
