"""Replies that name all objects of a picture (`scoring.aggregates.detections`); slots for a model that extracts."""

from __future__ import annotations

from pathlib import Path

import pytest

from snellen.core.types import Form, Image, Prediction, Request, Sample, TrialKey
from snellen.scoring.aggregates.detections import FOUND, said_boxes, score
from snellen.scoring.judges.extractor import extractor_folder

KEY = TrialKey("t", "1")
ANSWER = '[["cat", [0, 0, 50, 50]], ["dog", [50, 50, 100, 100]]]'
SAMPLE = Sample("1", "t", Form.OPEN, "?", (Image("/a.png", width=100, height=100),), answers=(ANSWER,))
OPTIONS = {"coordinates": {"reply": "pixels", "gold": "pixels"}}


def found(reply: str) -> float | None:
    (one,) = score(SAMPLE, Request(KEY, ()), Prediction(KEY, reply), OPTIONS)
    assert one.metric == FOUND
    return one.value


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        ('[{"bbox_2d": [0, 0, 50, 50], "label": "cat"}, {"bbox_2d": [50, 50, 100, 100], "label": "Dog"}]', 1.0),
        ('```json\n[{"bbox": [0, 0, 50, 50], "label": "cat"}]\n```', 0.5),
        ('[{"bbox": [0, 0, 50, 50], "label": "dog"}]', 0.0),
        ('[{"bbox": [0, 0, 20, 20], "label": "cat"}]', 0.0),
        ("[]", 0.0),
        ("There is a cat on the left.", None),
    ],
)
def test_an_object_is_found_by_a_box_of_its_label_that_overlaps_by_half(reply: str, share: float | None) -> None:
    assert found(reply) == share


def test_boxes_are_found_however_deep_they_stand_and_bad_ones_are_none() -> None:
    assert said_boxes('{"objects": [{"box": [1, 2, 3, 4], "name": "x"}, {"box": [1, 2, 3]}]}') == [("x", [1, 2, 3, 4])]


def test_the_replies_of_two_extractors_lie_apart() -> None:
    folders = {extractor_folder(Path("run"), "mathvista", model) for model in ("openai/a", "openai/b")}
    assert len(folders) == 2
    assert all(folder.parent == Path("run") for folder in folders)
