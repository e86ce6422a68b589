"""A damaged run.db: told in one line, its unreadable rows asked again, what is left of it counted and saved."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from line_doubles import Scripted, header, jobs, work
from snellen.core.errors import EnvironmentProblem
from snellen.store.damage import SPARE, bounded, look_at_run, repair_run
from snellen.store.database import damaged, reading, write_problem
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter


def change(folder: Path, statement: str, *values: object) -> None:
    database = sqlite3.connect(folder / "run.db")
    database.execute(statement, values)
    database.commit()
    database.close()


def made(folder: Path, count: int = 20) -> Path:
    work(folder, Scripted(), jobs(count))
    change(folder, "PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE predictions SET body = x'7b' WHERE sample = 's3'",
        "UPDATE predictions SET body = '{}' WHERE sample = 's3'",
        "UPDATE predictions SET request = x'00ff' WHERE sample = 's3'",
        "UPDATE predictions SET variant = 'bbse' WHERE sample = 's3'",
        "UPDATE samples SET body = x'00' WHERE id = 's3'",
    ],
)
def test_a_row_that_cannot_be_read_counts_as_failed_and_is_asked_again(tmp_path: Path, statement: str) -> None:
    folder = made(tmp_path / "run")
    change(folder, statement.replace("'{}'", "x'7b7d'"))
    assert not look_at_run(folder).sound
    writer = RunWriter(folder, header())
    assert writer.lost == 1
    writer.close()
    again = Scripted()
    work(folder, again, jobs(20))
    assert again.asked == ["s3"]
    with RunReader(folder) as reader:
        texts = {trial.sample.id: trial.prediction.text for trial in reader.trials("t") if trial.prediction.text}
    assert texts == {f"s{number}": "ok" for number in range(20)}


def test_a_row_that_cannot_be_read_is_one_line_for_whoever_reads_the_run(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    change(folder, "UPDATE predictions SET body = x'7b' WHERE sample = 's3'")
    with pytest.raises(EnvironmentProblem, match="snellen repair"), RunReader(folder) as reader:
        list(reader.trials("t"))
    with pytest.raises(EnvironmentProblem, match="snellen repair"), RunReader(folder) as reader:
        [msgspec.json.decode(body) for (body,) in reader.rows("SELECT body FROM predictions")]


def flip(path: Path, seed: int, flips: int) -> None:
    """Overwrite a few stretches behind the first page."""
    draw, content = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(flips):
        at = draw.randrange(4096, len(content))
        content[at : at + 40] = draw.randbytes(min(40, len(content) - at))
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("seed", range(25))
def test_whatever_is_damaged_the_run_opens_or_is_refused_by_one_line_and_repair_saves_true_rows(
    tmp_path: Path, seed: int
) -> None:
    folder = made(tmp_path / "run", 60)
    flip(folder / "run.db", seed, 1 + seed % 4)
    health = look_at_run(folder)
    assert health.verdict
    try:
        with RunReader(folder) as reader:
            read = [(trial.sample.id, trial.prediction.text) for trial in reader.trials("t")]
            list(reader.scores("t"))
    except EnvironmentProblem as problem:
        assert "\n" not in str(problem)
    else:
        assert len(read) <= 60
    if health.sound or not health.has_header:
        return
    repaired = repair_run(folder)
    assert look_at_run(folder).sound and repaired.spare.name == SPARE and repaired.spare.exists()
    with RunReader(folder) as reader:
        trials = list(reader.trials("t"))
    assert len(trials) == repaired.saved["predictions"]
    assert {trial.prediction.text for trial in trials} <= {"ok"}
    again = Scripted()
    work(folder, again, jobs(60))
    assert len(again.asked) == 60 - len(trials), "exactly what was lost is asked again"
    with RunReader(folder) as reader:
        assert sum(1 for _ in reader.trials("t")) == 60


def test_a_broken_page_costs_only_the_rows_on_it(tmp_path: Path) -> None:
    folder = made(tmp_path / "run", 400)
    path = folder / "run.db"
    database = sqlite3.connect(path)
    query = "SELECT pageno FROM dbstat WHERE name = 'predictions' AND pagetype = 'leaf' ORDER BY pageno"
    try:
        pages = [number for (number,) in database.execute(query)]
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no dbstat")
    finally:
        database.close()
    content = bytearray(path.read_bytes())
    start = (pages[len(pages) // 2] - 1) * 4096
    content[start : start + 4096] = b"\xff" * 4096
    path.write_bytes(bytes(content))
    with pytest.raises(EnvironmentProblem, match="snellen doctor"), RunReader(folder) as reader:
        list(reader.trials("t"))
    with pytest.raises(EnvironmentProblem, match="snellen doctor"):
        RunWriter(folder, header()).close()
    saved = repair_run(folder).saved
    assert 400 - 40 < saved["predictions"] < 400
    again = Scripted()
    work(folder, again, jobs(400))
    assert len(again.asked) == 400 - saved["predictions"]


def test_without_its_header_nothing_is_repaired_and_a_sound_run_is_left_alone(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    with pytest.raises(EnvironmentProblem, match="is sound"):
        repair_run(folder)
    change(folder, "UPDATE meta SET value = '{' WHERE key = 'header'")
    with pytest.raises(EnvironmentProblem, match="nobody knows which model"):
        repair_run(folder)
    assert not (folder / SPARE).exists()
    with pytest.raises(EnvironmentProblem, match=r"run\.db is missing"):
        look_at_run(tmp_path)


def test_a_file_that_is_no_database_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "run.db").write_bytes(b"\x00" * 8192 + b"x")
    assert not look_at_run(tmp_path).sound
    (tmp_path / "run.db").write_bytes(b"not a database at all" * 100)
    assert "at all" in look_at_run(tmp_path).verdict
    with pytest.raises(EnvironmentProblem, match="nobody knows"):
        repair_run(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n",
        "CREATE TRIGGER odd AFTER INSERT ON scores BEGIN DELETE FROM predictions; END",
    ],
)
def test_a_run_of_a_stranger_with_more_than_tables_is_refused(tmp_path: Path, statement: str) -> None:
    folder = made(tmp_path / "run")
    change(folder, statement)
    with pytest.raises(EnvironmentProblem, match="no plain table"):
        RunReader(folder)
    with pytest.raises(EnvironmentProblem, match="no plain table"):
        RunWriter(folder, header())
    with pytest.raises(EnvironmentProblem, match="no plain table"):
        look_at_run(folder)


def test_statements_that_never_end_are_ended_each_sooner_than_the_last(tmp_path: Path) -> None:
    with closing(bounded(made(tmp_path / "run") / "run.db")) as database:
        for _ in range(200):
            with pytest.raises(sqlite3.OperationalError, match="interrupted"):
                database.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n")


class Failing:
    """A connection that raises something at a statement."""

    def __init__(self, real: sqlite3.Connection, at: str, error: Exception) -> None:
        self._real, self._at, self._error = real, at, error
        self.failing = True

    @property
    def in_transaction(self) -> bool:
        return self._real.in_transaction

    def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        if self.failing and statement.startswith(self._at):
            raise self._error
        return self._real.execute(statement, *values)

    def close(self) -> None:
        self._real.close()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("odd"), sqlite3.OperationalError("disk I/O error")])
@pytest.mark.parametrize("at", ["BEGIN", "\nINSERT INTO predictions", "COMMIT"])
def test_whatever_a_commit_raises_ends_the_run_by_one_line_and_nobody_waits(
    tmp_path: Path, error: Exception, at: str
) -> None:
    holder: list[Failing] = []

    def break_writer(engine: object) -> None:
        writer = engine._writer  # type: ignore[attr-defined]
        holder.append(Failing(writer._database, at, error))
        writer._database = holder[0]

    with pytest.raises(EnvironmentProblem, match="cannot write") as caught:
        work(tmp_path / "run", Scripted(), jobs(50), prepare=break_writer)
    assert "\n" not in str(caught.value)
    again = Scripted()
    work(tmp_path / "run", again, jobs(50))
    assert len(again.asked) == 50


def test_an_error_inside_rollback_does_not_end_the_writer(tmp_path: Path) -> None:
    class NoRollback(Failing):
        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
            if self.failing and statement == "ROLLBACK":
                self._real.execute("ROLLBACK")
                raise sqlite3.OperationalError("cannot rollback - no transaction is active")
            return super().execute(statement, *values)

    def break_writer(engine: object) -> None:
        writer = engine._writer  # type: ignore[attr-defined]
        writer._database = NoRollback(writer._database, "COMMIT", MemoryError())

    with pytest.raises(EnvironmentProblem, match="cannot write"):
        work(tmp_path / "run", Scripted(), jobs(50), prepare=break_writer)


def test_a_writer_whose_thread_is_gone_tells_whoever_puts(tmp_path: Path) -> None:
    from test_store_writer import put, trial

    writer = RunWriter(tmp_path, header())
    writer.close()
    with pytest.raises(EnvironmentProblem, match="is closed"):
        asyncio.run(asyncio.wait_for(put(writer, trial(1)), 5))


@pytest.mark.parametrize(
    ("name", "advice"),
    [("SQLITE_FULL", "free some space"), ("SQLITE_CANTOPEN", "ulimit -n"), ("SQLITE_CORRUPT", "repair")],
)
def test_each_trouble_has_its_own_advice(tmp_path: Path, name: str, advice: str) -> None:
    error = sqlite3.OperationalError("odd")
    error.sqlite_errorname = name
    assert advice in str(write_problem(tmp_path / "run.db", error))
    with pytest.raises(EnvironmentProblem, match=advice), reading(tmp_path / "run.db"):
        raise error
    assert "damaged" in str(damaged(tmp_path / "run.db", "x"))


def test_a_tree_that_leads_back_to_itself_is_read_to_an_end(tmp_path: Path) -> None:
    folder = made(tmp_path / "run", 400)
    change(folder, "PRAGMA journal_mode=DELETE")
    whole = bytearray((folder / "run.db").read_bytes())
    size = int.from_bytes(whole[16:18], "big")
    inner = [start for start in range(size, len(whole), size) if whole[start] == 5]  # pages of tables with children
    assert inner
    for start in inner:
        cell = int.from_bytes(whole[start + 12 : start + 14], "big")
        for place in (start + 8, start + cell):  # its last child and its first
            for child in {start // size + 1, inner[0] // size + 1}:
                broken = bytearray(whole)
                broken[place : place + 4] = child.to_bytes(4, "big")
                (folder / "run.db").write_bytes(broken)
                health = look_at_run(folder)
                assert not health.sound and all(table.readable <= 400 for table in health.tables)
                assert all(count <= 400 for count in repair_run(folder).saved.values())
                (folder / SPARE).unlink()
