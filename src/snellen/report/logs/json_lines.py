"""A run as JSON lines: one object a line, for whatever reads along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .tracker import Wrong

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
