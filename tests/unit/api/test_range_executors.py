"""Ranges leased to replicas: the files of one process, whoever is lost; a range that ends two of them is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fleet_doubles import NearLink
from made_runs import make_run, make_task
from snellen.core.builtins import default_registry
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.kits.scale.driver import Replicas
from snellen.kits.scale.executor import TERMS, LeasedScoring, check_nodes_see, describe_run_here
from snellen.kits.scale.host import Worker
from snellen.report.pages.finish import finish_run
from snellen.scoring import ranges as ranges_module
from snellen.scoring.protocols.peer_scores import ScoreTrial
from snellen.scoring.ranges import RangeSpec, ScoredRange, scoring_spec
from snellen.store import reader as reader_module
from snellen.store.reader import Rows, RunReader

REGISTRY = ("snellen.core.builtins:default_registry", None)
FILES = ("results.json", "records.jsonl", "report.html")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    task = make_task(variants=("base", "wording=1"), repeats=2)
    return make_run(tmp_path_factory.mktemp("runs") / "run", count=40, task=task)


@contextmanager
def leased(
    folder: Path, deadly: Sequence[str] = (), replicas: int = 2, said: list[str] | None = None
) -> Iterator[LeasedScoring]:
    """Near replicas, each of which is lost with a lease of a name that is left in `deadly`."""
    left, spec = list(deadly), scoring_spec(folder)

    class Mortal(NearLink):
        def send(self, lease: Any) -> None:
            super().send(lease)
            (named,) = self.leases[-1]
            if named in left:
                left.remove(named)
                self.cut()

    def opened() -> Replicas:
        tell = said.append if said is not None else (lambda _: None)
        return Replicas(Worker(spec), replicas, lambda n: Mortal(Worker(spec), n), tell=tell, **TERMS._asdict())

    with closing(LeasedScoring(opened, REGISTRY)) as executor:
        yield executor


@pytest.mark.parametrize("replicas", [1, 3])
def test_lost_replicas_change_no_file_and_are_told_with_their_range(
    folder: Path, replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish_run(folder, default_registry())
    before = [(folder / name).read_bytes() for name in FILES]
    monkeypatch.setattr(reader_module, "RANGE_TRIALS", 12)
    deadly, said = ["range 2 of 14 of task 'shapes'", "range 14 of 14 of task 'shapes'"], list[str]()
    with leased(folder, deadly, replicas, said) as executor:
        finish_run(folder, default_registry(), executor=executor)
    assert [(folder / name).read_bytes() for name in FILES] == before
    assert sorted(line.partition(" lost at ")[2] for line in said) == sorted(
        f"{name}: killed by SIGKILL; 1 item asked again" for name in deadly
    )


def test_a_range_that_ends_two_processes_is_told_and_nothing_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish_run(folder, default_registry())
    before = [(folder / name).read_bytes() for name in FILES]
    monkeypatch.setattr(reader_module, "RANGE_TRIALS", 40)
    third, said = "range 3 of 4 of task 'shapes'", list[str]()
    told = f"^{third} ended its process twice: killed by SIGKILL; nothing was changed, every reply is stored"
    with leased(folder, [third] * 2, said=said) as executor, pytest.raises(EnvironmentProblem, match=told):
        finish_run(folder, default_registry(), executor=executor)
    assert len(said) == 2
    assert [(folder / name).read_bytes() for name in FILES] == before
    assert len(list(RunReader(folder).scores("shapes"))) > 100
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_processes_that_die_beside_a_range_do_not_blame_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "RANGE_TRIALS", 12)
    deadly = [f"range {number} of 14 of task 'shapes'" for number in (1, 2, 8, 9)]
    with leased(folder, deadly) as executor:
        finish_run(folder, default_registry(), executor=executor)


def test_the_first_error_of_the_plan_ends_the_scoring(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "RANGE_TRIALS", 12)
    score = ranges_module.score_range

    def broken(reader: RunReader, scorer: ScoreTrial, spec: RangeSpec, rows: Rows) -> ScoredRange:
        part = score(reader, scorer, spec, rows)
        if rows[0] > 6:
            raise KeyError(f"row {rows[0]}")
        return part

    monkeypatch.setattr(ranges_module, "score_range", broken)
    with leased(folder, replicas=3) as executor, pytest.raises(UsageError, match="cannot be scored: KeyError: 'row 7'"):
        finish_run(folder, default_registry(), executor=executor)


def test_a_fleet_stays_from_task_to_task_and_starts_with_the_first_range(folder: Path) -> None:
    opened: list[Replicas] = []
    spec = scoring_spec(folder)

    def fleet() -> Replicas:
        opened.append(Replicas(Worker(spec), 1, lambda n: NearLink(Worker(spec), n), **TERMS._asdict()))
        return opened[-1]

    with closing(LeasedScoring(fleet, REGISTRY)) as executor:
        assert not opened
        for _ in range(3):
            finish_run(folder, default_registry(), executor=executor)
    assert len(opened) == 1
    with closing(LeasedScoring(fleet, REGISTRY)):
        pass
    assert len(opened) == 1


class SilentRay:
    """As much of Ray as says what a node sees."""

    class exceptions:  # noqa: N801 - Ray's own name
        RayError = RuntimeError

    def __init__(self, found: Any) -> None:
        self.found = found

    def remote(self, *_: Any, **__: Any) -> Any:
        return self

    options = remote

    def get(self, _: Any, timeout: float | None = None) -> Any:
        if isinstance(self.found, RuntimeError):
            raise self.found
        return self.found


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ("no run at /x: run.db is missing", "run.db is missing"),
        (("other", 1), "another run.db lies there"),
        (RuntimeError("No module named 'snellen'"), "snellen is not installed there"),
    ],
)
def test_a_node_that_does_not_see_the_run_is_named(folder: Path, found: Any, told: str) -> None:
    pytest.importorskip("ray")
    from snellen.kits.scale.ray_cluster import RayNode

    class Cluster:
        ray = SilentRay(found)

        def nodes(self) -> list[RayNode]:
            return [RayNode("ab" * 28, "10.0.0.7", 2.0, 0.0, 1e8)]

    cluster: Any = Cluster()
    with pytest.raises(UsageError, match=f"node 10.0.0.7 does not see .*{told}.*--executor processes"):
        check_nodes_see(cluster, str(folder))
    cluster.ray.found = describe_run_here(str(folder))
    check_nodes_see(cluster, str(folder))
