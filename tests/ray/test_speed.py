"""What replicas on Ray cost and bring: two are nearly twice one, and a trial costs the driver and its replica little CPU."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ray_nodes import Nodes, ray_nodes
from snellen.api.chosen_model import create_model
from snellen.api.executors import Workers
from snellen.api.plan import registry_for
from snellen.api.settings import RunSettings
from snellen.core.clock import SystemClock
from snellen.core.jobs import Item
from snellen.core.tasks import Prompt, RunHeader, Task
from snellen.core.types import Form, Sample
from snellen.data.files.work import WorkSpec
from snellen.engine.limits import Policy
from snellen.engine.loop import Engine
from snellen.infer.generate import GENERATE
from snellen.kits.scale.driver import Fleet, Replicas
from snellen.kits.scale.executor import open_replicas, open_workers, policy_for
from snellen.kits.scale.work_fleet import map_by_replicas
from snellen.prompt.build import Prompter
from snellen.store.writer import RunWriter
from waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
SLEEPER = """
import time

def get_sleeper(config):
    return lambda prompt: time.sleep({seconds}) or "A"
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:  # workers of Ray import the doubles as those of processes do
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]))
        with ray_nodes(1) as cluster:
            yield cluster


def measured(nodes: Nodes, folder: Path, trials: int, replicas: int, seconds: float) -> tuple[float, float, float]:
    """Run with all replicas up before the first question; return seconds, and CPU seconds of driver and replicas."""
    folder.mkdir()
    (folder / "sleeper.py").write_text(SLEEPER.format(seconds=seconds))
    settings = RunSettings(
        tasks=(),
        model="plugin/sleeper",
        plugins=(folder / "sleeper.py",),
        executor="ray",
        ray_address=nodes.address,
        replicas=replicas,
        model_arguments={"batch_size": 32},
    )
    return asyncio.run(_measured(settings, folder, trials))


async def _measured(settings: RunSettings, folder: Path, trials: int) -> tuple[float, float, float]:
    task = Task("t", {"loader": "made"}, Form.OPEN)
    items = (Item(n, Sample(str(n), "t", Form.OPEN, f"Which thing is number {n}?")) for n in range(trials))
    fleet: Any = await open_replicas(create_model(settings, registry_for(settings)), settings)
    assert isinstance(fleet, Fleet)
    writer = RunWriter(folder, RunHeader(id="x", config={}, versions={}, created="", command="", model="m", tasks=[]))
    try:
        await fleet.check()
        while not all(replica.link for replica in fleet.replicas):
            await asyncio.sleep(0.05)
        pids = [int(replica.place.rpartition(":")[2]) for replica in fleet.replicas]
        engine = Engine(fleet, writer, policy_for(fleet, Policy(), settings), SystemClock())
        begun, cpu, theirs = time.perf_counter(), time.process_time(), sum(map(cpu_of, pids))
        await engine.run(GENERATE.plan(task, items, Prompter(task, Prompt(), seed=0)))
        taken = time.perf_counter() - begun, time.process_time() - cpu, sum(map(cpu_of, pids)) - theirs
        assert engine.state.done == trials and not engine.state.failed
        return taken
    finally:
        writer.close()
        await fleet.close()


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_two_replicas_are_nearly_twice_one(nodes: Nodes, tmp_path: Path) -> None:
    one = measured(nodes, tmp_path / "one", 400, 1, 0.02)[0]
    two = measured(nodes, tmp_path / "two", 400, 2, 0.02)[0]
    print(f"\n400 trials that sleep 20 ms: one replica {one:.1f} s, two {two:.1f} s, {one / two:.2f} x")
    assert one / two >= 1.7


def test_a_trial_costs_little_cpu(nodes: Nodes, tmp_path: Path) -> None:
    trials = 6_400
    _, driver, replicas = measured(nodes, tmp_path / "run", trials, 2, 0.0)
    driver_ms, replica_ms = driver / trials * 1000, replicas / trials * 1000
    print(f"\nCPU a trial at leases of 32: driver {driver_ms:.2f} ms, replica {replica_ms:.2f} ms")
    assert driver_ms + replica_ms <= 2.0


@pytest.mark.parametrize("executor", ["processes", "ray"])
def test_two_workers_do_work_nearly_twice_as_fast(nodes: Nodes, executor: str) -> None:
    taken = {
        replicas: seconds_of_a_spec(Workers(executor, replicas, address_for(nodes, executor))) for replicas in (1, 2)
    }
    ratio = taken[1] / taken[2]
    print(f"\n100 items that sleep 50 ms, {executor}: one {taken[1]:.1f} s, two {taken[2]:.1f} s, {ratio:.2f} x")
    assert ratio >= 1.7


def address_for(nodes: Nodes, executor: str) -> str | None:
    return nodes.address if executor == "ray" else None


def seconds_of_a_spec(workers: Workers) -> float:
    """Do work that sleeps; count from the moment at which all workers are up."""
    spec, fleets, begun = WorkSpec("work_doubles:Sleeper", b"0.05"), [], []

    def opened() -> Replicas:
        fleets.append(open_workers(workers, spec))
        return fleets[-1]

    def items() -> Iterator[bytes]:
        wait_until(lambda: all(replica.link for replica in fleets[0].replicas), "all workers are up")
        begun.append(time.perf_counter())
        yield from (str(number).encode() for number in range(100))

    assert list(map_by_replicas(opened, items())) == [2 * str(number).encode() for number in range(100)]
    return time.perf_counter() - begun[0]
