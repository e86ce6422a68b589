"""Three nodes of Ray in one machine, and everything that can be killed is killed: the numbers are those of one process.

`make ray`: 2,000 trials on a tiny checkpoint and on a served mock, 20 replicas, 2 nodes and the driver killed.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from executor_runs import finish_run, replies, start_run, tasks_of, write_questions, write_sleeper
from ray_nodes import Nodes, ray_nodes
from snellen.kits.mock.process import mock_process
from tiny_checkpoints import checkpoint
from waiting import stored_trials, wait_until

pytestmark = pytest.mark.slow
TRIALS, REPLICA_KILLS = 2_000, 20
NODE_KILLS, DRIVER_KILL = (6, 14), 10
"""Before which kill of a replica a node is killed, and the driver."""
QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def kill_and_resume(nodes: Nodes, command: list[Any], folder: Path, trials: int = TRIALS) -> None:
    """Run with kills all along; the driver's death is followed by the same command again."""
    draw = random.Random(0)
    process = start_run(command, **QUIET)
    for kill in range(REPLICA_KILLS):
        wait_until(
            lambda kill=kill: stored_trials(folder) > kill * trials // (REPLICA_KILLS + 5), f"before kill {kill}", 900
        )
        assert process.poll() is None, finish_run(process)
        if kill in NODE_KILLS:
            nodes.kill_node()
            nodes.add()
        if kill == DRIVER_KILL:
            process.kill()
            assert finish_run(process)[0] == -signal.SIGKILL
            process = start_run(command, **QUIET)
        nodes.kill_replica(draw)
    code, out, err = finish_run(process)
    assert code == 0, err
    assert "stored before" in out
    print("\n".join(line for line in out.splitlines() if "replica" in line))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ray_nodes(3) as cluster:
        yield cluster


def same_run(one: Path, other: Path) -> None:
    assert len(replies(one)) == TRIALS
    assert replies(one) == replies(other)
    assert tasks_of(one) == tasks_of(other)


def test_a_checkpoint(nodes: Nodes, tmp_path: Path) -> None:
    PIL.Image.effect_noise((32, 32), 90).convert("RGB").save(tmp_path / "noise.png")
    questions = write_questions(tmp_path, TRIALS, "noise.png")
    model = ["--model", f"hf/{checkpoint('idefics3')}", "--max-tokens", "4", "--temperature", "0", "--no-cache"]
    command = [questions, *model, "--batch-size", "8"]
    code, _, err = finish_run(start_run([*command, "-o", tmp_path / "alone"], **QUIET))
    assert code == 0, err
    fleet = ["--executor", "ray", "--ray-address", nodes.address, "--replicas", "3"]
    kill_and_resume(nodes, [*command, *fleet, "-o", tmp_path / "ray"], tmp_path / "ray")
    same_run(tmp_path / "ray", tmp_path / "alone")


def test_a_served_model(nodes: Nodes, tmp_path: Path) -> None:
    questions = write_questions(tmp_path, TRIALS)
    with mock_process(["--ttft-ms", "100"]) as server:
        command = [questions, "--model", "openai/mock", "--base-url", server.base_url, "--no-cache"]
        code, _, err = finish_run(start_run([*command, "-o", tmp_path / "alone"], **QUIET))
        assert code == 0, err
        fleet = ["--executor", "ray", "--ray-address", nodes.address, "--replicas", "3", "--max-workers", "8"]
        kill_and_resume(nodes, [*command, *fleet, "-o", tmp_path / "ray"], tmp_path / "ray")
    same_run(tmp_path / "ray", tmp_path / "alone")


def test_a_lost_head_is_one_line_and_the_run_goes_on_elsewhere(tmp_path: Path) -> None:
    command = [write_questions(tmp_path, 100), *write_sleeper(tmp_path, 0.4), "-o", tmp_path / "run"]
    with ray_nodes(2) as lost:
        process = start_run([*command, "--executor", "ray", "--ray-address", lost.address, "--replicas", "2"])
        wait_until(lambda: stored_trials(tmp_path / "run") > 4, "some are stored")
        lost.kill_head()
        code, _, err = finish_run(process)
    assert code == 3, err
    assert err.splitlines()[-1].startswith("error: the head of the Ray cluster at ")
    kept = stored_trials(tmp_path / "run")
    assert kept > 4
    code, out, err = finish_run(start_run([*command, "--executor", "processes", "--replicas", "2"]))
    assert code == 0, err
    assert f"{kept} stored before" in out
