"""Figures of answers agree with a recount: groups with intervals, what is taken for what, and positions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from made_runs import make_run, make_task, scored
from snellen.report.pages.figures import LATENCY, answer_figures, figures_of, read_option_positions
from snellen.report.pages.overview import overview_of
from snellen.scoring.stored import read_columns
from snellen.scoring.tables.gathered import GatheredTask
from snellen.store import reader as store_reader
from snellen.store.reader import RunReader


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run"), count=80, skill=0.6, task=make_task(repeats=2))


def test_figures_of_answers_agree_with_a_recount(run: Path) -> None:
    results = msgspec.json.decode((run / "results.json").read_bytes())["tasks"]["shapes"]
    with RunReader(run) as reader:
        columns = read_columns(reader, reader.header().tasks[0])
        found = {one.name: one for one in answer_figures(reader, columns, columns.by_sample)}
        trials = list(reader.trials("shapes"))
        scores = {score.key: score for score in reader.scores("shapes")}
    assert set(found) == {"by-group", "confusion", "positions"}
    key = found["by-group"].title.rpartition(" ")[2]
    for row in found["by-group"].rows:
        estimate = results["groups"][key][row["group"]]["accuracy"]
        assert (row["value"], row["n"]) == (estimate["value"], estimate["n"])
        assert [row["low"], row["high"]] == estimate["ci95"]
    counts: Counter[tuple[str, str]] = Counter()
    chosen: Counter[str] = Counter()
    for trial in trials:
        score = scores.get(trial.prediction.key)
        read = "(failed)" if trial.prediction.failure else (score.answer if score else None) or "(unread)"
        counts[trial.sample.answers[0], read] += 1
        if not read.startswith("("):
            chosen[trial.request.marks[trial.request.shown.index(read)]] += 1
    cells = {(row["expected"], row["read"]): row["trials"] for row in found["confusion"].rows if row["trials"]}
    assert cells == dict(counts)
    assert sum(cells.values()) == 160, "no trial is left out"
    said = {row["position"]: row["share"] for row in found["positions"].rows if row["series"].startswith("this")}
    assert said == {mark: pytest.approx(count / sum(chosen.values())) for mark, count in chosen.items()}


def test_latency_never_stands_beside_the_headline(tmp_path: Path) -> None:
    make_run(tmp_path, count=6)
    with RunReader(tmp_path) as reader:
        columns = read_columns(reader, reader.header().tasks[0])
        assert [figure.name for figure in figures_of(reader, columns, columns.by_sample)] == [LATENCY]
        one = overview_of(reader, columns.task, {"tasks": {}})
    assert one.main_figure is None
    assert [figure.name for figure in one.other_figures] == [LATENCY]


def test_where_options_stood_is_gathered_while_scoring_as_it_is_read_later(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In many parts, failed and unread replies among them: what the pass over the trials gathers is what run.db says."""
    monkeypatch.setattr(store_reader, "RANGE_TRIALS", 10)
    tasks: dict[str, GatheredTask] = {}
    scored(run, watch=lambda task, _: tasks.update({task.task.name: task}), for_pages=True)
    gathered = tasks["shapes"]
    with RunReader(run) as reader:
        columns = read_columns(reader, reader.header().tasks[0])
        read = read_option_positions(reader, columns)
        assert gathered.positions() == read
        assert 0 < sum(read.values()) < len(columns), "some replies failed or were not read"
        figures = [
            [
                (one.title, one.caption, one.drawing, one.rows, one.series, one.spec)
                for one in answer_figures(reader, columns, columns.by_sample, positions)
            ]
            for positions in (None, gathered.positions())
        ]
    assert figures[0] == figures[1]
