"""Twenty-eight replies, one a family of models and its spelling: all point at the same place of the same picture.

The picture is 1920 by 1080 and was sent at 960 by 540; the target's middle is at 3/4 of the width and 1/4 of the
height, or there is none. What each reply says was written down by hand, from the spelling its family documents.
"""

from __future__ import annotations

import pytest

from snellen.core.types import Form, Image, ImageSent, Prediction, Request, Sample, TrialKey
from snellen.scoring.scorers.grounding import score_place

KEY = TrialKey("t", "1")
SENT = ImageSent("0" * 64, "image/png", 960, 540, 10, original=(1920, 1080))
TARGET = "[1430, 262, 1450, 278]"
"""In pixels of the source: 20 by 16 about (1440, 270)."""
GRID = "sent-pixels grid=28 area=12845056"
"""960 by 540 becomes 952 by 532."""
REPLIES = {
    "Claude, computer use": ('{"action": "left_click", "coordinate": [720, 135]}', "sent-pixels"),
    "OpenAI, computer use": ('{"type": "click", "button": "left", "x": 720, "y": 135}', "sent-pixels"),
    "Claude, in words": ("The button is at (720, 135).", "sent-pixels"),
    "Qwen2.5-VL, function": (
        '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [714, 133]}}\n</tool_call>',
        GRID,
    ),
    "Qwen2.5-VL, JSON": ('```json\n[{"point_2d": [714, 133], "label": "save"}]\n```', GRID),
    "Qwen2.5-VL, box": ('```json\n[\n\t{"bbox_2d": [709, 129, 719, 137], "label": "save"}\n]\n```', GRID),
    "UI-TARS-1.5": ("Thought: The icon is there.\nAction: click(point='<point>714 133</point>')", GRID),
    "Holo1.5": ('{"x": 714, "y": 133}', GRID),
    "Qwen2-VL": ("<|object_ref_start|>save<|object_ref_end|><|box_start|>(745,243),(755,257)<|box_end|>", "0-1000"),
    "Qwen3-VL": ('{"bbox_2d": [745, 243, 755, 257]}', "0-1000"),
    "GLM-4.5V": ("It is <|begin_of_box|>[745, 243, 755, 257]<|end_of_box|>", "0-1000"),
    "InternVL": ("<ref>save</ref><box>[[745, 243, 755, 257]]</box>", "0-1000"),
    "OS-Atlas": ("Actions:\nCLICK <point>[[750, 250]]</point>", "0-1000"),
    "UI-TARS-1.0": ("Action: click(start_box='<|box_start|>(750,250)<|box_end|>')", "0-1000"),
    "CogAgent": ("Grounded Operation: CLICK(box=[[745,243,755,257]], element_info='save')", "0-1000"),
    "Gemini, point": ('[{"point": [250, 750], "label": "save"}]', "0-1000 y-first"),
    "Gemini, box": ('[{"box_2d": [243, 745, 257, 755], "label": "save"}]', "0-1000 y-first"),
    "Kimi-VL": ("pyautogui.click(x=0.750, y=0.250)", "0-1"),
    "Aguvis": ("<|recipient|>os\npyautogui.click(x=0.75, y=0.25)", "0-1"),
    "ShowUI": ("[0.75, 0.25]", "0-1"),
    "SeeClick": ("(0.75,0.25)", "0-1"),
    "Molmo": ('<point x="75.0" y="25.0" alt="save button">save button</point>', "0-100"),
    "PaliGemma, point": ("<loc0256><loc0768>", "0-1000"),
    "PaliGemma, box": ("<loc0252><loc0764><loc0260><loc0772> save", "0-1000"),
    "a thinker": ("<think>perhaps (100, 200)?</think>\nx = 750, y = 250", "0-1000"),
    "a look before the answer": (
        '<tool_call>{"name": "image_zoom_in_tool", "arguments": {"bbox_2d": [600, 100, 900, 400]}}</tool_call>\n(750, 250)',
        "0-1000",
    ),
    "a refusal": ("[-1, -1]", "0-1000"),
    "a refusal in JSON": ('{"bbox_2d": null}', "0-1000"),
}
REFUSING = ("a refusal", "a refusal in JSON")


