"""Many at once: processes on one fresh cache, and more runs than a process may open files."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asgi import call
from figures import note_figure
from line_doubles import Scripted, jobs, work
from made_runs import make_run, make_task
from snellen.api.view import make_viewer
from snellen.core.types import Prediction, TrialKey
from snellen.report.viewer.guard import cookie_name
from snellen.store.cache import ResponseCache

OPENER = """
import sys
from pathlib import Path
from snellen.store.cache import ResponseCache
for line in sys.stdin:
    try:
        cache = ResponseCache(Path(line.strip()))
        cache.close()
        print("ok", flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
"""


def test_processes_that_open_a_fresh_cache_together_all_can(tmp_path: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", OPENER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    answers: list[str] = []
    for number in range(50):
        for child in children:
            assert child.stdin is not None
            child.stdin.write(f"{tmp_path / f'cache-{number}.db'}\n")
            child.stdin.flush()
        answers += [child.stdout.readline().strip() for child in children if child.stdout is not None]
    for child in children:
        child.communicate(timeout=30)
    assert answers == ["ok"] * 400
    note_figure("fault", "8 processes open one fresh cache together, 50 times", "400 openings: 0 errors")


def test_a_cache_that_cannot_be_used_is_never_to_be_deleted(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_bytes(b"certainly not a database" * 100)
    with pytest.raises(Exception, match="SNELLEN_CACHE_DIR") as caught:
        ResponseCache(tmp_path / "c.db")
    assert "delete" not in str(caught.value)


def test_what_is_kept_of_the_keys_does_not_grow_with_a_long_run(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "c.db")
    assert cache._known is not None
    before = len(cache._known._bits)
    for number in range(2_000):
        cache.put(str(number), "m", Prediction(TrialKey("t", "s"), text=str(number)))
    cache.flush()
    assert len(cache._known._bits) == before
    found = cache.get("1999", TrialKey("t", "s"))
    assert found is not None and found.text == "1999"
    queries: list[str] = []
    cache._database.set_trace_callback(queries.append)
    assert [cache.get(f"unknown {number}", TrialKey("t", "s")) for number in range(2_000)] == [None] * 2_000
    assert len(queries) < 20, "a miss costs no query"
    cache.close()


def test_a_shelf_of_more_runs_than_files_may_be_open_can_be_read_whole(tmp_path: Path) -> None:
    from snellen.report.viewer.run_library import MOST_OPEN, RunLibrary

    count = 300
    work(tmp_path / "first", Scripted(), jobs(2))
    for number in range(count - 1):
        (tmp_path / f"run{number}").mkdir()
        shutil.copy(tmp_path / "first" / "run.db", tmp_path / f"run{number}" / "run.db")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        library = RunLibrary([tmp_path])
        for _ in range(2):
            assert [run.progress().stored for run in library.runs()] == [2] * count
            assert library.problems == {}
        open_files = [path for path in Path("/proc/self/fd").iterdir() if str(tmp_path) in str(_target(path))]
        assert len(open_files) <= 3 * MOST_OPEN
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _target(path: Path) -> Path | None:
    try:
        return path.readlink()
    except OSError:
        return None


def test_a_run_that_grew_while_it_was_closed_is_counted_anew(tmp_path: Path) -> None:
    from snellen.report.viewer.run_library import RunLibrary

    work(tmp_path / "one", Scripted(), jobs(2))
    library = RunLibrary([tmp_path])
    (run,) = library.runs()
    assert run.progress().stored == 2
    assert run.close()
    work(tmp_path / "one", Scripted(), jobs(5))
    assert run.progress().stored == 5


@pytest.mark.slow
def test_the_viewer_shows_a_thousand_runs_with_few_files(tmp_path: Path) -> None:
    """As many pages as a reader would open; the time of the first one is work (CPU), whatever else the machine does."""
    pytest.importorskip("starlette")
    count = 1000
    make_run(tmp_path / "run0", model="openai/one", skill=0.5, count=30, task=make_task(repeats=1))
    database = sqlite3.connect(tmp_path / "run0" / "run.db")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    for number in range(1, count):
        (tmp_path / f"run{number}").mkdir()
        for name in ("run.db", "results.json"):
            shutil.copy(tmp_path / "run0" / name, tmp_path / f"run{number}" / name)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        cookie = {"cookie": f"{cookie_name('the-key')}=the-key"}
        app = make_viewer([tmp_path], "the-key")
        before = time.process_time()
        first = call(app, "/", headers=cookie)
        took = time.process_time() - before
        assert first.status == 200 and first.text.count("<tr") >= 100 and f"{count:,} runs" in first.text
        keys = [part.partition(":")[0] for part in call(app, "/state", headers=cookie).text.split()]
        assert len(keys) == count
        pages = ["/", "/leaderboard", *(f"/run/{key}" for key in keys[::5])]
        answers = [call(app, page, headers=cookie).status for page in pages]
        assert set(answers) == {200}, dict(zip(pages, answers, strict=True))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    told = f"first page {took:.2f} s of CPU; {len(pages)} pages: all 200"
    note_figure("fault", "the viewer with 1,000 runs at 256 open files", told)
    assert took < 1, "as promised; opening each of the thousand took more than two"
