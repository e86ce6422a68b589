"""`snellen perf` as a user types it, against a mock server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from command_line import COMMAND
from snellen.api.load import load_run
from snellen.cli.main import cli
from snellen.core.errors import SnellenError
from snellen.kits.mock.process import mock_process
from snellen.kits.mock.server import Running
from snellen.perf.files import read_timeline
from waiting import CEILING_S, requests_seen, wait_until

MockServer = Callable[..., Running]


def perf(*arguments: object) -> tuple[int, Any]:
    """Run `snellen perf … --json` and return its exit code and what it printed."""
    outcome = CliRunner().invoke(
        cli, ["perf", *map(str, arguments), "--json"], standalone_mode=False, catch_exceptions=True
    )
    if isinstance(outcome.exception, SnellenError):
        raise outcome.exception
    assert outcome.exception is None, outcome.exception
    return int(outcome.return_value or 0), json.loads(outcome.stdout)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    rows = [
        {"id": f"q{n}", "question": f"What is {n}?", "options": ["one", "two"], "answer": "one" if n % 4 else "two"}
        for n in range(12)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_accuracy_and_performance_are_one_record(mock_server: MockServer, questions: Path, tmp_path: Path) -> None:
    server = mock_server("--answer", "A", "--ttft-ms", 5, "--itl-ms", 1, "--tokens", 4)
    out = tmp_path / "out"
    code, report = perf(
        questions,
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "--concurrency",
        "2,4",
        "-o",
        out,
        "--no-pictures",
    )
    assert code == 0
    assert [level["level"] for level in report["levels"]] == ["concurrency-2", "concurrency-4"]
    for level in report["levels"]:
        assert level["total"]["common"]["Success Requests"] == 12
        assert level["value"]["accuracy"] == pytest.approx(0.75)
        assert level["value"]["right answers per second"] > 0
        assert level["value"]["right answers per EUR"] > 0
        assert level["total"]["metrics"]["TTFT"]["Median"] >= 0.005, "the server waits 5 ms before the first token"
    results = json.loads((out / "concurrency-4" / "results.json").read_text())
    assert results["tasks"]["questions"]["metrics"]["accuracy"]["n"] == 12
    _, summary = perf("summarize", out / "concurrency-4")
    assert summary["common"]["Success Requests"] == 12
    (out / "concurrency-4" / "timeline.json").unlink()
    _, from_store = perf("summarize", out / "concurrency-4")
    assert from_store["metrics"]["TTFT"] == summary["metrics"]["TTFT"]


def test_a_task_of_dialogues_is_asked_turn_by_turn(mock_server: MockServer, tmp_path: Path) -> None:
    server = mock_server("--answer", "A")
    data = tmp_path / "talk.jsonl"
    rows = [
        {
            "id": f"d{n}t{turn}",
            "question": f"Question {turn}?",
            "options": ["blue", "red"],
            "answer": "blue",
            "group": f"d{n}",
        }
        for n in range(3)
        for turn in range(2)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = (
        data,
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "--multi-turn",
        "--think",
        0.01,
        "-o",
        tmp_path / "o",
    )
    _, report = perf(*arguments, "--no-pictures")
    records = read_timeline(tmp_path / "o" / "timeline.json").requests
    assert sorted(record.turn for record in records) == [0, 0, 0, 1, 1, 1]
    assert report["levels"][0]["value"]["accuracy"] == 1.0
    stored = {trial.request.key.sample: trial.request for trial in load_run(tmp_path / "o").trials("talk")}
    assert [turn.role for turn in stored["d0t1"].messages] == ["user", "assistant", "user"]
    assert "@@" not in stored["d0t1"].messages[1].text


def test_the_page_holds_tables_and_pictures_and_fetches_nothing(mock_server: MockServer, tmp_path: Path) -> None:
    server = mock_server()
    perf(
        "synthetic",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "-n",
        12,
        "-o",
        tmp_path / "o",
        "--pictures",
    )
    page = (tmp_path / "o" / "perf.html").read_text()
    assert page.count('src="data:image/svg+xml;base64,') == 6
    assert "<script" not in page
    assert page.count("src=") == 6, "nothing is fetched"
    assert "Time to first token" in page


def test_a_measurement_is_never_overwritten(mock_server: MockServer, questions: Path, tmp_path: Path) -> None:
    (tmp_path / "perf.json").write_text("{}")
    with pytest.raises(SnellenError, match="choose another -o"):
        perf(questions, "--model", "openai/mock", "--base-url", "http://127.0.0.1:9/v1", "-o", tmp_path)


def test_two_processes_are_one_load(mock_server: MockServer, tmp_path: Path) -> None:
    server = mock_server("--ttft-ms", 2)
    arguments = (
        "synthetic",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "--rate",
        100,
        "-n",
        60,
        "--processes",
        2,
        "--limit",
        20,
    )
    code, report = perf(*arguments, "-o", tmp_path / "o", "--no-pictures")
    level = report["levels"][0]
    assert (code, level["watch"]["processes"], level["total"]["common"]["Success Requests"]) == (0, 2, 60)
    timeline = read_timeline(tmp_path / "o" / "timeline.json")
    assert {record.worker for record in timeline.requests} == {0, 1}
    assert [record.due for record in timeline.requests] == sorted(record.due for record in timeline.requests)


@pytest.mark.slow
def test_a_sweep_finds_the_servers_knee(tmp_path: Path) -> None:
    """Eight slots of 200 ms can do 40 requests a second, and no more."""
    with mock_process(["--ttft-ms", "200", "--tokens", "1", "--slots", "8"]) as server:
        code, found = perf(
            "sweep", "synthetic", "--model", "openai/mock", "--base-url", server.base_url, "--slo", "ttft=500ms",
            "--arrivals", "constant", "--start", 20, "--duration", 4, "--precision", 0.06, "-o", tmp_path, "--limit", 50,
        )  # fmt: skip
    assert code == 0
    assert found["best"] == pytest.approx(40, rel=0.10)
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")


def test_failures_give_exit_code_1(mock_server: MockServer, tmp_path: Path) -> None:
    server = mock_server("--fault", "500@3-5")
    code, report = perf(
        "synthetic",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "-n",
        8,
        "--warmup",
        0,
        "-o",
        tmp_path / "o",
        "--no-pictures",
    )
    assert code == 1
    assert report["levels"][0]["total"]["errors"] == {"server": 3}


def test_a_key_that_the_server_quotes_is_masked(mock_server: MockServer, tmp_path: Path) -> None:
    server = mock_server("--api-key", "right", "--fault", "500:message=bad key sk-secret-123@2-")
    out = tmp_path / "o"
    arguments = (
        "synthetic",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "-n",
        3,
        "--warmup",
        0,
        "-o",
        out,
        "--no-pictures",
    )
    with pytest.raises(SnellenError, match=r"401(?!.*sk-wrong)"):
        perf(*arguments, "--api-key", "sk-wrong-key")
    server = mock_server("--fault", "500:message=bad key sk-secret-123")
    perf(
        "synthetic",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "-n",
        3,
        "--warmup",
        0,
        "-o",
        out / "b",
        "--no-pictures",
        "--api-key",
        "sk-secret-123",
    )
    everything = b"".join(path.read_bytes() for path in (out / "b").rglob("*") if path.is_file())
    assert b"bad key" in everything
    assert b"sk-secret-123" not in everything


@pytest.mark.parametrize("asked", [0, 10, 40])
def test_ctrl_c_leaves_a_valid_report(mock_server: MockServer, tmp_path: Path, asked: int) -> None:
    server = mock_server("--ttft-ms", 20)
    out = tmp_path / "o"
    command = [
        "perf",
        "synthetic",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "--rate",
        "50",
        "--duration",
        "600",
        "-o",
        str(out),
        "--json",
        "--no-pictures",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([*COMMAND, *command], stdout=subprocess.PIPE, env=environment)
    try:
        wait_until(lambda: out.exists() and requests_seen(server.base_url) >= asked, f"{asked} requests")
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=CEILING_S)
    finally:
        process.kill()
    assert process.returncode == 130
    report = json.loads((out / "perf.json").read_text())
    assert report == json.loads(printed)
    assert report["interrupted"] is True
    if asked == 40:
        common = report["levels"][0]["total"]["common"]
        assert (
            common["Total Requests"]
            == common["Success Requests"] + common["Failed Requests"] + common["Cancelled Requests"]
            > 0
        )


def test_explain_holds_every_definition() -> None:
    _, explained = perf("--explain")
    names = {row["name"] for row in explained["metrics"]} | {row["name"] for row in explained["common"]}
    assert {"TTFT", "TPOT", "ITL", "E2EL", "E2ELScheduled", "Goodput", "QueueTime", "VisualTokens"} <= names
    assert all(row["meaning"] for row in explained["metrics"])
    assert len(explained["aisbench"]) > 8


def test_trace_replay(mock_server: MockServer, tmp_path: Path) -> None:
    server = mock_server()
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps({"timestamp": moment}) + "\n" for moment in (5000, 5100, 5300)))
    _, report = perf(
        "synthetic",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "--trace",
        trace,
        "-o",
        tmp_path / "o",
        "--no-pictures",
    )
    due = [record.due for record in read_timeline(tmp_path / "o" / "timeline.json").requests]
    assert [moment - due[0] for moment in due] == pytest.approx([0.0, 0.1, 0.3])
    assert report["levels"][0]["level"] == "trace"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["synthetic", "--concurrency", "0"], "above zero"),
        (["synthetic", "--rate", "fast"], "not a list of numbers"),
        (["synthetic", "--rate", "1", "--concurrency", "1,2"], "give one cap"),
        (["synthetic", "--rate", "1", "--pressure", "5"], "closed loop"),
        (["synthetic", "--image-size", "big"], "512x512"),
        (["synthetic", "--arrivals", "gamma"], "--burstiness"),
        (["synthetic", "--slo", "speed=1s"], "--slo"),
        (["sweep", "synthetic"], "--slo"),
        (["nosuchtask"], "no task named"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(SnellenError, match=message):
        perf(*arguments, "--model", "openai/mock", "--base-url", "http://127.0.0.1:9/v1", "-o", tmp_path / "o")


def test_only_served_models_can_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(SnellenError, match="not served over HTTP"):
        perf("synthetic", "--model", "reader", "-o", tmp_path / "o")


def test_a_load_that_is_killed_keeps_the_levels_it_had_measured(
    mock_server: MockServer, questions: Path, tmp_path: Path
) -> None:
    server = mock_server("--answer", "A", "--ttft-ms", 5)
    out = tmp_path / "out"
    words = ["perf", questions, "--model", "openai/mock", "--base-url", server.base_url, "--no-pictures", "-o", out]
    process = subprocess.Popen(
        [*COMMAND, *map(str, words), "--concurrency", "1,2", "--duration", "2", "--warmup", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: (out / "perf.json").exists(), "the first level")
    process.kill()
    process.wait(CEILING_S)
    report = json.loads((out / "perf.json").read_text())
    assert report["interrupted"] and report["levels"][0]["total"]
    assert len(report["levels"]) == 1
