"""One headline for page, terminal and leaderboard, and the means of dimensions over it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import snellen
from asgi import call
from made_runs import make_run, page_of
from snellen.api.outputs import leaderboard
from snellen.api.view import make_viewer
from snellen.core.builtins import default_registry
from snellen.report.files import write_results
from snellen.report.pages.finish import finish_run
from snellen.report.terminal import dimension_means
from snellen.scoring.aggregates.headline import headline, headline_metric
from snellen.scoring.stored import read_columns
from snellen.store.reader import RunReader


def task(**values: float | None) -> dict[str, Any]:
    return {"metrics": {name: {"value": value} for name, value in values.items()}}


@pytest.mark.parametrize(
    ("metrics", "name"),
    [
        (task(format_rate=0.9, accuracy=0.5), "accuracy"),
        (task(bleu_1=0.2, bleu_1_strict=0.2, cider=1.1, cider_strict=1.1), "cider"),
        (task(refusal_rate=0.1, ocr=0.4), "ocr"),
        (task(zeta=0.1, anls=0.4, anls_strict=0.4), "anls"),
        (task(Rcot=0.1, Rcot_strict=0.1, accuracy=0.4, accuracy_strict=0.4), "accuracy"),
        (task(read=0.8, read_strict=0.8, acuity_px=4.0), "acuity_px"),
        (task(read=0.8, read_strict=0.8, acuity_px=None), "read"),
        (task(format_rate=0.9, latency_s=1.0), None),
        (task(), None),
    ],
)
def test_the_metric_a_task_stands_for(metrics: dict[str, Any], name: str | None) -> None:
    shuffled = dict(reversed(metrics["metrics"].items()))
    assert headline(metrics)[0] == name
    assert headline_metric(metrics["metrics"]) == headline_metric(shuffled) == name, "files sort their keys"


@pytest.mark.parametrize("chart", [False, True])
def test_page_terminal_and_leaderboard_agree(tmp_path: Path, chart: bool) -> None:
    folder = make_run(tmp_path / "run", count=12, score=False)
    results = finish_run(folder, default_registry())
    metrics = results["tasks"]["shapes"]["metrics"]
    if chart:  # two metrics compete: one is first by name, one is what an eye chart is for
        metrics |= {"acuity_px": metrics["accuracy"] | {"value": 3.5, "ci95": [3.0, 4.0]}}
        results["tasks"]["shapes"]["headline"] = "acuity_px"
        write_results(folder, results)
    wanted = "acuity_px" if chart else "accuracy"
    with_file, _ = leaderboard([tmp_path])
    cell = with_file.lines[0].tasks["shapes"]
    assert (cell.metric, cell.value) == (wanted, metrics[wanted]["value"])
    assert f'<p class="kicker">{wanted}</p>' in page_of(folder)
    means = dimension_means(results["tasks"], {"shapes": "Coarse"})
    assert means == ({} if chart else {"Coarse": (metrics[wanted]["value"], 1)}), "pixels have no place in a mean"
    app = make_viewer([tmp_path], "token")
    cookie = call(app, "/?token=token").headers["set-cookie"].partition(";")[0]
    assert f'<td class="nowrap broad">{wanted}</td>' in call(app, "/", headers={"cookie": cookie}).text


def test_the_verdict_on_a_trial_is_that_of_the_headline(tmp_path: Path) -> None:
    """Terminal, list of trials, data frame and export show one metric, whatever the order of scorers."""
    (tmp_path / "open.jsonl").write_text('{"id": "1", "question": "Which?", "answer": "red", "form": "open"}\n')
    (tmp_path / "said.jsonl").write_text('{"id": "1", "text": "Of these I would take the red one."}\n')
    settings: dict[str, Any] = {"overrides": (("form", "open"), ("scorers", ["exact", "contains"]))}
    run = snellen.run(
        str(tmp_path / "open.jsonl"), f"replay/{tmp_path / 'said.jsonl'}", output_dir=tmp_path / "run", **settings
    )
    result = run.results["tasks"]["open"]
    assert (result["headline"], result["metrics"]["contains"]["value"]) == ("contains", 1.0)
    with RunReader(run.folder) as reader:
        columns = read_columns(reader, reader.header().tasks[0])
    assert (columns.metric, columns.metrics) == ("contains", ("contains", "exact_match"))
    (record,) = map(json.loads, (run.folder / "records.jsonl").read_text().splitlines())
    assert (record["metric"], record["value"]) == ("contains", 1.0)
    assert not len(run.wrong())


def test_every_task_weighs_the_same() -> None:
    tasks = {
        "a": task(accuracy=0.2),
        "b": task(accuracy=0.6),
        "c": task(accuracy=1.0),
        "d": task(accuracy=None),
        "e": task(accuracy=0.0),
    }
    means = dimension_means(tasks, {"a": "Coarse", "b": "Coarse", "c": "Fine", "d": "Fine", "e": ""})
    assert means == {"Coarse": (pytest.approx(0.4), 2), "Fine": (1.0, 1)}
