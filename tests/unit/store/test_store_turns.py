"""Turns of a trial are stored, read back in order, and refused when they were asked otherwise."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from snellen.core.errors import EnvironmentProblem, RunMismatch
from snellen.core.homes import Part
from snellen.core.jobs import Item, Step
from snellen.core.looks import Look
from snellen.core.tasks import RunHeader
from snellen.core.types import Form, Image, Prediction, Request, Sample, ToolCall, TrialKey, Turn
from snellen.store.damage import look_at_run, repair_run
from snellen.store.database import open_for_writing
from snellen.store.merge import merge_logs
from snellen.store.part_log import PartWriter
from snellen.store.reader import RunReader
from snellen.store.turns import StoredTurn
from snellen.store.writer import RunWriter, TrialWriter

ITEM = Item(0, Sample("1", "t", Form.OPEN, "What?"))
KEY = TrialKey("t", "1")
GREY = TrialKey("t", "1", "look=grey")
LOOK = Look(0, "zoom", "c1", 1, region=(1, 2, 30, 40), shown=2, size=(58, 76), enlargement=2.0, image=Image("/a.png"))


def header() -> RunHeader:
    """Return a header that any writer takes."""
    return RunHeader("id", {"tasks": {}}, {"snellen": "1"}, "2026-01-01T00:00:00+00:00", model="m", planned={"t": 2})


def put(writer: TrialWriter, key: TrialKey, number: int, text: str, *, last: bool = False) -> None:
    """Store one turn."""
    request = Request(key, (Turn("user", f"turn {number}"),))
    calls = () if last else (ToolCall("c1", "zoom", "{}"),)
    reply = Prediction(key, text=text, calls=calls, kept=({"type": "thinking"},))
    step = Step(number, (LOOK,) if number else (), lambda _: None)
    final = Prediction(key, text=text) if last else None
    asyncio.run(writer.put_turn(ITEM, step, (request, reply, f"d{number}"), final, "digest"))


def test_turns_come_back_in_order_and_an_arm_has_the_first_turn_that_it_shares(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, header())
    put(writer, KEY, 0, "look")
    put(writer, GREY, 1, "grey", last=True)
    assert writer.stored(KEY) is None and writer.stored_turn(KEY, 1) is None
    put(writer, KEY, 1, "a cat", last=True)
    writer.close()
    with RunReader(tmp_path) as reader:
        own, grey = reader.turns(KEY), reader.turns(GREY)
        assert [(turn.number, turn.prediction.text, len(turn.looks)) for turn in own] == [
            (0, "look", 0),
            (1, "a cat", 1),
        ]
        assert [turn.prediction.text for turn in grey] == ["look", "grey"]
        assert own[1].looks == (LOOK,) and own[0].prediction.calls[0].name == "zoom" and own[0].prediction.kept
        assert {trial.prediction.key for trial in reader.trials("t")} == {KEY, GREY}
        assert reader.turns(TrialKey("t", "2")) == []


def test_a_stored_turn_outlasts_its_writer_and_one_that_was_asked_otherwise_is_refused_by_name(tmp_path: Path) -> None:
    first = RunWriter(tmp_path, header())
    put(first, KEY, 0, "look")
    first.close()
    again = RunWriter(tmp_path, header())
    stored = again.stored_turn(KEY, 0)
    again.close()
    assert isinstance(stored, StoredTurn) and stored.prediction.text == "look"
    stored.check("d0")
    with pytest.raises(RunMismatch, match="turn 0 of sample '1'"):
        stored.check("other")


def test_a_run_of_an_earlier_version_opens_without_the_table_and_gets_it_when_it_is_written(tmp_path: Path) -> None:
    RunWriter(tmp_path, header()).close()
    database = sqlite3.connect(tmp_path / "run.db")
    database.execute("DROP TABLE turns")
    database.commit()
    database.close()
    with RunReader(tmp_path) as reader:
        assert reader.turns(KEY) == []
    assert look_at_run(tmp_path).sound
    open_for_writing(tmp_path / "run.db").close()
    with RunReader(tmp_path) as reader:
        assert next(reader.rows("SELECT COUNT(*) FROM turns")) == (0,)


def test_a_damaged_turn_is_refused_by_readers_asked_again_by_a_writer_and_left_out_by_a_repair(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, header())
    put(writer, KEY, 0, "look")
    put(writer, KEY, 1, "again")
    writer._database.execute("UPDATE turns SET body = CAST(replace(body, 'look', 'l00k') AS BLOB) WHERE turn = 0")
    assert writer.stored_turn(KEY, 0) is None
    writer.close()
    with pytest.raises(EnvironmentProblem, match="damaged"), RunReader(tmp_path) as reader:
        reader.turns(KEY)
    assert not look_at_run(tmp_path).sound
    assert repair_run(tmp_path).saved["turns"] == 1
    again = RunWriter(tmp_path, header())
    put(again, KEY, 0, "look again")
    put(again, KEY, 0, "look again")
    again.close()
    with RunReader(tmp_path) as reader:
        assert [turn.prediction.text for turn in reader.turns(KEY)] == ["look again", "again"]


def test_turns_of_a_part_are_found_by_its_next_attempt_and_joined(tmp_path: Path) -> None:
    first = PartWriter(tmp_path, header(), Part(0, 2))
    put(first, KEY, 0, "look")
    first.close()
    second = PartWriter(tmp_path, header(), Part(0, 2))
    stored = second.stored_turn(KEY, 0)
    assert stored is not None and stored.prediction.text == "look" and second.stored_turn(KEY, 1) is None
    put(second, KEY, 1, "a cat", last=True)
    second.close()
    assert merge_logs(tmp_path).stored == 1
    with RunReader(tmp_path) as reader:
        assert [turn.prediction.text for turn in reader.turns(KEY)] == ["look", "a cat"]
    third = PartWriter(tmp_path, header(), Part(1, 2))
    merged = third.stored_turn(KEY, 1)
    third.close()
    assert merged is not None and merged.looks == (LOOK,)
