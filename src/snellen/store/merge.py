"""The logs of all parts to one run.db, as one process would have left it.

It is made under another name and renamed when it is whole, so readers see the run before or after, never between. Of a
trial that was asked twice the first reply in the order of the logs counts; what differs is counted and said.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ..core.errors import EnvironmentProblem, RunMismatch
from ..core.folders import cache_folder
from ..core.ids import content_hash
from ..core.tasks import RunHeader
from ..core.types import Prediction
from .answerers import KEY as ANSWERERS
from .answerers import JoinedTable, read_table
from .answerers import Row as AnswererRow
from .damage import ORPHANED
from .database import BROKEN, Row, connect, insert_rows, open_for_writing, seal, set_journal, sync, write_problem
from .owner import Owner, RunLock, own_name, sweep
from .part_log import (
    ATTEMPT,
    FOLDER,
    META,
    SAMPLE,
    TRIAL,
    TURN,
    LogFile,
    LogHead,
    LogReading,
    check_same_run,
    log_files,
    make_once,
    read_head,
    read_plan,
)
from .turns import JOIN_TURNS
from .writer import PUT_ATTEMPTS, PUT_PREDICTIONS, PUT_SAMPLES, STORED

MERGED = "merged_parts"
"""Where run.db keeps how far each log was taken in: name -> its token, the offset and where its answerers stand."""
DUPLICATES = "duplicates"
GROUP_ROWS = 256
JOINED = ("adjusted", "warnings", "replicas")
"""Facts that are lists: those of all parts, each once."""
CLAIM = "merge.claim"
EVERY_S = 5.0
STATEMENTS = {SAMPLE: PUT_SAMPLES, TURN: JOIN_TURNS, TRIAL: PUT_PREDICTIONS, ATTEMPT: PUT_ATTEMPTS}


class Merged(NamedTuple):
    """What a merge found."""

    header: RunHeader
    stored: int
    """Trials that have a reply, or failed for good."""
    planned: int
    fresh: int
    """Lines that were not in run.db before."""
    asked_twice: int
    differ: int
    """Trials that were asked twice and answered differently; the first answer counts."""
    damaged: int
    """Stretches of logs that could not be read: what stood there is asked again."""
    unreadable: tuple[str, ...]
    """Logs of which not even the head can be read."""

    @property
    def missing(self) -> int:
        """Return how many trials nobody has asked yet."""
        return max(0, self.planned - self.stored)


@contextmanager
def merging(folder: Path) -> Iterator[None]:
    """Claim the merge of a run for the block: one at a time, by a file that only one can make."""
    path = folder / FOLDER / CLAIM
    if _is_left_over(path):
        path.unlink(missing_ok=True)
    try:
        is_mine = make_once(path, msgspec.json.encode(Owner.me()))
    except FileNotFoundError:
        raise EnvironmentProblem(f"{folder} holds no run in parts: nothing was asked yet") from None
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from None
    if not is_mine:
        who = Owner.read(path) or "somebody"
        raise EnvironmentProblem(f"{folder} is being merged by {who}; if that is gone, remove {path}")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _is_left_over(path: Path) -> bool:
    """Tell whether a claim is that of a process of this machine that is gone; of others nobody here can tell."""
    owner = Owner.read(path)
    return owner is not None and owner.is_here and not owner.is_alive


def merge_logs(folder: Path, *, same_model: bool = False, partial: bool = True, into: Path | None = None) -> Merged:
    """Bring run.db up to what the logs hold; to be called within `merging`, or `into` a folder of one's own.

    Where trials are missing and `partial` was not said, run.db stays as it was.
    """
    plan, target = read_plan(folder), (into or folder) / "run.db"
    fresh = (into or folder / FOLDER) / f"run.db.{own_name()}"
    sweep(fresh.parent, "run.db.")
    try:
        if target.exists():
            _copy_whole(target, fresh)
        with closing(_open(fresh)) as database:
            merge = _Merge(folder, plan, database, same_model=same_model)
            found = merge.run()
        if found.missing and not partial:
            return found
        if found.fresh or not target.exists():
            _finish_file(fresh)
            fresh.replace(target)
            sync(target.parent)
        return found
    except BROKEN as error:
        raise write_problem(target, error) from None
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {fresh}: {error.strerror}") from None
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            Path(f"{fresh}{end}").unlink(missing_ok=True)


class FollowedParts:
    """A run whose parts are still asked, as readers see it: joined in a folder of the user's cache, again and again."""

    def __init__(self, folder: Path) -> None:
        self.source = folder
        self.folder = cache_folder() / "parts" / content_hash(str(folder.resolve()))
        self._sizes: list[int] = []
        self._fresh_after = 0.0

    def refresh(self) -> bool:
        """Join what is new, at most every few seconds; tell whether anything was."""
        sizes = [file.path.stat().st_size for file in log_files(self.source)]
        now = time.monotonic()
        if sizes == self._sizes or now < self._fresh_after:
            return False
        self.folder.mkdir(parents=True, exist_ok=True)
        merge_logs(self.source, same_model=True, into=self.folder)
        self._sizes, self._fresh_after = sizes, time.monotonic() + max(EVERY_S, 3 * (time.monotonic() - now))
        return True


