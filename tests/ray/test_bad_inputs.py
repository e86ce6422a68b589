"""What goes wrong on a cluster is one line each, and nothing is lost: on real nodes in this machine (`make ray`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from executor_runs import SLEEPER, finish_run, replies, start_run, tasks_of, write_questions, write_sleeper
from ray_nodes import Nodes, ray_nodes
from waiting import stored_trials, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with ray_nodes(1) as cluster:
        cluster.add(env_vars={"NODE_LACKS": "1"})
        yield cluster


def fleet(nodes: Nodes, *more: str) -> list[str]:
    return ["--executor", "ray", "--ray-address", nodes.address, *more]


def one_error(err: str) -> str:
    (error,) = [line for line in err.splitlines() if line.startswith("error")]
    assert "Traceback" not in err
    return error


def test_a_replica_that_hangs_is_told_and_its_trials_are_answered_by_others(nodes: Nodes, tmp_path: Path) -> None:
    command = [write_questions(tmp_path, 120), *write_sleeper(tmp_path, 0.02)]
    assert finish_run(start_run([*command, "-o", tmp_path / "alone"]))[0] == 0
    patient = fleet(nodes, "--replicas", "2", "--replica-patience", "1")
    process = start_run([*command, *patient, "-o", tmp_path / "run"])
    wait_until(lambda: stored_trials(tmp_path / "run") > 8 and len(nodes.replicas()) == 2, "both replicas answer")
    hanging = nodes.replicas()[0]
    os.kill(hanging, signal.SIGSTOP)
    code, out, err = finish_run(process)
    assert code == 0, err
    (told,) = [line for line in out.splitlines() if "has answered nothing for" in line]
    assert "the slowest answer took" in told and "given to others" in told
    print(f"\n{told.strip()}")
    assert replies(tmp_path / "run") == replies(tmp_path / "alone")
    assert tasks_of(tmp_path / "run") == tasks_of(tmp_path / "alone")
    wait_until(lambda: not Path(f"/proc/{hanging}").exists(), "the hanging replica ends with its run")


LACKS = """
import os
import pathlib
import time

MET = pathlib.Path(__file__).with_name("met")

def answer(prompt):
    while not MET.exists():
        time.sleep(0.05)
    time.sleep(0.05)
    return "A"

def get_once(config):
    if "NODE_LACKS" in os.environ:
        MET.touch()
        raise RuntimeError("no checkpoint at /models/x")
    return answer
"""
"""A model that one node cannot make; nobody answers before that node has tried."""


def test_a_node_without_the_model_is_said_and_the_others_answer(nodes: Nodes, tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text(LACKS)
    model = ["--plugin", str(tmp_path / "once.py"), "--model", "plugin/once", "--no-cache"]
    flags = fleet(nodes, "--replicas", "6")
    code, out, err = finish_run(start_run([write_questions(tmp_path, 60), *model, *flags, "-o", tmp_path / "run"]))
    assert code == 0, err
    told = [line for line in out.splitlines() if "given up: " in line]
    assert told and all("no checkpoint at /models/x" in line for line in told)
    assert len(replies(tmp_path / "run")) == 60


WATCHED = (
    SLEEPER.format(seconds=0.0)
    + """
import os, sys

def refuse(event, arguments):
    if event == "open" and str(arguments[0]).endswith("noise.png"):
        raise OSError("this node has no such file")

if "RAY_JOB_ID" in os.environ:
    sys.addaudithook(refuse)
"""
)
"""A model on a node where the pictures cannot be opened."""


def test_a_node_without_the_data_answers_all_the_same(nodes: Nodes, tmp_path: Path) -> None:
    PIL.Image.effect_noise((320, 240), 90).convert("RGB").save(tmp_path / "noise.png")
    (tmp_path / "sleeper.py").write_text(WATCHED)
    questions = write_questions(tmp_path, 40, "noise.png")
    model = ["--plugin", str(tmp_path / "sleeper.py"), "--model", "plugin/sleeper", "--no-cache"]
    assert finish_run(start_run([questions, *model, "-o", tmp_path / "alone"]))[0] == 0
    code, _, err = finish_run(start_run([questions, *model, *fleet(nodes, "--replicas", "2"), "-o", tmp_path / "run"]))
    assert code == 0, err
    assert replies(tmp_path / "run") == replies(tmp_path / "alone")


GARBLES = """
from snellen.kits.scale import host, items

