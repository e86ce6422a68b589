"""results.json and records.jsonl: whole or not at all, every trial once, counts that add up for any mix of outcomes."""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from line_doubles import header
from made_runs import scored
from snellen.core.builtins import default_registry
from snellen.core.errors import EnvironmentProblem
from snellen.core.types import (
    Failure,
    FailureKind,
    Form,
    Prediction,
    Request,
    Sample,
    Score,
    Timing,
    TrialKey,
    Turn,
    Usage,
)
from snellen.report.files import record, write_atomically, write_records, write_results
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter

OUTCOMES = st.sampled_from(["right", "wrong", "unread", "failed", "double", "silent"])


def scorer(sample: Sample, request: Request, prediction: Prediction, options: Any) -> list[Score]:
    """Score by the reply's own word; `silent` gets no score at all, `double` two metrics."""
    key, word = prediction.key, prediction.text
    if word == "silent":
        return []
    main = Score(
        key, "m", None if word == "unread" else float(word != "wrong"), reason="unread" if word == "unread" else None
    )
    return [main, Score(key, "second", 0.25)] if word == "double" else [main]


def make_run(folder: Path, outcomes: list[list[str]], order: list[int] | None = None) -> dict[str, Any]:
    """Store sample × repeat with the given outcomes, score them, write the files."""
    told = header("t")
    told = msgspec.structs.replace(
        told, tasks=[msgspec.structs.replace(told.tasks[0], scorers=("own",))], planned={"t": sum(map(len, outcomes))}
    )

    async def go(writer: RunWriter) -> None:
        for place in order or range(len(outcomes)):
            for repeat, word in enumerate(outcomes[place]):
                key = TrialKey("t", f"s{place}", repeat=repeat)
                failure = Failure(FailureKind.SERVER, "HTTP 500", 500, 3) if word == "failed" else None
                found = Prediction(
                    key, text=None if failure else word, failure=failure, timing=Timing(1.0, 3.5), usage=Usage(7, 2)
                )
                await writer.put(
                    place,
                    Sample(f"s{place}", "t", Form.OPEN, "?", tags={"topic": place % 2}),
                    Request(key, (Turn("user", "?"),)),
                    found,
                    "",
                )

    writer = RunWriter(folder, told)
    asyncio.run(go(writer))
    writer.close()
    registry = default_registry()
    registry.add("scorer", "own", scorer)
    results = scored(folder, registry)
    write_results(folder, results)
    with RunReader(folder) as run:
        write_records(run)
    return results


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(OUTCOMES, min_size=2, max_size=2), min_size=1, max_size=6))
def test_counts_add_up_for_any_mix(tmp_path_factory: pytest.TempPathFactory, outcomes: list[list[str]]) -> None:
    folder = tmp_path_factory.mktemp("run")
    results = make_run(folder, outcomes)
    flat = [word for words in outcomes for word in words]
    for estimate in results["tasks"]["t"]["metrics"].values():
        if estimate["n"] + estimate["unscored"] + estimate["failed"] == 0:
            continue
        assert estimate["failed"] <= flat.count("failed")
    main = results["tasks"]["t"]["metrics"].get("m") or results["tasks"]["t"]["metrics"]["accuracy"]
    counted = sum(flat.count(word) for word in ("right", "wrong", "double", "unread"))
    assert (main["n"], main["unscored"], main["failed"]) == (counted, flat.count("silent"), flat.count("failed"))
    worth = {"right": 1.0, "double": 1.0, "wrong": 0.0, "unread": 0.0}
    questions = [[worth[word] for word in words if word in worth] for words in outcomes]
    means = [
        sum(values) / len(values) for values in questions if values
    ]  # a question counts once, however often it was read
    assert main["value"] == (pytest.approx(sum(means) / len(means)) if means else None)
    text = (folder / "results.json").read_text()
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} in results.json"))
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    expected = {
        "right": "scored",
        "wrong": "scored",
        "double": "scored",
        "unread": "unscored",
        "silent": "unscored",
        "failed": "failed",
    }
    assert [each["outcome"] for each in records] == [expected[word] for word in flat]
    assert [each["scores"].get("second") for each in records] == [0.25 if word == "double" else None for word in flat]
    assert results["usage"] == {
        "input_tokens": 7 * len(flat),
        "output_tokens": 2 * len(flat),
        "reasoning_tokens": 0,
        "requests": len(flat),
    }


