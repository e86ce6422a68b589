"""Runs by batches: the same records as live, split, left and taken up again, expired ones asked again, at half the price."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import PIL.Image
import pytest

import snellen
from command_line import COMMAND, run_command
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.core.secret import Secret
from snellen.kits.batches.batch_ledger import read_ledger
from snellen.kits.mock.server import Running
from snellen.store.reader import RunReader
from waiting import wait_until

DIALECTS = ("openai", "openai-responses", "azure", "mistral", "anthropic", "gemini")
ROWS = 30
Server = Callable[..., Running]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNELLEN_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Make thirty questions with a picture each."""
    lines = []
    for number in range(ROWS):
        PIL.Image.new("RGB", (40, 30), (number, 0, 0)).save(tmp_path / f"{number}.png")
        row = {"id": str(number), "question": f"What is {number}?", "options": ["one", "two"], "answer": "A"}
        lines.append(row | {"image": f"{number}.png"})
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def run(rows: Path, dialect: str, server: Running, folder: Path, **more: Any) -> snellen.RunResult:
    defaults = {"batch": True, "batch_poll_s": 0.02, "cache": False, "price": "1,2", "output_dir": folder}
    settings = {"tasks": (str(rows),), "model": f"{dialect}/mock", "base_url": server.base_url, **defaults, **more}
    return snellen.run(snellen.RunSettings(**settings))


def records(folder: Path) -> dict[str, Any]:
    """Return what is stored of each trial, without how long it took and by which way it came."""
    with RunReader(folder) as reader:
        kept = {}
        for trial in reader.trials("rows"):
            whole = msgspec.to_builtins(trial.prediction)
            for moment in ("timing", "at"):
                whole.pop(moment, None)
            whole["detail"] = {name: value for name, value in whole.get("detail", {}).items() if name != "batch"}
            kept[trial.prediction.key.sample] = whole
    return kept


def batched(folder: Path) -> int:
    with RunReader(folder) as reader:
        return sum(bool(trial.prediction.detail.get("batch")) for trial in reader.trials("rows"))


def stats(server: Running) -> dict[str, int]:
    asked = urllib.request.Request(f"http://127.0.0.1:{server.port}/mock/stats", headers={"Authorization": "Bearer k"})
    with urllib.request.urlopen(asked) as response:
        return json.loads(response.read())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_batch_brings_the_records_of_a_live_run(
    dialect: str, rows: Path, mock_server: Server, tmp_path: Path
) -> None:
    server = mock_server("--dialect", dialect, "--batch", "seconds=0.05", "--api-key", "k", "--refuse", "seed")
    asked = {"api_key": Secret("k"), "sampling_seed": 3}
    run(rows, dialect, server, tmp_path / "live", batch=False, **asked)
    result = run(rows, dialect, server, tmp_path / "batch", **asked)
    assert records(tmp_path / "batch") == records(tmp_path / "live")
    assert len(records(tmp_path / "batch")) == ROWS
    assert batched(tmp_path / "batch") == ROWS - 1, "one was asked live, to learn what the server refuses"
    assert (result.state.done, result.state.failed, result.interrupted) == (ROWS, 0, False)
    assert stats(server)["batch_lines"] == ROWS - 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_expired_or_failed_in_a_batch_is_asked_again(
    dialect: str, rows: Path, mock_server: Server, tmp_path: Path
) -> None:
    server = mock_server("--dialect", dialect, "--batch", "expire=0.3,error=0.2")
    result = run(rows, dialect, server, tmp_path / "run", batch_lines=12)
    assert (result.state.done, result.failed) == (ROWS, 0)
    ledger = read_ledger(tmp_path / "run")
    assert ledger is not None and not ledger.open and not ledger.unread
    sizes = [file.lines for file in ledger.files]
    assert sizes[:3] == [12, 12, 5], "split by the limit"
    assert 0 < sum(sizes[3:]) < ROWS - 1, "only what was not answered is asked again"
    assert sum(file.answered or 0 for file in ledger.files[3:]) == sum(sizes[3:])


