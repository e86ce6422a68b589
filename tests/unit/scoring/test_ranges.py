"""Ranges of a run: however it is cut, the parts add up to the run; who scores them does not matter."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_runs import make_run, make_task
from snellen.core.builtins import default_registry
from snellen.core.errors import DataError, EnvironmentProblem, UsageError
from snellen.core.types import Score, TrialKey
from snellen.data.files.work import WorkSpec, do_here
from snellen.model.served.prices import Bill, Prices
from snellen.report.pages.finish import finish_run
from snellen.scoring import ranges as ranges_module
from snellen.scoring.ranges import (
    Name,
    RangeSpec,
    ScoredRange,
    ScoringWork,
    pack_item,
    pack_scores,
    read_rows_of_scores,
    score_elsewhere,
    score_here,
    scoring_spec,
)
from snellen.store import reader as reader_module
from snellen.store.reader import RunReader, row_of_score, score_of_row

REGISTRY = ("snellen.core.builtins:default_registry", None)
FILES = ("results.json", "records.jsonl", "report.html")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    task = make_task(variants=("base", "wording=1"), repeats=2)
    return make_run(tmp_path_factory.mktemp("runs") / "run", count=40, task=task, score=False)


def spec_of(folder: Path) -> RangeSpec:
    with RunReader(folder) as reader:
        task = reader.header().tasks[0]
    return RangeSpec(str(folder), task, {}, tuple(task.scorers))


class Near:
    """Does the work of a scoring in this process, and notes what they are called."""

    registry = REGISTRY

    def __init__(self, folder: Path, skipped: int = 0) -> None:
        self.folder, self.skipped, self.names = folder, skipped, list[str]()

    def work_through(self, spec: WorkSpec, items: Iterable[bytes], name: Name) -> Iterator[bytes]:
        packed = [pack_item(spec, item) for item in items][self.skipped :]
        self.names += [name(number) for number in range(len(packed))]
        return do_here(scoring_spec(self.folder), packed)


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
    finish_run(folder, default_registry(), executor=(near := Near(folder)))
    assert [(folder / name).read_bytes() for name in FILES] == before
    count = {1: 40, 12: 14, 4_000: 1}[size]
    assert near.names == [f"range {number} of {count} of task 'shapes'" for number in range(1, count + 1)]


def test_a_lack_of_memory_and_a_scorers_fault_are_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> ScoredRange:
        raise MemoryError

    monkeypatch.setattr(ranges_module, "score_range", full)
    with pytest.raises(EnvironmentProblem, match="out of memory while scoring: fewer --replicas"):
        finish_run(folder, default_registry(), executor=Near(folder))

    def breaks(*_: Any) -> ScoredRange:
        raise FileNotFoundError(2, "No such file", "words.txt")

    monkeypatch.setattr(ranges_module, "score_range", breaks)
    with pytest.raises(UsageError, match=r"a range cannot be scored: FileNotFoundError: .*words\.txt"):
        finish_run(folder, default_registry(), executor=Near(folder))


def test_a_scorer_that_names_another_trial_is_refused(folder: Path) -> None:
    """Before, such scores became trials that nobody had asked, and n rose above what was planned."""
    registry = default_registry()
    registry.add("scorer", "astray", lambda *_: [Score(TrialKey("shapes", "nobody"), "astray", 1.0)])
    with pytest.raises(DataError, match=r"'shapes': a scorer was shown sample .* and gave 'astray' to 'nobody' \(base"):
        finish_run(folder, registry, more=("astray",))


def test_trials_that_no_range_brought_are_missed(folder: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="160 trials of task 'shapes' without their samples"):
        finish_run(folder, default_registry(), executor=Near(folder, skipped=1))


def test_a_part_comes_back_as_it_was_made(folder: Path) -> None:
    spec = spec_of(folder)
    with RunReader(folder) as reader:
        ranges = reader.sample_ranges("shapes")
        (found,) = score_elsewhere(Near(folder), spec, ranges)
        (here,) = score_here(reader, default_registry(), spec, ranges)
    assert (found.trials, found.scores, found.records) == (160, here.scores, here.records)
    np.testing.assert_equal(found.gathered.columns, here.gathered.columns)


def test_who_sees_another_run_has_other_facts(folder: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "run", model="openai/other", count=2, score=False)
    facts = [ScoringWork(str(each).encode()).facts for each in (folder, folder, other)]
    assert facts[0] == facts[1] != facts[2]
    with pytest.raises(EnvironmentProblem, match=r"run\.db is missing"):
        ScoringWork(str(tmp_path / "nothing").encode())


def test_scores_travel_as_they_are_stored() -> None:
    key = TrialKey("t", "é", "base", 2)
    scores = [Score(key, "m", None, reason="refused"), Score(key, "n", 0.5, "a", "letter", None, {"span": [0, 1]})]
    assert [score_of_row(row) for row in read_rows_of_scores(pack_scores("t", scores))] == scores
    numbers = [Score(key, "m", np.float64(0.25)), Score(key, "n", True)]  # type: ignore[arg-type]
    assert [row[5] for row in read_rows_of_scores(pack_scores("t", numbers))] == [0.25, True]
    assert row_of_score("t", scores[0])[:5] == ("t", "é", "base", 2, "m")
    with pytest.raises(TypeError, match="neither a number nor a text"):
        pack_scores("t", [Score(key, "m", 1.0, answer=object())])  # type: ignore[arg-type]


def test_a_spec_comes_back_as_it_went(folder: Path) -> None:
    spec = spec_of(folder)._replace(prices=Prices(1.0, 2.0, "USD"), for_pages=True)
    assert RangeSpec.loaded(spec.dumped()) == spec
    assert spec.make_registry().get("scorer", "choice")
    assert pickle.loads(spec.dumped())[0] == str(folder)


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