def test_files_do_not_depend_on_the_order_replies_came_in(tmp_path: Path) -> None:
    outcomes = [["right", "failed"], ["double", "unread"], ["wrong", "silent"], ["right", "right"]]
    first = make_run(tmp_path / "a", outcomes)
    second = make_run(tmp_path / "b", outcomes, order=[2, 0, 3, 1])
    assert first["tasks"] == second["tasks"]
    assert (tmp_path / "a" / "records.jsonl").read_bytes() == (tmp_path / "b" / "records.jsonl").read_bytes()


def test_what_is_not_yet_asked_is_said(tmp_path: Path) -> None:
    results = make_run(tmp_path, [["right", "right"]])
    assert results["status"]["complete"]
    with __import__("sqlite3").connect(tmp_path / "run.db") as database:
        database.execute("DELETE FROM predictions WHERE repeat = 1")
    registry = default_registry()
    registry.add("scorer", "own", scorer)
    partial = scored(tmp_path, registry)["status"]
    assert (partial["complete"], partial["not_yet_asked"]) == (False, {"t": 1})


def test_a_run_without_any_reply_has_results_too(tmp_path: Path) -> None:
    results = make_run(tmp_path, [[]])
    assert results["usage"]["requests"] == 0
    assert all(estimate["value"] is None or not estimate["n"] for estimate in results["tasks"]["t"]["metrics"].values())
    assert (tmp_path / "records.jsonl").read_text() == ""


def test_a_record_says_what_happened() -> None:
    key = TrialKey("t", "s", "order=1", 2)
    sample = Sample("s", "t", Form.OPEN, "?", tags={"topic": 1})
    lost = record(sample, Prediction(key, failure=Failure(FailureKind.TOO_LONG, "too long", 400, 2)), [])
    assert (lost.outcome, lost.text, lost.value, lost.latency_s) == ("failed", None, None, None)
    assert lost.error == {"kind": "too_long", "message": "too long", "status": 400, "attempts": 2}
    found = record(
        sample,
        Prediction(key, text="A", timing=Timing(1.0, 3.5), cached=True),
        [Score(key, "accuracy", 1.0, "A", "bare"), Score(key, "exact", 0.0)],
    )
    assert (found.sample, found.variant, found.repeat, found.latency_s, found.cached) == ("s", "order=1", 2, 2.5, True)
    assert (found.metric, found.value, found.answer, found.rule) == ("accuracy", 1.0, "A", "bare")
    assert found.scores == {"accuracy": 1.0, "exact": 0.0}
    silent = record(sample, Prediction(key, text="?"), [Score(key, "accuracy", None, reason="ambiguous")])
    assert (silent.outcome, silent.reason, silent.error) == ("unscored", "ambiguous", None)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_never_get_in(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Score(TrialKey("t", "s"), "m", value)
    with pytest.raises(ValueError, match="without a reason"):
        Score(TrialKey("t", "s"), "m", None)


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    (tmp_path / "run.db").touch()
    write_atomically(path, lambda file: file.write(b"old") and None)

    def fail(file: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(EnvironmentProblem, match=r"No space left.*snellen score"):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert {each.name for each in tmp_path.iterdir()} == {"x.json", "run.db"}
    assert path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(EnvironmentProblem, match="cannot write"):
        write_atomically(tmp_path / "none" / "x.json", fail)


def test_a_place_that_cannot_be_written_is_told_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a path that was given relative, the temporary file beside it was named, and nothing else."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        EnvironmentProblem, match=r"^cannot write gone/report\.html: No such file or directory; the run"
    ):
        write_atomically(Path("gone/report.html"), lambda file: file.write(b""))


def test_what_a_killed_writer_left_goes_with_the_next_writing(tmp_path: Path) -> None:
    left = tmp_path / f".results.json.{socket.gethostname()}-999999999-ab12"
    others = [
        f".results.json.{socket.gethostname()}-{os.getpid()}-ab12",
        ".results.json.elsewhere-999999999-ab12",
        "mine",
    ]
    for path in (left, *(tmp_path / name for name in others)):
        path.write_text("half")
    write_results(tmp_path, {"a": 1})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "results.json"])
