"""Ranges of a run: however it is cut, the parts add up to the run; who scores them does not matter, nor who dies."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_runs import make_run, make_task
from snellen.core.builtins import default_registry
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.core.types import Score, TrialKey
from snellen.fleet.links import ReplicaLost
from snellen.model.providers.prices import Bill, Prices
from snellen.report.finish import finish_run
from snellen.scoring.ranges import RangeErrand, RangeScorer, ScoredRange, pack_scores, read_rows_of_scores
from snellen.scoring.spread.range_pool import RangePool
from snellen.scoring.spread.range_process import RangeAnswerer, RangeProcess, read_scored_range
from snellen.store import reader as reader_module
from snellen.store.reader import Rows, RunReader, row_of_score, score_of_row

REGISTRY = ("snellen.core.builtins:default_registry", None)
FILES = ("results.json", "records.jsonl", "report.html")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    task = make_task(variants=("base", "wording=1"), repeats=2)
    return make_run(tmp_path_factory.mktemp("runs") / "run", count=40, task=task, score=False)


def errand_of(folder: Path) -> RangeErrand:
    with RunReader(folder) as reader:
        task = reader.header().tasks[0]
    return RangeErrand(str(folder), task, {}, tuple(task.scorers))


class Workers:
    """Workers in this process that can be lost."""

    def __init__(self, deaths: Sequence[int] = ()) -> None:
        self.deaths, self.calls, self.answerer = set(deaths), 0, RangeAnswerer()

    def run(self, errand: bytes, rows: Rows) -> bytes:
        self.calls += 1
        if self.calls in self.deaths:
            raise ReplicaLost("killed by SIGKILL")
        return self.answerer.answer(errand, rows)

    def close(self) -> None: ...


def test_ranges_hold_every_trial_once_in_the_order_of_the_plan(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunReader(folder) as reader:
        whole = [trial.prediction.key for trial in reader.trials("shapes")]
        assert len(whole) == 160
        monkeypatch.setattr(reader_module, "RANGE_TRIALS", 12)
        ranges = reader.sample_ranges("shapes", 4)
        assert [rows.size for rows in ranges] == [3] * 13 + [1]
        assert [trial.prediction.key for rows in ranges for trial in reader.trials_of("shapes", rows)] == whole
        assert [trial.prediction.key for trial in reader.trials("shapes")] == whole
        assert reader.sample_ranges("other") == []


@pytest.mark.parametrize("size", [1, 12, 4_000])
def test_files_are_the_same_however_a_run_is_cut(folder: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    finish_run(folder, default_registry())
    before = [(folder / name).read_bytes() for name in FILES]
    monkeypatch.setattr(reader_module, "RANGE_TRIALS", size)
    workers = [Workers(deaths=[2, 5]), Workers()]
    said: list[str] = []
    finish_run(folder, default_registry(), executor=RangePool(workers, REGISTRY, said.append))
    assert [(folder / name).read_bytes() for name in FILES] == before
    assert len(said) == len(workers[0].deaths & set(range(workers[0].calls + 1)))
    assert all("is done again" in line for line in said)


def test_a_range_that_kills_twice_is_told_and_nothing_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish_run(folder, default_registry())
    before = [(folder / name).read_bytes() for name in FILES]
    monkeypatch.setattr(reader_module, "RANGE_TRIALS", 40)
    pool = RangePool([Workers(deaths=[3, 4])], REGISTRY)
    told = r"range 3 of 4 of task 'shapes' ended its process twice: killed by SIGKILL; nothing was changed"
    with pytest.raises(EnvironmentProblem, match=told):
        finish_run(folder, default_registry(), executor=pool)
    assert [(folder / name).read_bytes() for name in FILES] == before
    assert len(list(RunReader(folder).scores("shapes"))) > 100
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_lack_of_memory_and_a_scorers_fault_are_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> ScoredRange:
        raise MemoryError

    monkeypatch.setattr(RangeScorer, "score", full)
    pool = RangePool([Workers()], REGISTRY)
    with pytest.raises(EnvironmentProblem, match="out of memory while scoring: fewer --replicas"):
        finish_run(folder, default_registry(), executor=pool)

    def breaks(*_: Any) -> ScoredRange:
        raise FileNotFoundError(2, "No such file", "words.txt")

    monkeypatch.setattr(RangeScorer, "score", breaks)
    with pytest.raises(UsageError, match=r"a range cannot be scored: FileNotFoundError: .*words\.txt"):
        finish_run(folder, default_registry(), executor=pool)


def test_trials_that_no_range_brought_are_missed(folder: Path) -> None:
    class Lazy:
        def score_all(self, errand: RangeErrand, ranges: Sequence[Rows]) -> Iterator[ScoredRange]:
            return RangeScorer(default_registry()).score_all(errand, ranges[1:])

    with pytest.raises(EnvironmentProblem, match="160 trials of task 'shapes' without their samples"):
        finish_run(folder, default_registry(), executor=Lazy())


def test_a_process_answers_is_lost_and_starts_again(folder: Path) -> None:
    line, errand = RangeProcess(), errand_of(folder)
    with RunReader(folder) as reader:
        rows = reader.sample_ranges("shapes")[0]
    found = read_scored_range(line.run(errand.dumped(), rows))
    here = RangeScorer(default_registry()).score(errand, rows)
    assert (found.trials, found.scores) == (160, here.scores)
    np.testing.assert_equal(found.gathered.columns, here.gathered.columns)
    assert line._process is not None
    line._process.kill()
    with pytest.raises(ReplicaLost, match=r"killed by SIGKILL .*fewer --replicas"):
        line.run(errand.dumped(), rows)
    assert read_scored_range(line.run(errand.dumped(), rows)).trials == 160
    line.close()


def test_scores_travel_as_they_are_stored() -> None:
    key = TrialKey("t", "é", "base", 2)
    scores = [Score(key, "m", None, reason="refused"), Score(key, "n", 0.5, "a", "letter", None, {"span": [0, 1]})]
    assert [score_of_row(row) for row in read_rows_of_scores(pack_scores("t", scores))] == scores
    numbers = [Score(key, "m", np.float64(0.25)), Score(key, "n", True)]  # type: ignore[arg-type]
    assert [row[5] for row in read_rows_of_scores(pack_scores("t", numbers))] == [0.25, True]
    assert row_of_score("t", scores[0])[:5] == ("t", "é", "base", 2, "m")
    with pytest.raises(TypeError, match="neither a number nor a text"):
        pack_scores("t", [Score(key, "m", 1.0, answer=object())])  # type: ignore[arg-type]


def test_an_errand_comes_back_as_it_went(folder: Path) -> None:
    errand = errand_of(folder)._replace(prices=Prices(1.0, 2.0, "USD"), for_pages=True)
    assert RangeErrand.loaded(errand.dumped()) == errand
    assert errand.make_registry().get("scorer", "choice")
    assert pickle.loads(errand.dumped())[0] == str(folder)


def test_bills_add_up(folder: Path) -> None:
    prices, whole, parts = Prices(1.0, 2.0, "USD"), Bill(Prices(1.0, 2.0, "USD")), Bill(Prices(1.0, 2.0, "USD"))
    with RunReader(folder) as reader:
        for rows in reader.sample_ranges("shapes"):
            part = Bill(prices)
            for trial in reader.trials_of("shapes", rows):
                part.add(trial.prediction)
                whole.add(trial.prediction)
            parts.include(part)
    assert vars(parts) == vars(whole)
    assert whole.replies > 0


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
    from snellen.fleet.ray_cluster import RayNode
    from snellen.scoring.spread.range_ray import RayRanges, check_nodes_see, describe_run_here

    class Cluster:
        ray = SilentRay(found)

        def nodes(self) -> list[RayNode]:
            return [RayNode("ab" * 28, "10.0.0.7", 2.0, 0.0, 1e8)]

    cluster: Any = Cluster()
    with pytest.raises(UsageError, match=f"node 10.0.0.7 does not see .*{told}.*--executor processes"):
        check_nodes_see(cluster, str(folder))
    cluster.ray.found = describe_run_here(str(folder))
    check_nodes_see(cluster, str(folder))
    cluster.ray.found = RuntimeError("The node died")
    with pytest.raises(ReplicaLost, match="The node died"):
        RayRanges(cluster).run(b"", np.empty(0, np.int64))
