"""A run as a Weights & Biases run: config, metrics by step, pictures of wrong answers (extra `wandb`)."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import PIL.Image

from .tracker import Wrong

PROJECT = "snellen"


class Wandb:
    """Tells the project of WANDB_PROJECT; WANDB_MODE=offline keeps everything in the run's folder."""

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
