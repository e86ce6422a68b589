"""Wrapping, columns, alignment and offsets: what a line holds is what the text holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.kits.pages.font_files import BUILT_IN
from snellen.kits.pages.fonts import TextFont
from snellen.kits.pages.layout import clean_text, lay_out, normalise
from snellen.kits.pages.page_style import PageStyle, style_of
from snellen.kits.pages.render import span_boxes

FONT = TextFont(BUILT_IN, 12.0)
SMALL = PageStyle(width_pt=200, height_pt=120, dpi=72, font=BUILT_IN, size_pt=12, leading_pt=14, margin_pt=5)


def lines_of(text: str, style: PageStyle = SMALL) -> list:
    return [line for page in lay_out(clean_text(text), style, FONT) for line in page]


@settings(max_examples=120, deadline=None)
@given(
    st.text(alphabet="abc XYZ\t\n中文。「」éß-,.()", max_size=400),
    st.sampled_from(["keep", "space", "paragraph", "mark"]),
)
def test_every_visible_character_stands_on_exactly_one_line_in_order(text: str, newlines: str) -> None:
    style = PageStyle(
        width_pt=120, height_pt=90, dpi=72, font=BUILT_IN, size_pt=10, leading_pt=12, margin_pt=4, newlines=newlines
    )
    laid = normalise(clean_text(text), newlines)
    words = [(word, at) for line in lines_of(text, style) for word, _, at in line.words]
    assert all(laid[at : at + len(word)] == word for word, at in words)
    assert "".join(word for word, _ in words) == "".join(laid.split())
    assert [at for _, at in words] == sorted(at for _, at in words)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab cdefgh", min_size=1, max_size=300), st.sampled_from(["left", "right", "centre", "justify"]))
def test_no_line_leaves_its_column(text: str, align: str) -> None:
    style = PageStyle(
        width_pt=150,
        height_pt=90,
        dpi=72,
        font=BUILT_IN,
        size_pt=10,
        leading_pt=12,
        margin_pt=6,
        columns=2,
        align=align,
    )
    for line in lines_of(text, style):
        left, _, right, _ = line.box
        assert 0 <= left <= right <= 150
        assert line.column in (0, 1)


def test_a_token_longer_than_the_line_is_cut_and_none_of_it_lost() -> None:
    token = "x" * 500
    lines = lines_of(f"start {token} end")
    assert "".join(word for line in lines for word, _, _ in line.words) == f"start{token}end"
    assert max(line.width for line in lines) <= 190


def test_indentation_and_tabs_stay_and_spaces_at_a_break_vanish() -> None:
    lines = lines_of("def f():\n    return 1\n\treturn 2")
    space = FONT.advance(" ")
    assert lines[1].words[0][1] == 4 * space
    assert lines[2].words[0][1] == 4 * space  # a tab stop every four spaces
    wrapped = lines_of("aaaa " * 30)
    assert all(line.words[0][1] == 0 for line in wrapped)


def test_closing_marks_never_begin_a_line_of_chinese() -> None:
    lines = lines_of("今天天气很好，我们去公园散步。" * 12)
    assert len(lines) > 3
    assert all(line.words[0][0][0] not in "，。" for line in lines)


def test_pages_fill_up_and_an_empty_text_is_one_empty_page() -> None:
    pages = list(lay_out("line\n" * 40, SMALL, FONT))
    assert [len(page) for page in pages[:-1]] == [7] * (len(pages) - 1)
    assert next(lay_out("", SMALL, FONT))[0].words == ()


def test_the_box_of_a_stretch_covers_its_words_only() -> None:
    text = "alpha beta gamma"
    ((line, box),) = span_boxes(lines_of(text), 6, 10, FONT)
    assert box[0] == line.x + FONT.advance("alpha") + FONT.advance(" ")
    assert box[2] - box[0] == FONT.advance("beta")


@pytest.mark.parametrize(
    "field, value", [("align", "middle"), ("crop", "some"), ("newlines", "drop"), ("dpi", 0), ("columns", 0)]
)
def test_a_wrong_style_is_refused_by_name(field: str, value: object) -> None:
    from snellen.core.errors import UsageError

    with pytest.raises(UsageError, match="page style"):
        style_of("seed", {field: value})
