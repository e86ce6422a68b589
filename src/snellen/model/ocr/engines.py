"""Pixels -> pieces of text with their boxes, by an OCR engine that needs no network."""

from __future__ import annotations

import os
import subprocess
import threading
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from io import BytesIO
from shutil import which
from typing import Any, Protocol

import numpy as np
import PIL.Image

from ...core.errors import EnvironmentProblem, MissingExtra
from .reading_order import Piece


class Engine(Protocol):
    """An OCR engine; `read` may be called from several threads at once."""

    name: str

    def prepare(self) -> None:
        """Raise EnvironmentProblem if the engine is not installed."""
        ...

    def version(self) -> str:
        """Return what changes its readings."""
        ...

    def read(self, picture: PIL.Image.Image) -> list[Piece]:
        """Return the pieces of text on a picture."""
        ...


class RapidEngine:
    """rapidocr with the weights inside its package; one session a thread, one core each."""

    name = "rapidocr"

    def __init__(self) -> None:
        self._local = threading.local()

    def prepare(self) -> None:
        """Check that the package and its weights are there, so that nothing is ever downloaded."""
        try:
            models = files("rapidocr") / "models"
        except ModuleNotFoundError:
            raise MissingExtra("ocr", "the embedded reader") from None
        if not [item for item in models.iterdir() if item.name.endswith(".onnx")]:
            fix = "pip install --force-reinstall rapidocr"
            raise EnvironmentProblem(f"rapidocr is installed without its weights: {fix}")
        try:
            import_module("onnxruntime")
        except ImportError:
            raise MissingExtra("ocr", "the embedded reader") from None

    def version(self) -> str:
        """Return the versions of rapidocr and onnxruntime."""
        try:
            return f"rapidocr {version('rapidocr')}, onnxruntime {version('onnxruntime')}"
        except PackageNotFoundError:
            return "not installed"

    def read(self, picture: PIL.Image.Image) -> list[Piece]:
        """Return the pieces rapidocr finds."""
        if not hasattr(self._local, "engine"):
            self._local.engine = _create_rapid()
        found = self._local.engine(np.asarray(picture.convert("RGB"))[:, :, ::-1])
        if found.boxes is None or not found.txts:
            return []
        return [
            Piece(str(text), tuple((float(x), float(y)) for x, y in box))
            for text, box in zip(found.txts, found.boxes, strict=True)
        ]


def _create_rapid() -> Any:
    from rapidocr import RapidOCR

    # One thread a session: on two loaded cores, two such sessions read 3 times as fast as one with its own thread pool.
    threads = {f"EngineConfig.onnxruntime.{scope}_op_num_threads": 1 for scope in ("intra", "inter")}
    return RapidOCR(params={**threads, "Global.log_level": "error"})


class TesseractEngine:
    """The tesseract program, one process a picture, one thread each."""

    name = "tesseract"

    def __init__(self, language: str = "eng") -> None:
        self._language = language

    def prepare(self) -> None:
        """Check that the program is there."""
        if which("tesseract") is None:
            raise EnvironmentProblem("reader/tesseract needs the tesseract program: apt install tesseract-ocr")

    def version(self) -> str:
        """Return the first line of `tesseract --version`."""
        if which("tesseract") is None:
            return "not installed"
        result = subprocess.run(["tesseract", "--version"], capture_output=True, text=True, check=False)  # noqa: S607
        return (result.stdout or result.stderr).splitlines()[0]

    def read(self, picture: PIL.Image.Image) -> list[Piece]:
        """Return one piece a word."""
        data = BytesIO()
        picture.save(data, "PNG", compress_level=1)
        command = ["tesseract", "stdin", "stdout", "-l", self._language, "--psm", "6", "tsv"]
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
        result = subprocess.run(  # noqa: S603 - a fixed command; the picture goes in by stdin
            command, input=data.getvalue(), capture_output=True, env=environment, check=False
        )
        if result.returncode:
            raise EnvironmentProblem(f"tesseract failed: {result.stderr.decode('utf-8', 'replace').strip()[-200:]}")
        return parse_tsv(result.stdout.decode("utf-8", "replace"))


def parse_tsv(text: str) -> list[Piece]:
    """Read tesseract's table: left, top, width, height, …, text in the columns 6 to 11."""
    pieces = []
    for row in text.splitlines()[1:]:
        cells = row.split("\t")
        if len(cells) == 12 and cells[11].strip():
            left, top, width, height = map(float, cells[6:10])
            corners = ((left, top), (left + width, top), (left + width, top + height), (left, top + height))
            pieces.append(Piece(cells[11].strip(), corners))
    return pieces


ENGINES: dict[str, type[RapidEngine] | type[TesseractEngine]] = {"rapidocr": RapidEngine, "tesseract": TesseractEngine}
