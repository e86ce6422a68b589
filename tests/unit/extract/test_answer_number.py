"""Which of several numbers a reply answers with (`extract.rules.answer_number`); where nothing says so, none is taken."""

from __future__ import annotations

import pytest

from snellen.extract.answer_number import LAST
from snellen.extract.other_kinds import extract_number


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Answer: 3 + 4 = 7", 7),
        ("Answer: $3 + 4 = 7$", 7),
        ("Answer: 7 (3 + 4)", 7),
        ("Answer: 7. The left has 3 and the right has 4.", 7),
        ("The answer is 7, not 5.", 7),
        ("The answer is about 7.", 7),
        ("The answer is 10 out of 12.", 10),
        ("The answer to question 2 is 4.", 4),
        ("Answer: 12 (see Figure 3)", 12),
        ("In step 3, there are 2 arrows.", 2),
        ("Step 3", 3),
        ("The answer is step 3.", 3),
        ("Total = 3 + 4 = 7", 7),
        ("The answer is not 5 but 7.", 7),
        ("Answer: 5. Actually, 7.", 7),
        ("Answer: 5? No, it's 7.", 7),
        ("答案是3。", 3),
        ("答案是3万。", 30_000),
        ("1.5万", 15_000),
        ("图中有3只猫。", 3),
        ("答えは3つです。", 3),
        ("정답은 3입니다.", 3),
    ],
)
def test_the_number_that_is_meant(reply: str, value: float) -> None:
    found = extract_number(reply)
    assert (found.value, found.rule != LAST) == (value, True)


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: In 2019, there were 45 people.",
        "The answer is that triangle 1 has an area of 12.",
        "Answer: 5 or 6",
        "Answer: 5-7",
        "The answer is 7 to 9.",
        "The answer is 3 + 4, i.e. 7.",
        "The answer is one half.",
        "It is two thirds.",
        "Figure 3 shows a cat.",
        "More than 7.",
        "There are at least 7 birds.",
        "The answer is 7 or more.",
        "7+",
        "Answer: 2 dozen",
        "x = 2, y = 3",
        "答案是3或5。",
        "答案是3到5个",
        "3月5日",
        "图中有3只猫和2只狗。",
    ],
)
def test_where_several_may_be_meant_none_is_committed_to(reply: str) -> None:
    found = extract_number(reply)
    assert found.value is None or found.rule == LAST
