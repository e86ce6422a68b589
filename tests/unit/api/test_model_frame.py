"""The frame of a model: from its card, from an exam, as told; and a task that is asked and read in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snellen.api.chosen_model import create_model
from snellen.api.model_frame import model_frame, needed_frame, prompt_of, task_in_frame
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.builtins import default_registry
from snellen.core.errors import ConfigError, UsageError
from snellen.core.frames import read_frame
from snellen.data.catalog import Catalog
from snellen.model.served.model_card import read_model_card

QWEN = RunSettings(tasks=("screenspot",), model="dashscope/qwen3-vl-plus", api_key="none")
"""Its card names the frame 0-1000."""


def model_of(settings: RunSettings):
    return create_model(settings, default_registry())


def test_a_card_names_the_frame_of_its_model() -> None:
    known = model_frame(model_of(QWEN), QWEN)
    assert known.frame is not None and known.frame.name == "0-1000" and known.where == "card qwen3-vl-plus"


def test_a_card_with_another_word_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError, match="'mine', coordinates"):
        read_model_card("mine", {"model": "openai/mine", "coordinates": "thousandths"})


def test_a_frame_that_nobody_knows_is_refused_with_what_to_do() -> None:
    blind = RunSettings(tasks=("screenspot",), model="blind/first")
    with pytest.raises(UsageError, match="exam --tests coordinates"):
        needed_frame(model_of(blind), blind, "card", "--coordinates")


@pytest.mark.parametrize(
    ("tests", "frame"),
    [
        ({"coordinates": {"verdict": "measured", "card": "0-1024 y-first"}}, "0-1024 y-first"),
        (
            {"coordinates": {"verdict": "open", "card": None}, "locate": {"verdict": "measured", "card": "0-1000"}},
            "0-1000",
        ),
        ({"coordinates": {"verdict": "not measurable", "card": None}}, None),
        ({}, None),
    ],
)
def test_an_exam_names_the_frame_that_it_measured(tmp_path: Path, tests: dict, frame: str | None) -> None:
    (tmp_path / "exam.json").write_text(json.dumps({"tests": tests}))
    known = model_frame(model_of(QWEN), QWEN, str(tmp_path))
    assert (known.frame.name if known.frame else None) == frame


@pytest.mark.parametrize(
    ("frame", "protocol", "prompt"),
    [
        ("0-1000", "official", "click-0-1000"),
        ("0-999", "official", "click-0-1000"),
        ("0-1000 y-first", "y-first", "click-0-1000-y-first"),
        ("sent-pixels side=1568 area=1150000", "pixels", "click-pixels"),
        ("0-1", "fractions", "click-0-1"),
    ],
)
def test_a_task_is_asked_by_the_prompt_of_the_frame_and_read_in_it(frame: str, protocol: str, prompt: str) -> None:
    task = task_in_frame(Catalog(), "screenspot", QWEN, read_frame(frame))
    assert (task.protocol, task.prompt, task.score_options["coordinates"]["reply"]) == (protocol, prompt, frame)


def test_a_frame_without_a_prompt_is_refused_and_so_is_another_protocol() -> None:
    with pytest.raises(UsageError, match="0-1000 padded"):
        task_in_frame(Catalog(), "screenspot", QWEN, read_frame("0-1000 padded"))
    told = RunSettings(tasks=("screenspot",), model="blind/first", protocol="official")
    with pytest.raises(UsageError, match="--protocol pixels"):
        task_in_frame(Catalog(), "screenspot", told, read_frame("sent-pixels"))


def test_what_is_neither_a_frame_nor_an_exam_is_refused_and_so_are_tasks_that_ask_for_no_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder of an exam"):
        model_frame(model_of(QWEN), QWEN, str(tmp_path / "nothing"))
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"question": "Which?", "options": ["a", "b"], "answer": "A"}))
    with pytest.raises(UsageError, match="--coordinates"):
        make_plan(RunSettings(tasks=(str(rows),), model="blind/first", coordinates="0-1"))


def test_a_task_without_coordinates_stays_as_it_is() -> None:
    assert task_in_frame(Catalog(), "mmmu", QWEN, read_frame("0-1")) == Catalog().task("mmmu")
    assert prompt_of(read_frame("0-1000 y-up")) == "0-1000-y-up"
