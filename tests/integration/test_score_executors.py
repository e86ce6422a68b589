"""`snellen score RUN --executor processes|ray`: the files of one process, whoever is killed; one line for what cannot work."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import snellen
from command_line import run_command
from made_runs import COLOURS, SHAPES, make_header, make_run, make_task, run_apart
from ray_nodes import Nodes, ray_nodes
from snellen.core.errors import EnvironmentProblem
from snellen.core.tasks import Task
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey, Turn
from snellen.scoring.aggregates import caption_scores
from snellen.store import reader
from snellen.store.reader import RANGE_TRIALS
from snellen.store.writer import RunWriter

KILLER = """
import os
import pathlib
import signal

from snellen.core.types import Score

DEATHS = pathlib.Path(__file__).with_name("deaths")


def deadly(sample, request, prediction, options):
    if sample.id == "shape-00007" and len(DEATHS.read_text()) < {deaths}:
        DEATHS.write_text(DEATHS.read_text() + "x")
        os.kill(os.getpid(), signal.SIGKILL)
    print("a scorer may print")
    return [Score(prediction.key, "length", float(len(prediction.text or "")))]


def register(registry):
    registry.add("scorer", "deadly", deadly)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two ranges, scored by one process."""
    variants = ("base", *(f"wording={number}" for number in range(1, 20)))
    task = make_task(variants=variants, repeats=2)
    folder = make_run(tmp_path_factory.mktemp("runs") / "run", count=RANGE_TRIALS // 40 + 5, task=task, score=False)
    assert run_command(["score", folder]) == 0
    return folder


def copy_of(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder / "run"))


def files(folder: Path, reading: str = "") -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (f"results{reading}.json", f"records{reading}.jsonl")}


def scores(folder: Path) -> list[Any]:
    with sqlite3.connect(folder / "run.db") as database:
        return database.execute("SELECT * FROM scores ORDER BY rowid").fetchall()


def killer(folder: Path, deaths: int) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "deaths").write_text("")
    (folder / "killer.py").write_text(KILLER.format(deaths=deaths))
    return folder / "killer.py"


@pytest.mark.parametrize("replicas", [1, 3])
def test_processes_write_what_one_process_writes(run: Path, tmp_path: Path, replicas: int) -> None:
    copy = copy_of(run, tmp_path)
    for name in files(copy):
        (copy / name).unlink()
    assert run_command(["score", copy, "--executor", "processes", "--replicas", replicas]) == 0
    assert files(copy) == files(run)
    assert scores(copy) == scores(run)


def test_a_killed_process_costs_time_and_no_number(run: Path, tmp_path: Path) -> None:
    calm = killer(tmp_path / "calm", 0)
    snellen.score(copy := copy_of(run, tmp_path), scorers=["deadly"], plugins=[calm])
    alone = files(copy, "-deadly")
    said: list[str] = []
    plugin = killer(tmp_path / "deadly", 1)
    spread: dict[str, Any] = {"executor": "processes", "replicas": 2, "say": said.append}
    snellen.score(copy, scorers=["deadly"], plugins=[plugin], **spread)
    assert files(copy, "-deadly") == alone
    assert len(said) == 1
    assert "lost at range 1 of 2 of task 'shapes': killed by SIGKILL" in said[0]


def test_a_range_that_kills_twice_is_told_and_everything_stays(run: Path, tmp_path: Path) -> None:
    copy, plugin = copy_of(run, tmp_path), killer(tmp_path / "deadly", 9)
    with pytest.raises(EnvironmentProblem, match="range 1 of 2 of task 'shapes' ended its process twice"):
        snellen.score(copy, scorers=["deadly"], plugins=[plugin], executor="processes", replicas=2)
    assert files(copy) == files(run)
    assert not list(copy.glob("*deadly*"))
    assert not list(copy.glob(".*"))


def test_a_damaged_record_is_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = copy_of(run, tmp_path)
    with sqlite3.connect(copy / "run.db") as database:
        body = "CAST(replace(CAST(body AS TEXT), 'shape', 'shade') AS BLOB)"
        database.execute(f"UPDATE predictions SET body = {body} WHERE sample = 'shape-00100'")
    assert run_command(["score", copy, "--executor", "processes", "--replicas", "2"]) == 3
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert "a trial of sample 'shape-00100': not what was written" in lines[0]
    assert "snellen repair" in lines[0]
    assert files(copy) == files(run)


def test_what_would_be_ignored_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "rows.json"
    table.write_text(json.dumps([]))
    for command, told in (
        (["score", run, "--replicas", "2"], "--replicas is for --executor processes or ray"),
        (["score", run, "--executor", "processes", "--ray-address", "auto"], "--ray-address is for --executor ray"),
        (
            ["score", table, "--formulation", "SingleChoice", "--executor", "processes"],
            "--executor says nothing here",
        ),
    ):
        assert run_command(command) == 2
        assert told in capsys.readouterr().err


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    pytest.importorskip("ray")
    with ray_nodes(2) as cluster:
        yield cluster


def test_nodes_of_a_cluster_write_what_one_process_writes(nodes: Nodes, run: Path, tmp_path: Path) -> None:
    copy = copy_of(run, tmp_path)
    for name in files(copy):
        (copy / name).unlink()
    command = ["score", copy, "--executor", "ray", "--ray-address", nodes.address, "--replicas", "2"]
    assert run_command(command) == 0
    assert files(copy) == files(run)
    assert scores(copy) == scores(run)


def test_a_killed_worker_of_a_cluster_costs_no_number(nodes: Nodes, run: Path, tmp_path: Path) -> None:
    calm = killer(tmp_path / "calm", 0)
    snellen.score(copy := copy_of(run, tmp_path), scorers=["deadly"], plugins=[calm])
    alone = files(copy, "-deadly")
    said: list[str] = []
    plugin = killer(tmp_path / "deadly", 1)
    spread: dict[str, Any] = {"executor": "ray", "ray_address": nodes.address, "replicas": 2, "say": said.append}
    snellen.score(copy, scorers=["deadly"], plugins=[plugin], **spread)
    assert files(copy, "-deadly") == alone
    assert len(said) == 1
    assert "lost at range 1 of 2 of task 'shapes'" in said[0]


CAPTIONS = (
    "a small {colour} {shape} on a page",
    "the {shape} is {colour} and stands in the middle of the picture",
    "there are grey lines behind a {colour} {shape}",
)


async def write_captions(folder: Path, count: int) -> None:
    task = Task("captions", {"loader": "table"}, Form.OPEN, scorers=("caption",), aggregates=("caption",))
    writer = RunWriter(folder, make_header(task, "openai/small", count))
    try:
        for number in range(count):
            words = {"colour": COLOURS[number % 4], "shape": SHAPES[number // 4 % 4]}
            texts = tuple(text.format(**words) for text in CAPTIONS)
            sample = Sample(f"picture-{number}", "captions", Form.OPEN, "Describe it.", answers=texts[:2])
            key = TrialKey("captions", sample.id)
            reply = Prediction(key, text=f"{texts[2 - number % 3]} {number % 7}", finish="stop")
            await writer.put(number, sample, Request(key, (Turn("user", "Describe it."),)), reply, "0" * 16)
    finally:
        writer.close()


def test_captions_have_the_same_corpus_metrics_whoever_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caption_scores, "missing_reason", lambda: "not asked here")
    monkeypatch.setattr(reader, "RANGE_TRIALS", 30)
    run_apart(write_captions(tmp_path / "run", 200))
    assert run_command(["score", tmp_path / "run"]) == 0
    alone, stored = files(tmp_path / "run"), scores(tmp_path / "run")
    metrics = json.loads(alone["results.json"])["tasks"]["captions"]["metrics"]
    assert 0.0 < metrics["cider"]["value"] < 10.0, "document frequencies are those of all references"
    assert run_command(["score", tmp_path / "run", "--executor", "processes", "--replicas", "2"]) == 0
    assert files(tmp_path / "run") == alone
    assert scores(tmp_path / "run") == stored
