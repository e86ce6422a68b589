"""Tables in every form: nothing in a cell can become a formula, a command or markup."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payloads import PAYLOADS
from snellen.core.text import OBEYED
from snellen.report.pages.sheet import (
    FORMS,
    Sheet,
    render,
    safe_cell,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    to_terminal,
)

SHEET = Sheet("Title & co", ("name", "value %"), (("a|b_c", "12.5"), ("=1+1", "-3.2")), "a note")


@pytest.mark.parametrize(
    "cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "\t=1", "\r=1", "  =1", "=HYPERLINK(1)", "\n=1"]
)
def test_formulas_are_defused(cell: str) -> None:
    assert safe_cell(cell) == "'" + cell


@pytest.mark.parametrize("lead", ["\ufeff", "\u200b", "\u2060\u200e ", "\xa0", "\u3000", "\xad"])
@pytest.mark.parametrize("sign", ["=", "+", "@", "-", "\uff1d"])
def test_what_cannot_be_seen_before_a_formula_hides_nothing(lead: str, sign: str) -> None:
    assert safe_cell(f"{lead}{sign}1+cmd") == f"'{lead}{sign}1+cmd"


def test_no_cell_holds_what_a_terminal_obeys() -> None:
    assert safe_cell("\x0b=1+1") == "'\ufffd=1+1"
    assert safe_cell("a\x1b]0;title\x07b\x9b2J") == "a\ufffd]0;title\ufffdb\ufffd2J"
    assert safe_cell("two\r\nlines\tand a tab") == "two\r\nlines\tand a tab"


@pytest.mark.parametrize("cell", ["-3.2", "+1", "1e-5", "-4.5 %", "plain", "", "a=b", "– none"])
def test_numbers_and_words_stay_as_they_are(cell: str) -> None:
    assert safe_cell(cell) == cell


@given(st.text(max_size=30))
def test_no_cell_begins_like_a_formula(text: str) -> None:
    cell = safe_cell(text)
    assert not cell.lstrip(" ").startswith(("=", "@", "\t", "\r"))
    assert OBEYED.sub("\ufffd", text) in (cell, cell.removeprefix("'"))


def test_csv_can_be_read_back() -> None:
    assert list(csv.reader(io.StringIO(to_csv(SHEET)))) == [["name", "value %"], ["a|b_c", "12.5"], ["'=1+1", "-3.2"]]


def test_a_lone_return_begins_no_row_for_a_spreadsheet() -> None:
    made = to_csv(Sheet("t", ("a", "b"), (("x\r=1+1", "c"),)))
    assert made == 'a,b\n"x\r=1+1",c\n'


def test_markdown_escapes_pipes_and_marks() -> None:
    assert r"| a\|b\_c | 12.5 |" in to_markdown(SHEET)


def test_latex_escapes_its_own_characters() -> None:
    assert r"a\textbar{}b\_c & 12.5 \\" in to_latex(SHEET)
    assert r"\caption{Title \& co}" in to_latex(SHEET)
    assert r"\textbackslash{}input" in to_latex(Sheet("t", ("a",), ((r"\input{/etc/passwd}",),)))


def test_html_is_one_page_without_script() -> None:
    page = to_html(SHEET)
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "Title &amp; co" in page


@pytest.mark.parametrize("payload", PAYLOADS[::7])
def test_payloads_stay_text(payload: str) -> None:
    sheet = Sheet(payload, (payload,), ((payload,),), payload)
    assert "<script" not in to_html(sheet).replace("&lt;script", "")
    assert "\x1b" not in to_terminal(sheet)


def test_terminal_has_no_escape_from_cells() -> None:
    shown = to_terminal(Sheet("t", ("a",), (("\x1b[2Jx\x07 [red]y[/red]",),)))
    assert "\x1b" not in shown
    assert "[red]y[/red]" in shown


def test_every_form_renders_many_sheets() -> None:
    for form in FORMS:
        told = render([SHEET, SHEET], form)
        assert told.count("12.5") == 2, form
