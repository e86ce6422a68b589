"""A run as an MLflow run: parameters, metrics by step, wrong answers as artifacts (extra `mlflow`)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .tracker import Wrong, plain_settings

EXPERIMENT = "snellen"
LONGEST = 500
_NAME = re.compile(r"[^\w./ -]")
"""What a name may not hold there."""


class Mlflow:
    """Tells the server of MLFLOW_TRACKING_URI; without one, mlflow.db in the run's folder."""

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
