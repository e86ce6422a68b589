"""AI2's diagrams as their archive has them: the test's pictures alone, letters where questions name them, odd files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from atlas_fixtures import FIXTURES, write_shape
from command_line import run_command
from snellen.core.errors import DataError
from snellen.core.protocols import LoadContext
from snellen.core.types import Sample
from snellen.data.atlas import card_rows
from snellen.data.atlas.verify import verify_data
from snellen.data.catalog import Catalog

WHITE, RED = (255, 255, 255), (200, 0, 0)


def read(card: str, place: Path, context: LoadContext | None = None) -> list[Sample]:
    task = Catalog().task(card, [("dataset.path", str(place))])
    return list(card_rows.load(task, context or LoadContext(workdir=place.parent / "w")))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_shape(tmp_path, "ai2d", "official", FIXTURES["ai2d"])


def pixels(sample: Sample) -> Image.Image:
    return Image.open(sample.images[0].ref).convert("RGB")


def test_letters_cover_the_words_with_mask_and_leave_them_without(archive: Path) -> None:
    plain = Image.open(archive / "images" / "0.png").convert("RGB")
    context = LoadContext(workdir=archive.parent / "w")
    masked, unmasked = pixels(read("ai2d", archive, context)[0]), pixels(read("ai2d-no-mask", archive)[0])
    assert masked.getpixel((3, 4)) == WHITE
    assert unmasked.getpixel((2, 3)) == RED
    assert unmasked.getpixel((18, 18)) == plain.getpixel((18, 18))  # the words stay
    assert masked.getpixel((30, 22)) == unmasked.getpixel((30, 22)) == plain.getpixel((30, 22))
    assert any(note.startswith("letters drawn by Snellen") for note in context.notes)
    assert context.notes["pictures of the test without a file of questions"] == {"999": 1}


def test_a_question_that_names_no_letter_is_asked_of_the_picture_as_it_is(archive: Path) -> None:
    assert [Path(sample.images[0].ref).parent.name for sample in read("ai2d", archive)] == ["rows", "images", "images"]


def test_ready_pictures_with_letters_are_taken_and_never_drawn(archive: Path) -> None:
    (archive / "abc_images").mkdir()
    (archive / "images" / "0.png").rename(archive / "abc_images" / "0.png")
    context = LoadContext(workdir=archive.parent / "w")
    assert read("ai2d", archive, context)[0].images[0].ref == str(archive / "abc_images" / "0.png")
    assert not any(note.startswith("letters drawn") for note in context.notes)


def test_questions_of_one_picture_are_one_cluster_and_pictures_of_training_are_not_asked(archive: Path) -> None:
    file = archive / "questions" / "1.png.json"
    table = json.loads(file.read_text())
    table["questions"]["Another?"] = {**table["questions"]["Part 1?"], "questionId": "1.png-1", "correctAnswer": "0"}
    file.write_text(json.dumps(table))
    (archive / "questions" / "7.png.json").write_text(json.dumps({**table, "imageName": "7.png"}))  # not in the list
    samples = read("ai2d", archive)
    assert [(sample.id, sample.group, sample.answers) for sample in samples] == [
        ("0.png-0", "0.png", ("stem",)),
        ("1.png-0", "1.png", ("stem",)),
        ("1.png-1", "1.png", ("leaf",)),
        ("2.png-0", "2.png", ("stem",)),
    ]


@pytest.mark.parametrize("inner", ["", "ai2d"])
def test_the_list_may_lie_in_the_archive_or_beside_it(inner: str, tmp_path: Path) -> None:
    root = write_shape(tmp_path / "a", "ai2d", "official", FIXTURES["ai2d"])
    if inner:
        (root / "ai2d_test_ids.csv").rename(root.parent / "ai2d_test_ids.csv")
        root = root.parent
    assert len(read("ai2d", root)) == len(read("ai2d", root / "ai2d_test_ids.csv")) == 3


def _drop(*names: str) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        for name in names:
            (root / name).unlink()

    return act


def _write(name: str, text: str) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        (root / name).write_text(text)

    return act


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_drop("ai2d_test_ids.csv"), "holds questions and not ai2d_test_ids.csv, the list of the test's: AI2 gives away"),
        (_drop("annotations/0.png.json"), "0.png: its questions name letters, and there is no annotations/0.png.json"),
        (_write("ai2d_test_ids.csv", "0\n1\n0\n"), "names picture 0 twice"),
        (_write("ai2d_test_ids.csv", "image\n1\n"), "no list of picture ids, one number a line: it has 'image'"),
        (_write("ai2d_test_ids.csv", ""), "no list of picture ids"),
        (_write("questions/1.png.json", '{"imageName": "../1.png", "questions": {}}'), "is no name of a file"),
        (_write("questions/1.png.json", '{"imageName": "1.png", "questions": {"a": 1}}'), "questions/1.png.json: Expected"),
        (_write("questions/1.png.json", '{"imageName": "1.png", "questions": {"a": {}, "a": {}}}'), "the key 'a' twice"),
        (_write("questions/1.png.json", "{"), "questions/1.png.json: "),
    ],
)  # fmt: skip
def test_what_an_archive_lacks_is_said_in_one_line(damage: Callable[[Path], None], said: str, archive: Path) -> None:
    damage(archive)
    with pytest.raises(DataError) as caught:
        read("ai2d", archive)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_answer_that_is_no_option_is_refused(archive: Path) -> None:
    file = archive / "questions" / "1.png.json"
    file.write_text(file.read_text().replace('"correctAnswer": 2', '"correctAnswer": 4'))
    with pytest.raises(DataError, match="'4' read as index"):
        read("ai2d", archive)


def test_verify_counts_the_questions_of_the_list(archive: Path) -> None:
    found = verify_data(Catalog().task("ai2d"), archive)
    assert (found.shape, found.rows, found.expected_rows) == ("official", 3, 3088)
    assert not (archive.parent / "w").exists()  # nothing is drawn to count


def test_fetching_the_archive_says_how_it_is_brought(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["data", "fetch", "ai2d", "--source", "official"]) == 2
    assert "ai2d_test_ids.csv on https://prior.allenai.org" in capsys.readouterr().err
