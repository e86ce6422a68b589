"""A planted overlap is found and named: the same file, a picture re-encoded or resized, a passage; boilerplate is none."""

from __future__ import annotations

import io
import shutil
from functools import lru_cache
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageEnhance
import PIL.ImageOps
import pytest

from snellen.core.types import Form, Image, Sample, Turn
from snellen.kits.train.chains import Chain
from snellen.kits.train.overlap import (
    mark_picture,
    near_pairs,
    picture_marks,
    shared_pictures,
    shared_questions,
    shared_texts,
)


def scene(path: Path, seed: int, size: int = 160) -> Path:
    """A picture with large soft forms, as photographs have."""
    path.write_bytes(_drawn(seed, size))
    return path


@lru_cache(maxsize=128)
def _drawn(seed: int, size: int) -> bytes:
    draw = np.random.default_rng(seed)
    coarse = draw.integers(0, 255, (6, 6, 3)).astype(np.uint8)
    stream = io.BytesIO()
    soft = PIL.Image.fromarray(coarse).resize((size, size), PIL.Image.Resampling.BICUBIC)
    soft.save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    return [scene(tmp_path / f"{seed}.png", seed) for seed in range(30)]


def marks(paths: list[Path]):
    return picture_marks((path.name, Image(str(path))) for path in paths)[0]


def test_the_same_file_under_another_name_is_found(pictures: list[Path], tmp_path: Path) -> None:
    shutil.copy(pictures[3], tmp_path / "copy.png")
    (found,) = shared_pictures(marks(pictures), marks([tmp_path / "copy.png"]), "bench")
    assert (found.kind, found.taught, found.tested, found.task) == ("same picture", "3.png", "copy.png", "bench")


@pytest.mark.parametrize("change", ["jpeg", "small", "webp", "brighter"])
def test_a_picture_in_another_form_is_found_and_no_other(pictures: list[Path], tmp_path: Path, change: str) -> None:
    picture = PIL.Image.open(pictures[7]).convert("RGB")
    out = tmp_path / f"copy.{'webp' if change == 'webp' else 'jpg'}"
    if change == "small":
        picture = picture.resize((90, 90))
    if change == "brighter":
        picture = picture.point(lambda value: min(255, value + 4))
    picture.save(out, quality=70)
    (found,) = shared_pictures(marks(pictures), marks([out]), "bench")
    assert (found.kind, found.taught) == ("near picture", "7.png")


def test_other_pictures_are_not_near(pictures: list[Path], tmp_path: Path) -> None:
    others = [scene(tmp_path / f"other{seed}.png", seed) for seed in range(100, 160)]
    assert list(near_pairs(marks(pictures), marks(others))) == []


def test_flat_pictures_of_other_colours_are_not_near(tmp_path: Path) -> None:
    for name, colour in (("a", "red"), ("b", "blue")):
        PIL.Image.new("RGB", (40, 40), colour).save(tmp_path / f"{name}.png")
    one, two = (mark_picture(name, Image(str(tmp_path / f"{name}.png"))) for name in "ab")
    assert one.signs == two.signs and list(near_pairs([one], [two])) == []


def test_an_unreadable_picture_is_said_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no picture")
    found, unread = picture_marks([("bad", Image(str(tmp_path / "bad.png")))])
    assert found == [] and len(unread) == 1 and "bad.png" in unread[0]


def item(number: int, story: str) -> Sample:
    wording = "Look at the picture with care and then say in one word what the people in it are about to do next"
    return Sample(f"q{number}", "bench", Form.CHOICE, f"{wording}: {story}", options=("a", "b"), answers=("a",))


STORIES = [
    f"the {a} baker of the village carries {n} loaves over the bridge before the rain begins to fall on the market"
    for n, a in enumerate(["old", "young", "tall", "kind", "tired", "lucky", "proud", "quiet"])
]


def test_a_passage_of_a_test_item_in_a_training_text_is_found() -> None:
    taught = [Chain("c1", (Turn("user", "Tell a story"),), f"Well, {STORIES[4]}, and so on.")]
    found = list(shared_texts(taught, [item(n, story) for n, story in enumerate(STORIES)], "bench"))
    assert [(one.kind, one.taught, one.tested) for one in found] == [("text", "c1", "q4")]


def test_the_wording_that_all_items_share_is_no_overlap() -> None:
    items = [item(n, story) for n, story in enumerate(STORIES)]
    taught = [Chain("c1", (Turn("user", items[0].question.partition(":")[0]),), "They go home. It is late.")]
    assert list(shared_texts(taught, items, "bench")) == []


