"""run.db to records, read-only: header, samples, trials, attempts and scores, also while the run goes on."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Self
from zlib import crc32

import msgspec
import numpy as np
from msgspec.structs import astuple, replace
from numpy.typing import NDArray

from ..core.errors import EnvironmentProblem, UsageError
from ..core.looks import BASE, PLAIN, arm_of
from ..core.tasks import RunHeader
from ..core.types import Prediction, Request, Sample, Score, TrialKey
from .database import Row, connect, damaged, has_turns, insert_rows, is_intact, open_for_reading, reading
from .turns import STORED_TURNS, StoredTurn, is_turn, turn_of_row

Rows = NDArray[np.int64]
"""Numbers of rows of a table."""
GROUP_ROWS = 128
"""Scores that go in by one statement."""
ALL_SCORES = "SELECT * FROM scores WHERE +task = ? ORDER BY rowid"
RANGE_TRIALS = 4_000
"""Trials that are read, and sorted, together; what SQLite sorts at once of a large run is gigabytes on disk."""
TRIALS = (
    "SELECT s.id, s.position, s.body, p.variant, p.repeat, p.failed, p.digest, p.request, p.body, p.rowid "
    "FROM json_each(?) j CROSS JOIN samples s ON s.rowid = j.value "
    "CROSS JOIN predictions p ON p.task = s.task AND p.sample = s.id "
    "WHERE s.task = ? ORDER BY j.key, p.variant, p.repeat"
)
"""Samples come in the order in which their rows are given: to sort them by a column would carry whole records."""


class Trial(NamedTuple):
    """One stored trial, whole."""

    sample: Sample
    request: Request
    prediction: Prediction
    row: int
    """Its row in the table of predictions."""


class RunReader:
    """Reads one run folder: `with RunReader(folder) as run: …`, or open until `close`."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._database = open_for_reading(self.folder / "run.db")

    def __repr__(self) -> str:
        header = self.header()
        return f"<RunReader {self.folder}: {header.model} on {', '.join(task.name for task in header.tasks)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self.close()
        if isinstance(error, msgspec.DecodeError):  # whoever decodes our rows in the block need not know what it means
            raise damaged(self.folder / "run.db", f"a stored record is none: {error}") from None

    def header(self) -> RunHeader:
        """Return who was measured on what, and how."""
        row = next(self.rows("SELECT value FROM meta WHERE key = 'header'"), None)
        if row is None:
            raise EnvironmentProblem(
                f"{self.folder} has no header: the run was stopped before it began; run the command again"
            )
        if not is_intact(row[0]):
            raise damaged(self.folder / "run.db", "its header is not what was written")
        try:
            return msgspec.json.decode(row[0], type=RunHeader)
        except msgspec.DecodeError as error:
            raise EnvironmentProblem(f"{self.folder} was written by another version of Snellen: {error}") from None

    def meta(self, key: str) -> Any:
        """Return a decoded value of the meta table, or None."""
        row = next(self.rows("SELECT value FROM meta WHERE key = ?", (key,)), None)
        with reading(self.folder / "run.db"):
            return msgspec.json.decode(row[0]) if row else None

    def tasks(self) -> list[str]:
        """Return the names of the tasks that have stored samples."""
        return [row[0] for row in self.rows("SELECT DISTINCT task FROM samples ORDER BY task")]

    def samples(self, task: str) -> Iterator[Sample]:
        """Yield the samples of a task in the order of the plan."""
        decode = msgspec.json.Decoder(Sample).decode
        with reading(self.folder / "run.db"):
            rows = self.rows("SELECT id, position, body FROM samples WHERE task = ? ORDER BY position", (task,))
            for name, position, body in rows:
                self._require(is_intact(body, f"{task}\0{name}\0{position}"), f"sample {name!r}")
                yield decode(body)

    def trials(self, task: str) -> Iterator[Trial]:
        """Yield every stored trial of a task: by position of its sample, then variant, then repeat."""
        left = self.count_trials(task)
        for rows in self.sample_ranges(task):
            for trial in self.trials_of(task, rows):
                left -= 1
                yield trial
        self.refuse_orphans(task, left)

    def count_trials(self, task: str) -> int:
        """Return how many trials of a task are stored; asked before they are read, as more may be added meanwhile.

        They are read by an index, of which nothing has a seal, and therefore counted without it.
        """
        return int(next(self.rows("SELECT COUNT(*) FROM predictions WHERE +task = ?", (task,)))[0])

    def refuse_orphans(self, task: str, left: int) -> None:
        """Refuse a run of which trials that were counted were not found by their samples."""
        self._require(left <= 0, f"{left} trials of task {task!r} without their samples")

    def sample_ranges(self, task: str, trials_a_sample: int = 1) -> list[Rows]:
        """Return the rows of the task's samples in the order of the plan, cut so that each part has few trials."""
        found = self.sample_columns("rowid, position", task)
        both = np.fromiter(chain.from_iterable(found), np.int64).reshape(-1, 2)
        rows = both[np.lexsort((both[:, 0], both[:, 1])), 0]
        step = max(1, RANGE_TRIALS // trials_a_sample)
        return [rows[start : start + step] for start in range(0, rows.size, step)]

    def sample_columns(self, columns: str, task: str) -> Iterator[tuple[Any, ...]]:
        """Yield columns of a task's samples in any order: a run of one task is read through, others by their index."""
        alone = next(self.rows("SELECT (SELECT MIN(task) FROM samples) = (SELECT MAX(task) FROM samples)"))[0]
        with reading(self.folder / "run.db"):
            found = self._database.execute(f"SELECT {columns} FROM samples WHERE {'+' * bool(alone)}task = ?", (task,))  # noqa: S608
            while batch := found.fetchmany(GROUP_ROWS):
                yield from batch

    def trials_of(self, task: str, rows: Rows) -> Iterator[Trial]:
        """Yield the stored trials of some samples of a task, given by their rows, in that order."""
        samples, requests = msgspec.json.Decoder(Sample).decode, msgspec.json.Decoder(Request).decode
        predictions = msgspec.json.Decoder(Prediction).decode
        known: tuple[str, Sample] | None = None
        with reading(self.folder / "run.db"):
            found = self._database.execute(TRIALS, (str(rows.tolist()), task))
            for name, position, body, variant, repeat, failed, digest, request, reply, row in found:
                if known is None or known[0] != name:
                    self._require(is_intact(body, f"{task}\0{name}\0{position}"), f"sample {name!r}")
                    known = (name, samples(body))
                whole = is_intact(request) and is_intact(reply, f"{failed}\0{digest}")
                prediction = predictions(reply) if whole else None
                if prediction is None or astuple(prediction.key) != (task, name, variant, repeat):
                    raise self._damaged(f"a trial of sample {name!r}")
                yield Trial(known[1], requests(request), prediction, row)

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise self._damaged(what)

    def _damaged(self, what: str) -> EnvironmentProblem:
        return damaged(self.folder / "run.db", f"{what}: not what was written")

    def turns(self, key: TrialKey) -> list[StoredTurn]:
        """Return the turns of a trial that was asked with tools, in order; none of any other, as of the arm `plain`.

        An arm (`look=grey`) shares its first turn with the variant it stands beside, where that turn is stored.
        """
        if not has_turns(self._database):
            return []
        found = self._turns_of(key)
        arm, shared = arm_of(key.variant)
        if arm not in (BASE, PLAIN) and not any(turn.number == 0 for turn in found):
            found = [turn for turn in self._turns_of(replace(key, variant=shared)) if turn.number == 0] + found
        return found

    def _turns_of(self, key: TrialKey) -> list[StoredTurn]:
        with reading(self.folder / "run.db"):
            rows = list(self.rows(STORED_TURNS, astuple(key)))
            self._require(all(map(is_turn, rows)), f"a turn of sample {key.sample!r}")
            return [turn_of_row(row) for row in rows]

    def attempts(self) -> Iterator[tuple[Any, ...]]:
        """Yield every failed attempt as (task, sample, variant, repeat, at, kind, status, message)."""
        yield from self.rows(
            "SELECT task, sample, variant, repeat, at, kind, status, message FROM attempts ORDER BY at"
        )

    def scores(self, task: str) -> Iterator[Score]:
        """Yield the stored scores of a task, in the order of the plan; not by an index, which nothing checks."""
        deque(self.score_rows(task), maxlen=0)  # for their checksum: what follows is in another order
        rows = self.rows(
            "SELECT c.sample, c.variant, c.repeat, c.metric, c.value, c.answer, c.rule, c.reason, c.detail "
            "FROM scores c NOT INDEXED JOIN samples s ON s.task = c.task AND s.id = c.sample "
            "WHERE c.task = ? ORDER BY s.position, c.variant, c.repeat, c.rowid",
            (task,),
        )
        for sample, variant, repeat, metric, value, answer, rule, reason, detail in rows:
            key = TrialKey(task, sample, variant, repeat)
            yield Score(key, metric, value, answer, rule, reason, msgspec.json.decode(detail) if detail else {})

    def with_scores(self, task: str, scores: Iterator[Score] | None = None) -> Iterator[tuple[Trial, list[Score]]]:
        """Yield every stored trial with its scores, stored or given in the order of the plan; none is passed over."""
        left = iter(scores if scores is not None else self.scores(task))
        waiting = next(left, None)
        for trial in self.trials(task):
            own: list[Score] = []
            while waiting is not None and waiting.key == trial.prediction.key:
                own.append(waiting)
                waiting = next(left, None)
            yield trial, own
        if waiting is not None:
            advice = f"`snellen score {self.folder}` makes them again from the stored replies"
            raise EnvironmentProblem(
                f"the scores of task {task!r} in {self.folder} do not fit its trials, from sample "
                f"{waiting.key.sample!r} on: {advice}"
            )

    def score_rows(self, task: str) -> Iterator[list[Row]]:
        """Yield the rows of a task's scores as they lie in their table, some at a time, and check them on the way.

        Whoever reads to the end has read what was written: after the last row other ones are refused.
        """
        wanted, rows, count, found = self.meta(f"scores/{task}"), self.rows(ALL_SCORES, (task,)), 0, 0
        while batch := list(islice(rows, GROUP_ROWS)):
            count, found = count + len(batch), sum_of_scores(batch, found)
            yield batch
        if count and wanted != found:
            advice = f"`snellen score {self.folder}` makes them again from the stored replies"
            raise EnvironmentProblem(f"the scores of task {task!r} in {self.folder} are damaged: {advice}")

    def has_scores(self, task: str) -> bool:
        """Tell whether any trial of a task was scored."""
        return next(self.rows("SELECT 1 FROM scores WHERE task = ? LIMIT 1", (task,)), None) is not None

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Run a SELECT of the caller's own; the connection cannot write."""
        with reading(self.folder / "run.db"):
            for row in self._database.execute(statement, values):  # noqa: UP028 - `yield from` would close the cursor, too late
                yield row

    def close(self) -> None:
        """Close the connection."""
        self._database.close()


def write_score_rows(folder: Path, task: str, scores: Iterable[Row]) -> None:
    """Replace the stored scores of one task, all or nothing.

    They are gathered in a table of this connection first: scoring takes its time, and a run that goes on must not wait.
    """
    database = connect(folder / "run.db")
    try:
        database.execute("CREATE TEMP TABLE fresh AS SELECT * FROM scores WHERE 0")
        database.execute("BEGIN")
        fresh = iter(scores)
        while group := list(islice(fresh, GROUP_ROWS)):
            insert_rows(database, "INSERT INTO fresh VALUES {rows}", group)
        database.execute("COMMIT")
        database.execute("BEGIN IMMEDIATE")
        database.execute("DELETE FROM scores WHERE task = ?", (task,))
        database.execute("INSERT INTO scores SELECT * FROM fresh ORDER BY rowid")
        rows, total = database.execute(ALL_SCORES, (task,)), 0
        while batch := rows.fetchmany(GROUP_ROWS):
            total = sum_of_scores(batch, total)
        database.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (f"scores/{task}", str(total)))
        database.execute("COMMIT")
        with suppress(sqlite3.OperationalError):  # a full disk: the log beside run.db is complete and readable
            database.execute("PRAGMA wal_checkpoint(PASSIVE)")  # whoever takes run.db alone has the scores too
    except sqlite3.IntegrityError as error:
        reason = f"two scorers give the same metric to the same trial ({error}): drop one of them"
        raise UsageError(f"task {task!r}: {reason}") from None
    except sqlite3.Error as error:
        reason = f"{error}; every reply is stored, score it again"
        raise EnvironmentProblem(f"cannot write scores to {folder / 'run.db'}: {reason}") from None
    finally:
        database.close()


def sum_of_scores(rows: Iterable[Row], before: int = 0) -> int:
    """Return the checksum of rows of scores, those `before` them included."""
    return crc32("".join(map(repr, rows)).encode("utf-8", "surrogatepass"), before)


def row_of_score(task: str, score: Score) -> Row:
    """Return a score as its row in the table of scores."""
    key, *values, detail = msgspec.structs.astuple(score)
    return (task, key.sample, key.variant, key.repeat, *values, msgspec.json.encode(detail) if detail else None)


def score_of_row(row: Row) -> Score:
    """Return the score that is written in a row."""
    *key, metric, value, answer, rule, reason, detail = row
    return Score(TrialKey(*key), metric, value, answer, rule, reason, msgspec.json.decode(detail) if detail else {})
