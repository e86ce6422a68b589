"""Reading a run: odd ids, several tasks, live runs, scores replaced whole, damage explained."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from line_doubles import header
from snellen.core.errors import EnvironmentProblem, ModelError, UsageError
from snellen.core.types import FailureKind, Form, Prediction, Request, Sample, Score, TrialKey, Turn
from snellen.store.database import seal
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter
from stored_scores import write_scores

ODD_IDS = [
    "a/b",
    "../up",
    "new\nline",
    "tab\t",
    "nul\x00",
    "\u202eright",
    "é",
    "😀",
    "' OR 1=1 --",
    " ",
    "%",
    "a" * 5000,
]


def put(folder: Path, ids: list[str], task: str = "t", text: str = "x") -> None:
    async def go(writer: RunWriter) -> None:
        for position, name in enumerate(ids):
            key = TrialKey(task, name)
            await writer.put(
                position,
                Sample(name, task, Form.OPEN, "?"),
                Request(key, (Turn("user", "?"),)),
                Prediction(key, text=text),
                "d",
            )

    writer = RunWriter(folder, header("t", "u"))
    asyncio.run(go(writer))
    writer.close()


def test_odd_ids_come_back_as_they_went_in(tmp_path: Path) -> None:
    put(tmp_path, ODD_IDS)
    write_scores(tmp_path, "t", [Score(TrialKey("t", name), "m", 1.0) for name in reversed(ODD_IDS)])
    reader = RunReader(tmp_path)
    assert [trial.sample.id for trial in reader.trials("t")] == ODD_IDS
    assert [sample.id for sample in reader.samples("t")] == ODD_IDS
    assert [score.key.sample for score in reader.scores("t")] == ODD_IDS


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=50), min_size=1, max_size=5, unique=True))
def test_any_text_is_stored_and_read_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("run")
    for number, text in enumerate(texts):
        put(folder, [f"{number}"], text=text)
    found = RunReader(folder)
    assert {trial.sample.id: trial.prediction.text for trial in found.trials("t")} == {
        str(n): text for n, text in enumerate(texts)
    }


def test_two_tasks_with_the_same_sample_ids_stay_apart(tmp_path: Path) -> None:
    put(tmp_path, ["1", "2"], "t", "of t")
    put(tmp_path, ["1", "2"], "u", "of u")
    write_scores(tmp_path, "t", [Score(TrialKey("t", "1"), "m", 1.0)])
    write_scores(tmp_path, "u", [Score(TrialKey("u", "1"), "m", 0.0)])
    reader = RunReader(tmp_path)
    assert reader.tasks() == ["t", "u"]
    assert {trial.prediction.text for trial in reader.trials("t")} == {"of t"}
    assert [score.value for score in reader.scores("u")] == [0.0]
    write_scores(tmp_path, "u", [])
    assert (reader.has_scores("t"), reader.has_scores("u")) == (True, False)


def test_scoring_that_breaks_keeps_the_old_scores(tmp_path: Path) -> None:
    put(tmp_path, ["1"])
    old = Score(TrialKey("t", "1"), "m", 0.5)
    write_scores(tmp_path, "t", [old])

    def broken() -> object:
        yield Score(TrialKey("t", "1"), "m", 1.0)
        raise KeyError("a scorer's mistake")

    with pytest.raises(KeyError):
        write_scores(tmp_path, "t", broken())
    assert list(RunReader(tmp_path).scores("t")) == [old]
    with pytest.raises(UsageError, match="same metric"):
        write_scores(tmp_path, "t", [old, old])
    assert list(RunReader(tmp_path).scores("t")) == [old]


def test_many_scores_keep_their_order(tmp_path: Path) -> None:
    scores = [
        Score(TrialKey("t", f"{n * 7 % 1009}"), "m", n / 7, f"é{n}", None, None, {"n": n} if n % 3 else {})
        for n in range(1009)
    ]
    put(tmp_path, [score.key.sample for score in scores])
    write_scores(tmp_path, "t", iter(scores))
    assert list(RunReader(tmp_path).scores("t")) == scores
    rows = sqlite3.connect(tmp_path / "run.db").execute("SELECT task, sample FROM scores ORDER BY rowid").fetchall()
    assert rows == [("t", score.key.sample) for score in scores]


def test_scoring_does_not_hold_up_a_run_that_goes_on(tmp_path: Path) -> None:
    """A commit of the live run in the middle of a long scoring must not wait for it."""
    put(tmp_path, ["1"])

    def slow() -> object:
        yield Score(TrialKey("t", "1"), "m", 1.0)
        live = sqlite3.connect(tmp_path / "run.db", timeout=0.2)
        with live:
            live.execute("INSERT INTO meta VALUES ('live', '1')")
        live.close()

    write_scores(tmp_path, "t", slow())
    reader = RunReader(tmp_path)
    assert (reader.meta("live"), reader.meta("never")) == (1, None)
    assert len(list(reader.scores("t"))) == 1


def test_a_full_disk_while_scoring_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from snellen.store import reader as module

    put(tmp_path, ["1"])
    real = module.connect

    def small(path: Path, **options: bool) -> sqlite3.Connection:
        database = real(path, **options)
        database.execute(f"PRAGMA max_page_count={database.execute('PRAGMA page_count').fetchone()[0]}")
        return database

    monkeypatch.setattr(module, "connect", small)
    with pytest.raises(EnvironmentProblem, match="every reply is stored"):
        write_scores(tmp_path, "t", [Score(TrialKey("t", "1"), "m", 1.0, answer="x" * 100_000)])


def test_a_run_that_never_began_and_a_header_of_another_time(tmp_path: Path) -> None:
    put(tmp_path, ["1"])
    with sqlite3.connect(tmp_path / "run.db") as database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'header'", (seal(b'{"id": 5}').decode(),))
    with pytest.raises(EnvironmentProblem, match="another version"):
        RunReader(tmp_path).header()
    with pytest.raises(EnvironmentProblem, match="another version"):
        RunWriter(tmp_path, header())
    with sqlite3.connect(tmp_path / "run.db") as database:
        database.execute("DELETE FROM meta")
    with pytest.raises(EnvironmentProblem, match="no header"):
        RunReader(tmp_path).header()


def test_the_reader_cannot_write(tmp_path: Path) -> None:
    put(tmp_path, ["1"])
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        list(RunReader(tmp_path).rows("DELETE FROM samples RETURNING id"))


def test_other_scorers_are_taken_over_and_the_first_command_stays(tmp_path: Path) -> None:
    import msgspec

    put(tmp_path, ["1"])
    first = header("t", "u")
    other = msgspec.structs.replace(
        first, created="later", tasks=[msgspec.structs.replace(task, scorers=("contains",)) for task in first.tasks]
    )
    RunWriter(tmp_path, other).close()
    found = RunReader(tmp_path).header()
    assert found.created == first.created
    assert [task.scorers for task in found.tasks] == [("contains",)] * 2
    assert len(list(RunReader(tmp_path).trials("t"))) == 1


def test_what_cannot_be_bound_fails_its_own_group_and_the_writer_lives(tmp_path: Path) -> None:
    async def go(writer: RunWriter) -> None:
        writer.put_attempt(TrialKey("t", "odd"), ModelError(FailureKind.SERVER, "lone \ud800 surrogate"))
        bad = Sample("\ud800", "t", Form.OPEN, "?")
        key, good = TrialKey("t", "\ud800"), TrialKey("t", "good")
        with pytest.raises((EnvironmentProblem, UnicodeEncodeError)):
            await asyncio.wait_for(writer.put(0, bad, Request(key, ()), Prediction(key, text="x"), ""), 5)
        await asyncio.wait_for(
            writer.put(1, Sample("good", "t", Form.OPEN, "?"), Request(good, ()), Prediction(good, text="x"), ""), 5
        )

    writer = RunWriter(tmp_path, header())
    asyncio.run(go(writer))
    writer.close()
    reader = RunReader(tmp_path)
    assert [trial.sample.id for trial in reader.trials("t")] == ["good"]
    assert [row[7] for row in reader.attempts()] == ["lone \ufffd surrogate"]


def test_a_row_that_cannot_be_bound_is_reported_to_whoever_waits(tmp_path: Path) -> None:
    from snellen.store.writer import Entry

    async def go(writer: RunWriter) -> None:
        waiting = asyncio.get_running_loop().create_future()
        writer._enqueue(Entry(("t", "\ud800", 0, b"{}"), None, None, waiting))
        with pytest.raises(EnvironmentProblem, match="surrogates"):
            await asyncio.wait_for(waiting, 5)
        key = TrialKey("t", "next")  # and the transaction that failed is not left open
        await asyncio.wait_for(
            writer.put(1, Sample("next", "t", Form.OPEN, "?"), Request(key, ()), Prediction(key, text="x"), ""), 5
        )

    writer = RunWriter(tmp_path, header())
    asyncio.run(go(writer))
    writer.close()
    assert [trial.sample.id for trial in RunReader(tmp_path).trials("t")] == ["next"]


def test_one_writer_keeps_the_samples_of_every_task(tmp_path: Path) -> None:
    async def go(writer: RunWriter) -> None:
        for task in ("t", "u"):
            key = TrialKey(task, "1")
            await writer.put(
                0, Sample("1", task, Form.OPEN, f"of {task}?"), Request(key, ()), Prediction(key, text="x"), ""
            )

    writer = RunWriter(tmp_path, header("t", "u"))
    asyncio.run(go(writer))
    writer.close()
    reader = RunReader(tmp_path)
    assert {task: [trial.sample.question for trial in reader.trials(task)] for task in reader.tasks()} == {
        "t": ["of t?"],
        "u": ["of u?"],
    }


def test_a_reader_closes_at_the_end_of_its_block_also_after_an_error(tmp_path: Path) -> None:
    RunWriter(tmp_path, header()).close()
    with pytest.raises(KeyError), RunReader(tmp_path) as reader:
        raise KeyError
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        reader.tasks()