def test_the_rest_of_a_batch_may_be_asked_live(rows: Path, mock_server: Server, tmp_path: Path) -> None:
    server = mock_server("--batch", "expire=0.4")
    result = run(rows, "openai", server, tmp_path / "run", batch_rest="live")
    assert result.state.done == ROWS
    assert 1 < ROWS - batched(tmp_path / "run") < ROWS
    ledger = read_ledger(tmp_path / "run")
    assert ledger is not None and len(ledger.files) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_batches_may_be_left_and_taken_up_again(dialect: str, rows: Path, mock_server: Server, tmp_path: Path) -> None:
    server = mock_server("--dialect", dialect, "--batch", "seconds=0.2")
    left = run(rows, dialect, server, tmp_path / "run", batch_leave=True)
    assert (left.interrupted, left.state.done, left.state.in_batches) == (True, 1, ROWS - 1)
    with pytest.raises(UsageError, match="requests in batches: add --batch"):
        run(rows, dialect, server, tmp_path / "run", batch=False)
    result = run(rows, dialect, server, tmp_path / "run")
    assert (result.interrupted, result.state.resumed + result.state.done) == (False, ROWS)
    assert stats(server)["batch_lines"] == ROWS - 1, "nothing was sent twice"
    again = run(rows, dialect, server, tmp_path / "run")
    assert (again.state.done, again.state.resumed) == (0, ROWS), "collected twice is collected once"
    assert stats(server)["batch_lines"] == ROWS - 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_run_that_is_killed_between_sending_and_collecting_goes_on(
    dialect: str, rows: Path, mock_server: Server, tmp_path: Path
) -> None:
    server = mock_server("--dialect", dialect, "--batch", "seconds=1.5")
    folder = tmp_path / "run"
    command = ["run", rows, "--model", f"{dialect}/mock", "--base-url", server.base_url, "-o", folder]
    command = [*map(str, command), "--batch", "--batch-poll", "0.05", "--no-cache", "--quiet"]

    def sent() -> bool:
        ledger = read_ledger(folder)
        return ledger is not None and any(file.state == "sent" for file in ledger.files)

    with subprocess.Popen([*COMMAND, *command], env={**os.environ}) as process:
        wait_until(sent, "the batch is sent")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert run_command(command) == 0
    assert len(records(folder)) == ROWS
    assert stats(server)["batch_lines"] == ROWS - 1, "nothing was sent twice"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_batch_whose_making_was_not_heard_of_is_found_again(
    dialect: str, rows: Path, mock_server: Server, tmp_path: Path
) -> None:
    server = mock_server("--dialect", dialect, "--batch", "lose=1")
    result = run(rows, dialect, server, tmp_path / "run")
    assert result.state.done == ROWS
    assert stats(server)["batch_lines"] == ROWS - 1, "the first batch was taken up, no second one made"


def test_a_batch_of_another_folder_is_never_taken_up(rows: Path, mock_server: Server, tmp_path: Path) -> None:
    server = mock_server("--dialect", "openai", "--batch", "seconds=0.05")
    folders = [tmp_path / "one", tmp_path / "another"]
    assert [run(rows, "openai", server, folder).state.done for folder in folders] == [ROWS, ROWS]
    asked = urllib.request.Request(f"{server.base_url}/batches", headers={"Authorization": "Bearer k"})
    with urllib.request.urlopen(asked) as response:
        listed = json.loads(response.read())["data"]
    names = [json.dumps(batch["metadata"], sort_keys=True) for batch in listed]
    assert len(set(names)) == len(names) == 2, "they are found again by name, and hold the same questions"


def test_a_batch_that_is_refused_as_a_whole_is_one_line(rows: Path, mock_server: Server, tmp_path: Path) -> None:
    server = mock_server("--batch", "reject=token_limit_exceeded")
    with pytest.raises(EnvironmentProblem, match=r"token_limit_exceeded.*line 1.*the same command sends it again"):
        run(rows, "openai", server, tmp_path / "run")
    ledger = read_ledger(tmp_path / "run")
    assert ledger is not None and [file.state for file in ledger.files] == ["void"]
    whole = mock_server()
    assert run(rows, "openai", whole, tmp_path / "run", same_model=True).state.done == ROWS - 1


