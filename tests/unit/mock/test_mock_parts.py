"""The mock server's parts without a network: answer book, readers with known curves, fault specs, limits, tokens."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from snellen.core.errors import DataError, UsageError
from snellen.core.ids import rng, sha256_hex
from snellen.core.types import Form, Image, Sample
from snellen.kits.mock.ask import AnswerBook, Ask, Body, Entry, find_mark, parse_ask, write_answers
from snellen.kits.mock.faults import Occasion, first_striking, parse_fault
from snellen.kits.mock.pictures import jpeg_quality, width_px
from snellen.kits.mock.readers import View, logistic_chance, parse_reader
from snellen.kits.mock.server import Bucket
from snellen.kits.mock.tokens import sequence_log_probabilities, tokenize


def ask(text: str, *images: bytes) -> Ask:
    return Ask(Body(), True, text, text, images, tuple(sha256_hex(image) for image in images))


def picture(seed: int, kind: str = "PNG", **options: int) -> bytes:
    noise = rng(seed).randbytes(64 * 64)
    out = io.BytesIO()
    Pillow.frombytes("L", (64, 64), noise).resize((256, 256)).save(out, kind, **options)
    return out.getvalue()


def test_the_book_finds_by_question_and_image_bytes() -> None:
    one, two = b"one", b"two"
    book = AnswerBook(
        [Entry("What?", "1", (sha256_hex(one),)), Entry("What?", "2", (sha256_hex(two),)), Entry("Plain?", "3")]
    )
    assert [
        getattr(book.find(ask(text, *images)), "answer", None)
        for text, *images in (
            ("What?\nBe brief.", one),
            ("Question: What? Be brief.", two),
            ("Say: Plain?",),
            ("What?", b"three"),
            ("Nothing",),
        )
    ] == ["1", "2", "3", None, None]


def test_the_longest_question_wins() -> None:
    book = AnswerBook([Entry("cat", "short"), Entry("the cat sat", "long")])
    found = book.find(ask("so: is it true that the cat sat?"))
    assert found is not None
    assert found.answer == "long"


def test_a_re_encoded_picture_is_found_again(tmp_path: Path) -> None:
    samples = []
    for index in range(5):
        path = tmp_path / f"{index}.png"
        path.write_bytes(picture(index))
        samples.append(
            Sample(str(index), "d", Form.OPEN, "Which?", (Image(str(path), width=256),), answers=(str(index),))
        )
    assert write_answers(samples, tmp_path / "answers.jsonl") == 5
    book = AnswerBook.read(tmp_path / "answers.jsonl")
    for index in range(5):
        found = book.find(ask("Which?", picture(index, "JPEG", quality=30)))
        assert found is not None
        assert found.answer == str(index)
    assert book.find(ask("Which?", picture(99))) is None


def test_a_bad_answer_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "q", "answer": "a"}\n\n{"question": 3}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:3"):
        AnswerBook.read(path)


@pytest.mark.parametrize("quality", [10, 30, 50, 75, 95])
def test_jpeg_quality_is_estimated(quality: int) -> None:
    assert jpeg_quality(picture(1, "JPEG", quality=quality)) == pytest.approx(quality, abs=3)
    assert jpeg_quality(picture(1)) == 100
    assert width_px(b"no picture") is None


@pytest.mark.parametrize(
    ("text", "option", "mark"),
    [
        ("Q?\nA. cat\nB. dog", "dog", "B"),
        ("Q?\n(a) cat\n(b) dog", "cat", "a"),
        ("Q? 1) cat, 2) dog", "dog", "2"),
        ("Q?\n[C] red fox", "red fox", "C"),
        ("Q?\nA. catfish\nB. cat", "cat", "B"),
        ("no options", "cat", None),
    ],
)
def test_find_mark(text: str, option: str, mark: str | None) -> None:
    assert find_mark(text, option) == mark


def rate_right(reader: str, entry: Entry, draws: int = 400) -> float:
    built = parse_reader(reader)
    question = ask(entry.question)
    return sum(built.reply(View(entry, question, rng(index))).text == entry.answer for index in range(draws)) / draws


@pytest.mark.parametrize("glyph_px", [4.0, 8.0, 16.0])
def test_noisy_follows_its_curve(glyph_px: float) -> None:
    entry = Entry("q", "x", options=("x", "y", "z"), glyph_px=glyph_px)
    assert rate_right("noisy:px50=8,slope=4", entry) == pytest.approx(logistic_chance(glyph_px, 8, 4), abs=0.08)


def test_noisy_reads_glyph_by_glyph() -> None:
    entry = Entry("q", "", lines=(("K" * 500, 16.0), ("K" * 500, 8.0), ("K" * 500, 2.0)))
    lines = parse_reader("noisy:px50=8,slope=4").reply(View(entry, ask("q"), rng(1))).text.split("\n")
    shares = [line.count("K") / 500 for line in lines]
    assert shares == [pytest.approx(logistic_chance(height, 8, 4), abs=0.08) for height in (16, 8, 2)]


def test_lost_in_the_middle() -> None:
    rates = [
        rate_right("lost-middle:edge=0.9,middle=0.3", Entry("q", "x", options=("x", "y"), position=place))
        for place in (0, 0.5, 1)
    ]
    assert rates == [pytest.approx(rate, abs=0.08) for rate in (0.9, 0.3, 0.9)]


def test_styles_carry_the_answer() -> None:
    entry = Entry("q", "dog", options=("cat", "dog"))
    view = View(entry, ask("q\nA. cat\nB. dog"), rng(0))
    said = {
        style: parse_reader(style).reply(view).text
        for style in ("plain", "verbose", "thinking", "refusing", "off-format")
    }
    assert said["plain"] == "B"
    assert "(B) dog" in said["verbose"]
    assert said["thinking"].startswith("<think>") and said["thinking"].endswith("B")
    assert "can't assist" in said["refusing"]
    assert said["off-format"] != "B"


@pytest.mark.parametrize("text", ["nosy", "noisy:px50=x", "noisy:px50"])
def test_bad_readers(text: str) -> None:
    with pytest.raises(UsageError):
        parse_reader(text)


@pytest.mark.parametrize("spec", ["50x", "500@sometimes", "429:retry_after", "hang@5-x", "reset@first"])
def test_bad_faults(spec: str) -> None:
    with pytest.raises(UsageError, match="--fault"):
        parse_fault(spec)


def struck(spec: str, count: int = 20, attempt: int = 1) -> list[int]:
    fault = parse_fault(spec)
    return [n for n in range(1, count + 1) if fault.strikes(Occasion(n, attempt, f"body{n}", "text"), 0)]


def test_when_faults_strike() -> None:
    assert struck("500") == list(range(1, 21))
    assert struck("500@5-7,12") == [5, 6, 7, 12]
    assert struck("500@18-") == [18, 19, 20]
    assert struck("500@every10") == [10, 20]
    assert struck("500@first1", attempt=2) == []
    assert struck("500@~text", 1) == [1]
    assert struck("500@~other", 3) == []
    assert len(struck("500@0.25", 2000)) == pytest.approx(500, abs=80)


def test_the_first_fault_of_the_list_wins() -> None:
    faults = [parse_fault("500@2"), parse_fault("reset")]
    assert [first_striking(faults, Occasion(n, 1, "", ""), 0).kind for n in (1, 2)] == ["reset", "500"]  # type: ignore[union-attr]


def test_the_bucket_refills() -> None:
    bucket = Bucket(60.0)
    assert bucket.take(60, 0.0) == 0
    assert bucket.take(30, 0.0) == pytest.approx(30)
    assert bucket.take(30, 31.0) == 0
    assert Bucket(None).take(1e9, 0.0) == 0


@given(st.text(max_size=80))
def test_tokens_join_to_the_text(text: str) -> None:
    tokens = tokenize(text)
    assert "".join(tokens) == text
    assert len(sequence_log_probabilities(tokens)) == len(tokens)
    assert all(value < 0 for value in sequence_log_probabilities(tokens))


def test_transcript_keeps_roles_and_images() -> None:
    body = b'{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"q"}]}]}'
    assert parse_ask(body, chat=True).transcript == "<|system|>s\n<|user|>q\n<|assistant|>"


@pytest.mark.parametrize(
    ("habit", "wanted"),
    [("", set("CDH")), ("silent=1", {"?"}), ("same=1", {"C"}), ("omit=1", set()), ("wrong=1", None)],
)
def test_what_a_noisy_reader_does_with_glyphs_it_does_not_see(habit: str, wanted: set[str] | None) -> None:
    entry = Entry("q", "CCCC", lines=(("C" * 60, 9.0), ("C" * 60, 9.0)))
    question = ask('all from C D H. Write "1: …", your best guess for each letter')
    reader = parse_reader(f"noisy:accuracy=0,{habit}".rstrip(","))
    rows = reader.reply(View(entry, question, rng(1))).text.split("\n")
    assert [row[:3] for row in rows] == ["1: ", "2: "]
    written = set("".join(row[3:] for row in rows))
    assert written == wanted if wanted is not None else "C" not in written


def test_a_noisy_reader_sees_faint_rows_less() -> None:
    entry = Entry("q", "", lines=(("C" * 400, 40.0), ("C" * 400, 40.0)), contrasts=(1.0, 0.1))
    reader = parse_reader("noisy:px50=1,slope=9,contrast50=0.1,silent=1")
    bold, faint = reader.reply(View(entry, ask("q"), rng(1))).text.split("\n")
    assert bold.count("C") == 400
    assert faint.count("C") == pytest.approx(200, abs=40)
