"""The embedded reader on real pictures: rapidocr and tesseract read a chart, answer about it, and touch no network."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import EnvironmentProblem, MissingExtra, ModelError, UsageError
from snellen.core.protocols import LoadContext, Model
from snellen.core.types import FailureKind, Image, Prediction, Request, Sample, TrialKey, Turn
from snellen.data.catalog import Catalog
from snellen.data.loaders.eyechart import load
from snellen.model.ocr.reader_model import create
from snellen.model.options import ModelOptions
from snellen.scoring.aggregates.acuity import score

ENGINES = [
    pytest.param(
        "",
        0.6,
        marks=pytest.mark.skipif(__import__("importlib.util").util.find_spec("rapidocr") is None, reason="no rapidocr"),
    ),
    pytest.param("tesseract", 0.3, marks=pytest.mark.skipif(shutil.which("tesseract") is None, reason="no tesseract")),
]


@pytest.fixture
def chart(tmp_path: Path) -> Sample:
    task = Catalog().task(
        "eyechart", [("dataset.charts", 1), ("dataset.axes", ["base"]), ("dataset.scripts", ["words"])]
    )
    return next(load(task, LoadContext(seed=4, workdir=tmp_path)))


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the reader tried to use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def predict(model: Model, *requests: Request) -> list[Prediction]:
    async def go() -> list[Prediction]:
        await model.check()
        try:
            return await asyncio.gather(*(model.predict(request, {}) for request in requests))
        finally:
            await model.close()

    return asyncio.run(go())


def asking(sample: Sample, text: str, **more: Any) -> Request:
    return Request(TrialKey("eyechart", sample.id), (Turn("user", text, sample.images),), **more)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "least"), ENGINES)
def test_reads_a_chart_offline(engine: str, least: float, chart: Sample, offline: None) -> None:
    request = asking(chart, chart.question)
    (prediction,) = predict(create(engine, ModelOptions()), request)
    (result,) = score(chart, request, prediction, {})
    assert result.value is not None
    assert least <= result.value < 1.0
    largest, smallest = result.detail["lines"][0], result.detail["lines"][-1]
    assert largest[3] == largest[2]
    assert smallest[3] < smallest[2]


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "least"), ENGINES[:1])
def test_several_questions_read_the_page_once(
    engine: str, least: float, chart: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = create(engine, ModelOptions())
    calls = []
    read = model._engine.read
    monkeypatch.setattr(model._engine, "read", lambda picture: calls.append(1) or read(picture))
    lines = [line["text"] for line in chart.meta["lines"]]
    replies = predict(
        model,
        asking(chart, "What does line 1 of this eye chart say, counted from the top?"),
        asking(chart, "What does line 2 say?", marks=("A", "B"), shown=("WRONG TEXT", lines[1])),
    )
    assert [reply.text for reply in replies] == [lines[0], "B"]
    assert len(calls) == 1


def test_a_broken_picture_is_a_typed_failure(tmp_path: Path) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    request = Request(TrialKey("t", "s"), (Turn("user", "?", (Image(str(path)),)),))
    with pytest.raises(ModelError) as caught:
        predict(create("", ModelOptions()), request)
    assert caught.value.kind is FailureKind.DECODE


def test_candidates_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match="--infer-method generation"):
        predict(create("", ModelOptions()), Request(TrialKey("t", "s"), (Turn("user", "?"),), choices=("a",)))


def test_missing_engines_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snellen.model.ocr.reader_model.which", lambda _: None)
    with pytest.raises(EnvironmentProblem, match="apt install tesseract-ocr"):
        predict(create("tesseract", ModelOptions()))
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(MissingExtra, match=r"snellen\[ocr\]"):
        predict(create("", ModelOptions()))
    with pytest.raises(UsageError, match="did you mean 'tesseract'"):
        create("teseract", ModelOptions())
