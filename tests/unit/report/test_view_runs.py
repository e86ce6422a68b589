"""The list of runs: the newest first, found by a word, and a stopped run is told from one that is being written."""

from __future__ import annotations

import html
import os
import re
import time
from pathlib import Path

import msgspec
import pytest

from asgi import call
from exam_observer import Observer, sit
from made_runs import make_run
from snellen.api.outputs import find_runs
from snellen.api.view import make_viewer
from snellen.store.database import connect, seal
from snellen.store.owner import RunLock

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from starlette.datastructures import QueryParams

from snellen.report.viewer import home
from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.home import Sought, runs_page, sought_in
from snellen.report.viewer.liveness import QUIET_S, is_written_now, last_written
from snellen.report.viewer.run_library import RunLibrary
from snellen.report.viewer.shell import progress_bar

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
def library(tmp_path_factory: pytest.TempPathFactory) -> RunLibrary:
    folder = tmp_path_factory.mktemp("runs")
    for name, created in BEGUN.items():
        begin(make_run(folder / name, model=f"openai/{name}-model", count=3), created)
    return RunLibrary([folder])


def listed(page: str) -> list[str]:
    return [html.unescape(name) for name in re.findall(r'<th scope="row"[^>]*><a href="/run/\w+">([^<]*)</a>', page)]


def test_newest_run_stands_first_and_heads_sort(library: RunLibrary) -> None:
    assert listed(runs_page(library)) == ["beta", "gamma", "alpha"]
    assert listed(runs_page(library, Sought(turned=True))) == ["alpha", "gamma", "beta"]
    assert listed(runs_page(library, Sought(sort="run"))) == ["alpha", "beta", "gamma"]
    assert listed(runs_page(library, Sought(sort="model", turned=True))) == ["gamma", "beta", "alpha"]
    assert listed(runs_page(library, sought_in(QueryParams("sort=nonsense")))) == ["beta", "gamma", "alpha"]
    assert 'aria-sort="descending"><a href="/?sort=begun&amp;turned=1">begun ↓</a>' in runs_page(library)


def test_search_finds_names_models_and_tasks(library: RunLibrary) -> None:
    page = runs_page(library, Sought("GAMMA-mod"))
    assert listed(page) == ["gamma"]
    assert "1 of 3 runs" in page
    assert len(listed(runs_page(library, Sought("shapes openai")))) == 3
    assert "No run has this" in runs_page(library, Sought("<zebra>"))
    assert "<zebra>" not in runs_page(library, Sought("<zebra>"))


def test_names_stay_on_one_line_unless_very_long(library: RunLibrary) -> None:
    assert '<td class="nowrap broad">openai/beta-model</td>' in runs_page(library)


def test_stopped_run_is_told_from_one_that_is_written(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "half", count=40, stop_after=10, score=False)
    run = RunLibrary([tmp_path]).runs()[0]
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


def test_a_list_is_put_in_order_without_opening_runs_whose_results_are_new(tmp_path: Path) -> None:
    for number in range(3):
        make_run(tmp_path / f"run{number}", count=3)
    library = RunLibrary([tmp_path])
    assert [run.brief().model for run in library.listed()] == ["openai/small"] * 3
    assert [run._reader for run in library.listed()] == [None] * 3
    later = time.time_ns() + 10**9
    os.utime(tmp_path / "run1" / "run.db", ns=(later, later))
    opened = [run._reader is not None for run in library.listed()]
    assert opened == [False, True, False], "written since its results: the database is asked"


def test_numbers_of_a_list_are_of_the_run_also_where_a_foreign_results_file_lies(tmp_path: Path) -> None:
    make_run(tmp_path / "good", skill=2.0, count=20)
    make_run(tmp_path / "bad", skill=-2.0, count=20, task=None)
    stolen = (tmp_path / "good" / "results.json").read_bytes().replace(b'"id": "', b'"id": "x')
    (tmp_path / "bad" / "results.json").write_bytes(stolen)
    page = runs_page(RunLibrary([tmp_path]), Sought(text="bad"))
    assert listed(page) == ["bad"]
    assert ">0.0 %<" in page


