"""TIR-Bench's rules by hand, and against their published formulas on drawn answers."""

from __future__ import annotations

import random

import pytest

from snellen.core.types import Form, Sample
from snellen.kits.bridges.open_rules import judge_tir


def judged(task: str, answer: str, reply: str) -> float | None:
    return judge_tir(reply, Sample("1", "t", Form.OPEN, "?", answers=(answer,), tags={"task": task}))


@pytest.mark.parametrize(
    ("task", "answer", "reply", "value"),
    [
        ("maze", "B", "B", 1.0),
        ("maze", "B", "**Answer:** (C)", 0.0),
        ("maze", "B", "I do not know.", None),
        ("contrast", "ACD", "The answer is: A, C, D", 1.0),
        ("contrast", "ACD", "DCA", 1.0),
        ("contrast", "ACD", "Answer: AC", 0.0),
        ("math", "-3", "It is -3.", 1.0),
        ("instrument", "3.50", "about 3.5 bar", 1.0),
        ("ocr", "EXIT", "it says exit", 0.0),
        ("spot_difference", "3", "There are 3 differences.", 1.0),
        ("spot_difference", "1,2", "none", None),
        ("word_search", "4,5", "Row 4, column 5", None),
        ("jigsaw", "2 1 4 3", "2, 1, 4", None),
        ("jigsaw", "1,2,3,4,5,6,7,8,9", "Grid of 3 x 3:\n1 2 3\n4 5 6\n9 8 7", 7 / 9),
    ],
)
def test_each_task_has_its_rule(task: str, answer: str, reply: str, value: float | None) -> None:
    assert judged(task, answer, reply) == value


def test_sets_and_orders_are_the_published_shares() -> None:
    draw = random.Random(1)
    for _ in range(500):
        right, said = ([draw.randint(1, 9) for _ in range(draw.randint(1, 6))] for _ in range(2))
        union = len({*right, *said})
        if len(right) > 1:
            share = len({*right} & {*said}) / union
            assert judged("spot_difference", str(right), f"Answer: {', '.join(map(str, said))}") == share
        order, tried = (draw.sample(range(1, 10), 9) for _ in range(2))
        same = sum(one == other for one, other in zip(order, tried, strict=True)) / 9
        assert judged("jigsaw", str(order), f"I put them so: {tried}") == same
