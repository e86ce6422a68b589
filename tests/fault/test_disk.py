"""The disk fills up, the power fails, the log is cut anywhere: what was acknowledged is there, and nothing else."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import COMMAND, run_command
from snellen.core.tasks import RunHeader, Task
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey, Turn
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter
from waiting import CEILING_S, stored_trials
from workshop_fixtures import write_sources

HEADER = RunHeader("id", {}, {}, "2026-01-01", tasks=[Task("t", {})], planned={"t": 400})


def test_a_full_disk_stops_cleanly_and_the_run_continues_afterwards(
    mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    server = mock_server("--answer", "A " + "because " * 2_000)
    rows = [{"id": f"q{n}", "question": f"Question {n}?", "options": ["one", "two"], "answer": "A"} for n in range(300)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    flags = [
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "-o",
        str(tmp_path / "run"),
        "--quiet",
        "--json",
        "--no-cache",
    ]
    arguments = [*COMMAND, "run", str(tmp_path / "data.jsonl"), *flags]

    def small_files() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * 2**20, 2 * 2**20))

    full = subprocess.run(
        arguments, capture_output=True, text=True, preexec_fn=small_files, timeout=CEILING_S, check=False
    )
    assert full.returncode == 3, full.stderr
    assert "nothing stored is lost" in full.stderr
    assert "Traceback" not in full.stderr
    reader = RunReader(tmp_path / "run")
    stored = len(list(reader.trials("data")))
    assert 0 < stored < 300
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=CEILING_S, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"]["complete"]
    assert len(list(RunReader(tmp_path / "run").trials("data"))) == 300


@pytest.fixture
def full_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be kept in the response cache."""

    def refuse(database: sqlite3.Connection, *rest: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("snellen.store.cache.insert_rows", refuse)


LOST = (
    "warning: {count} of the replies could not be kept in the cache (database or disk is full); "
    "this run has them, another one would ask for them again\n"
)


@pytest.mark.usefixtures("full_cache")
def test_a_cache_that_is_full_is_told_also_by_a_quiet_run_and_costs_no_reply(
    mock_server: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": f"q{n}", "question": f"Question {n}?", "options": ["one", "two"], "answer": "A"} for n in range(5)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    told = ["--model", "openai/mock", "--base-url", mock_server().base_url, "-o", tmp_path / "run", "--quiet"]
    assert run_command(["run", tmp_path / "data.jsonl", *told]) == 0
    assert capsys.readouterr().err == LOST.format(count=5)
    assert stored_trials(tmp_path / "run") == 5


@pytest.mark.usefixtures("full_cache")
def test_drafts_and_exams_tell_of_a_full_cache(
    mock_server: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drafting = ["--model", "openai/mock", "--base-url", mock_server("--drafter", "good").base_url]
    assert run_command(["curate", "draft", write_sources(tmp_path, 2), tmp_path / "shop", *drafting, "--json"]) == 0
    assert capsys.readouterr().err == LOST.format(count=4)
    sitting = ["--model", "openai/mock", "--base-url", mock_server().base_url, "-o", tmp_path / "exam", "--quiet"]
    run_command(["exam", "--quick", "--tests", "vernier", "--budget", "8", *sitting])
    assert LOST.partition("of the")[2] in capsys.readouterr().err


def fill(folder: Path, count: int) -> None:
    """Write rows one commit at a time and leave the write-ahead log as a power cut would."""

    async def put(writer: RunWriter) -> None:
        for number in range(count):
            key = TrialKey("t", f"s{number:04}")
            sample = Sample(key.sample, "t", Form.OPEN, "?" * 50)
            await writer.put(
                number, sample, Request(key, (Turn("user", "?"),)), Prediction(key, text=f"reply {number} " * 20), "d"
            )

    writer = RunWriter(folder / "live", HEADER)
    asyncio.run(put(writer))
    for name in ("run.db", "run.db-wal"):
        shutil.copy(folder / "live" / name, folder / name)
    writer.close()


@pytest.mark.parametrize("cuts", [150, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.crash])])
def test_any_cut_of_the_log_opens_to_an_exact_prefix(tmp_path: Path, cuts: int) -> None:
    fill(tmp_path, 400)
    whole = (tmp_path / "run.db-wal").read_bytes()
    draw, sizes = random.Random(0), set()
    for number in range(cuts):
        folder = tmp_path / f"cut{number}"
        folder.mkdir()
        shutil.copy(tmp_path / "run.db", folder / "run.db")
        cut = bytearray(whole[: draw.randrange(len(whole))])
        if number % 2 and len(cut) > 512:
            start = len(cut) - len(cut) % 512 - 512
            cut[start:] = draw.randbytes(len(cut) - start)
        (folder / "run.db-wal").write_bytes(cut)
        try:
            writer = RunWriter(folder, HEADER)
        except Exception as error:
            raise AssertionError(f"cut {number} does not open") from error
        assert writer._database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        writer.close()
        trials = list(RunReader(folder).trials("t"))
        assert [trial.sample.id for trial in trials] == [f"s{place:04}" for place in range(len(trials))]
        assert all(trial.prediction.text == f"reply {place} " * 20 for place, trial in enumerate(trials))
        sizes.add(len(trials))
        shutil.rmtree(folder)
    assert len(sizes) > cuts // 10
