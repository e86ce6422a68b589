"""Every plate at every level: it fits, it is the same for the same seed, and its truth is read back from a plain reply."""

from __future__ import annotations

import io
import math
import random

import numpy as np
import PIL.Image
import pytest

from snellen.core.errors import ConfigError
from snellen.sight import row_plates
from snellen.sight.board import Board, Ink, encode_png, lay, padded, padded_jpeg
from snellen.sight.cards import chosen_tests, exam_cards, eye_test
from snellen.sight.plate import Axis, Bench
from snellen.sight.row_plates import jpeg_quality_of, jpeg_scale_of, random_row, varied_level

BENCHES = (Bench(), Bench(2.5, 4.0, 12.0), Bench(40.0, 52.0, 3.0))
LARGE = ("resolution-1792", "resolution-3584", "resolution-wide", "resolution-tall", "page")
NAMES = [name for name in exam_cards() if name not in (*LARGE, "lookup-text")]


def levels(name: str, count: int) -> list[float]:
    card = exam_cards()[name]
    ends = card.axis.x(card.hardest), card.axis.x(card.easiest)
    return [card.axis.level(ends[0] + (ends[1] - ends[0]) * part / (count - 1)) for part in range(count)]


@pytest.mark.parametrize("name", NAMES)
def test_a_plate_fits_at_every_level_and_reads_its_own_truth(name: str) -> None:
    test = eye_test(name)
    for number, level in enumerate(levels(name, 5)):
        answer = test.card.answers[number % len(test.card.answers)] if test.card.answers else str(number)
        stimulus = test.draw(level, answer, random.Random(number), BENCHES[number % len(BENCHES)])
        picture = PIL.Image.open(io.BytesIO(stimulus.pictures[0]))
        assert picture.mode == "RGB" and picture.size == tuple(test.card.canvas) and not picture.info.get("exif")
        reading = test.read(stimulus.truth, stimulus.truth, stimulus.detail)
        assert reading.right == reading.glyphs and reading.answer is not None
        assert "{" not in test.ask(stimulus, number % 3, random.Random(1))


@pytest.mark.parametrize("name", LARGE)
def test_large_plates_fit_too(name: str) -> None:
    test = eye_test(name)
    for level in (test.card.easiest, test.card.hardest):
        stimulus = test.draw(level, "", random.Random(0), Bench())
        assert PIL.Image.open(io.BytesIO(stimulus.pictures[0])).size == tuple(test.card.canvas)
        assert test.read(stimulus.truth, stimulus.truth, stimulus.detail).right == test.card.glyphs


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_draws_the_same_bytes_and_another_seed_others(name: str) -> None:
    test = eye_test(name)
    answer = test.card.answers[0] if test.card.answers else "3"
    level = levels(name, 5)[3]
    first, same, other = (test.draw(level, answer, random.Random(seed), Bench()).pictures for seed in (5, 5, 6))
    assert first == same
    assert first != other


@pytest.mark.parametrize("name", [name for name in NAMES if exam_cards()[name].pad_bytes])
def test_the_size_of_a_file_does_not_tell_its_answer(name: str) -> None:
    test, card = eye_test(name), exam_cards()[name]
    answers = card.answers or ("0", "7")
    sizes = {
        len(test.draw(level, answer, random.Random(n), Bench()).pictures[0])
        for n, answer in enumerate(answers)
        for level in (levels(name, 5)[2], card.easiest)
    }
    assert sizes == {card.pad_bytes}


def test_cards_are_whole() -> None:
    for name, card in exam_cards().items():
        assert len(card.wordings) == 3 and len(set(card.wordings)) == 3, name
        assert all(needed in exam_cards() for needed in card.needs)
        assert "guess" in " ".join(card.wordings) or card.plate == "locating", f"{name} does not ask to guess"


def test_named_tests_bring_what_they_need_and_groups_unfold() -> None:
    assert list(chosen_tests(("contrast",), "quick")) == ["acuity", "contrast"]
    assert len(chosen_tests(("resolution",), "quick")) == 6
    assert "grating-4" in chosen_tests((), "fine") and "grating-4" not in chosen_tests((), "quick")


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not fit into"):
        lay(Board(40, 40), Ink(PIL.Image.new("L", (800, 80)), 2), random.Random(0), (0, 0, 0), (0, 0, 40, 40))


def test_padding_keeps_the_picture() -> None:
    board = Board(20, 10)
    board.disc((8.25, 5.5), 3.0, (10, 20, 30))
    plain = encode_png(board.pixels)
    large = padded(plain, 4096)
    assert len(large) == 4096
    assert PIL.Image.open(io.BytesIO(large)).tobytes() == PIL.Image.open(io.BytesIO(plain)).tobytes()


def test_the_axis_goes_both_ways() -> None:
    assert Axis(2, 60).x(60) > Axis(2, 60).x(2)
    assert Axis(80, 2).x(2) > Axis(80, 2).x(80)
    assert Axis(80, 2).level(Axis(80, 2).x(14.0)) == pytest.approx(14.0)


