"""Which of several numbers a reply answers with (`extract.rules.answer_number`); where nothing says so, none is taken."""

from __future__ import annotations

import pytest

from snellen.extract.other_kinds import LAST, extract_number


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
        ("9 - 3 = 6 and 6 - 2 = 4. Therefore, the final number of objects left is: 4", 4),
        ("The sides are 5, 3, 5 and 3. So the perimeter of the rectangle is 16 cm.", 16),
        ("The first has 8, the last 2. The difference is 6. Is there anything else I can help you with?", 6),
        ("Of the 12 bars some are small. Therefore, there are only 3 bars with values below 6.", 3),
        ("The line starts at 0 cm. It is about **8** centimetres long and ends at 8.1 cm.", 8),
        ("Es sind 4 und 5 Kugeln. Die Summe beträgt 9.", 9),
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
        "The voltage is 3.71 V and the current is 0.79 mA.",
        "There are 4 cars and 1 bus.",
        "There are 5 items, because 2 were subtracted from 7.",
        "If the line measures 5 cm on a ruler of 30 cm, the answer would be 5.",
        "Posse: 8\nPermit: 9\nNerve: 0",
        "The range is from 6 to 10.",
        "The left one is **4**, the right one is **7**.",
    ],
)
def test_where_several_may_be_meant_none_is_committed_to(reply: str) -> None:
    found = extract_number(reply)
    assert found.value is None or found.rule == LAST
