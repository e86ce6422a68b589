"""A run as TensorBoard events: scalars by step, and wrong answers as images (extra `tensorboard`)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .tracker import Wrong


class TensorBoard:
    """Writes an event file to `tensorboard` in the run's folder."""

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
