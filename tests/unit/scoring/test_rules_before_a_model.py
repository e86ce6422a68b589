"""Rules that tools apply before they ask a model, the reader of VisualWebBench, and points in a mask: each by hand."""

from __future__ import annotations

import io

import PIL.Image
import pytest

from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.data.images.decode import mask_runs
from snellen.kits.bridges.open_rules import equals_typed_whole
from snellen.kits.bridges.protocol_scorer import CHOICE_READERS
from snellen.scoring.scorers.grounding import score_points

SIDES = {"A": "left", "B": "right"}
KEY = TrialKey("task", "s")


@pytest.mark.parametrize(
    ("reader", "reply", "letter"),
    [
        ("option-text", "left", "A"),
        ("option-text", "left.", None),
        ("option-text", "A", None),
        ("visualwebbench", "b", "B"),
        ("visualwebbench", "K. is it", "K"),
        ("visualwebbench", "It is (A), not B.", "A"),
        ("visualwebbench", "(A) or (B)", "B"),
        ("visualwebbench", "B or, rather, A.", "A"),
        ("visualwebbench", "the left one", None),
    ],
)
def test_a_reader_takes_what_its_tool_takes(reader: str, reply: str, letter: str | None) -> None:
    assert CHOICE_READERS[reader](reply, SIDES) == letter


@pytest.mark.parametrize(
    ("reply", "kind", "answer", "value"),
    [
        ("12", "integer", "12", 1.0),
        ("13", "integer", "12", 0.0),
        ("12.0", "integer", "12", None),
        ("1.24", "float", "1.2", 1.0),
        ("about 1.2", "float", "1.2", None),
        ("[1, 2]", "list", "[1, 2]", None),
    ],
)
def test_only_a_bare_number_of_the_type_is_read_before_mathvista_asks(
    reply: str, kind: str, answer: str, value: float | None
) -> None:
    tags = {"answer_type": kind, "precision": 1.0}
    sample = Sample(id="s", dataset="d", form=Form.OPEN, question="?", answers=(answer,), tags=tags)
    assert equals_typed_whole(reply, sample) == value


@pytest.mark.parametrize("white", [(0, 0, 6, 4), (2, 1, 4, 3), (0, 0, 1, 1), (5, 3, 6, 4), (0, 0, 0, 0)])
def test_a_mask_as_text_has_the_pixels_of_its_picture(white: tuple[int, int, int, int]) -> None:
    mask = PIL.Image.new("L", (6, 4), 120)
    mask.paste(130, white)
    out = io.BytesIO()
    mask.save(out, "PNG")
    answer = mask_runs(out.getvalue(), "mask")
    sample = Sample(id="s", dataset="d", form=Form.OPEN, question="?", answers=(answer,))
    frames = {"coordinates": {"gold": "pixels", "reply": "0-1"}}
    for column in range(6):
        for row in range(4):
            reply = Prediction(KEY, text=f"[({(column + 0.5) / 6}, {(row + 0.5) / 4})]")
            (score,) = score_points(sample, Request(KEY, ()), reply, frames)
            inside = white[0] <= column < white[2] and white[1] <= row < white[3]
            assert score.value == float(inside), (column, row)
