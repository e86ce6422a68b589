"""Rows of an eye chart in replies: found by number, compared by place, and a guess that counts as often as chance says."""

from __future__ import annotations

import random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.types import Form, Prediction, Request, Sample, Score, TrialKey, Turn
from snellen.scoring.aggregates.acuity import acuity, score
from snellen.scoring.scorers.chart_rows import Row, Shape, chance_by_distance, chances_of_pairing, compare, read_rows

SLOAN = "CDHKNORSVZ"
LETTERS, DIGITS = Shape(SLOAN, 0.1), Shape("0123456789", 0.1)
TRUTHS = ["KDHS", "NRVZC", "OHSNDK"]
KEY = TrialKey("eyechart", "s")


def right(reply: str, shape: Shape = LETTERS, truths: list[str] = TRUTHS) -> list[int]:
    return [row.right for row in read_rows(truths, reply, shape)[0]]


@pytest.mark.parametrize(
    "reply",
    [
        "1: KDHS\n2: NRVZC\n3: OHSNDK",
        "Here you go:\n\n1: k d h s\n2: N R V Z C\n3: OHSNDK\n",
        "**1:** KDHS\n**2:** NRVZC\n**3:** OHSNDK",
        "Row 1: KDHS\nRow 2: NRVZC\nRow 3: OHSNDK",
        "1. KDHS\n2) NRVZC\n3 OHSNDK",
        "1: KDHS, 2: NRVZC, 3: OHSNDK",
        "3: OHSNDK\n2: NRVZC\n1: KDHS",
        "KDHS\nNRVZC\nOHSNDK",
        "The chart says:\nKDHS\nNRVZC\nOHSNDK",
        "KDHS NRVZC OHSNDK",
    ],
)
def test_a_perfect_reading_counts_fully_whatever_its_dress(reply: str) -> None:
    assert right(reply) == [4, 5, 6]


def test_numbers_of_rows_are_not_digits_of_a_chart() -> None:
    truths = ["1234", "56789"]
    assert right("1: 1234\n2: 56789", DIGITS, truths) == [4, 5]
    assert right("1234\n56789", DIGITS, truths) == [4, 5]
    assert right("1 2 3 4\n5 6 7 8 9", DIGITS, truths) == [4, 5]


def test_rows_are_compared_by_place_and_never_with_a_better_fitting_row() -> None:
    shifted = read_rows(["CDHKN", "DHKNO"], "1: DHKNO\n2: CDHKN", LETTERS)[0]
    assert [row.right for row in shifted] == [0, 0]
    assert right("1: OHSNDK\n2: KDHS\n3: NRVZC") == [0, 0, 0]


def test_what_is_not_seen_is_neither_right_nor_wrong() -> None:
    rows, rule = read_rows(TRUTHS, "1: KD??\n3: (too small to read)", LETTERS)
    assert rule == "by number"
    assert [(row.glyphs, row.right, row.wrong) for row in rows] == [(4, 2, 0), (5, 0, 0), (6, 0, 0)]
    assert compare("KDHS", "KDXX", LETTERS) == Row(4, 2, 0, 0.1, written=4, outside=2)
    assert compare("KDHS", "KDSS", LETTERS) == Row(4, 3, 1, 0.1, written=4)


def test_a_row_of_another_length_has_its_own_chance() -> None:
    row = compare("KDHSNRVZ", "KDHSNRV", LETTERS)
    assert (row.right, row.wrong, row.by_place) == (7, 0, False)
    assert 8 * 0.15 < 7 * row.chance < 8 * 0.18


@pytest.mark.parametrize(("glyphs", "written", "chance"), [(4, 3, 0.145), (8, 7, 0.166), (10, 9, 0.175), (8, 9, 0.078)])
def test_the_chance_by_edit_distance_is_that_of_random_rows(glyphs: int, written: int, chance: float) -> None:
    share = chance_by_distance(10, glyphs, written) * min(glyphs, written) / glyphs
    assert share == pytest.approx(chance, abs=0.01)


def test_the_best_pairing_has_a_chance_of_its_own() -> None:
    chances = chances_of_pairing(10, (8,) * 6, (8,) * 5)
    assert all(0.1 < chance < 0.4 for chance in chances)


@given(st.lists(st.text(SLOAN, min_size=1, max_size=10), min_size=1, max_size=6), st.text(max_size=120))
def test_counts_of_any_reply_add_up(truths: list[str], reply: str) -> None:
    rows, _ = read_rows(truths, reply, LETTERS)
    for row, truth in zip(rows, truths, strict=True):
        assert row.glyphs == len(truth)
        assert min(row.right, row.wrong) >= 0
        assert row.right + row.wrong <= row.glyphs + 1e-9
        assert 0 <= row.chance < 1