def is_in_parts(folder: Path) -> bool:
    """Tell whether a folder holds parts of a run."""
    return (folder / FOLDER).is_dir() and bool(log_files(folder))


def unmerged_bytes(folder: Path) -> int:
    """Return how much the logs hold that run.db has not; 0 where there are none, or all was taken in."""
    files = log_files(folder)
    known = _merged_of(folder) if files and (folder / "run.db").exists() else {}
    return sum(max(0, file.path.stat().st_size - _known_end(known, file, read_head(file.path))) for file in files)


def _merged_of(folder: Path) -> dict[str, Any]:
    try:
        with closing(connect(folder / "run.db", read_only=True)) as database:
            row = database.execute("SELECT value FROM meta WHERE key = ?", (MERGED,)).fetchone()
    except sqlite3.Error:
        return {}
    return msgspec.json.decode(row[0]) if row else {}


def _known_end(known: Mapping[str, Any], file: LogFile, head: LogHead | None) -> int:
    token, end, *_ = known.get(file.path.name, ("", 0))
    return int(end) if head is not None and token == head.token else 0


def _open(path: Path) -> sqlite3.Connection:
    database = open_for_writing(path)
    for pragma in ("journal_mode=MEMORY", "synchronous=OFF", "cache_size=-65536", "temp_store=MEMORY"):
        database.execute(f"PRAGMA {pragma}")  # a file that nobody else knows: it is whole or it is thrown away
    return database


def _copy_whole(target: Path, fresh: Path) -> None:
    """Copy run.db, with what its log holds, to go on from; a run that is being written is refused.

    The log is folded in first and goes: it must never stand beside the file that takes this one's place.
    """
    lock = RunLock(target.parent)
    try:
        with closing(connect(target)) as database:
            set_journal(database, "DELETE")
        shutil.copyfile(target, fresh)
    finally:
        lock.release()


def _finish_file(path: Path) -> None:
    with closing(connect(path)) as database:
        set_journal(database, "DELETE")  # one file, whole at every moment, on any file system
    sync(path)


