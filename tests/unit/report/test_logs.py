"""Trackers hear of a run: JSON lines, and the real TensorBoard, MLflow and W&B (offline); none can harm the run."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import snellen
from command_line import run_command
from made_runs import make_run
from snellen.api import trackers as seam
from snellen.api.trackers import TrackerHub, find_trackers, plain_settings, result_figures, wrong_answers
from snellen.core.builtins import default_registry
from snellen.engine.state import RunState

SETTINGS = {"model": {"name": "openai/x"}, "seed": 0, "variants": ["base"]}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", count=30, skill=0.5)


def told(run: Path, name: str) -> TrackerHub:
    """Tell one tracker of a run as `snellen run --log` does."""
    results = msgspec.json.decode((run / "results.json").read_bytes())
    trackers = TrackerHub(find_trackers((name,), default_registry()), run, SETTINGS)
    trackers.tell(RunState(planned=30, done=10, failed=1, output_tokens=50))
    trackers.end(results, RunState(planned=30, done=30))
    return trackers


def accuracy(run: Path) -> float:
    return float(
        msgspec.json.decode((run / "results.json").read_bytes())["tasks"]["shapes"]["metrics"]["accuracy"]["value"]
    )


def test_json_lines(run: Path) -> None:
    assert told(run, "jsonl").problems == {}
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["begin", "progress", "end"]
    assert lines[1]["figures"]["progress/stored"] == 10
    assert lines[2]["figures"]["shapes/accuracy"] == accuracy(run)
    assert 0 < len(lines[2]["wrong"]) <= 16


def test_tensorboard_reads_figures_and_pictures_back(run: Path) -> None:
    pytest.importorskip("tensorboard")
    assert told(run, "tensorboard").problems == {}
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    (point,) = events.Scalars("shapes/accuracy")
    assert point.step == 30
    assert point.value == pytest.approx(accuracy(run))
    assert [point.value for point in events.Scalars("progress/stored")] == [10.0]
    images = [tag for tag in events.Tags()["images"] if tag.startswith("wrong/shapes/")]
    assert images
    assert events.Images(images[0])[0].encoded_image_string.startswith(b"\x89PNG")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.nightly
def test_mlflow_reads_figures_parameters_and_pictures_back(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracking = pytest.importorskip("mlflow.tracking")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert told(run, "mlflow").problems == {}
    client = tracking.MlflowClient(f"sqlite:///{run.absolute() / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("snellen")
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.params["model.name"] == "openai/x"
    assert found.data.metrics["shapes/accuracy"] == pytest.approx(accuracy(run))
    pictures = [file.path for file in client.list_artifacts(found.info.run_id, "wrong") if file.path.endswith(".png")]
    assert pictures


@pytest.mark.filterwarnings("ignore")
@pytest.mark.nightly
def test_wandb_offline_keeps_figures_and_pictures(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert told(run, "wandb").problems == {}
    (folder,) = (run / "wandb").glob("offline-run-*")
    assert list(folder.glob("*.wandb"))
    assert list(folder.glob("files/media/**/*.png"))


def test_a_tracker_that_fails_is_told_and_the_run_is_whole(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, folder: Path) -> None:
            pass

        def begin(self, name: str, settings: object) -> None:
            raise ConnectionError("no server")

    import snellen.kits.publish.trackers as module

    monkeypatch.setattr(module, "JsonLines", Broken)
    assert told(run, "jsonl").problems == {"jsonl": "ConnectionError: no server"}


def test_a_run_tells_its_trackers_from_python_and_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "my.jsonl"
    rows.write_text(json.dumps({"question": "Which?", "options": ["a", "b"], "answer": "A"}))
    result = snellen.run(str(rows), "blind/first", output_dir=tmp_path / "one", log=("jsonl",))
    assert result.not_logged == {}
    events = [json.loads(line)["event"] for line in (tmp_path / "one" / "log.jsonl").read_text().splitlines()]
    assert events[0] == "begin" and events[-1] == "end"
    plain = snellen.run(str(rows), "blind/first", output_dir=tmp_path / "two")
    assert plain.results["run"]["id"] == result.results["run"]["id"], "who listens is no part of a run"
    assert (
        run_command(["run", rows, "--model", "blind/first", "-o", tmp_path / "three", "--log", "jsonl", "--quiet"]) == 0
    )
    assert (tmp_path / "three" / "log.jsonl").is_file()
    assert run_command(["run", rows, "--model", "blind/first", "-o", tmp_path / "four", "--log", "tensorbord"]) == 2
    assert "tensorboard" in capsys.readouterr().err
    assert not (tmp_path / "four").exists(), "refused before anything was asked"


def test_a_tracker_without_its_package_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(snellen.SnellenError, match=r"snellen\[mlflow\]"):
        find_trackers(("mlflow",), default_registry())


def test_what_trackers_are_told(run: Path) -> None:
    assert plain_settings(SETTINGS) == {"model.name": "openai/x", "seed": "0", "variants": '["base"]'}
    results = msgspec.json.decode((run / "results.json").read_bytes())
    figures = result_figures(results)
    assert figures["shapes/accuracy.low"] <= figures["shapes/accuracy"] <= figures["shapes/accuracy.high"]
    assert all(one.png.startswith(b"\x89PNG") for one in wrong_answers(run))


def test_a_tracker_of_a_plug_in_hears_of_a_run_as_ours_do(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def __init__(self, folder):\n"
        "        self.file = folder / 'heard.txt'\n"
        "    def begin(self, name, settings):\n"
        "        self.file.write_text(f'{name}:')\n"
        "    def tell(self, step, figures):\n"
        "        pass\n"
        "    def end(self, step, figures, wrong):\n"
        "        self.file.write_text(f\"{self.file.read_text()}{step} {figures['my/accuracy']}\")\n"
        "def register(registry):\n"
        "    registry.add('tracker', 'mine', Mine)\n"
    )
    rows = tmp_path / "my.jsonl"
    rows.write_text(json.dumps({"question": "Which?", "options": ["a", "b"], "answer": "A"}))
    settings = {"output_dir": tmp_path / "run", "plugins": (tmp_path / "mine.py",), "log": ("mine",)}
    assert snellen.run(str(rows), "blind/first", **settings).not_logged == {}
    assert (tmp_path / "run" / "heard.txt").read_text() == "run:1 1.0"
