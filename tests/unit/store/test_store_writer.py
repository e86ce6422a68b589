"""run.db: durable, one writer, failed rows replaced, other configurations refused."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import msgspec
import pytest

from snellen.core.errors import EnvironmentProblem, ModelError, RunMismatch
from snellen.core.tasks import RunHeader, Task
from snellen.core.types import Failure, FailureKind, Form, Prediction, Request, Sample, Score, TrialKey, Turn
from snellen.store.cache import ResponseCache, request_digest
from snellen.store.difference import describe_difference
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter
from stored_scores import write_scores

TASK = Task("t", {"loader": "table"})


def header(**config: object) -> RunHeader:
    return RunHeader(
        str(hash(tuple(sorted(config.items())))), dict(config), {}, "2026-01-01", tasks=[TASK], planned={"t": 2}
    )


def trial(number: int, *, text: str | None = "A", repeat: int = 0) -> tuple[int, Sample, Request, Prediction, str]:
    key = TrialKey("t", f"s{number}", repeat=repeat)
    sample = Sample(f"s{number}", "t", Form.OPEN, "why?")
    failure = None if text is not None else Failure(FailureKind.SERVER, "boom")
    return number, sample, Request(key, (Turn("user", "why?"),)), Prediction(key, text=text, failure=failure), "d"


async def put(writer: RunWriter, *trials: tuple[int, Sample, Request, Prediction, str]) -> None:
    await asyncio.gather(*(writer.put(*each) for each in trials))


def test_what_was_put_is_read_back_in_plan_order(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, header(a=1))
    asyncio.run(put(writer, *(trial(number) for number in (3, 1, 2)), trial(1, repeat=1)))
    writer.close()
    reader = RunReader(tmp_path)
    assert [(each.sample.id, each.prediction.key.repeat) for each in reader.trials("t")] == [
        ("s1", 0),
        ("s1", 1),
        ("s2", 0),
        ("s3", 0),
    ]
    assert reader.header().planned == {"t": 2}


def test_many_trials_put_at_once_are_all_there_and_an_error_reaches_who_waits(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, header(a=1))
    asyncio.run(writer.put_all([trial(number)[:4] for number in range(300)], "d"))
    assert len(writer.finished_keys("t")) == 300
    writer._database.execute("DROP TABLE predictions")
    with pytest.raises(EnvironmentProblem):
        asyncio.run(writer.put_all([trial(number)[:4] for number in range(300, 600)], "d"))
    writer.close()


def test_a_failed_trial_is_replaced_and_a_finished_one_never(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, header(a=1))
    asyncio.run(put(writer, trial(1, text=None), trial(2)))
    assert writer.finished_keys("t") == {("s2", "base", 0)}
    asyncio.run(put(writer, trial(1, text="B"), trial(2, text="C")))
    assert writer.stored(TrialKey("t", "s1")).text == "B"
    assert writer.stored(TrialKey("t", "s2")).text == "A"
    assert writer.stored(TrialKey("t", "s9")) is None
    writer.close()


def test_another_configuration_is_refused_with_the_difference(tmp_path: Path) -> None:
    RunWriter(tmp_path, header(temperature=0, seed=1)).close()
    with pytest.raises(RunMismatch, match=r"temperature was 0, now 0\.7"):
        RunWriter(tmp_path, header(temperature=0.7, seed=1))
    RunWriter(tmp_path, header(temperature=0, seed=1)).close()


def test_a_second_writer_learns_the_pid(tmp_path: Path) -> None:
    import os

    writer = RunWriter(tmp_path, header(a=1))
    with pytest.raises(EnvironmentProblem, match=str(os.getpid())):
        RunWriter(tmp_path, header(a=1))
    writer.close()
    RunWriter(tmp_path, header(a=1)).close()


def test_a_full_disk_is_an_environment_problem_and_keeps_what_was_stored(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, header(a=1))
    asyncio.run(put(writer, trial(1)))
    pages = writer._database.execute("PRAGMA page_count").fetchone()[0]
    writer._database.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(EnvironmentProblem, match="free some space"):
        asyncio.run(put(writer, *(trial(number, text="x" * 100_000) for number in range(2, 9))))
    writer.close()
    assert [each.sample.id for each in RunReader(tmp_path).trials("t")] == ["s1"]


def test_attempts_are_kept(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, header(a=1))
    writer.put_attempt(TrialKey("t", "s1"), ModelError(FailureKind.RATE, "slow", status=429, detail={"partial": "hal"}))
    writer.close()
    (row,) = RunReader(tmp_path).attempts()
    assert row[:4] == ("t", "s1", "base", 0)
    assert row[5:] == ("rate", 429, "slow")


def test_scores_are_replaced_whole(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, header(a=1))
    asyncio.run(put(writer, trial(1), trial(2)))
    writer.close()
    key = TrialKey("t", "s1")
    write_scores(
        tmp_path,
        "t",
        [
            Score(key, "accuracy", 1.0, "A", "bare", detail={"x": 1}),
            Score(TrialKey("t", "s2"), "accuracy", None, reason="unparsed"),
        ],
    )
    write_scores(tmp_path, "t", [Score(key, "accuracy", 0.0, "B", "cue")])
    assert list(RunReader(tmp_path).scores("t")) == [Score(key, "accuracy", 0.0, "B", "cue")]


def test_run_db_alone_has_the_scores(tmp_path: Path) -> None:
    folder, copy = tmp_path / "run", tmp_path / "copy"
    writer = RunWriter(folder, header(a=1))
    asyncio.run(put(writer, trial(1)))
    writer.close()
    with RunReader(folder) as reader:  # as while a run is scored, or looked at
        assert len(list(reader.trials("t"))) == 1
        write_scores(folder, "t", [Score(TrialKey("t", "s1"), "exact", 1.0)])
        copy.mkdir()
        (copy / "run.db").write_bytes((folder / "run.db").read_bytes())
    assert [score.value for score in RunReader(copy).scores("t")] == [1.0]


def test_foreign_and_newer_files_are_explained(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"run\.db is missing"):
        RunReader(tmp_path)
    (tmp_path / "run.db").write_bytes(b"not a database, certainly not one" * 50)
    with pytest.raises(EnvironmentProblem, match="cannot be read"):
        RunReader(tmp_path)
    newer = tmp_path / "newer"
    newer.mkdir()
    with sqlite3.connect(newer / "run.db") as database:
        database.execute("PRAGMA user_version=99")
    with pytest.raises(EnvironmentProblem, match="newer"):
        RunReader(newer)


def test_differences_are_named_by_path_and_cut() -> None:
    old = {"a": {"b": 1, "c": [1]}, "d": "x" * 200}
    assert describe_difference(old, {"a": {"b": 2, "c": [1]}, "d": "x" * 200}) == "a.b was 1, now 2"
    assert len(describe_difference(old, {f"k{n}": n for n in range(50)})) < 600


def test_cache_keeps_successes_by_content_and_repeat(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "c" / "responses.db")
    _, _, request, prediction, _ = trial(1)
    digest = request_digest("m", request, ["sha"])
    cache.put(digest, "m", prediction)
    cache.put("failed", "m", trial(1, text=None)[3])
    cache.flush()
    other = TrialKey("u", "s7")
    hit = cache.get(digest, other)
    assert hit is not None
    assert (hit.key, hit.text, hit.cached) == (other, "A", True)
    assert cache.get("failed", other) is None
    again = msgspec.structs.replace(request, key=TrialKey("t", "s1", repeat=1))
    digests = {
        request_digest("m", request, ["sha"]),
        request_digest("n", request, ["sha"]),
        request_digest("m", request, ["other"]),
        request_digest("m", again, ["sha"]),
        request_digest("m", msgspec.structs.replace(request, choices=("A",)), ["sha"]),
        request_digest(
            "m",
            msgspec.structs.replace(request, params=msgspec.structs.replace(request.params, temperature=0.0)),
            ["sha"],
        ),
    }
    assert len(digests) == 6
    assert cache.info()["replies"] == 1
    assert cache.prune(-10.0, __import__("time").time()) == 1
    cache.close()


def test_rows_that_came_together_are_waited_for_and_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snellen.store.writer.PATIENCE_S", 3600.0)
    groups: list[int] = []
    commit = RunWriter._commit
    monkeypatch.setattr(RunWriter, "_commit", lambda self, group: (groups.append(len(group)), commit(self, group)))
    writer = RunWriter(tmp_path, header(a=1))
    asyncio.run(asyncio.wait_for(put(writer, trial(99)), 60))  # alone the first time: nobody is waited for
    writer._company = 3  # as if three had come together
    for start in (0, 10, 20):
        asyncio.run(asyncio.wait_for(put(writer, *map(trial, range(start, start + 3))), 60))
    writer.close()
    assert groups == [1, 3, 3, 3]


def test_a_row_that_stays_alone_is_written_all_the_same(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, header(a=1))
    asyncio.run(writer.put_all([trial(number)[:4] for number in range(9)], "d"))
    writer._company = 9
    asyncio.run(asyncio.wait_for(put(writer, trial(9)), 60))
    assert len(writer.finished_keys("t")) == 10
    writer.close()


def test_closing_waits_for_no_company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snellen.store.writer.PATIENCE_S", 3600.0)
    writer = RunWriter(tmp_path, header(a=1))
    writer._company = 5

    async def leave() -> None:
        writer._enqueue_trial(*trial(1))

    asyncio.run(leave())
    writer.close()
    assert [each.sample.id for each in RunReader(tmp_path).trials("t")] == ["s1"]