def chart(index: int, script: str = SLOAN) -> Sample:
    draw = random.Random(index)
    lines = [
        {"text": "".join(draw.choices(script, k=4 + place // 2)), "height_px": 40 * 0.76**place, "contrast": 1.0}
        for place in range(12)
    ]
    meta = {"lines": lines, "alphabet": script, "chance": 0.1}
    return Sample(f"s{index}", "eyechart", Form.OCR, "?", tags={"axis": "base", "script": "letters"}, meta=meta)


def scored(sample: Sample, text: str, **more: Any) -> Score:
    request = Request(KEY, (Turn("user", "?"),))
    return score(sample, request, Prediction(KEY, text=text, **more), {})[0]


def replies(sample: Sample, write: Any) -> str:
    texts = [line["text"] for line in sample.meta["lines"]]
    return "\n".join(f"{number}: {''.join(map(write, text))}" for number, text in enumerate(texts, 1))


@pytest.mark.parametrize("script", [SLOAN, "0123456789"])
def test_who_gets_every_glyph_wrong_reads_nothing(script: str) -> None:
    draw = random.Random(3)
    charts = [chart(index, script) for index in range(12)]
    wrong = [scored(one, replies(one, lambda true: draw.choice(script.replace(true, "")))) for one in charts]
    assert [item.value for item in wrong] == [0.0] * 12
    unnumbered = [
        scored(one, replies(one, lambda true: draw.choice(script.replace(true, ""))).replace(": ", " "))
        for one in charts
    ]
    assert abs(fmean(item.value or 0.0 for item in unnumbered)) < 0.05


@pytest.mark.parametrize("habit", ["guess", "same", "silent"])
def test_who_sees_nothing_reads_nothing_and_has_no_acuity(habit: str) -> None:
    draw = random.Random(7)
    write = {"guess": lambda _: draw.choice(SLOAN), "same": lambda _: "H", "silent": lambda _: "?"}[habit]
    pairs = [(one, scored(one, replies(one, write))) for one in (chart(index) for index in range(40))]
    assert abs(fmean(item.value or 0.0 for _, item in pairs)) < 0.02
    assert acuity(pairs[:9], {})["acuity_px"].value is None


def test_acuity_of_a_guesser_is_not_flattered() -> None:
    draw = random.Random(5)
    pairs = []
    for one in (chart(index) for index in range(12)):
        rows = []
        for number, line in enumerate(one.meta["lines"], 1):
            seen = 1 / (1 + (8 / line["height_px"]) ** 5)
            rows.append(
                f"{number}: " + "".join(c if draw.random() < seen else draw.choice(SLOAN) for c in line["text"])
            )
        pairs.append((one, scored(one, "\n".join(rows))))
    estimates = acuity(pairs, {})
    assert estimates["acuity_px"].value == pytest.approx(8.0, rel=0.1)
    assert estimates["wrong_length_rate"].value == estimates["outside_alphabet_rate"].value == 0.0


def test_a_reply_that_was_cut_is_not_scored() -> None:
    cut = scored(chart(0), "1: KD", finish="length")
    assert (cut.value, (cut.reason or "")[:9]) == (None, "truncated")
    thought = scored(chart(0), "<think>1: KDHS")
    assert (thought.value, (thought.reason or "")[:9]) == (None, "truncated")


def test_a_chart_asked_twice_weighs_as_one() -> None:
    draw = random.Random(11)
    pairs = []
    for one in (chart(index) for index in range(6)):
        rows = [
            f"{number}: {line['text'] if line['height_px'] > 7 * draw.uniform(0.8, 1.2) else '?'}"
            for number, line in enumerate(one.meta["lines"], 1)
        ]
        pairs.append((one, scored(one, "\n".join(rows))))
    once, twice = acuity(pairs, {})["acuity_px"], acuity([*pairs, *pairs], {})["acuity_px"]
    assert once.ci95 == pytest.approx(twice.ci95)


def test_choices_not_made_are_not_seen_and_do_not_vanish() -> None:
    draw = random.Random(9)
    pairs = []
    for index in range(600):
        height = draw.uniform(2, 40)
        seen = draw.random() < 1 / (1 + (8 / height) ** 5)
        meta = {"lines": [{"text": "HK", "height_px": height, "contrast": 1.0}]}
        sample = Sample(f"s{index}", "e", Form.CHOICE, "?", options=tuple("abcd"), group=f"g{index % 50}", meta=meta)
        item = Score(KEY, "accuracy", 1.0) if seen else Score(KEY, "accuracy", None, reason="refused")
        pairs.append((sample, item))
    found = acuity(pairs, {})["acuity_px"]
    assert found.value == pytest.approx(8.0, rel=0.1)
