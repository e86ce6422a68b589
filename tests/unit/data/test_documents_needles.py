"""Needles: guaranteed absent elsewhere, at the depth asked for, every cell asked once, positions true on the page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from snellen.core.errors import DataError, UsageError
from snellen.core.ids import rng
from snellen.core.types import Form, Sample
from snellen.data.visual_tokens import count_tokens
from snellen.kits.pages.grid_folder import locate, write_needles
from snellen.kits.pages.layout import lay_out
from snellen.kits.pages.loader import needle_facts
from snellen.kits.pages.needle import COLOURS, NOT_FOUND, Vocabulary, boundaries, check_kinds, kinds, squash
from snellen.kits.pages.page_style import PageStyle
from snellen.kits.pages.plant import (
    BUILT_IN,
    Grid,
    chronicle,
    clean,
    depth_bin,
    instance_of,
    parse_depths,
    parse_lengths,
    plant,
    read_haystack,
    take,
)
from snellen.kits.pages.render import page_font
from snellen.prompt.controls import choose_pages, skip_reason

HAYSTACK = read_haystack(BUILT_IN, 6_000, 1)
STYLE = PageStyle(width_pt=420, height_pt=420, dpi=72, font="built-in", size_pt=9, leading_pt=11)
TEXT_KINDS = tuple(check_kinds(["text"]))


def documents(kinds_: tuple[str, ...] = TEXT_KINDS, **fields: object) -> list:
    grid = Grid((2_000,), (0.0, 0.5, 1.0), kinds_, **fields)
    return list(plant(HAYSTACK, grid))


def test_every_cell_is_asked_exactly_once() -> None:
    asked = [
        (needle.query.depth, needle.query.kind) for document in documents(repeats=2) for needle in document.needles
    ]
    assert sorted(asked) == sorted((depth, kind) for depth in (0.0, 0.5, 1.0) for kind in TEXT_KINDS for _ in range(2))


def test_values_occur_once_and_none_inside_another() -> None:
    for document in documents():
        values = [statement.value for statement in document.statements if statement.role != "stale"]
        text = squash(document.text)
        for needle in document.needles:
            for statement in needle.statements:
                expected = 2 if needle.query.kind == "two-hop" and statement.id.endswith(".0") else 1
                assert text.count(squash(statement.value)) == expected, statement
        plain = [squash(value) for value in set(values)]
        assert not any(one in other for one in plain for other in plain if one != other)


def test_statements_stand_whole_where_their_offsets_say() -> None:
    for document in documents():
        for statement in document.statements:
            assert document.text[statement.char_start : statement.char_end] == statement.text
            if statement.role == "needle" and statement.id.endswith(".0"):
                assert statement.char_depth == pytest.approx(statement.depth, abs=0.05)
                assert statement.token_depth == pytest.approx(statement.char_depth, abs=0.01)


def test_length_is_met_and_documents_differ_by_seed_only() -> None:
    first, again, other = documents(), documents(), documents(seed=9)
    assert [document.text for document in first] == [document.text for document in again]
    assert first[0].text != other[0].text
    assert all(1_850 <= count_tokens(document.text) <= 2_010 for document in first)


def test_distractors_keep_their_distance_and_the_latest_fee_wins() -> None:
    for document in documents(("multi-key", "conflicting"), per_document=2):
        for needle in document.needles:
            first, *rest = needle.statements
            if needle.query.kind == "multi-key":
                assert len([one for one in rest if one.role == "distractor"]) == 4
                assert all(abs(one.depth - first.depth) >= 0.1 - 1e-9 for one in rest)
            else:
                assert first.role == "stale" and rest[0].char_start > first.char_start
                assert needle.query.answers == [rest[0].value]


def test_absent_needles_are_not_there_and_every_question_offers_the_way_out() -> None:
    for document in documents(("absent", "word"), per_document=3):
        for needle in document.needles:
            assert "not found" in needle.query.question
            if needle.query.kind == "absent":
                assert needle.query.answers == [NOT_FOUND] and not needle.statements


def test_the_file_has_the_public_fields_first() -> None:
    instance = instance_of(documents()[0])
    assert list(instance)[:10] == [
        "_id", "domain", "sub_domain", "difficulty", "length", "context", "questions", "answers", "question_depths", "secrets",
    ]  # fmt: skip
    assert len(instance["questions"]) == len(instance["answers"]) == len(instance["question_depths"])
    assert {depth_bin(depth) for depth in (0, 0.19, 0.5, 0.99, 1.0)} == {"0-20%", "40-60%", "80-100%"}


def test_visual_needles_are_drawn_where_the_file_says(tmp_path: Path) -> None:
    visual = tuple(check_kinds(["visual"]))
    grid = Grid((2_000,), (0.2,), visual, per_document=len(visual))
    write_needles(HAYSTACK, grid, tmp_path, {"clean": STYLE, "small": PageStyle(**{**_fields(STYLE), "dpi": 60})})
    (instance,) = json.loads((tmp_path / "data.json").read_text())
    assert not any("{" in question for question in instance["questions"])
    for needle in instance["needles"]:
        page = Image.open(tmp_path / "clean" / "images" / f"{instance['_id']}_page_{needle['page']:03d}.png").convert(
            "RGB"
        )
        x0, y0, x1, y1 = needle["bbox"]
        assert 0 <= x0 < x1 <= page.width and 0 <= y0 < y1 <= page.height
        part = np.asarray(page)[y0:y1, x0:x1].astype(int)
        assert part.min() < 200
        if needle["kind"] in ("colour", "shape", "stamp"):
            assert (part.max(axis=2) - part.min(axis=2)).max() > 80
    assert (tmp_path / "small" / "manifest.json").is_file()


def test_boxes_and_pages_cover_the_whole_sentence_over_lines_and_pages() -> None:
    narrow = PageStyle(width_pt=90, height_pt=26, dpi=72, font="built-in", size_pt=9, leading_pt=11)
    font = page_font(narrow)
    over_pages = 0
    for document in documents(kinds_=("kv-uuid", "sentence", "two-hop")):
        pages = list(lay_out(document.text, narrow, font))
        locate(document, narrow, font)
        for statement in document.statements:
            start, end = statement.char_start, statement.char_end
            touched = {
                number: [
                    line for line in lines if any(at < end and at + len(word) > start for word, _, at in line.words)
                ]
                for number, lines in enumerate(pages, start=1)
            }
            touched = {number: lines for number, lines in touched.items() if lines}
            assert statement.pages == sorted(touched) and statement.page == min(touched)
            assert len(statement.boxes) == sum(map(len, touched.values())) and statement.bbox == statement.boxes[0].box
            last = statement.boxes[-1]
            line = touched[max(touched)][-1]
            assert last.page == max(touched) and last.box[1] == line.y
            over_pages += len(touched) > 2
    assert over_pages, "some sentence runs over three pages and more"


def test_every_rendering_knows_its_own_pages_of_a_needle(tmp_path: Path) -> None:
    styles = {"clean": STYLE, "long": PageStyle(**{**_fields(STYLE), "height_pt": 60})}
    write_needles(HAYSTACK, Grid((2_000,), (0.9,), ("kv-uuid",)), tmp_path, styles)
    (instance,) = json.loads((tmp_path / "data.json").read_text())
    (needle,) = instance["needles"]
    clean, long = (instance["pages_in"][name][needle["id"]] for name in ("clean", "long"))
    assert clean == sorted({place["page"] for place in needle["boxes"]}) and min(long) > max(clean)
    meta = {**needle_facts(instance, 0), "pages": {"long": [(page, f"{page}.png") for page in range(1, 200)]}}
    sample = Sample("s", "t", Form.OPEN, "?", meta=meta)
    shown = choose_pages(sample, {"control": "oracle", "pages": "long"})
    assert [image.page for image in shown] == long
    other = {**meta, "pages": {"other": [(1, "1.png")]}}
    assert "not known in variant 'other'" in skip_reason(
        Sample("s", "t", Form.OPEN, "?", meta=other), {"control": "oracle", "pages": "other"}
    )


def test_a_document_holds_only_so_many_colours() -> None:
    with pytest.raises(UsageError, match="colour"):
        list(
            plant(
                HAYSTACK,
                Grid((4_000,), tuple(index / 9 for index in range(10)), ("colour",), per_document=len(COLOURS) + 1),
            )
        )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_vocabulary_never_draws_what_the_text_holds(seed: int) -> None:
    generator = rng(seed)
    words = Vocabulary("the crimson otter and 1234567", generator)
    drawn = [
        squash(words.draw(kind)) for kind in ("key", "number", "uuid", "word", "name", "place", "date", "activity") * 3
    ]
    assert not any(one in other for index, one in enumerate(drawn) for other in drawn[:index] + drawn[index + 1 :])
    assert not any(one in squash("the crimson otter and 1234567") for one in drawn)


def test_a_vocabulary_that_is_used_up_says_so() -> None:
    every = " ".join(f"{left} {right}" for left in _words("adjectives") for right in _words("nouns"))
    with pytest.raises(DataError, match="another haystack"):
        Vocabulary(every, rng(1)).draw("key")


def test_haystacks_are_cleaned_cut_at_sentences_and_refused_when_short(tmp_path: Path) -> None:
    text = "*** START OF X ***\n\nA  b c. D e f.\n\nA  b c. D e f.\n\n    code\n*** END OF X ***\nlegal"
    assert clean(text) == "A b c. D e f.\n\n    code"
    piece = take(HAYSTACK, 500, rng(3))
    assert piece.endswith((".", "!", "?")) and piece in HAYSTACK.text
    assert 440 <= count_tokens(piece) <= 500
    (tmp_path / "short.txt").write_text("Too short.")
    with pytest.raises(UsageError, match="longer one"):
        take(read_haystack(str(tmp_path / "short.txt"), 10), 1_000, rng(0))
    assert chronicle(rng(5), 2_000) == chronicle(rng(5), 2_000)


def test_sentence_boundaries_in_chinese_and_code() -> None:
    assert boundaries("一。二！三") == [0, 2, 4, 5]
    assert boundaries("a = 1\nb = 2\n") == [0, 6, 12]
    assert boundaries("") == [0, 0]


def test_lengths_depths_and_kinds_are_read_or_refused() -> None:
    assert parse_lengths("8k, 1.5k,300") == [8_000, 1_500, 300]
    assert parse_depths("3") == (0.0, 0.5, 1.0)
    assert parse_depths("0,25,100") == (0.0, 0.25, 1.0)
    assert set(check_kinds(["all"])) == set(kinds())
    for call, value in (
        (parse_lengths, "8m"),
        (parse_depths, "x"),
        (parse_depths, "0,120"),
        (check_kinds, ["kv-numbr"]),
    ):
        with pytest.raises(UsageError):
            call(value)


def _words(name: str) -> tuple[str, ...]:
    from snellen.kits.pages.needle import word_lists

    return word_lists()[name]


def _fields(style: PageStyle) -> dict:
    import msgspec

    return msgspec.structs.asdict(style)
