"""Markup is made in one place only, and nothing foreign gets through it as markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payloads import PAYLOADS
from snellen.core.markup import Html, join, shorten, tag, text
from snellen.report.pages.parts import outcome_tag, reply_text
from snellen.scoring.tables.table import Outcome


class Seen(HTMLParser):
    """What a parser makes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((name, attributes))

    def handle_data(self, data: str) -> None:
        self.words += data


@given(st.text(max_size=200))
def test_any_text_stays_text_in_elements_and_attributes(told: str) -> None:
    seen = Seen(tag("p", told, title=told))
    assert [name for name, _ in seen.tags] == ["p"]
    assert [name for name, _ in seen.tags[0][1]] == ["title"]
    shown = re.sub(
        r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]", "�", told
    )
    assert seen.tags[0][1][0][1] == shown


def test_payloads_make_no_element() -> None:
    def elements(payload: str) -> set[str]:
        page = join((tag("h1", payload), reply_text(payload, [1, 4]), tag("a", payload, href="/x", title=payload)))
        return {name for name, _ in Seen(page).tags}

    assert not [payload for payload in PAYLOADS if elements(payload) != {"h1", "pre", "mark", "a"}]


def test_attributes_by_name() -> None:
    assert (
        tag("a", "x", class_="b", aria_label="c", hidden=True, rel=None, download=False)
        == '<a class="b" aria-label="c" hidden>x</a>'
    )
    assert tag("svg", viewBox="0 0 1 1", font_size=3) == '<svg viewBox="0 0 1 1" font-size="3"></svg>'
    assert tag("br") == "<br>"


def test_children_may_be_nested_numbers_or_nothing() -> None:
    assert tag("p", ["a", ("b", None, 1, 2.5)], None) == "<p>ab12.5</p>"


def test_made_markup_is_not_escaped_twice() -> None:
    assert tag("p", tag("b", "<")) == "<p><b>&lt;</b></p>"
    assert isinstance(text("<"), Html)


def test_half_characters_and_controls_can_be_written() -> None:
    page = text("a\ud800b\x00c\x1b[2J\u202ed")
    assert page.encode("utf-8") == "a�b�c�[2J�d".encode()


def test_shorten_says_how_much_there_was() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("x" * 5000, 3) == "xxx… (5,000 characters)"


class TestReply:
    def test_marks_what_decided(self) -> None:
        assert "The answer is <mark" in reply_text("The answer is B.", (14, 15))
        assert ">B</mark>." in reply_text("The answer is B.", (14, 15))

    @pytest.mark.parametrize("span", [None, (), (5, 2), (0, 999), (-1, 3), ("a", "b"), "xy", [1.5, 2.5], {}])
    def test_senseless_spans_mark_nothing(self, span: object) -> None:
        assert "<mark" not in reply_text("short", span)  # type: ignore[arg-type]

    def test_ten_megabytes_are_cut_around_the_mark(self) -> None:
        page = reply_text("a" * 5_000_000 + "B" + "c" * 5_000_000, (5_000_000, 5_000_001), most=1000)
        assert len(page) < 3000
        assert ">B</mark>" in page

    def test_empty_and_missing_differ(self) -> None:
        assert "(empty reply)" in reply_text("")
        assert "no reply" in reply_text(None)


def test_outcomes_have_a_word_and_a_sign() -> None:
    shown = [Seen(outcome_tag(kind, 0.5)).words for kind in Outcome]
    assert shown == ["✓ right", "◐ 50%", "✗ wrong", "? unread", "! failed", "… pending", "– unjudged"]