def test_a_long_list_has_pages(library: RunLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "PAGE", 2)
    first, second = runs_page(library), runs_page(library, Sought(page=2))
    assert [listed(first), listed(second)] == [["beta", "gamma"], ["alpha"]]
    assert "page 1 of 2" in first
    assert 'href="/?page=2"' in first
    assert listed(runs_page(library, Sought(page=99))) == ["alpha"]
    assert len(listed(runs_page(library, Sought(sort="run", text="beta")))) == 1


def test_runs_stand_in_groups_by_model(library: RunLibrary) -> None:
    page = runs_page(library, sought_in(QueryParams("group=model")))
    assert listed(page) == ["alpha", "beta", "gamma"]
    assert re.findall(r'scope="rowgroup">([^<]*)<', page) == [f"openai/{name}-model" for name in BEGUN]


class Clicks:
    """Someone who clicks in a viewer that may write."""

    def __init__(self, folder: Path, *, may_write: bool = True) -> None:
        self.app = make_viewer([folder], "key", may_write=may_write)
        self.cookie = {"cookie": f"{cookie_name('key')}=key"}

    def page(self, path: str) -> str:
        return call(self.app, path, headers=self.cookie).text

    def post(self, path: str, body: str) -> int:
        headers = {**self.cookie, "origin": "http://127.0.0.1:1"}
        return call(self.app, path, method="POST", headers=headers, body=body.encode()).status

    def keys(self) -> dict[str, str]:
        found = re.findall(r'<th scope="row"[^>]*><a href="/run/(\w+)">([^<]*)</a>', self.page("/?hidden=1"))
        return {name: key for key, name in found}


@pytest.fixture
def clicks(tmp_path: Path) -> Clicks:
    for name in ("one", "two"):
        rest(make_run(tmp_path / "runs" / name, count=3))
    return Clicks(tmp_path / "runs")


def test_runs_are_tagged_found_by_tag_hidden_and_shown_again(clicks: Clicks) -> None:
    key = clicks.keys()["one"]
    assert clicks.post("/runs/tag", f"run={key}&tag=paper+%3Cdraft%3E") == 303
    assert listed(clicks.page("/?text=%3Cdraft%3E")) == ["one"]
    assert "paper &lt;draft&gt;</a>" in clicks.page("/")
    assert clicks.post("/runs/hide", f"run={key}") == 303
    assert listed(clicks.page("/")) == ["two"]
    assert "1 of 2 runs, 1 hidden" in clicks.page("/")
    assert sorted(listed(clicks.page("/?hidden=1"))) == ["one", "two"]
    assert clicks.post("/runs/show", f"run={key}") == 303
    assert clicks.post("/runs/untag", f"run={key}&tag=paper+%3Cdraft%3E") == 303
    assert len(listed(clicks.page("/"))) == 2
    assert "draft" not in clicks.page("/")


def test_a_run_goes_to_the_trash_and_comes_back(clicks: Clicks, tmp_path: Path) -> None:
    before = sorted(path.name for path in (tmp_path / "runs" / "one").iterdir())
    assert clicks.post("/runs/trash", f"run={clicks.keys()['one']}") == 303
    assert listed(clicks.page("/")) == ["two"]
    assert not (tmp_path / "runs" / "one").exists()
    assert find_runs([tmp_path / "runs"]) == [tmp_path / "runs" / "two"], "nothing else looks into the trash"
    assert "In the trash: 1 run." in clicks.page("/")
    (key,) = re.findall(r'name="run" value="(\w+)" class="quiet"', clicks.page("/"))
    assert clicks.post("/runs/restore", f"run={key}") == 303
    assert sorted(listed(clicks.page("/"))) == ["one", "two"]
    assert sorted(path.name for path in (tmp_path / "runs" / "one").iterdir()) == before
    assert "In the trash" not in clicks.page("/")