class _Merge:
    """One pass over the logs, in their order."""

    def __init__(self, folder: Path, plan: RunHeader, database: sqlite3.Connection, *, same_model: bool) -> None:
        self._folder, self._plan, self._database, self._same_model = folder, plan, database, same_model
        self._known: dict[str, Any] = self._meta(MERGED) or {}
        counted = self._meta(DUPLICATES) or {}
        self._asked_twice, self._differ = counted.get("asked_twice", 0), counted.get("differ", 0)
        self._answerers = JoinedTable(read_table(self._meta))
        self._joined: dict[str, list[Any]] = {key: self._meta(key) or [] for key in JOINED}
        self._fresh = self._damaged = 0
        self._unreadable: list[str] = []

    def run(self) -> Merged:
        """Take everything in and return what was found."""
        stored = self._meta("header")
        if stored is not None and stored.get("id") != self._plan.id:
            raise RunMismatch(f"{self._folder / 'run.db'} is another run than its parts: move one of them away")
        for file in log_files(self._folder):
            head = read_head(file.path)
            if head is None:
                self._unreadable.append(file.path.name)
                continue
            check_same_run(self._plan, head.header, self._folder, file.path.name)
            self._note_versions(file, head)
            self._take_log(file, head)
        self._write_facts(new=stored is None)
        self._database.execute("BEGIN")
        self._database.execute(f"DELETE FROM predictions WHERE {ORPHANED}")  # noqa: S608 - ours; asked again
        self._database.execute("COMMIT")
        count = self._database.execute("SELECT COUNT(*) FROM predictions").fetchone()[0]
        planned = sum(self._plan.planned.values())
        told = (self._asked_twice, self._differ, self._damaged, tuple(self._unreadable))
        return Merged(self._plan, count, planned, self._fresh, *told)

    def _note_versions(self, file: LogFile, head: LogHead) -> None:
        """Say where parts were made with other packages: they may draw pictures otherwise."""
        ours, theirs = self._plan.versions, head.header.versions
        for name in sorted({*ours, *theirs} - {"platform", "snellen"}):
            if ours.get(name) != theirs.get(name):
                words = f"parts were made with {name} {ours.get(name)} and {theirs.get(name)} ({file.path.name} first)"
                told = self._joined["warnings"]
                if not any(f"{name} {ours.get(name)} and {theirs.get(name)}" in one for one in told):
                    told.append(words)

    def _take_log(self, file: LogFile, head: LogHead) -> None:
        lines = LogReading(file.path, _known_end(self._known, file, head))
        waiting: dict[str, list[Row]] = {SAMPLE: [], TURN: [], TRIAL: [], ATTEMPT: []}
        allowed, places = self._same_model, self._known_places(file, head)
        each = iter(lines)
        self._database.execute("BEGIN")
        while batch := list(islice(each, GROUP_ROWS)):
            for kind, _, row in ((line.kind, line.offset, line.row) for line in batch):
                if kind in waiting:
                    waiting[kind].append(row)
                    self._fresh += 1
                elif kind == META:
                    key, value = row[0], msgspec.json.decode(row[1])
                    allowed = allowed or (key == "same_model" and bool(value))
                    if key == ANSWERERS:
                        places = self._take_answerers(file, value, allowed=allowed)
                    else:
                        self._take_fact(key, value)
            waiting[TRIAL] = [_renumbered(row, places) for row in waiting[TRIAL]]
            waiting[TURN] = [_renumbered(row, places) for row in waiting[TURN]]
            for kind, rows in waiting.items():
                self._insert(kind, rows)
                rows.clear()
        self._database.execute("COMMIT")
        self._known[file.path.name] = (head.token, lines.end, places)
        self._damaged += lines.damaged

    def _insert(self, kind: str, rows: list[Row]) -> None:
        if kind == ATTEMPT:
            rows = [(*row[:-1], None if row[-1] == b"null" else row[-1]) for row in rows]
        before = self._database.total_changes
        insert_rows(self._database, STATEMENTS[kind], rows)
        if kind == TRIAL and self._database.total_changes - before < len(rows):  # some were there with a reply
            for row in rows:
                self._count_twice(row)

    def _count_twice(self, row: Row) -> None:
        """Count a reply that is not the one that counts."""
        if row[4]:
            return
        kept = self._database.execute(STORED, row[:4]).fetchone()
        if kept is None or kept[0] == row[7]:
            return
        self._asked_twice += 1
        first, second = (msgspec.json.decode(body, type=Prediction) for body in (kept[0], row[7]))
        self._differ += (first.text, first.loglikelihoods) != (second.text, second.loglikelihoods)

    def _known_places(self, file: LogFile, head: LogHead) -> list[int]:
        token, _, *places = self._known.get(file.path.name, ("", 0))
        return list(places[0]) if places and token == head.token else []

    def _take_fact(self, key: str, value: Any) -> None:
        """Keep a fact that a part found out."""
        if key in self._joined:
            self._joined[key] += [one for one in value if one not in self._joined[key]]
        elif key != "same_model":
            self._put(key, value)

    def _take_answerers(self, file: LogFile, value: Any, *, allowed: bool) -> list[int]:
        """Take in who answered a part; one that is not the answerer of the parts before it is refused by name."""
        rows = msgspec.convert(value, list[AnswererRow])
        difference = "" if allowed else self._answerers.other(rows)
        if difference:
            advice = "`snellen merge --same-model` joins them if it is the same model"
            raise RunMismatch(f"{self._folder}: what is before {file.path.name} {difference}; {advice}")
        return self._answerers.take(rows)

    def _write_facts(self, *, new: bool) -> None:
        self._database.execute("BEGIN")
        if new:
            header = seal(msgspec.json.encode(self._plan)).decode()
            self._database.execute("INSERT INTO meta (key, value) VALUES ('header', ?)", (header,))
        for key, values in self._joined.items():
            if values:
                self._put(key, values)
        if self._answerers.rows:
            self._put(ANSWERERS, self._answerers.rows)
        if self._asked_twice:
            self._put(DUPLICATES, {"asked_twice": self._asked_twice, "differ": self._differ})
        self._put(MERGED, self._known)
        self._database.execute("COMMIT")

    def _put(self, key: str, value: Any) -> None:
        text = msgspec.json.encode(value).decode()
        self._database.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, text))

    def _meta(self, key: str) -> Any:
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return msgspec.json.decode(row[0]) if row else None


def _renumbered(row: Row, places: list[int]) -> Row:
    """Return a trial with its answerer's place in the joined table: the same in all but mixed runs."""
    if all(place == number for number, place in enumerate(places, 1)):
        return row
    beside = f"{row[4]}\0{row[5]}"  # failed or not, or the turn; and the digest
    prediction = msgspec.json.decode(row[7], type=Prediction)
    if not 0 < prediction.answerer <= len(places):
        return row
    moved = replace(prediction, answerer=places[prediction.answerer - 1])
    return (*row[:7], seal(msgspec.json.encode(moved), beside), *row[8:])
