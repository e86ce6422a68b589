"""One pass scores a run and writes its files: they must be what reading the stored run again would give."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_runs import make_run, make_task, page_of, scored
from snellen.core.builtins import default_registry
from snellen.core.errors import UsageError
from snellen.core.registry import Registry
from snellen.core.types import Score
from snellen.report.files import write_records
from snellen.report.pages.figures import quantile
from snellen.report.pages.finish import finish_run
from snellen.scoring.stored import read_columns, read_costs, stored_tables
from snellen.scoring.tables import gathered as gathered_module
from snellen.scoring.tables.gathered import GatheredTask
from snellen.store.reader import RunReader

TASKS = {
    "plain": make_task(),
    "spread": make_task(variants=("base", "wording=1", "perturb=jpeg:3"), repeats=3),
}


@pytest.fixture(scope="module", params=TASKS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / request.param, count=90, task=TASKS[request.param], score=False)


def scorer_registry(scorer: Any) -> Registry:
    """A registry in which another function scores choices."""
    registry, known = Registry(), default_registry()
    for name in ("aggregate", "scorer"):
        for each in known.names(name):
            registry.add(name, each, scorer if each == "choice" else known.get(name, each))
    return registry


def test_files_of_one_pass_are_those_of_the_stored_run(folder: Path) -> None:
    results = finish_run(folder, default_registry())
    assert json.loads((folder / "results.json").read_text()) == json.loads(json.dumps(results))
    at_once, page = (folder / "records.jsonl").read_bytes(), (folder / "report.html").read_text()
    assert page == page_of(folder, results=results)
    with RunReader(folder) as run:
        write_records(run)
    assert (folder / "records.jsonl").read_bytes() == at_once
    outcomes = {json.loads(line)["outcome"] for line in at_once.splitlines()}
    assert outcomes == {"scored", "unscored", "failed"}, "the run must hold every kind of trial, or this shows little"


def test_what_is_gathered_is_what_would_be_read(folder: Path) -> None:
    reader = RunReader(folder)
    task = reader.header().tasks[0]
    seen: list[GatheredTask] = []
    scored(folder, watch=lambda gathered, _: seen.append(gathered), for_pages=True)
    gathered = seen[0]
    assert all(one is gathered for one in seen)
    columns, stored = gathered.columns(), read_columns(reader, task)
    assert vars(stored).keys() == vars(columns).keys()
    for name, value in vars(stored).items():
        np.testing.assert_equal(getattr(columns, name), value, name)
    costs, read = gathered.costs(), read_costs(reader, stored)
    np.testing.assert_array_equal(costs.latency_s, read.latency_s)
    np.testing.assert_array_equal(costs.tokens, read.tokens)
    np.testing.assert_array_equal(costs.input_tokens, read.input_tokens)
    tables = stored_tables(reader, task.name)
    assert list(tables) == list(gathered.tables())
    for metric, table in tables.items():
        for name in vars(table).keys() - {"row"}:  # what aggregates read needs no way back to the store
            np.testing.assert_equal(vars(gathered.tables()[metric])[name], vars(table)[name], name)


def test_how_sure_a_model_was_is_drawn_while_it_is_scored_as_when_it_is_read(tmp_path: Path) -> None:
    def sure(sample: Any, request: Any, prediction: Any, options: Any) -> list[Score]:
        right = len(sample.id) % 2 == 0
        return [Score(prediction.key, "accuracy", float(right), detail={"confidence": 0.9 if right else 0.4})]

    results = finish_run(make_run(tmp_path, count=20, score=False), scorer_registry(sure))
    page = (tmp_path / "report.html").read_text()
    assert "Does it know when it is right?" in page
    assert page == page_of(tmp_path, results=results)


def test_whole_numbers_and_lazy_scorers_are_written_as_they_are_stored(tmp_path: Path) -> None:
    def whole(sample: Any, request: Any, prediction: Any, options: Any) -> Iterator[Score]:
        yield Score(prediction.key, "m", 1)
        yield Score(prediction.key, "n", True)

    make_run(tmp_path, count=5, score=False)
    finish_run(tmp_path, scorer_registry(whole))
    line = (tmp_path / "records.jsonl").read_text().splitlines()[0]
    assert '"value":1.0' in line
    assert '"scores":{"m":1.0,"n":1.0}' in line
    rows = (
        sqlite3.connect(tmp_path / "run.db")
        .execute("SELECT metric, typeof(value), COUNT(*) FROM scores GROUP BY metric")
        .fetchall()
    )
    assert rows == [("m", "real", 5), ("n", "real", 5)]


def test_scoring_that_breaks_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def breaks(sample: Any, request: Any, prediction: Any, options: Any) -> list[Score]:
        if sample.id.endswith("3"):
            raise FileNotFoundError(2, "No such file", "/nowhere/words.txt")
        return [Score(prediction.key, "m", 1.0)]

    def twice(sample: Any, request: Any, prediction: Any, options: Any) -> list[Score]:
        return [Score(prediction.key, "m", 1.0)] * 2

    finish_run(make_run(tmp_path, count=150, score=False), default_registry())
    before = {
        path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".json", ".jsonl", ".html")
    }
    with pytest.raises(
        FileNotFoundError, match="words"
    ):  # the scorer's own trouble is not said to be that of records.jsonl
        finish_run(tmp_path, scorer_registry(breaks))
    with pytest.raises(UsageError, match="same metric"):
        finish_run(tmp_path, scorer_registry(twice))
    assert {
        path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".json", ".jsonl", ".html")
    } == before
    assert {score.metric for score in RunReader(tmp_path).scores("shapes")} == {"accuracy"}
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_without_a_report_nothing_is_kept_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a page was prepared that nobody asked for")

    monkeypatch.setattr(gathered_module, "SampleFacts", refuse)
    monkeypatch.setattr(gathered_module, "spent_on", refuse)
    finish_run(make_run(tmp_path, count=5, score=False), default_registry(), report=False)
    assert not (tmp_path / "report.html").exists()
    assert len((tmp_path / "records.jsonl").read_text().splitlines()) == 5


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.sampled_from([0.0, 0.05, 0.5, 0.95, 0.99, 1.0]))
def test_quantiles_are_those_of_numpy(values: list[float], share: float) -> None:
    assert quantile(np.sort(np.array(values)), share) == float(np.quantile(np.array(values), share))
