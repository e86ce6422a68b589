"""200 dialogues of 10 rounds with the model's own answers as history, killed three times, end as if never interrupted."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import reform_fixtures
from command_line import COMMAND
from emulator import mock_thread
from snellen.data.catalog import Catalog
from snellen.kits.mock.server import Running
from snellen.store.reader import RunReader
from waiting import CEILING_S, lines_of, stored_trials, wait_until

ROUNDS = 10


def write_dialogues(root: Path, dialogues: int) -> None:
    table = Catalog().task("reform/visdial").dataset["prepared"]
    answers = [f"{colour} {thing}" for colour in reform_fixtures.COLOURS for thing in reform_fixtures.THINGS]
    rows = []
    for number in range(dialogues):
        turns = []
        for turn in range(ROUNDS):
            start = 7 * number + 5 * turn
            options = [(start + step) % len(answers) for step in (3, 0, 31, 64)]
            turns.append({"question": turn, "answer": start % len(answers), "answer_options": options})
        rows.append(
            {
                "image_id": number,
                "image_base64": reform_fixtures.encode(f"dialogue {number % 20}"),
                "caption": "",
                "dialog": turns,
            }
        )
    data = {"questions": [f"what about {turn}" for turn in range(ROUNDS)], "answers": answers, "dialogs": rows}
    reform_fixtures.put(root / table["file"], {**table["header"], "data": data})


def command(root: Path, base_url: str, folder: Path) -> list[str]:
    flags = [
        "--model",
        "openai/mock",
        "--base-url",
        base_url,
        "--max-workers",
        "32",
        "-o",
        str(folder),
        "--json",
        "--quiet",
        "--no-cache",
    ]
    return [
        *COMMAND,
        "run",
        "reform/visdial",
        "--data-root",
        str(root),
        "--online-multi-round",
        "--in-context-sample",
        *flags,
    ]


def finish(arguments: list[str]) -> dict[str, object]:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=CEILING_S, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def kill_at(root: Path, port: str, moments: list[int]) -> list[Path]:
    """Kill the run each time so many trials are stored; return the logs of the servers it asked.

    Each server falls silent a little after that moment, so however slow the machine is the run cannot end before the kill.
    """
    folder, logs = root / "killed", []
    for moment in moments:
        logs.append(root / f"seen-{moment}.jsonl")
        silent = f"hang@{moment - stored_trials(folder) + 16}-{10**6}"
        with serve(logs[-1], "--port", port, "--fault", silent) as server:
            arguments = command(root, server.base_url, folder)
            process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_until(lambda moment=moment: stored_trials(folder) >= moment, f"{moment} stored trials")
            finally:
                process.kill()
            assert process.wait() == -signal.SIGKILL
    return logs


def serve(log: Path, *more: str) -> AbstractContextManager[Running]:
    return mock_thread(["--ttft-ms", "5", "--answer", "(B)", "--log", str(log), *more])


def digests(folder: Path) -> list[tuple[object, ...]]:
    """The hash of what was asked, by trial."""
    with sqlite3.connect(folder / "run.db") as database:
        return sorted(database.execute("SELECT sample, variant, repeat, digest FROM predictions"))


def check_history(folder: Path) -> None:
    """Every round was asked with the replies to the rounds before it, not with the right answers."""
    reader = RunReader(folder)
    for sample, request, _, _ in reader.trials("reform/visdial"):
        said = [turn.text for turn in request.messages if turn.role == "assistant"][1:]
        rounds = sample.meta.get("history_options", [])
        assert said == [f"(B) {options[1]}" for options in rounds]
    reader.close()


@pytest.mark.crash
@pytest.mark.slow
def test_online_dialogues_survive_kills(tmp_path: Path) -> None:
    check(tmp_path, 200, [400, 900, 1500])


def test_one_kill_mid_dialogue(tmp_path: Path) -> None:
    check(tmp_path, 16, [40])


def check(tmp_path: Path, dialogues: int, moments: list[int]) -> None:
    write_dialogues(tmp_path, dialogues)
    log = tmp_path / "seen.jsonl"
    with serve(log) as server:
        whole = finish(command(tmp_path, server.base_url, tmp_path / "whole"))
        port = str(server.port)  # the address is part of what a digest says was asked
    logs = kill_at(tmp_path, port, moments)
    with serve(log, "--port", port) as server:
        killed = finish(command(tmp_path, server.base_url, tmp_path / "killed"))
    assert killed["status"]["complete"]  # type: ignore[index]
    assert json.dumps(killed["tasks"], sort_keys=True) == json.dumps(whole["tasks"], sort_keys=True)
    assert stored_trials(tmp_path / "killed") == stored_trials(tmp_path / "whole") == dialogues * ROUNDS
    assert digests(tmp_path / "killed") == digests(tmp_path / "whole")
    check_history(tmp_path / "killed")
    lines = [(tmp_path / name / "records.jsonl").read_text().splitlines() for name in ("whole", "killed")]
    assert [strip(line) for line in lines[0]] == [strip(line) for line in lines[1]]
    again = sum(map(lines_of, [log, *logs])) - 2 * dialogues * ROUNDS
    assert again <= len(moments) * 32 + 10, "only what was in flight was asked again"


def strip(line: str) -> dict[str, object]:
    row = json.loads(line)
    row.pop("latency_s")
    return dict(row)
