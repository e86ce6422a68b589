"""`--executor processes`: the same numbers as alone, whatever is killed; faster; and one line for what cannot work."""

from __future__ import annotations

import json
import signal
import sqlite3
from pathlib import Path

import pytest

from command_line import run_command
from emulator import mock_thread
from executor_runs import (
    descendants,
    finish_run,
    kill_replica,
    replies,
    start_run,
    tasks_of,
    write_questions,
    write_sleeper,
)
from waiting import stored_trials, wait_until

REPLICAS = "snellen.kits.scale.processes"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with questions, and the run of one process over them."""
    folder = tmp_path_factory.mktemp("alone")
    questions = write_questions(folder, 200)
    assert run_command(["run", questions, *write_sleeper(folder, 0.0), "-o", folder / "run", "--quiet"]) == 0
    return folder


def test_killed_replicas_and_a_killed_driver_change_no_number(alone: Path, tmp_path: Path) -> None:
    flags = [*write_sleeper(tmp_path, 0.01), "--executor", "processes", "--replicas", "2"]
    command = [write_questions(tmp_path, 200), *flags, "-o", tmp_path / "run"]
    first = start_run([*command, "--quiet"])
    for kill in range(3):
        wait_until(lambda kill=kill: stored_trials(tmp_path / "run") > 20 * kill, "some are stored")
        kill_replica(first.pid)
    wait_until(lambda: stored_trials(tmp_path / "run") > 80, "some are stored")
    orphans = descendants(first.pid, REPLICAS)
    first.kill()
    assert finish_run(first)[0] == -signal.SIGKILL
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in orphans), "replicas end with their driver")
    code, out, err = finish_run(start_run(command))
    assert (code, "stored before" in out) == (0, True), err
    assert replies(tmp_path / "run") == replies(alone / "run")
    assert tasks_of(tmp_path / "run") == tasks_of(alone / "run")


def test_a_lost_replica_is_said_and_kept_with_the_run(tmp_path: Path) -> None:
    flags = [*write_sleeper(tmp_path, 0.02), "--executor", "processes", "--replicas", "2"]
    process = start_run([write_questions(tmp_path, 120), *flags, "-o", tmp_path / "run"])
    wait_until(lambda: stored_trials(tmp_path / "run") > 8, "some are stored")
    kill_replica(process.pid)
    code, out, err = finish_run(process)
    assert code == 0, err
    assert " lost: killed by SIGKILL" in out
    assert " asked again" in out
    (told,) = json.loads((tmp_path / "run" / "results.json").read_text())["run"]["replicas"]
    assert (told["lost"], sum(told["replicas"].values())) == (1, 120)


def test_ctrl_c_drains_and_the_same_command_goes_on_with_another_executor(alone: Path, tmp_path: Path) -> None:
    flags = [write_questions(tmp_path, 200), *write_sleeper(tmp_path, 0.01), "-o", tmp_path / "run"]
    process = start_run([*flags, "--executor", "processes", "--replicas", "2", "--quiet"])
    wait_until(lambda: stored_trials(tmp_path / "run") > 20, "some are stored")
    left = descendants(process.pid, REPLICAS)
    process.send_signal(signal.SIGINT)
    code, _, err = finish_run(process)
    assert code == 130
    assert "run the same command again to continue" in err
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)
    assert run_command(["run", *flags, "--quiet"]) == 0
    assert replies(tmp_path / "run") == replies(alone / "run")


def test_clients_of_a_server_share_one_limit_and_its_rest(tmp_path: Path) -> None:
    questions = write_questions(tmp_path, 60)
    with mock_thread(["--max-concurrency", "4", "--ttft-ms", "5"]) as server:
        command = ["run", questions, "--model", "openai/mock", "--base-url", server.base_url, "--no-cache", "--quiet"]
        fleet = ["--executor", "processes", "--replicas", "2", "--max-workers", "4"]
        assert run_command([*command, *fleet, "-o", tmp_path / "fleet"]) == 0
        assert run_command([*command, "-o", tmp_path / "alone"]) == 0
    assert replies(tmp_path / "fleet") == replies(tmp_path / "alone")
    assert tasks_of(tmp_path / "fleet") == tasks_of(tmp_path / "alone")
    assert attempts(tmp_path / "fleet") == 0, "four at once in all, not four a replica: the server refuses the fifth"


def attempts(folder: Path) -> int:
    database = sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True)
    try:
        return int(database.execute("SELECT COUNT(*) FROM attempts").fetchone()[0])
    finally:
        database.close()


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--replicas", "2"], 2, "--replicas is for --executor processes or ray"),
        (["--executor", "processes", "--ray-address", "auto"], 2, "--ray-address is for --executor ray"),
        (["--executor", "processes", "--gpus-per-replica", "0.5"], 2, "is a whole number"),
        (["--executor", "ray", "--ray-address", "ray://x:10001"], 2, "start the run on a node of the cluster"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    flags: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = write_questions(tmp_path, 2)
    assert run_command(["run", questions, "--model", "blind/first", *flags, "-o", tmp_path / "run"]) == code
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert len(errors) == 1
    assert said in errors[0]
    assert not (tmp_path / "run" / "run.db").exists()


def test_a_replica_that_cannot_make_its_model_leaves_one_line_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = tmp_path / "made"
    (tmp_path / "once.py").write_text(
        f"import pathlib\n\ndef get_once(config):\n    place = pathlib.Path({str(marker)!r})\n"
        "    if place.exists():\n        raise RuntimeError('no room on this device')\n"
        "    place.touch()\n    return lambda prompt: 'A'\n"
    )
    command = ["run", write_questions(tmp_path, 2), "--plugin", tmp_path / "once.py", "--model", "plugin/once"]
    assert run_command([*command, "--executor", "processes", "-o", tmp_path / "run"]) in (2, 3)
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert "no replica can answer" in error
    assert "no room on this device" in error
    assert not (tmp_path / "run" / "run.db").exists()


def test_an_exam_by_replicas_is_the_exam_of_one_process(tmp_path: Path) -> None:
    (tmp_path / "eye.py").write_text(
        "def get_eye(config):\n    return lambda prompt: 'ABCDEFGH'[sum(map(ord, prompt)) % 8]\n"
    )
    command = ["exam", "--plugin", tmp_path / "eye.py", "--model", "plugin/eye", "--tests", "acuity", "--budget", "60"]
    command += ["--no-cache", "--quiet"]
    assert run_command([*command, "-o", tmp_path / "alone"]) == 0
    assert run_command([*command, "-o", tmp_path / "fleet", "--executor", "processes", "--replicas", "2"]) == 0
    found = [json.loads((tmp_path / name / "exam.json").read_text())["tests"] for name in ("alone", "fleet")]
    assert found[0] == found[1]


@pytest.mark.parametrize("given", [["--executor", "ray"], ["--replicas", "2"]])
def test_perf_says_in_one_line_that_it_measures_from_one_machine(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["perf", "synthetic", "--model", "openai/x", "--base-url", "http://127.0.0.1:1", *given]) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert f"{given[0]} is not for `snellen perf`: it measures from one machine" in error
