"""Opening run.db and its lock: durability, versions, file systems, one writer at a time, also across processes."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from snellen.core.errors import EnvironmentProblem
from snellen.store import database
from snellen.store.owner import RunLock


def test_who_names_no_run_is_told_which_there_are(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    database.open_for_writing(tmp_path / "demo" / "run.db").close()
    for wrong, words in (
        ("", f"it holds runs: name one, such as {tmp_path / 'demo'}"),
        ("dmeo", r"run.db is missing \(did you mean 'demo'\?\)"),
        ("else/where", "run.db is missing; `snellen view runs`"),
    ):
        with pytest.raises(EnvironmentProblem, match=words):
            database.open_for_reading(tmp_path / wrong / "run.db")


def test_every_commit_is_durable_and_the_schema_is_versioned(tmp_path: Path) -> None:
    connection = database.open_for_writing(tmp_path / "run.db")
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert connection.execute("PRAGMA user_version").fetchone()[0] == database.SCHEMA_VERSION
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"meta", "samples", "predictions", "attempts", "turns", "scores"}
    connection.close()
    database.open_for_writing(tmp_path / "run.db").close()


def test_a_network_file_system_gets_no_write_ahead_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "file_system_of", lambda path: "nfs4")
    connection = database.open_for_writing(tmp_path / "run.db")
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    connection.close()


def test_a_newer_schema_is_refused_for_writing_too(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "run.db") as connection:
        connection.execute(f"PRAGMA user_version={database.SCHEMA_VERSION + 1}")
    with pytest.raises(EnvironmentProblem, match="newer Snellen"):
        database.open_for_writing(tmp_path / "run.db")


def test_an_empty_database_is_no_run(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "run.db").execute("CREATE TABLE x (y)").connection.close()
    with pytest.raises(EnvironmentProblem, match="not a run"):
        database.open_for_reading(tmp_path / "run.db")


def test_odd_folder_names_are_paths_not_queries(tmp_path: Path) -> None:
    folder = tmp_path / "a?mode=ro&x#y %41"
    folder.mkdir()
    database.open_for_writing(folder / "run.db").close()
    assert (folder / "run.db").is_file()


def test_a_folder_where_the_database_should_be(tmp_path: Path) -> None:
    (tmp_path / "run.db").mkdir()
    with pytest.raises(EnvironmentProblem, match="cannot open"):
        database.open_for_writing(tmp_path / "run.db")


def test_the_file_system_is_the_one_of_the_nearest_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = "/dev/a / ext4 rw 0 0\nx /mnt/data rpc_pipefs rw 0 0\nserver:/x /mnt/data nfs4 rw 0 0\ntmpfs /mnt/database tmpfs rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda self: mounts)
    assert database.file_system_of(Path("/mnt/data/run.db")) == "nfs4"
    assert database.file_system_of(Path("/mnt/database/run.db")) == "tmpfs"
    assert database.file_system_of(Path("/home/x/run.db")) == "ext4"


def test_no_list_of_mounts_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert database.file_system_of(Path("/x")) == ""


def test_the_lock_names_its_owner_and_is_free_after_release(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    with pytest.raises(EnvironmentProblem, match=f"process {os.getpid()} on {socket.gethostname()}:"):
        RunLock(tmp_path)
    lock.release()
    again = RunLock(tmp_path)
    assert (tmp_path / "run.lock").read_text().splitlines()[0] == str(os.getpid())
    again.release()
    assert (tmp_path / "run.lock").exists()


def test_a_shorter_pid_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("99999999999\n")
    RunLock(tmp_path).release()
    assert (tmp_path / "run.lock").read_text().splitlines()[0] == str(os.getpid())


def test_a_file_system_that_cannot_lock_is_named_and_no_dead_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number in the file may be that of a process of another machine that died long ago."""
    (tmp_path / "run.lock").write_text("4242\n")

    def refuse(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(EnvironmentProblem, match=r"cannot lock a file \(No locks available\): .* -o") as caught:
        RunLock(tmp_path)
    assert "4242" not in str(caught.value)
    assert (tmp_path / "run.lock").read_text() == "4242\n"


def test_another_process_is_refused_and_a_dead_one_holds_nothing(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from snellen.store.owner import RunLock; RunLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(EnvironmentProblem, match=f"process {holder.pid} on "):
            RunLock(tmp_path)
    finally:
        holder.kill()
        holder.communicate()
    RunLock(tmp_path).release()


def test_a_writer_that_is_refused_gives_the_lock_back(tmp_path: Path) -> None:
    from line_doubles import header
    from snellen.store.writer import RunWriter

    (tmp_path / "run.db").write_bytes(b"this is not a database at all" * 100)
    for _ in range(2):
        with pytest.raises(EnvironmentProblem, match=r"run\.db"):
            RunWriter(tmp_path, header())


def test_rows_go_in_by_few_statements_in_order_and_none_are_no_statement(tmp_path: Path) -> None:
    connection = database.connect(tmp_path / "x.db")
    connection.execute("CREATE TABLE x (a, b)")
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    database.insert_rows(connection, "INSERT INTO x VALUES {rows}", [])
    database.insert_rows(connection, "INSERT INTO x VALUES {rows}", [(1, "{y}"), (2, None), (3, b"z")])
    connection.set_trace_callback(None)
    assert len(statements) == 2  # of two rows and of one: numbers that come again, so that SQLite prepares them once
    assert connection.execute("SELECT * FROM x ORDER BY rowid").fetchall() == [(1, "{y}"), (2, None), (3, b"z")]
    connection.close()


def test_what_a_killed_writer_left_half_done_is_taken_back_before_it_is_read(tmp_path: Path) -> None:
    """Without a log a reader met "attempt to write a readonly database"."""
    (tmp_path / "left").mkdir()
    with closing(database.open_for_writing(tmp_path / "run.db")) as writer:
        writer.execute("PRAGMA journal_mode=DELETE")
        writer.execute("PRAGMA cache_size=1")  # pages go to the file before the end
        writer.execute("BEGIN")
        writer.executemany("INSERT INTO meta VALUES (?, ?)", [(str(n), "x" * 4000) for n in range(50)])
        for name in ("run.db", "run.db-journal"):  # what is there when the process is gone
            shutil.copy(tmp_path / name, tmp_path / "left" / name)
    with closing(database.open_for_reading(tmp_path / "left" / "run.db")) as reader:
        assert reader.execute("SELECT COUNT(*) FROM meta").fetchone() == (0,)


@pytest.mark.parametrize(
    "kind", ["gpfs", "wekafs", "panfs", "virtiofs", "fuse", "fuse.sshfs", "fuse.anything", "lustre"]
)
def test_file_systems_of_several_machines_are_known_by_name(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "file_system_of", lambda path: kind)
    assert database.is_on_network(Path("/x/run.db"))


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs", "overlay", "fuseblk", ""])
def test_a_disk_of_this_machine_is_none(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "file_system_of", lambda path: kind)
    assert not database.is_on_network(Path("/x/run.db"))


def test_a_link_to_another_file_system_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc/self")
    assert database.file_system_of(tmp_path / "link" / "run.db") == "proc" != database.file_system_of(tmp_path)
