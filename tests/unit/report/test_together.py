"""Several runs on one page: the matrix of samples and runs agrees with a recount, and one sample stands side by side."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from asgi import Answer, call
from made_runs import make_run, make_task
from snellen.core.types import TrialKey
from snellen.report.pages.gallery import read_trial
from snellen.store.reader import RunReader

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.api.view import make_viewer
from snellen.report.viewer.compare_page import compared_samples
from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.run_library import RunLibrary

SKILLS = {"a": 0.4, "b": 0.6, "c": 0.8, "d": 0.5, "e": 0.7, "f": 0.9}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, skill in SKILLS.items():
        make_run(folder / name, model=f"openai/{name if name < 'e' else 'same'}", skill=skill, count=120)
    make_run(folder / "other", count=4, task=make_task("letters"))
    return folder


@pytest.fixture(scope="module")
def app(folder: Path) -> Any:
    return make_viewer([folder], "key")


def ask(app: Any, path: str) -> Answer:
    return call(app, path, headers={"cookie": f"{cookie_name('key')}=key"})


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    return {run.name: run.key for run in RunLibrary([folder]).runs()}


def chosen(keys: dict[str, str], names: str) -> str:
    return "&".join(f"run={keys[name]}" for name in names)


def test_samples_stand_by_how_far_the_runs_are_apart(folder: Path) -> None:
    runs = [run for run in RunLibrary([folder]).runs() if run.name in "abc"]
    found = compared_samples(runs, "shapes")
    values: dict[str, list[float]] = {}
    for name in "abc":
        with RunReader(folder / name) as reader:
            for sample in reader.samples("shapes"):
                trial = read_trial(reader, TrialKey("shapes", sample.id))
                value = trial.scores[0].value if trial is not None and trial.scores else None
                values.setdefault(sample.id, []).append(value or 0.0)
    assert {one.sample: [run.good for run in one.runs if run is not None] for one in found} == values
    spreads = [max(values[one.sample]) - min(values[one.sample]) for one in found]
    assert spreads == sorted(spreads, reverse=True)


def test_of_an_error_the_lowest_is_best_and_a_lost_reply_the_worst() -> None:
    from types import SimpleNamespace

    import numpy as np

    from snellen.report.viewer.compare_page import _sign, _standings

    columns: Any = SimpleNamespace(
        metric="wer",
        samples=["a", "b", "c"],
        sample=np.array([0, 1, 1, 2]),
        outcome=np.array([1, 0, 1, 4]),
        strict_value=np.array([0.3, 0.0, 0.5, 1.0]),
    )
    found = _standings(columns)
    assert [round(found[name].good, 3) for name in "abc"] == [0.7, 0.75, 0.0]
    assert "30%" in str(_sign(found["a"])), "shown is the error itself, as on the page of the trial"
    assert "25%" in str(_sign(found["b"]))
    assert "failed" in str(_sign(found["c"]))


def test_a_matrix_has_pages_a_summary_and_tells_models_of_one_name_apart(app: Any, keys: dict[str, str]) -> None:
    page = ask(app, f"/matrix?{chosen(keys, 'abcdef')}").text
    assert "page 1 of 2" in page
    assert "openai/same (e)" in page and "openai/same (f)" in page
    counted = re.search(r"120 samples: all right (\d+), all wrong (\d+), they differ on (\d+)", page)
    assert counted is not None
    assert sum(map(int, counted.groups())) == 120
    assert len(re.findall(r'<tr class="row">', page)) == 100


def test_one_sample_stands_side_by_side_and_leads_on(app: Any, keys: dict[str, str]) -> None:
    matrix = ask(app, f"/matrix?{chosen(keys, 'abcdef')}").text
    first = html.unescape(re.findall(r'href="(/sample\?[^"]*)"', matrix)[0])
    page = ask(app, first).text
    assert page.count('<section class="card">') == 6
    assert page.count("Asked the same as the first.") == 5
    assert page.count("<img ") == 1
    assert "sample 1 of 120" in page
    second = html.unescape(re.findall(r'<a href="([^"]*)" rel="next"', page)[0])
    assert "sample 2 of 120" in ask(app, second).text


def test_how_prompts_differ_is_shown(app: Any, keys: dict[str, str], tmp_path: Path) -> None:
    import sqlite3

    for name in ("one", "two"):
        make_run(tmp_path / name, model=f"openai/{name}", count=3)
    with sqlite3.connect(tmp_path / "two" / "run.db") as database:
        (body,) = database.execute("SELECT request FROM predictions WHERE sample = 'shape-00001'").fetchone()
        other = bytes(body).replace(b"Answer with the letter.", b"Answer with the word.")
        database.execute("UPDATE predictions SET request = ? WHERE sample = 'shape-00001'", (other,))
    own = make_viewer([tmp_path], "key")
    runs = "&".join(f"run={run.key}" for run in RunLibrary([tmp_path]).runs())
    page = ask(own, f"/sample?{runs}&task=shapes&sample=shape-00001").text
    assert "Asked otherwise than the first" in page
    assert "Answer with the <del>letter</del><ins>word</ins>." in page


def test_what_cannot_be_compared_is_refused_in_one_line(app: Any, keys: dict[str, str]) -> None:
    for path, words in (
        (f"/matrix?run={keys['a']}", "choose two to 6 runs"),
        (f"/matrix?{chosen(keys, 'abcdef')}&run={keys['other']}", "choose two to 6 runs"),
        (f"/matrix?run={keys['a']}&run={keys['other']}", "no task in common"),
        (f"/sample?{chosen(keys, 'ab')}&task=shapes&sample=none", "none of these runs has a trial"),
    ):
        answer = ask(app, path)
        assert answer.status == 400
        assert words in html.unescape(answer.text)
