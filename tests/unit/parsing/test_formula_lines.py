"""Formulas of several lines: which are cut, what each line says, and where it stands in what was written."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytest.importorskip("bs4")

from snellen.kits.parsing.ccocr import score_words
from snellen.kits.parsing.omnidoc_lines import formula_lines


@pytest.mark.parametrize(
    ("formula", "contents"),
    [
        (r"$$a = b \\ c = d$$", ["a = b", "c = d"]),
        (r"a = b \\ a = b \\ c", ["a = b", "a = b", "c"]),
        (r"$$\begin{aligned} a &= b \\ c &= d \end{aligned}$$", ["a &= b", "c &= d"]),
        (r"\begin{aligned} a &= \frac{1 \\ 2}{3} \\ c &= d \end{aligned}", [r"a &= \frac{1 \\ 2}{3}", "c &= d"]),
        (r"\begin{aligned} a &= b \\[2pt] c &= d \end{aligned}", ["a &= b", "c &= d"]),
        (r"$$a = b$$", []),
        (r"$$a = b \\$$", []),
    ],
)
def test_lines_stand_where_they_were_written(formula: str, contents: list[str]) -> None:
    lines = formula_lines(formula)
    assert [line.content for line in lines] == contents
    assert [formula[line.start : line.end + 1] for line in lines] == contents
    assert all(one.end < other.start for one, other in pairwise(lines))


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ("", ""),
        (r" \quad (1)", ""),
        (r" \quad [2.3]", ""),
        (r" \tag{4}", ""),
        (r" \label{eq:one}", ""),
        (r" \quad (a)", " (a)"),  # a letter may be part of the formula
        (r" f(1)", " f(1)"),  # and so may what stands close to it
    ],
)
def test_numbers_behind_an_environment_are_no_part_of_its_last_line(after: str, kept: str) -> None:
    lines = formula_lines(r"\begin{aligned} a &= b \\ c &= d \end{aligned}" + after)
    assert lines[0].content == "a &= b"
    assert lines[-1].content.replace(r"\quad ", "") == "c &= d" + kept


@pytest.mark.parametrize(
    ("reply", "gold", "subset", "f1"),
    [
        ("The cat", "the cat", "", 1.0),
        ("the cat", "the dog", "", 0.5),
        ("the cat sat", "the cat", "", 0.8),
        ("the the", "the", "", 2 / 3),
        ("猫狗", "猫鸟", "zh", 0.5),
        ("", "the cat", "", 0.0),
    ],
)
def test_bags_of_words_have_the_f1_of_a_count_by_hand(reply: str, gold: str, subset: str, f1: float) -> None:
    assert score_words(reply, gold, subset) == pytest.approx(f1, abs=1e-6)
