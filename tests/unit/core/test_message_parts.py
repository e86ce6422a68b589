"""Texts, pictures and markers: a message keeps the order of its parts, and what was stored before is read as it was."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.message_parts import (
    all_pictures,
    assemble_turn,
    change_pictures,
    holds_marker,
    keep_pictures,
    marked_pictures,
    name_all,
    number_markers,
    replace_text,
    without_markers,
    write_markers,
)
from snellen.core.types import Form, Image, Sample, Turn

A, B = Image("/data/a.png"), Image("/data/b.png")
PIECES = st.lists(st.one_of(st.text(max_size=6), st.sampled_from([A, B])), max_size=8)


def test_a_message_of_the_first_versions_is_read_and_written_as_it_was() -> None:
    stored = b'{"role":"user","text":"What?","images":[{"ref":"/data/a.png"}]}'
    turn = msgspec.json.decode(stored, type=Turn)
    assert (turn, turn.parts) == (Turn("user", "What?", (A,)), ())
    assert msgspec.json.encode(turn) == stored
    assert turn.arrange([1]) == [1, "What?"]


def test_parts_are_stored_only_where_pictures_do_not_come_first() -> None:
    assert assemble_turn("user", [A, B, "\nWhat?"]) == Turn("user", "What?", (A, B))
    assert assemble_turn("user", ["What?"]) == Turn("user", "What?")
    assert assemble_turn("user", [A]) == Turn("user", "", (A,))
    turn = assemble_turn("user", ["Is ", A, " or ", B, " red?\n", A])
    assert turn == Turn("user", "Is  or  red?\n", (A, B, A), ("Is ", 0, " or ", 1, " red?\n", 2))
    assert msgspec.json.decode(msgspec.json.encode(turn), type=Turn) == turn


@given(PIECES)
def test_whatever_the_parts_their_order_and_their_words_stay(pieces: list[str | Image]) -> None:
    turn = assemble_turn("user", pieces)
    shown = turn.arrange(turn.images)
    assert [part for part in shown if not isinstance(part, str)] == [
        part for part in pieces if not isinstance(part, str)
    ]
    words = "".join(part if isinstance(part, str) else "\0" for part in pieces)
    kept = "".join(part if isinstance(part, str) else "\0" for part in shown)
    assert "".join(kept.split()) == "".join(words.split())
    assert not turn.parts or all(part.strip() for part in shown if isinstance(part, str))


@pytest.mark.parametrize("marker", ["<image 1>", "<image_1>", "<image1>", "<image>", "<Image 1>", "<IMAGE_1>"])
def test_all_spellings_of_a_marker_are_one(marker: str) -> None:
    (text,) = number_markers([f"see {marker}."])
    assert (holds_marker(text), marked_pictures([text]), without_markers(text)) == (True, [1], "see  .")


@pytest.mark.parametrize("text", ["image 1", "<image", "<images>", "<image x>", "< image 1>", "<img>", "<image 12345>"])
def test_what_is_no_marker_stays_text(text: str) -> None:
    assert not holds_marker(text)


def test_bare_markers_are_counted_over_all_texts() -> None:
    assert number_markers(["<image> and <image>", "none", "<image>"]) == [
        "<image 1> and <image 2>",
        "none",
        "<image 3>",
    ]


def test_pictures_without_a_marker_get_one_before_the_text() -> None:
    assert name_all("Is <image 2> red?", 3) == "<image 1><image 3>\nIs <image 2> red?"
    assert name_all("What?", 0) == "What?"
    assert name_all("", 1) == "<image 1>"


def test_one_string_shows_by_markers_where_pictures_stand() -> None:
    inside = assemble_turn("user", ["Is ", B, " red?"])
    messages = (Turn("user", "What?", (A,)), Turn("assistant", "A cat."), inside)
    assert [turn.text for turn in write_markers(messages)] == ["What?", "A cat.", "Is <image 2> red?"]
    assert write_markers(messages[:2]) is messages[:2] or [t.text for t in write_markers(messages[:2])] == [
        "What?",
        "A cat.",
    ]


def test_some_pictures_of_a_message_keep_their_places() -> None:
    turn = assemble_turn("user", ["one ", A, " two ", B, " end"])
    assert keep_pictures(turn, range(1, 2)) == assemble_turn("user", ["one  two ", B, " end"])
    assert keep_pictures(Turn("user", "x", (A, B)), range(1)) == Turn("user", "x", (A,))
    assert replace_text(turn, "two", "2").arrange(turn.images) == ["one ", A, " 2 ", B, " end"]


def test_pictures_of_earlier_rounds_come_before_the_questions_own() -> None:
    sample = Sample("1", "t", Form.OPEN, "?", images=(B,), turns=(Turn("user", "x", (A,)), Turn("assistant", "y")))
    assert all_pictures(sample) == (A, B)
    moved = change_pictures(sample, lambda image: Image(image.ref.replace("/data", "/else")))
    assert [image.ref for image in all_pictures(moved)] == ["/else/a.png", "/else/b.png"]
