"""A stored record that is not what was written is never read as if it were."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from line_doubles import Scripted, header, jobs, work
from snellen.core.errors import EnvironmentProblem
from snellen.core.types import Prediction, Score, TrialKey
from snellen.scoring.stored import stored_tables
from snellen.store.cache import ResponseCache
from snellen.store.damage import look_at_run, repair_run
from snellen.store.database import is_intact, seal
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter
from stored_scores import write_scores

RECORDS = st.dictionaries(st.text(max_size=5), st.text(max_size=20), min_size=1, max_size=4).map(msgspec.json.encode)


@given(RECORDS, st.lists(st.one_of(st.integers(), st.text(max_size=5)), max_size=3), st.data())
def test_a_sealed_record_is_the_same_object_and_no_changed_bit_goes_unseen(
    record: bytes, columns: list[object], draw: st.DataObject
) -> None:
    beside = "\0".join(map(str, columns))
    sealed = seal(record, beside)
    assert is_intact(sealed, beside)
    read = msgspec.json.decode(sealed)
    assert {key: read[key] for key in msgspec.json.decode(record) if key != "crc"}.items() <= read.items()
    place, bit = draw.draw(st.integers(0, len(sealed) - 1)), draw.draw(st.integers(0, 7))
    changed = bytearray(sealed)
    changed[place] ^= 1 << bit
    assert not is_intact(bytes(changed), beside)
    assert not is_intact(sealed, f"{beside}\0more")


def test_a_record_without_a_seal_is_damaged() -> None:
    assert not any(map(is_intact, (b'{"a":1}', '{"a":1}', None, 7)))


def run_of(folder: Path, count: int = 8) -> sqlite3.Connection:
    work(folder, Scripted(), jobs(count))
    return sqlite3.connect(folder / "run.db", isolation_level=None)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE predictions SET body = CAST(replace(CAST(body AS TEXT), '\"ok\"', '\"oj\"') AS BLOB) WHERE sample = 's3'",
        "UPDATE predictions SET failed = 1 WHERE sample = 's3'",
        "UPDATE predictions SET request = CAST(replace(CAST(request AS TEXT), 'why 3', 'why 4') AS BLOB) WHERE sample = 's3'",
        "UPDATE predictions SET repeat = 7 WHERE sample = 's3'",
        "UPDATE predictions SET variant = 'wording=2' WHERE sample = 's3'",
        "UPDATE samples SET position = 100 WHERE id = 's3'",
        "UPDATE samples SET body = CAST(replace(CAST(body AS TEXT), 'why', 'who') AS BLOB) WHERE id = 's3'",
        "DELETE FROM samples WHERE id = 's3'",
        "UPDATE predictions SET body = CAST(substr(CAST(body AS TEXT), 1, length(body) - 18) || '}' AS BLOB) WHERE sample = 's3'",
    ],
)
def test_a_changed_row_is_told_and_asked_again(tmp_path: Path, statement: str) -> None:
    database = run_of(tmp_path / "run")
    assert database.execute(statement).rowcount == 1
    database.close()
    with pytest.raises(EnvironmentProblem, match="snellen repair"), RunReader(tmp_path / "run") as reader:
        list(reader.trials("t"))
    again = Scripted()
    work(tmp_path / "run", again, jobs(8))
    assert set(again.asked) <= {"s3"}
    with RunReader(tmp_path / "run") as reader:
        assert [trial.prediction.text for trial in reader.trials("t")] == ["ok"] * 8


def test_repair_drops_the_changed_row_only(tmp_path: Path) -> None:
    database = run_of(tmp_path / "run")
    database.execute("UPDATE predictions SET digest = 'x' WHERE sample = 's5'")
    database.close()
    assert not look_at_run(tmp_path / "run").sound
    assert repair_run(tmp_path / "run").saved["predictions"] == 7
    assert look_at_run(tmp_path / "run").sound


def test_a_changed_header_is_told(tmp_path: Path) -> None:
    database = run_of(tmp_path / "run")
    database.execute("UPDATE meta SET value = replace(value, '2026-01-01', '2026-01-02') WHERE key = 'header'")
    database.close()
    with pytest.raises(EnvironmentProblem, match="header"), RunReader(tmp_path / "run") as reader:
        reader.header()
    with pytest.raises(EnvironmentProblem, match="header"):
        RunWriter(tmp_path / "run", header())


def test_a_cached_reply_that_was_changed_is_asked_again(tmp_path: Path) -> None:
    key = TrialKey("t", "s")
    cache = ResponseCache(tmp_path / "c.db")
    cache.put("d", "m", Prediction(key, text="ok"))
    cache.put("e", "m", Prediction(key, text="ok"))
    cache.flush()
    cache._database.execute(
        "UPDATE replies SET body = CAST(replace(CAST(body AS TEXT), 'ok', 'oj') AS BLOB) WHERE key = 'd'"
    )
    assert cache.get("d", key) is None
    found = cache.get("e", key)
    assert found is not None and found.text == "ok"
    cache.close()


def test_changed_scores_are_told_and_made_again(tmp_path: Path) -> None:
    database = run_of(tmp_path / "run")
    write_scores(tmp_path / "run", "t", [Score(TrialKey("t", f"s{n}"), "accuracy", 1) for n in range(8)])
    with RunReader(tmp_path / "run") as reader:
        assert len(list(reader.scores("t"))) == 8
        assert stored_tables(reader, "t")
    database.execute("UPDATE scores SET value = 0.5 WHERE sample = 's3'")
    with RunReader(tmp_path / "run") as reader:
        with pytest.raises(EnvironmentProblem, match="snellen score"):
            list(reader.scores("t"))
        with pytest.raises(EnvironmentProblem, match="snellen score"):
            stored_tables(reader, "t")
    database.close()
