"""Who hears of a run while it goes on: lines in its folder, TensorBoard, W&B, MLflow (an extra each)."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import PIL.Image

from ...api.trackers import Wrong, plain_settings

PROJECT = "snellen"


class Wandb:
    """Tells the project of WANDB_PROJECT; WANDB_MODE=offline keeps everything in the run's folder."""

    needs = ("wandb",)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run: Any = None

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        """Begin a run of its own."""
        import wandb

        project = os.environ.get("WANDB_PROJECT") or PROJECT
        quiet = wandb.Settings(silent=True, console="off", disable_git=True, save_code=False)
        made: dict[str, Any] = {"project": project, "name": name, "config": dict(settings), "reinit": "create_new"}
        self._run = wandb.init(**made, dir=str(self._folder), settings=quiet)

    def tell(self, step: int, figures: Mapping[str, float]) -> None:
        """Log metrics."""
        self._run.log(dict(figures), step=step)

    def end(self, step: int, figures: Mapping[str, float], wrong: Sequence[Wrong]) -> None:
        """Log the figures and the pictures of wrong answers, and end the run."""
        import wandb

        pictures = [
            wandb.Image(PIL.Image.open(io.BytesIO(one.png)), caption=f"{one.task} {one.sample}: {one.words}")
            for one in wrong
        ]
        self._run.log({**figures, **({"wrong answers": pictures} if pictures else {})}, step=step)
        self._run.summary.update(dict(figures))
        self._run.finish()


class TensorBoard:
    """Writes an event file to `tensorboard` in the run's folder."""

    needs = ("tensorboard",)

    def __init__(self, folder: Path) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(folder / "tensorboard"))

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        """Write the settings as a text."""
        from tensorboard.plugins.text.summary_v2 import text_pb

        body = msgspec.json.format(msgspec.json.encode(settings), indent=2).decode()
        self._add(0, text_pb(name, f"```\n{body}\n```"))

    def tell(self, step: int, figures: Mapping[str, float]) -> None:
        """Write scalars."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in figures.items()]
        self._add(step, Summary(value=values))

    def end(self, step: int, figures: Mapping[str, float], wrong: Sequence[Wrong]) -> None:
        """Write the figures and the pictures of wrong answers."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        self.tell(step, figures)
        for one in wrong:
            image = Summary.Image(width=one.size[0], height=one.size[1], colorspace=3, encoded_image_string=one.png)
            self._add(step, Summary(value=[Summary.Value(tag=f"wrong/{one.task}/{one.sample}", image=image)]))
        self._writer.close()

    def _add(self, step: int, summary: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))
        self._writer.flush()


FILE = "log.jsonl"


class JsonLines:
    """Adds lines to log.jsonl of the run's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        """Write which run it is."""
        self._write({"event": "begin", "run": name, "settings": settings})

    def tell(self, step: int, figures: Mapping[str, float]) -> None:
        """Write how far it is."""
        self._write({"event": "progress", "step": step, "figures": figures})

    def end(self, step: int, figures: Mapping[str, float], wrong: Sequence[Wrong]) -> None:
        """Write the figures and which answers were wrong; the pictures lie beside the run already."""
        told = [{"task": one.task, "sample": one.sample, "words": one.words} for one in wrong]
        self._write({"event": "end", "step": step, "figures": figures, "wrong": told})

    def _write(self, record: Mapping[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")


EXPERIMENT = "snellen"
LONGEST = 500
_NAME = re.compile(r"[^\w./ -]")
"""What a name may not hold there."""


class Mlflow:
    """Tells the server of MLFLOW_TRACKING_URI; without one, mlflow.db in the run's folder."""

    needs = ("mlflow", "sqlalchemy", "alembic")

    def __init__(self, folder: Path) -> None:
        from mlflow.tracking import MlflowClient

        self._own = folder.absolute()
        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self._own / 'mlflow.db'}")
        self._run = ""

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        """Begin a run of its own in the experiment."""
        wanted = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        known = self._client.get_experiment_by_name(wanted)
        place = None if os.environ.get("MLFLOW_TRACKING_URI") else (self._own / "mlartifacts").as_uri()
        number = known.experiment_id if known else self._client.create_experiment(wanted, artifact_location=place)
        self._run = self._client.create_run(number, run_name=name).info.run_id
        for key, value in plain_settings(settings).items():
            self._client.log_param(self._run, _NAME.sub("_", key)[:250], value[:LONGEST])

    def tell(self, step: int, figures: Mapping[str, float]) -> None:
        """Log metrics."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(_NAME.sub("_", name), value, now, step) for name, value in figures.items()]
        for start in range(0, len(metrics), 500):
            self._client.log_batch(self._run, metrics=metrics[start : start + 500])

    def end(self, step: int, figures: Mapping[str, float], wrong: Sequence[Wrong]) -> None:
        """Log the figures and the pictures of wrong answers, and end the run."""
        self.tell(step, figures)
        for number, one in enumerate(wrong):
            path = f"wrong/{_NAME.sub('_', one.task).replace('/', '_')}-{number:02d}"
            self._client.log_text(self._run, f"{one.sample}\n{one.words}\n", f"{path}.txt")
            self._log_picture(one.png, f"{path}.png")
        self._client.set_terminated(self._run)

    def _log_picture(self, png: bytes, path: str) -> None:
        import tempfile

        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / Path(path).name
            file.write_bytes(png)
            self._client.log_artifact(self._run, str(file), str(Path(path).parent))
