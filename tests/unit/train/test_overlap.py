"""A planted overlap is found and named: the same file, a picture re-encoded or resized, a passage; boilerplate is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from snellen.core.types import Form, Image, Sample, Turn
from snellen.kits.train.chains import Chain
from snellen.kits.train.overlap import mark_picture, near_pairs, picture_marks, shared_pictures, shared_texts


def scene(path: Path, seed: int, size: int = 160) -> Path:
    """A picture with large soft forms, as photographs have."""
    draw = np.random.default_rng(seed)
    coarse = draw.integers(0, 255, (6, 6, 3)).astype(np.uint8)
    PIL.Image.fromarray(coarse).resize((size, size), PIL.Image.Resampling.BICUBIC).save(path)
    return path


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
