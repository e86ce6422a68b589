"""Every way a server can fail, against the real engine over real HTTP: no crash, no invented answer, counts that add up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import snellen
from command_line import run_command
from snellen.core.errors import EnvironmentProblem, StopRun
from snellen.store.reader import RunReader

SAMPLES = 24
RETRIED = [
    "500",
    "502",
    "503",
    "reset",
    "truncate",
    "wrong-type",
    "invalid-json",
    "html",
    "invalid-utf8",
    "empty-choices",
    "null-content",
    "429:retry_after=0",
]
FINAL = {"400": "request", "403": "auth", "404": "request", "413": "payload", "422": "request"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    rows = [
        {"id": f"q{n}", "question": f"Question {n}?", "options": ["one", "two", "three"], "answer": "A"}
        for n in range(SAMPLES)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture(autouse=True)
def quick_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Retries wait a hundredth of their time; nothing else changes."""
    monkeypatch.setattr("snellen.engine.limits.Policy.backoff_of", lambda self, attempt: 0.005 * 2.0**attempt)
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def measure(data: Path, server: Any, **settings: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    folder = data.parent / "run"
    result = snellen.run(
        str(data), "openai/mock", base_url=server.base_url, output_dir=folder, same_model=True, **settings
    )
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return result.results["tasks"]["data"]["metrics"]["accuracy"], records


def check_counts(metric: dict[str, Any], records: list[dict[str, Any]]) -> None:
    assert metric["n"] + metric["unscored"] + metric["failed"] == SAMPLES == len(records)
    for record in records:
        assert (record["text"] is None) == (record["outcome"] == "failed")
        assert (record["error"] is None) == (record["outcome"] != "failed")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("fault", RETRIED)
def test_passing_faults_are_mended_by_retries(
    data: Path, mock_server: Callable[..., Any], fault: str, seed: int
) -> None:
    metric, records = measure(data, mock_server("--fault", f"{fault}@0.3", "--seed", seed), max_retries=12)
    check_counts(metric, records)
    assert (metric["n"], metric["value"]) == (SAMPLES, 1.0)


@pytest.mark.parametrize("fault", RETRIED)
def test_lasting_faults_are_typed_failures_never_answers(
    data: Path, mock_server: Callable[..., Any], fault: str
) -> None:
    metric, records = measure(data, mock_server("--fault", f"{fault}@3-12"), max_retries=0, max_workers=1)
    check_counts(metric, records)
    assert metric["failed"] == 10
    assert metric["value"] == 1.0
    assert all(record["error"]["message"] for record in records if record["outcome"] == "failed")


@pytest.mark.parametrize(("status", "kind"), FINAL.items())
def test_final_errors_are_asked_exactly_once(
    data: Path, mock_server: Callable[..., Any], tmp_path: Path, status: str, kind: str
) -> None:
    log = tmp_path / "seen.jsonl"
    metric, records = measure(data, mock_server("--fault", f"{status}@4-9", "--log", log), max_workers=1)
    check_counts(metric, records)
    assert {record["error"]["kind"] for record in records if record["error"]} == {kind}
    assert metric["failed"] == 6
    asked = [line for line in log.read_text().splitlines() if "models" not in json.loads(line).get("path", "")]
    assert len(asked) == SAMPLES


@pytest.mark.parametrize("fault", ["stream-cut", "stream-error", "reset", "invalid-json"])
def test_a_broken_stream_is_mended_and_no_partial_text_is_scored(
    data: Path, mock_server: Callable[..., Any], fault: str
) -> None:
    metric, records = measure(
        data, mock_server("--fault", f"{fault}@0.3", "--answer", "A because it is right"), stream=True, max_retries=12
    )
    check_counts(metric, records)
    assert {record["text"] for record in records} == {"A because it is right"}


def test_a_hanging_server_fails_the_trial_in_time(data: Path, mock_server: Callable[..., Any]) -> None:
    server = mock_server("--fault", "hang@2-3")
    metric, records = measure(data, server, timeout_s=2, max_retries=0, max_workers=2)  # the server never answers these
    check_counts(metric, records)
    assert {record["error"]["kind"] for record in records if record["error"]} == {"timeout"}
    assert metric["failed"] == 2


def test_a_deadline_ends_the_run_cleanly_and_the_same_command_continues_it(
    data: Path, mock_server: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock_server("--ttft-ms", 300)
    folder = data.parent / "run"
    command = ["run", data, "--model", "openai/mock", "--base-url", server.base_url, "-o", folder, "--quiet"]
    assert run_command([*command, "--max-workers", 1, "--deadline", 1.5]) == 3
    error = capsys.readouterr().err
    assert "stopped by --deadline after" in error and "run the same command again" in error
    stored = json.loads((folder / "results.json").read_text())["status"]
    assert not stored["complete"]
    assert run_command(command) == 0
    assert json.loads((folder / "results.json").read_text())["status"]["complete"]


def test_a_server_that_asks_for_a_million_years_of_rest_does_not_get_them(
    data: Path, mock_server: Callable[..., Any]
) -> None:
    server = mock_server("--fault", "429:retry_after=1000000000@1-9999")
    folder = data.parent / "run"
    result = snellen.run(str(data), "openai/mock", base_url=server.base_url, output_dir=folder, deadline_s=1.0)
    assert result.interrupted and result.state.overdue
    with RunReader(folder) as reader:
        assert any("Retry-After asks for" in row[7] for row in reader.attempts())


def test_401_stops_the_run_at_the_first_sample(data: Path, mock_server: Callable[..., Any], tmp_path: Path) -> None:
    log = tmp_path / "seen.jsonl"
    server = mock_server("--fault", "401", "--log", log)
    with pytest.raises(StopRun):
        measure(data, server)
    assert len(log.read_text().splitlines()) <= 2


def test_a_dead_server_stops_the_run_and_a_living_one_finishes_it(data: Path, mock_server: Callable[..., Any]) -> None:
    server = mock_server("--ttft-ms", 30)
    dead = mock_server("--fault", "reset@5-100000")
    with pytest.raises(EnvironmentProblem, match="run the same command again"):
        measure(data, dead, max_workers=4, max_retries=50)
    reader = RunReader(data.parent / "run")
    assert 1 <= len(list(reader.trials("data"))) < SAMPLES
    metric, records = measure(data, server, max_workers=4)
    check_counts(metric, records)
    assert metric["n"] == SAMPLES


def test_max_errors_stops_and_the_next_run_asks_only_what_failed(
    data: Path, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(EnvironmentProblem, match="--max-errors"):
        measure(data, mock_server("--fault", "400@5-24"), max_workers=1, max_errors="3")
    log = tmp_path / "seen.jsonl"
    metric, records = measure(data, mock_server("--log", log), max_workers=1)
    check_counts(metric, records)
    assert (
        len([line for line in log.read_text().splitlines() if "models" not in json.loads(line).get("path", "")])
        == SAMPLES - 4
    )


def test_no_artefact_of_a_failing_run_shows_a_password_in_the_address(
    data: Path, mock_server: Callable[..., Any], capfd: Any
) -> None:
    server = mock_server("--fault", "400@3-6", "--fault", "reset@8-12")
    address = server.base_url.replace("://", "://user:canary-4711%2Fabc@")
    dead = "http://user:canary-4711%2Fabc@127.0.0.1:9/v1"
    folder = data.parent / "run"
    command = ["run", data, "--model", "openai/mock", "--max-retries", 1, "--max-workers", 2]
    assert run_command([*command, "--base-url", address, "-o", folder]) == 1
    assert run_command([*command, "--base-url", dead, "-o", f"{folder}2", "--json"]) == 3
    files = "".join(path.read_bytes().decode("latin-1") for path in data.parent.rglob("*") if path.is_file())
    text = files + "".join(capfd.readouterr())
    assert "openai/mock" in text and "not reachable" in text
    for form in ("canary-4711", "dXNlcjpjYW5hcnktNDcxMS9hYmM"):
        assert form not in text


@pytest.mark.parametrize(
    "flags",
    [
        ["--base-url", "http://127.0.0.1:9/v1?api_key=canary-4711"],
        ["--model-arg", "api_key=canary-4711"],
        ["--model-arg", "imagse=canary-4711"],
        ["-p", "params.extra_body.api_key=canary-4711"],
        ["--base-url", "http://u:canary-4711@127.0.0.1:9/v1", "--api-key-env", "MY_KEY"],
    ],
)
def test_a_key_where_it_would_be_stored_is_refused_without_showing_it(
    data: Path, capfd: Any, flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-0123456789abcdef")
    folder = data.parent / "run"
    assert run_command(["run", data, "--model", "openai/mock", "-o", folder, *flags, "--json"]) == 2
    captured = capfd.readouterr()
    assert captured.err.count("\n") == 1
    assert "canary" not in captured.out + captured.err
    assert not folder.exists()


def test_no_artefact_of_a_failing_run_shows_the_key(
    data: Path, mock_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    from command_line import run_command

    key = "sk-canary-4711/abc"
    monkeypatch.setenv("MY_KEY", key)
    server = mock_server("--fault", "400@3-6", "--fault", "500@8-12", "--api-key", key)
    folder = data.parent / "run"
    arguments = [
        "run",
        str(data),
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "--api-key-env",
        "MY_KEY",
        "-o",
        str(folder),
    ]
    assert run_command([*arguments, "--max-workers", "1", "--max-retries", "0", "--json"]) == 1
    wrong = mock_server("--api-key", "another")
    assert run_command([*arguments, "-o", str(folder) + "2", "--base-url", wrong.base_url]) == 3
    captured = capfd.readouterr()
    text = (
        captured.out
        + captured.err
        + "".join(path.read_bytes().decode("latin-1") for path in data.parent.rglob("*") if path.is_file())
    )
    assert "openai/mock" in text
    assert "canary" not in text