def test_rows_spell_no_words_and_jpeg_scales_go_back() -> None:
    rows = [random_row("letters", 8, random.Random(seed)) for seed in range(300)]
    assert not any("ROCK" in row or "DOCK" in row or "CORD" in row for row in rows)
    assert [jpeg_quality_of(jpeg_scale_of(quality)) for quality in (10, 50, 75, 95)] == [10, 50, 75, 95]


ROWS = (
    "acuity",
    "digits",
    "words",
    "contrast",
    "crowding",
    "rotation",
    "quarter-turns",
    "blur",
    "noise",
    "jpeg",
    "field",
)


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_one_plan_are_drawn_in_many_heights_so_that_their_ink_does_not_tell_their_letters(name: str) -> None:
    test, level = eye_test(name), levels(name, 5)[2]
    drawn = [test.draw(level, str(seed), random.Random(seed), Bench(8.0, 10.0)) for seed in range(12)]
    heights = [float(stimulus.detail["height_px"]) for stimulus in drawn]
    assert max(heights) / min(heights) > 1.1 and len(set(heights)) > 4
    if name in ("acuity", "digits", "words"):
        assert heights == [pytest.approx(stimulus.level, abs=1e-3) for stimulus in drawn], "the level is the one drawn"


def test_a_varied_level_stays_on_the_grid_and_below_the_easiest() -> None:
    for level in (2.0, 20.0, 50.0, 52.0):
        for seed in range(50):
            moved = varied_level(level, 52.0, random.Random(seed))
            steps = math.log(moved / level) / 0.02
            assert moved <= 52.0 + 1e-9 and abs(steps - round(steps)) < 1e-6 and abs(steps) < 14.5


def test_a_grating_packs_to_as_many_bytes_whichever_way_it_runs() -> None:
    test = eye_test("grating-8")
    pictures = [test.draw(1.0, answer, random.Random(3), Bench()).pictures[0] for answer in test.card.answers]
    assert len({len(picture) for picture in pictures}) == 1
    assert not any(b"snPd" in picture for picture in pictures), "what fills a file up would tell how well it packs"


def test_the_number_of_parts_of_a_file_tells_nothing() -> None:
    """An encoder makes more parts of more ink: all pictures have the same ones."""
    noise = np.random.default_rng(1).integers(0, 256, (900, 900, 3), np.uint8)
    pictures = [encode_png(noise), encode_png(np.full((900, 900, 3), 255, np.uint8))]
    assert pictures[0].count(b"IDAT") > 1, "or this shows nothing"
    for picture in pictures:
        large = padded(picture, 4096)
        assert large.count(b"IDAT") == 1 and len(large) % 4096 == 0
        with PIL.Image.open(io.BytesIO(large)) as after, PIL.Image.open(io.BytesIO(picture)) as before:
            assert (np.asarray(after) == np.asarray(before)).all()


def test_a_padded_jpeg_is_the_same_picture() -> None:
    file = io.BytesIO()
    PIL.Image.effect_noise((120, 80), 60).convert("RGB").save(file, "JPEG", quality=60)
    large = padded_jpeg(file.getvalue(), 32768)
    assert len(large) == 32768
    opened = PIL.Image.open(io.BytesIO(large))
    assert opened.tobytes() == PIL.Image.open(file).tobytes() and "comment" not in opened.info


def grey_and_dark(picture: bytes) -> tuple[float, float]:
    """Return the pixels of a picture that are neither paper nor ink, and those that are ink."""
    pixels = np.asarray(PIL.Image.open(io.BytesIO(picture)).convert("L"), np.float64)
    grey = float(np.sum((pixels > 40) & (pixels < 240)))
    return grey, float(np.sum(255.0 - pixels))


def test_rims_over_ink_do_not_tell_the_letters_of_a_large_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio is free of the height: of one and the same row it must vary more than the letters make it vary."""
    monkeypatch.setattr(row_plates, "random_row", lambda script, glyphs, draw: "CDHKNORS")
    test = eye_test("resolution-896")
    drawn = [test.draw(test.card.easiest, "", random.Random(seed), Bench()).pictures[0] for seed in range(24)]
    ratio = np.log([grey / math.sqrt(dark) for grey, dark in map(grey_and_dark, drawn)])
    assert np.std(ratio) > 0.1


def test_neither_ink_nor_rims_tell_how_many_discs_there_are() -> None:
    test, found = eye_test("count"), dict[str, list[tuple[float, float]]]()
    for seed in range(90):
        stimulus = test.draw(test.card.easiest, "", random.Random(seed), Bench())
        grey, dark = grey_and_dark(stimulus.pictures[0])
        found.setdefault(stimulus.truth, []).append((math.log(dark), math.log(grey / math.sqrt(dark))))
    for column in (0, 1):
        few, many = (np.array([row[column] for row in found[number]]) for number in ("2", "4"))
        assert abs(few.mean() - many.mean()) < max(few.std(), many.std())


@pytest.mark.parametrize("name", ["acuity", "resolution-1792", "resolution-3584"])
def test_files_of_a_level_have_one_size(name: str) -> None:
    test = eye_test(name)
    assert (
        len({len(test.draw(test.card.easiest, "", random.Random(seed), Bench()).pictures[0]) for seed in range(12)})
        == 1
    )
