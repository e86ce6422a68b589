"""`--executor ray` on two nodes in one machine: the numbers of one process, and one line for what cannot work."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from command_line import COMMAND, run_command
from executor_runs import finish_run, replies, start_run, tasks_of, write_questions, write_sleeper
from extras import needs
from ray_nodes import Nodes, ray_nodes
from waiting import stored_trials, wait_until

needs("ray")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with ray_nodes(2, num_gpus=4) as cluster:
        yield cluster


def fleet(nodes: Nodes, *more: str) -> list[str]:
    return ["--executor", "ray", "--ray-address", nodes.address, *more]


@pytest.mark.nightly
def test_killed_replicas_a_killed_node_and_a_killed_driver_change_no_number(nodes: Nodes, tmp_path: Path) -> None:
    # Noise does not compress: the picture is large enough for the object store; the cut-out differs from its file.
    PIL.Image.effect_noise((320, 240), 90).convert("RGB").save(tmp_path / "noise.jpg", quality=98)
    assert (tmp_path / "noise.jpg").stat().st_size > 64 * 1024
    variants = ["--variant", "base", "--variant", "perturb=jpeg:3"]
    command = [write_questions(tmp_path, 100, "noise.jpg"), *write_sleeper(tmp_path, 0.01), *variants]
    assert finish_run(start_run([*command, "-o", tmp_path / "alone"]))[0] == 0
    command += [*fleet(nodes, "--replicas", "3"), "-o", tmp_path / "run"]
    draw, process = random.Random(1), start_run(command)
    for stored in (20, 50):
        wait_until(lambda stored=stored: stored_trials(tmp_path / "run") > stored, "some are stored")
        nodes.kill_replica(draw)
    nodes.kill_node()
    wait_until(lambda: stored_trials(tmp_path / "run") > 100, "some are stored")
    process.kill()
    assert finish_run(process)[0] == -signal.SIGKILL
    nodes.add()
    code, out, err = finish_run(start_run(command))
    assert (code, "stored before" in out) == (0, True), err
    assert len(replies(tmp_path / "run")) == 200
    assert replies(tmp_path / "run") == replies(tmp_path / "alone")
    assert tasks_of(tmp_path / "run") == tasks_of(tmp_path / "alone")
    wait_until(lambda: not nodes.replicas(), "replicas end with their drivers")


def test_losses_are_said_and_results_stand_alone_on_stdout(nodes: Nodes, tmp_path: Path) -> None:
    command = [write_questions(tmp_path, 60), *write_sleeper(tmp_path, 0.02), *fleet(nodes, "--replicas", "2")]
    process = start_run([*command, "--json", "-o", tmp_path / "run"])
    wait_until(lambda: stored_trials(tmp_path / "run") > 8, "some are stored")
    nodes.kill_replica(random.Random(2))
    code, out, err = finish_run(process)
    assert code == 0, err
    (told,) = json.loads(out)["run"]["replicas"]
    assert (told["lost"], sum(told["replicas"].values())) == (1, 60)
    assert "lost: its process died" in err


COUNTS = """
import os

def get_counter(config):
    return lambda prompt: "ABCD"[len(os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")) - 1]
"""
"""A plug-in that answers with how many GPUs it has: B for two."""


def test_several_gpus_are_reserved_together(nodes: Nodes, tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(COUNTS)
    flags = fleet(nodes, "--replicas", "2", "--gpus-per-replica", "2", "--plugin", str(tmp_path / "counter.py"))
    command = [write_questions(tmp_path, 20), "--model", "plugin/counter", *flags, "-o", tmp_path / "run", "--no-cache"]
    code, _, err = finish_run(start_run(command))
    assert code == 0, err
    assert {reply["text"] for reply in replies(tmp_path / "run").values()} == {"B"}


ONLY_HERE = """
import os

def get_once(config):
    if "RAY_JOB_ID" in os.environ:
        raise RuntimeError("no room on this node")
    return lambda prompt: "A"
"""
"""A plug-in that the driver can make and no node can."""


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (
            ["--model", "blind/first", "--gpus-per-replica", "8"],
            2,
            "no node has so many GPUs, the largest of ",
        ),
        (["--plugin", "only_here.py", "--model", "plugin/once"], 2, "no room on this node"),
    ],
)
def test_what_cannot_work_is_one_line(nodes: Nodes, flags: list[str], code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "only_here.py").write_text(ONLY_HERE)
    given = [str(tmp_path / flag) if flag.endswith(".py") else flag for flag in flags]
    command = [write_questions(tmp_path, 2), *given, *fleet(nodes), "-o", tmp_path / "run"]
    found, _, err = finish_run(start_run(command))
    errors = [line for line in err.splitlines() if line.startswith("error")]
    assert len(errors) == 1, err
    assert said in errors[0]
    assert found == code
    assert not (tmp_path / "run" / "run.db").exists()


def test_a_cluster_is_looked_at_before_a_run(nodes: Nodes, tmp_path: Path) -> None:
    def look(*flags: str) -> tuple[int, list[dict[str, Any]]]:
        arguments = [*COMMAND, "cluster", "check", "--ray-address", nodes.address, "--json", *flags]
        found = subprocess.run(arguments, capture_output=True, text=True, check=False)
        return found.returncode, json.loads(found.stdout)

    # A node that an earlier test killed is listed until Ray has noticed.
    wait_until(lambda: len(look("--model", "blind/first")[1]) == 2, "the nodes that are there")
    code, reports = look("--model", "blind/first")
    assert (code, [report["ok"] for report in reports]) == (0, [True, True]), reports
    assert "4 GPUs" in "".join(report["has"] for report in reports)
    (tmp_path / "only_here.py").write_text(ONLY_HERE)
    code, reports = look("--model", "plugin/once", "--plugin", str(tmp_path / "only_here.py"))
    assert code == 3
    assert all("no room on this node" in report["problems"][0] for report in reports)


def test_no_cluster_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", write_questions(tmp_path, 2), "--model", "blind/first", "-o", tmp_path / "run"]
    assert run_command([*command, "--executor", "ray", "--ray-address", "127.0.0.1:1"]) == 3
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert "no Ray cluster at 127.0.0.1:1" in error
    assert "ray start --head" in error
