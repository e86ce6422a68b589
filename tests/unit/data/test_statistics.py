"""What a paper's table says of a dataset, recounted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import run_command
from cure_fixtures import item, write_cure
from snellen.api.datasets.bundles import describe_data
from snellen.core.errors import UsageError
from snellen.core.types import Form, Image, Sample
from snellen.data.statistics import describe_samples


def test_a_cure_file_by_hand(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_cure(tmp_path, [item(0, 2), item(1, 3), item(2, 3), item(3, 4) | {"bboxes": item(3, 4)["bboxes"][:1]}])
    figures = describe_data(path)
    assert (figures.items, figures.questions, figures.steps_per_item) == (4, 16, 3.0)
    assert figures.items_by_steps == {"2": 1, "3": 2, "4": 1} and figures.options_per_question == 6.0
    assert (figures.boxes, figures.items_with_several_boxes, figures.pictures) == (7, 3, 4)
    assert figures.question_words["what"] >= 12, "as the file writes them, without our pointer to the region"
    assert run_command(["data", "stats", str(path)]) == 0
    told = capfd.readouterr().out
    assert "steps per item             3.00" in told and "items with several boxes   3" in told
    assert run_command(["data", "stats", str(path), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["steps_per_item"] == 3.0


def sample(number: int, question: str, **more: Any) -> Sample:
    return Sample(str(number), "t", Form.OPEN, question, **more)


def test_plain_questions_have_no_steps_and_rare_words_are_the_rest() -> None:
    rare = [sample(number, f"w{number} is it?") for number in range(20)]
    figures = describe_samples([sample(100, "What's this?", images=(Image("a.png"),)), sample(101, "¿?"), *rare])
    assert figures.steps_per_item is None and figures.items_by_steps == {} and figures.boxes is None
    assert sum(figures.question_words.values()) == figures.questions == figures.items == 22
    assert figures.question_words["other"] == 10 and figures.pictures == 1
    empty = describe_samples([])
    assert (empty.items, empty.questions, empty.words_per_question) == (0, 0, None)


def test_what_is_no_dataset_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"")
    with pytest.raises(UsageError, match="neither a bundle folder nor a data file"):
        describe_data(tmp_path / "x.png")