def verdict(reply: str, frame: str, answer: str, **options: str) -> dict[str, float | None]:
    sample = Sample("1", "t", Form.OPEN, "Where?", (Image("/x.png"),), answers=(answer,))
    prediction = Prediction(KEY, text=reply, images=(SENT,))
    told = {"coordinates": {"gold": "pixels", "reply": frame}, "refusals": "said", **options}
    return {score.metric: score.value for score in score_place(sample, Request(KEY, ()), prediction, told)}


def test_there_are_twenty_eight() -> None:
    assert len(REPLIES) == 28


@pytest.mark.parametrize("family", REPLIES)
def test_a_reply_of_every_family_is_read_where_it_points(family: str) -> None:
    reply, frame = REPLIES[family]
    if family in REFUSING:
        assert verdict(reply, frame, "absent") == {"accuracy": 1.0, "refused": 1.0, "clicked": 0.0}
        assert verdict(reply, frame, TARGET) == {"accuracy": 0.0, "refused": 1.0, "clicked": 0.0}
    else:
        assert verdict(reply, frame, TARGET) == {"accuracy": 1.0, "refused": 0.0, "clicked": 1.0}
        assert verdict(reply, frame, "absent") == {"accuracy": 0.0, "refused": 0.0, "clicked": 1.0}


@pytest.mark.parametrize("family", [name for name in REPLIES if name not in REFUSING])
def test_a_target_beside_the_place_is_not_hit(family: str) -> None:
    reply, frame = REPLIES[family]
    assert verdict(reply, frame, "[1452, 262, 1472, 278]")["accuracy"] == 0.0
    assert verdict(reply, frame, "[1430, 280, 1450, 296]")["accuracy"] == 0.0


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("I zoom into [600, 100, 900, 400] first. The button is at (750, 250).", 1.0),
        ("The button [700, 200, 800, 300] has its middle at (750, 250).", 1.0),
        ("The window is [100, 600, 300, 900]; the button is at (750, 250).", None),
        ("Candidates: (100, 200), (750, 250).\nFinal answer: (750, 250)", 1.0),
        ("<answer>(750, 250)</answer> and not (1, 2)", 1.0),
        ('<tool_call>{"name": "zoom", "arguments": {"box": [700, 200, 800, 300]}}</tool_call>', None),
        ("<loc0256>", None),
        ("The button does not exist in this screenshot.", 0.0),
        ("75%, 25%", None),
        ('<points x1="750" y1="250" x2="10" y2="20" alt="a">a</points>', None),
    ],
)
def test_one_place_is_the_answer_or_none_is(reply: str, wanted: float | None) -> None:
    assert verdict(reply, "0-1000", TARGET)["accuracy"] == wanted


def test_by_the_authors_rule_only_negative_numbers_refuse() -> None:
    for reply, wanted in (("[-1, -1]", 1.0), ("(-20, -3)", 1.0), ('{"bbox_2d": null}', None), ("no such button", None)):
        assert verdict(reply, "0-1000", "absent", refusals="negative")["accuracy"] == wanted
    assert verdict("(-5, 300)", "0-1000", "absent", refusals="negative")["accuracy"] == 0.0


def test_a_click_anywhere_is_a_click_where_nothing_is_there() -> None:
    assert verdict("(5000, 9000)", "0-1000", "absent") == {"accuracy": 0.0, "refused": 0.0, "clicked": 1.0}


def test_several_points_count_by_their_share_where_the_card_says_so() -> None:
    reply = "[(0.75, 0.25), (0.1, 0.1), (1.4, 0.2), (0.7499, 0.2501)]"
    assert verdict(reply, "0-1", TARGET, several="share", refusals="")["accuracy"] == 0.5
    assert verdict(reply, "0-1", TARGET, refusals="")["accuracy"] is None