def spoil(outcomes, write=host.write_outcomes):
    spoiled = []
    for number, result in outcomes:
        if result.key.sample == "q7":
            result = items.msgspec.structs.replace(result, key=items.msgspec.structs.replace(
                result.key, sample="q8"))
        spoiled.append((number, result))
    return write(spoiled)

def get_once(config):
    host.write_outcomes = spoil
    return lambda prompt: "A"
"""
"""A replica that answers one question under another one's name."""


def test_a_malformed_prediction_fails_its_own_trial(nodes: Nodes, tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text(GARBLES)
    model = ["--plugin", str(tmp_path / "once.py"), "--model", "plugin/once", "--no-cache"]
    flags = fleet(nodes, "--replicas", "1", "--max-retries", "0")
    _, out, err = finish_run(start_run([write_questions(tmp_path, 20), *model, *flags, "-o", tmp_path / "run"]))
    found = replies(tmp_path / "run")
    failed = {key[1]: reply["failure"] for key, reply in found.items() if reply["failure"]}
    assert list(failed) == ["q7"], (out, err)
    assert failed["q7"]["kind"] == "decode" and "malformed prediction" in failed["q7"]["message"]
    assert len(found) == 20


OTHER_VERSION = """
import sys
import ray
ray.__version__ = "2.1.0"
from snellen.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_another_version_of_ray_is_one_line(nodes: Nodes, tmp_path: Path) -> None:
    arguments = ["run", write_questions(tmp_path, 2), "--model", "blind/first", *fleet(nodes), "-o", tmp_path / "run"]
    found = subprocess.run(
        [sys.executable, "-c", OTHER_VERSION, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 3, found.stderr
    error = one_error(found.stderr)
    assert "2.1.0" in error and "the same Ray and Python versions everywhere" in error
    print(f"\n{error}")
    assert not (tmp_path / "run" / "run.db").exists()


def test_a_full_object_store_is_one_line_and_the_run_goes_on_elsewhere(tmp_path: Path) -> None:
    rows = []
    for number in range(12):
        PIL.Image.effect_noise((3000, 1500), 90).convert("RGB").save(tmp_path / f"{number}.png", compress_level=0)
        rows.append(
            f'{{"id": "q{number}", "question": "Which?", "options": ["one", "two"], "answer": "A", '
            f'"image": "{number}.png"}}'
        )
    (tmp_path / "large.jsonl").write_text("\n".join(rows) + "\n")
    command: list[Any] = [tmp_path / "large.jsonl", *write_sleeper(tmp_path, 0.0), "-o", tmp_path / "run"]
    with ray_nodes(
        1, _system_config={"automatic_object_spilling_enabled": False, "local_fs_capacity_threshold": 0.001}
    ) as small:
        code, out, err = finish_run(start_run([*command, *fleet(small, "--max-workers", "12")]))
    if code == 0:
        assert len(replies(tmp_path / "run")) == 12
        pytest.skip(f"everything fitted: {out}")
    assert code == 3, err
    error = one_error(err)
    assert "object store" in error and "--object-store-memory" in error
    print(f"\n{error}")
    code, _, err = finish_run(start_run(command))
    assert code == 0, err
    assert len(replies(tmp_path / "run")) == 12


def test_a_node_out_of_memory_is_one_line_and_the_run_goes_on_elsewhere(tmp_path: Path) -> None:
    command = [write_questions(tmp_path, 60), *write_sleeper(tmp_path, 0.5), "-o", tmp_path / "run"]
    tight = {"memory_usage_threshold": 0.001, "memory_monitor_refresh_ms": 100}
    with ray_nodes(1, _system_config=tight) as full:
        code, out, err = finish_run(start_run([*command, *fleet(full)]))
    assert code == 3, (out, err)
    error = one_error(err)
    assert "ran out of memory" in error and "fewer --replicas" in error
    print(f"\n{error}")
    code, _, err = finish_run(start_run([*command, "--executor", "processes", "--replicas", "2"]))
    assert code == 0, err
    assert len(replies(tmp_path / "run")) == 60