def test_a_batch_costs_half(rows: Path, mock_server: Server, tmp_path: Path) -> None:
    server = mock_server()
    live = run(rows, "openai", server, tmp_path / "live", batch=False).results["cost"]
    batch = run(rows, "openai", server, tmp_path / "batch").results["cost"]
    assert live["value"] / 2 < batch["value"] < live["value"] * 0.55, "one was asked live"
    billed = stats(server)
    asked = {kind: billed[f"{kind}prompt_tokens"] + 2 * billed[f"{kind}completion_tokens"] for kind in ("", "batch_")}
    assert live["paid"] + batch["paid"] == pytest.approx((asked[""] + asked["batch_"] / 2) / 1e6)


def test_a_limit_holds_back_what_would_not_fit(rows: Path, mock_server: Server, tmp_path: Path) -> None:
    server = mock_server()
    whole = run(rows, "openai", server, tmp_path / "whole").results["cost"]["paid"]
    result = run(rows, "openai", server, tmp_path / "run", max_cost=whole / 2, yes=True)
    assert result.interrupted and result.state.over_limit
    first = result.results["cost"]["paid"]
    rest = run(rows, "openai", server, tmp_path / "run")
    assert first <= whole / 2 < rest.results["cost"]["paid"] == pytest.approx(whole, rel=0.05)


def test_batches_are_looked_at_and_cancelled(
    rows: Path, mock_server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock_server("--batch", "seconds=600")
    folder = tmp_path / "run"
    run(rows, "openai", server, folder, batch_leave=True)
    assert run_command(["batch", "status", folder]) == 0
    assert "in_progress" in capsys.readouterr().out
    assert run_command(["batch", "cancel", folder, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["cancelled"], told["files"][0]["words"]) == (1, "cancelled")
    result = run(rows, "openai", server, folder, batch_rest="live")
    assert result.state.resumed + result.state.done == ROWS
    assert run_command(["batch", "status", tmp_path]) == 2
    assert "has no batches" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"infer_method": "likelihood"}, "no batch gives"),
        ({"until_ci": 2.0}, "give one"),
        ({"stream": True}, "nothing is streamed"),
    ],
)
def test_what_batches_cannot_do_is_refused(more: dict[str, Any], why: str, rows: Path, tmp_path: Path) -> None:
    settings = {"tasks": (str(rows),), "model": "openai/mock", "base_url": "http://127.0.0.1:9/v1", "batch": True}
    with pytest.raises(UsageError, match=why):
        snellen.run(snellen.RunSettings(**settings, output_dir=tmp_path / "run", **more))


@pytest.mark.parametrize("flags", [["--batch-leave"], ["--batch-rest", "live"], ["--batch-lines", "9"]])
def test_flags_of_batches_are_not_ignored_where_batch_was_forgotten(
    flags: list[str], rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would ask live, at twice the price, and say nothing."""
    served = ["--model", "openai/mock", "--base-url", "http://127.0.0.1:9/v1"]
    assert run_command(["run", rows, *served, "-o", tmp_path / "run", *flags]) == 2
    assert f"{flags[0]} says nothing without --batch" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["openrouter/x", "blind/first"])
def test_a_provider_without_batches_is_named(model: str, rows: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--batch: .* has no batches; openai, azure"):
        snellen.run(snellen.RunSettings(tasks=(str(rows),), model=model, batch=True, output_dir=tmp_path / "run"))


def test_what_a_batch_was_paid_for_comes_from_that_batch_whatever_the_cache_has(
    rows: Path, mock_server: Server, tmp_path: Path
) -> None:
    server = mock_server("--dialect", "openai", "--batch", "seconds=0.05")
    left = run(rows, "openai", server, tmp_path / "first", cache=True, batch_leave=True)
    assert left.state.in_batches == ROWS - 1
    other = run(rows, "openai", server, tmp_path / "second", cache=True)
    collected = run(rows, "openai", server, tmp_path / "first", cache=True)
    assert batched(tmp_path / "first") == ROWS - 1
    assert collected.results["cost"]["paid"] == pytest.approx(other.results["cost"]["paid"], rel=0.1)
