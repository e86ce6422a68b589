"""The list of runs: the newest first, found by a word, and a stopped run is told from one that is being written."""

from __future__ import annotations

import html
import os
import re
import time
from pathlib import Path

import msgspec
import pytest

from made_runs import make_run
from snellen.store.database import connect
from snellen.store.lock import RunLock
from snellen.store.seal import seal

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.report.web.home import runs_page
from snellen.report.web.liveness import QUIET_S, is_written_now, last_written
from snellen.report.web.shelf import Shelf
from snellen.report.web.shell import progress_bar

BEGUN = {
    "alpha": "2026-03-01T08:00:00+00:00",
    "beta": "2026-05-01T08:00:00+00:00",
    "gamma": "2026-04-01T08:00:00+00:00",
}


def begin(folder: Path, created: str) -> None:
    """Write another time into the header of a run."""
    database = connect(folder / "run.db")
    with database:
        (body,) = database.execute("SELECT value FROM meta WHERE key = 'header'").fetchone()
        header = {**msgspec.json.decode(body), "created": created}
        header.pop("crc")
        sealed = seal(msgspec.json.encode(header)).decode()
        database.execute("UPDATE meta SET value = ? WHERE key = 'header'", (sealed,))
    database.close()


def rest(folder: Path, seconds: float = 10 * QUIET_S) -> None:
    """Make a run look as if nobody had written it for a while."""
    for path in folder.glob("run.db*"):
        os.utime(path, (time.time() - seconds,) * 2)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("runs")
    for name, created in BEGUN.items():
        begin(make_run(folder / name, model=f"openai/{name}-model", count=3), created)
    return Shelf([folder])


def listed(page: str) -> list[str]:
    return [html.unescape(name) for name in re.findall(r'<th scope="row"[^>]*><a href="/run/\w+">([^<]*)</a>', page)]


def test_newest_run_stands_first_and_heads_sort(shelf: Shelf) -> None:
    assert listed(runs_page(shelf)) == ["beta", "gamma", "alpha"]
    assert listed(runs_page(shelf, turned=True)) == ["alpha", "gamma", "beta"]
    assert listed(runs_page(shelf, sort="run")) == ["alpha", "beta", "gamma"]
    assert listed(runs_page(shelf, sort="model", turned=True)) == ["gamma", "beta", "alpha"]
    assert listed(runs_page(shelf, sort="nonsense")) == ["beta", "gamma", "alpha"]
    assert 'aria-sort="descending"><a href="/?sort=begun&amp;turned=1">begun ↓</a>' in runs_page(shelf)


def test_search_finds_names_models_and_tasks(shelf: Shelf) -> None:
    page = runs_page(shelf, "GAMMA-mod")
    assert listed(page) == ["gamma"]
    assert "1 of 3 runs" in page
    assert len(listed(runs_page(shelf, "shapes openai"))) == 3
    assert "No run has this" in runs_page(shelf, "<zebra>")
    assert "<zebra>" not in runs_page(shelf, "<zebra>")


def test_names_stay_on_one_line_unless_very_long(shelf: Shelf) -> None:
    assert '<td class="nowrap">openai/beta-model</td>' in runs_page(shelf)


def test_stopped_run_is_told_from_one_that_is_written(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "half", count=40, stop_after=10, score=False)
    run = Shelf([tmp_path]).runs()[0]
    assert "running: 10 of 40" in str(progress_bar(run)), "written a moment ago"
    rest(folder)
    stopped = str(progress_bar(run))
    assert "■ stopped" in stopped
    assert f"10 of 40 trials stored, 0 failed; last written {last_written(folder)}" in stopped
    assert "live" not in stopped


@pytest.mark.skipif(not Path("/proc/locks").is_file(), reason="only Linux lists locks")
def test_a_held_lock_is_a_running_run_and_looking_takes_none(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "half", count=40, stop_after=10, score=False)
    rest(folder)
    assert not is_written_now(folder)
    lock = RunLock(folder)
    assert is_written_now(folder), "a slow model writes seldom"
    lock.release()
    assert not is_written_now(folder), "the file stays, the lock does not"
    lock = RunLock(folder)
    lock.release()


def test_a_system_without_a_list_of_locks_has_the_time_only(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "half", count=4, stop_after=2, score=False)
    assert is_written_now(folder, tmp_path / "none")
    rest(folder)
    assert not is_written_now(folder, tmp_path / "none")
    (tmp_path / "odd").write_text("nonsense\n1: FLOCK\n")
    assert not is_written_now(folder, tmp_path / "odd")
