"""Boxes and clicks: read from replies of many shapes, placed by the declared frame, refused where it is unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ConfigError
from snellen.core.frames import FrameProblem
from snellen.core.types import Form, Image, ImageSent, Prediction, Request, Sample, TrialKey
from snellen.extract.places import read_box, read_place
from snellen.scoring.scorers.grounding import is_outlined, overlap, place_box, score_box, score_place

KEY = TrialKey("t", "1")
SENT = ImageSent("0" * 64, "image/png", 400, 200, 10, original=(800, 400))


def scored(scorer, said: str, answer: str, sent: ImageSent | None = SENT, **coordinates: str):
    sample = Sample("1", "t", Form.OPEN, "Where?", (Image("/x.png"),), answers=(answer,))
    prediction = Prediction(KEY, text=said, images=(sent,) if sent else ())
    return list(scorer(sample, Request(KEY, ()), prediction, {"coordinates": coordinates}))


@pytest.mark.parametrize(
    "reply",
    [
        "[10, 20, 30, 40]",
        "(10,20),(30,40)",
        "<box>(10,20),(30,40)</box>",
        "<|box_start|>(10,20),(30,40)<|box_end|>",
        '```json\n[{"bbox_2d": [10, 20, 30, 40], "label": "cat"}]\n```',
        "[[10, 20], [30, 40]]",
        "The box is [10.0, 20.0, 30.0, 40.0].",
        "x1=10, y1=20, x2=30, y2=40",
        "<think>maybe [1, 2, 3, 4]</think>[10, 20, 30, 40]",
        "10 20 30 40",
        "[10, 20, 30, 40] – again: [10, 20, 30, 40]",
    ],
)
def test_one_box_is_read_however_it_is_written(reply: str) -> None:
    assert read_box(reply).values == (10, 20, 30, 40)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("[1, 2, 3, 4] or [5, 6, 7, 8]", "2 different boxes"),
        ("I cannot see it.", "no box found"),
        ("", "no box found"),
        ("<think>[1, 2, 3, 4]", "truncated"),
        ("[10, 20]", "no box found"),
        ("1 2 3 4 5", "no box found"),
    ],
)
def test_no_box_or_several_are_a_reason_not_to_score(reply: str, reason: str) -> None:
    assert read_box(reply)[:2] == ((), reason)


@pytest.mark.parametrize(
    ("reply", "values"),
    [
        ("(120, 340)", (120, 340)),
        ("[120, 340]", (120, 340)),
        ("<point>120 340</point>", (120, 340)),
        ('<point x="61.5" y="40.4" alt="x">x</point>', (61.5, 40.4)),
        ("{'point_2d': [120, 340]}", (120, 340)),
        ("click(x=120, y=340)", (120, 340)),
        ("120, 340", (120, 340)),
        ("[10, 20, 30, 40]", (10, 20, 30, 40)),
        ("(1, 2) then (3, 4), or (5, 6)", ()),
    ],
)
def test_one_point_is_read_however_it_is_written(reply: str, values: tuple[float, ...]) -> None:
    assert read_place(reply).values == values


def test_white_space_without_end_costs_no_time() -> None:
    assert read_box("[1, 2" + " " * 200_000).values == ()


BOX = "[200, 100, 400, 300]"
"""In pixels of a picture of 800 by 400: (0.25, 0.25, 0.5, 0.75)."""


@pytest.mark.parametrize(
    ("frame", "order", "reply"),
    [
        ("pixels", "xyxy", "[200, 100, 400, 300]"),
        ("sent-pixels", "xyxy", "[100, 50, 200, 150]"),
        ("0-1000", "xyxy", "[250, 250, 500, 750]"),
        ("0-1", "xyxy", "[0.25, 0.25, 0.5, 0.75]"),
        ("0-100", "xyxy", "[25, 25, 50, 75]"),
        ("0-999", "xyxy", "[249.75, 249.75, 499.5, 749.25]"),
        ("0-1000", "yxyx", "[250, 250, 750, 500]"),
        ("0-1000", "xywh", "[250, 250, 250, 500]"),
        ("sent-pixels", "yxyx", "[50, 100, 150, 200]"),
    ],
)
def test_the_same_box_in_every_frame_is_the_same_box(frame: str, order: str, reply: str) -> None:
    scores = scored(score_box, reply, BOX, gold="pixels", reply=frame, reply_order=order)
    assert {score.metric: score.value for score in scores} == pytest.approx({"iou": 1.0, "acc_0.5": 1.0})


def test_overlap_is_counted_by_hand() -> None:
    # Half of the gold box is covered, and nothing else: 1/2. Shifted by half a width: 1/3.
    half = scored(score_box, "[200, 100, 300, 300]", BOX, gold="pixels", reply="pixels")
    third = scored(score_box, "[300, 100, 500, 300]", BOX, gold="pixels", reply="pixels")
    assert [score.value for score in half] == pytest.approx([0.5, 1.0])
    assert [score.value for score in third] == pytest.approx([1 / 3, 0.0])


@pytest.mark.parametrize(
    ("reply", "frame", "reason"),
    [
        ("[250, 250, 500, 2000]", "0-1000", "coordinates outside the picture: not in the frame 0-1000"),
        ("[0.25, 0.25, 0.5, 0.75]", "0-1000", "coordinates are fractions of the picture, not in the frame 0-1000"),
        ("[250, 250, 500, 750]", "0-1", "coordinates outside the picture: not in the frame 0-1"),
    ],
)
def test_numbers_of_another_frame_are_unscored_with_the_reason(reply: str, frame: str, reason: str) -> None:
    scores = scored(score_box, reply, BOX, gold="pixels", reply=frame)
    assert [(score.value, score.reason) for score in scores] == [(None, reason)] * 2


def test_without_the_picture_s_size_pixels_say_nothing() -> None:
    [score] = scored(score_place, "(300, 200)", BOX, sent=None, gold="pixels", reply="pixels")
    assert score.reason == "the size of the picture is not known, and coordinates are in pixels"


@pytest.mark.parametrize(("x", "inside"), [(-1, False), (1, True), (5, True), (9, True), (11, False)])
def test_a_point_level_with_corners_is_inside_between_them_alone(x: float, inside: bool) -> None:
    diamond = [(0.0, 5.0), (5.0, 0.0), (10.0, 5.0), (5.0, 10.0)]
    for turn in range(4):
        assert is_outlined((x, 5.0), [*diamond[turn:], *diamond[:turn]]) == inside
    assert is_outlined((5.0, 0.01 if inside else -0.01), diamond) == inside


def test_a_click_inside_is_right_and_a_box_clicks_its_middle() -> None:
    def click(reply: str) -> float | None:
        return scored(score_place, reply, "[0.25, 0.25, 0.5, 0.75]", gold="0-1", reply="0-1000")[0].value

    assert [click("(300, 500)"), click("(250, 250)"), click("(600, 500)")] == [1.0, 1.0, 0.0]
    assert [click("[200, 300, 400, 700]"), click("[400, 300, 800, 700]")] == [1.0, 0.0]
    assert click("left of the door") is None


@pytest.mark.parametrize(
    ("reply", "value"),
    [("(250, 100)", 1.0), ("(100, 250)", 1.0), ("(400, 400)", 0.0), ("(750, 750)", 0.0), ("[0, 0, 200, 200]", 1.0)],
)
def test_a_click_is_in_a_polygon_and_not_in_the_notch_of_its_box(reply: str, value: float) -> None:
    # An L in 800 x 400 pixels: the upper and the left quarter of a square.
    answer = "[0, 0, 480, 0, 480, 80, 160, 80, 160, 240, 0, 240]"
    (score,) = scored(score_place, reply, answer, gold="pixels", gold_order="xywh", reply="0-1000")
    assert score.value == value


def test_a_card_without_frames_is_refused_and_so_is_an_unknown_one() -> None:
    sample = Sample("1", "t", Form.OPEN, "Where?", answers=(BOX,))
    prediction = Prediction(KEY, text="(1, 2)")
    with pytest.raises(ConfigError, match="coordinates"):
        score_place(sample, Request(KEY, ()), prediction, {})
    with pytest.raises(ConfigError, match="0-1000"):
        score_place(sample, Request(KEY, ()), prediction, {"coordinates": {"gold": "0-1", "reply": "0 to 2000"}})


def test_an_answer_that_is_no_box_is_unscored_and_said() -> None:
    [score] = scored(score_place, "(0.1, 0.2)", "here", gold="0-1", reply="0-1")
    assert score.reason == "the answer 'here' is not a box: no box found"


sides = st.floats(0.0, 1.0)


@given(st.tuples(sides, sides, sides, sides), st.tuples(sides, sides, sides, sides))
def test_overlap_is_a_share_and_does_not_care_for_the_order(one, other) -> None:
    first = (min(one[0], one[2]), min(one[1], one[3]), max(one[0], one[2]), max(one[1], one[3]))
    second = (min(other[0], other[2]), min(other[1], other[3]), max(other[0], other[2]), max(other[1], other[3]))
    assert 0.0 <= overlap(first, second) <= 1.0
    assert overlap(first, second) == overlap(second, first)


def test_a_box_needs_four_numbers() -> None:
    with pytest.raises(FrameProblem, match="four"):
        place_box((1, 2), "0-1", "xyxy", None)
