"""Blind baselines, replay, and the reader's parts: layout and answerer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from snellen.core.errors import DataError, ModelError, UsageError
from snellen.core.types import FailureKind, Request, TrialKey, Turn
from snellen.model import blind, replay
from snellen.model.ocr.reader_model import Piece, answer, lines_of, parse_tsv
from snellen.model.options import ModelOptions

OPTIONS = ("a red big cat.", "a red dog", "one", "a very long option text")


def request(sample: str = "s", shown: tuple[str, ...] = OPTIONS, text: str = "?", **more: object) -> Request:
    marks = tuple("ABCD"[: len(shown)])
    return Request(TrialKey("t", sample), (Turn("user", text),), marks=marks, shown=shown, **more)  # type: ignore[arg-type]


def ask_blind(rule: str, asked: Request) -> str | None:
    return asyncio.run(blind.create(rule, ModelOptions()).predict(asked, {})).text


@pytest.mark.parametrize(
    ("rule", "mark"), [("shortest", "C"), ("longest", "D"), ("first", "A"), ("majority", "A"), ("no-period", "B")]
)
def test_blind_rules(rule: str, mark: str) -> None:
    assert ask_blind(rule, request()) == mark


def test_blind_random_is_fair_and_repeatable() -> None:
    marks = [ask_blind("random", request(str(index))) for index in range(400)]
    assert marks == [ask_blind("random", request(str(index))) for index in range(400)]
    assert all(60 < marks.count(mark) < 140 for mark in "ABCD")


def test_blind_without_options_and_with_candidates() -> None:
    assert ask_blind("first", request(shown=(), text="Is it? Answer yes or no.")) == "yes"
    assert ask_blind("first", request(shown=(), text="Describe.")) == ""
    predicted = asyncio.run(blind.create("shortest", ModelOptions()).predict(request(choices=("long one", "s")), {}))
    assert predicted.loglikelihoods == (-1.0, 0.0)


def test_unknown_blind_rule() -> None:
    with pytest.raises(UsageError, match="did you mean 'shortest'"):
        blind.create("shortst", ModelOptions())


def make_replay(tmp_path: Path, *records: object) -> replay.Replay:
    path = tmp_path / "predictions.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    return replay.create(str(path), ModelOptions())


def test_replay_answers_by_sample_task_variant_and_repeat(tmp_path: Path) -> None:
    model = make_replay(
        tmp_path,
        {"sample": "s", "prediction": "plain"},
        {"task": "t", "sample": "r", "repeat": 1, "text": "second"},
        {"id": 7, "variant": "order=1", "response": "other order"},
    )
    found = [
        asyncio.run(model.predict(Request(key, (Turn("user", "?"),)), {})).text
        for key in (TrialKey("t", "s"), TrialKey("t", "r", "base", 1), TrialKey("t", "7", "order=1"))
    ]
    assert found == ["plain", "second", "other order"]


def test_replay_of_a_missing_or_failed_sample_is_a_typed_failure(tmp_path: Path) -> None:
    model = make_replay(tmp_path, {"sample": "s", "text": None, "error": "timeout"})
    for sample, message in (("missing", "no prediction for sample 'missing'"), ("s", "holds no answer: timeout")):
        with pytest.raises(ModelError, match=message) as caught:
            asyncio.run(model.predict(request(sample), {}))
        expected = FailureKind.SKIPPED if sample == "missing" else FailureKind.REQUEST
        assert (caught.value.kind, caught.value.retryable) == (expected, False)


def test_replay_reads_lists_and_marked_files_as_score_does(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(
        "\ufeff" + json.dumps([{"question_id": 1, "answer": "a"}, {"sample": "s", "output": "b"}], indent=1)
    )
    records = replay.index_predictions(path)
    assert list(records) == [(None, "1", "base", 0), (None, "s", "base", 0)]
    assert [record.first(replay.TEXT_FIELDS) for record in records.values()] == ["a", "b"]
    path.write_text("\n")
    assert replay.create(str(path), ModelOptions()).identity()["model"] == "replay"


def test_replay_of_likelihoods(tmp_path: Path) -> None:
    model = make_replay(tmp_path, {"sample": "s", "loglikelihoods": [-1, -2]})
    assert asyncio.run(model.predict(request(choices=("a", "b")), {})).loglikelihoods == (-1.0, -2.0)
    with pytest.raises(ModelError, match="no log-likelihoods"):
        asyncio.run(model.predict(request(choices=("a", "b", "c")), {}))


def test_replay_refuses_bad_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="record 2 repeats sample 's'"):
        make_replay(tmp_path, {"sample": "s", "text": "a"}, {"sample": "s", "text": "b"})
    with pytest.raises(DataError, match="record 1 names no sample"):
        make_replay(tmp_path, {"text": "a"})
    (tmp_path / "broken.jsonl").write_text("{")
    with pytest.raises(DataError, match="record 1 is cut off or not valid JSON"):
        replay.create(str(tmp_path / "broken.jsonl"), ModelOptions())
    for name in ("", str(tmp_path / "none.jsonl")):
        with pytest.raises(UsageError):
            replay.create(name, ModelOptions())


def piece(text: str, x: float, y: float, width: float = 100, height: float = 20) -> Piece:
    return Piece(text, ((x, y), (x + width, y), (x + width, y + height), (x, y + height)))


def test_rows_are_joined_and_ordered() -> None:
    assert lines_of([piece("low", 0, 100), piece("right", 150, 2), piece("left", 0, 0)]) == ["left right", "low"]
    assert lines_of([]) == []


def test_columns_are_read_one_after_the_other() -> None:
    left = [piece(f"l{row}", 0, row * 30) for row in range(4)]
    right = [piece(f"r{row}", 200, row * 30 + 4) for row in range(4)]
    assert lines_of([*right, *left]) == ["l0", "l1", "l2", "l3", "r0", "r1", "r2", "r3"]


def test_a_slanted_page_is_read_along_its_slant() -> None:
    import math

    def turned(text: str, x: float, y: float) -> Piece:
        c, s = math.cos(0.2), math.sin(0.2)
        return Piece(text, tuple((a * c - b * s, a * s + b * c) for a, b in piece(text, x, y).corners))

    pieces = [turned(f"{row}{side}xx", side * 110, row * 40) for row in range(3) for side in (0, 1)]
    assert lines_of(pieces) == ["00xx 01xx", "10xx 11xx", "20xx 21xx"]


def test_tesseract_table() -> None:
    head = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
    rows = ["5\t1\t1\t1\t1\t1\t10\t20\t30\t12\t96\tHello", "4\t1\t1\t1\t1\t0\t10\t20\t30\t12\t-1\t"]
    assert [p.text for p in parse_tsv("\n".join([head, *rows]))] == ["Hello"]


PAGE = [
    "The harbour was busy that morning. The secret code of the",
    "lighthouse is 48213. Gulls cried over the pier.",
    "The secret colour of the boathouse is green. Nobody saw it.",
    "Total: 12.50",
]


@pytest.mark.parametrize(
    ("question", "options", "expected"),
    [
        ("What does line 2 of this chart say?", (), PAGE[1]),
        ("What does the last line say?", (), "Total: 12.50"),
        ("What does the third line say?", (), PAGE[2]),
        ("Transcribe the text.", (), "\n".join(PAGE)),
        ("What is the secret code of the lighthouse?", (), "48213"),
        ("What is the secret colour of the boathouse?\nAnswer with a word.", (), "green"),
        ("What is the total?", (), "12.50"),
        ("What is the colour of the boathouse?", ("red", "green", "blue"), "green"),
        ("What does line 4 say?", ("Total: 12.80", "Total: 12.50"), "Total: 12.50"),
        ("Is there a lighthouse code? Answer yes or no.", (), "yes"),
        ("Is there a purple elephant? Answer yes or no.", (), "no"),
    ],
)
def test_the_answerer(question: str, options: tuple[str, ...], expected: str) -> None:
    assert answer(question, PAGE, options) == expected


def test_the_answerer_on_an_empty_page() -> None:
    assert answer("What is the code?", []) == ""
    assert answer("What does line 3 say?", []) == ""
    assert answer("What does line 9 say?", PAGE) == ""
    assert answer("Which?", [], ("x", "y")) in ("x", "y")