def changed(picture: PIL.Image.Image, change: str) -> PIL.Image.Image:
    wide, tall = picture.size
    if change.startswith("crop"):
        each = {"crop": (0.05, 0.05, 0.95, 0.95), "crop left": (0.05, 0.0, 1.0, 1.0), "crop corner": (0, 0.05, 0.95, 1)}
        left, top, right, bottom = each[change]
        return picture.crop((round(left * wide), round(top * tall), round(right * wide), round(bottom * tall)))
    if change == "border":
        return PIL.ImageOps.expand(picture, 20, "white")
    if change == "mirror":
        return PIL.ImageOps.mirror(picture)
    if change == "grey":
        return picture.convert("L")
    return PIL.ImageEnhance.Brightness(picture).enhance(1.2)


@pytest.mark.parametrize("change", ["crop", "crop left", "crop corner", "mirror", "grey", "brighter", "border"])
def test_a_picture_that_was_changed_a_little_is_found_and_no_other(tmp_path: Path, change: str) -> None:
    originals = [scene(tmp_path / f"o{seed}.png", seed) for seed in range(20)]
    others = [scene(tmp_path / f"x{seed}.png", seed) for seed in range(100, 120)]
    copies = []
    for path in originals:
        copies.append(tmp_path / f"{change.replace(' ', '-')}-{path.stem}.png")
        changed(PIL.Image.open(path), change).save(copies[-1])
    pairs = list(near_pairs(marks(originals), marks([*copies, *others])))
    assert sorted(pairs) == [(place, place) for place in range(20)]


def paper(path: Path, kind: str, seed: int) -> PIL.Image.Image:
    """Lines of words, full or of half a page; or a table of numbers. All of one kind have one layout."""
    draw = np.random.default_rng(seed)
    pixels = np.full((520, 400), 255, np.uint8)
    for number, top in enumerate(range(40, 480 if kind != "half a page" else 260, 14)):
        left = 40
        if kind == "table":
            pixels[top, 40:360] = pixels[top : top + 14, 40:361:64] = 0
        while left < 330:
            wide = int(draw.integers(8, 48))
            pixels[top + 4 : top + 10, left + 3 : min(left + wide, 356)] = 60
            left = 40 + 64 * (1 + (left - 40) // 64) if kind == "table" else left + wide + 6
            if kind != "table" and number % 6 == 5 and left > 200:
                break
    picture = PIL.Image.fromarray(pixels)
    picture.save(path)
    return picture


@pytest.mark.parametrize("kind", ["page", "half a page", "table"])
def test_pages_of_one_layout_are_told_apart_and_their_copies_are_found(tmp_path: Path, kind: str) -> None:
    originals = [tmp_path / f"o{seed}.png" for seed in range(6)]
    copies = []
    for seed, path in enumerate(originals):
        picture = paper(path, kind, seed)
        small = picture.resize((300, 390), PIL.Image.Resampling.BILINEAR)
        inner = picture.crop((20, 26, 380, 494))
        for change, copy in (("small", small), ("crop", inner), ("border", PIL.ImageOps.expand(picture, 20, "black"))):
            copies.append(tmp_path / f"{change}-{seed}.jpg")
            copy.save(copies[-1], quality=75)
    for seed in range(100, 106):
        paper(tmp_path / f"x{seed}.png", kind, seed)
    others = [tmp_path / f"x{seed}.png" for seed in range(100, 106)]
    pairs = list(near_pairs(marks(originals), marks([*copies, *others])))
    assert sorted(pairs) == [(place // 3, place) for place in range(18)]


def test_a_short_question_counts_together_with_its_picture(tmp_path: Path) -> None:
    seen, other = scene(tmp_path / "seen.png", 1), scene(tmp_path / "other.png", 2)
    turned = tmp_path / "turned.png"
    PIL.Image.open(seen).rotate(3, fillcolor="white").save(turned)
    question = "What colour is the largest shape?"
    chain = Chain("c", (Turn("user", f"{question} Answer briefly.", (Image(str(seen)),)),), "red")
    items = [
        Sample("leaked", "t", Form.OPEN, question, images=(Image(str(turned)),), answers=("red",)),
        Sample("same words", "t", Form.OPEN, question, images=(Image(str(other)),), answers=("red",)),
        Sample("same picture", "t", Form.OPEN, "How many shapes are there?", images=(Image(str(turned)),)),
    ]
    mine, _ = picture_marks([("c", Image(str(seen)))])
    theirs, _ = picture_marks([(one.id, image) for one in items for image in one.images])
    found = list(shared_questions([chain], items, (mine, theirs), "bench"))
    assert [(one.kind, one.taught, one.tested) for one in found] == [("text with its picture", "c", "leaked")]