def test_a_run_that_is_being_written_is_not_thrown_away(clicks: Clicks, tmp_path: Path) -> None:
    os.utime(tmp_path / "runs" / "one" / "run.db")
    assert clicks.post("/runs/trash", f"run={clicks.keys()['one']}") == 400
    assert (tmp_path / "runs" / "one" / "run.db").is_file()


def test_a_viewer_that_only_reads_changes_nothing(clicks: Clicks, tmp_path: Path) -> None:
    reader = Clicks(tmp_path / "runs", may_write=False)
    for doing in ("tag", "hide", "trash", "restore"):
        assert reader.post(f"/runs/{doing}", f"run={reader.keys()['one']}&tag=x") == 400
    assert "Move to the trash" not in reader.page("/")
    assert not list((tmp_path / "runs").glob("**/notes.jsonl"))
    assert clicks.post("/runs/nonsense", f"run={reader.keys()['one']}") == 400
    assert clicks.post("/runs/tag", f"run={reader.keys()['one']}&tag=") == 400
    assert clicks.post("/runs/hide", "") == 400


def test_what_judges_and_extractors_said_of_a_run_is_no_run_to_rank(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", count=2)
    for inside in ("judge-correctness", "extractor-letters--openai-m"):
        make_run(run / inside, count=2)
    assert find_runs([tmp_path]) == find_runs([run]) == [run]


def test_the_levels_of_a_load_are_one_row_and_no_line_of_the_leaderboard(tmp_path: Path) -> None:
    for level in (1, 2, 16):
        make_run(tmp_path / "load" / f"concurrency-{level}", count=3)
        (tmp_path / "load" / f"concurrency-{level}" / "timeline.json").write_text("{}")
    (tmp_path / "load" / "perf.json").write_text("{}")
    for name in ("one", "two"):
        make_run(tmp_path / name, model=f"openai/{name}", count=3)
    library = RunLibrary([tmp_path])
    page = runs_page(library)
    assert len(re.findall('<tr class="row', page)) == 3
    assert "load at 3 levels" in page
    assert re.findall(r'<li><input[^>]*> <a href="/run/\w+">([\w-]+)</a>', page) == [
        f"concurrency-{level}" for level in (1, 2, 16)
    ]
    cookie = {"cookie": f"{cookie_name('key')}=key"}
    board = call(make_viewer([tmp_path], "key"), "/leaderboard", headers=cookie).text
    assert "concurrency-" not in board and "openai/one" in board


def test_an_exam_is_one_row_with_what_its_tests_measured(tmp_path: Path) -> None:
    tests = ("acuity", "count")
    sit(tmp_path / "run", Observer(), mode="quick", tests=tests)
    page = runs_page(RunLibrary([tmp_path]))
    assert len(re.findall('<tr class="row', page)) == 1
    assert "exam of 2 tests" in page and "2 of 2 measured" in page
    exam = msgspec.json.decode((tmp_path / "run" / "exam.json").read_bytes())["tests"]
    for name in tests:
        value = f"{exam[name]['value']:.3g} {exam[name]['unit']}"
        assert re.search(rf">exam-{name}</a> <b[^>]*>{re.escape(value)}</b>", page)


def test_a_run_of_many_tasks_is_one_row_that_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path / "run", count=3)
    results = msgspec.json.decode((tmp_path / "run" / "results.json").read_bytes())
    shapes = results["tasks"]["shapes"]
    monkeypatch.setattr(RunLibrary([tmp_path]).runs()[0].__class__, "results", lambda _: results)
    for count, rows in ((home.MOST_TASKS, home.MOST_TASKS), (home.MOST_TASKS + 1, 1)):
        results["tasks"] = {f"task-{number}": shapes for number in range(count)}
        page = runs_page(RunLibrary([tmp_path]))
        assert len(re.findall('<tr class="row', page)) == rows
        assert page.count("task=task-") == count
