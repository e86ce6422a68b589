"""CharXiv's descriptive questions by number: their words come from the user's copy, which is parsed and never run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from atlas_fixtures import FIXTURES, write_shape
from snellen.core.errors import DataError
from snellen.core.protocols import LoadContext
from snellen.core.types import Sample
from snellen.data.atlas import card_rows
from snellen.data.atlas.verify import verify_data
from snellen.data.catalog import Catalog

CARD = "charxiv-descriptive"


def read(place: Path, **told: str) -> list[Sample]:
    overrides = [("dataset.path", str(place)), *((f"dataset.{key}", value) for key, value in told.items())]
    return list(card_rows.load(Catalog().task(CARD, overrides), LoadContext(workdir=place.parent / "w")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_shape(tmp_path, CARD, "official", FIXTURES[CARD])


def change(folder: Path, **more: Any) -> None:
    file = folder / "data" / "descriptive_val.json"
    [(key, row)] = json.loads(file.read_text()).items()
    file.write_text(json.dumps({key: {**row, **more}}))


@pytest.mark.parametrize("shape", ["hub", "official"])
def test_each_of_a_chart_s_four_questions_is_asked_once_in_its_own_words(shape: str, tmp_path: Path) -> None:
    samples = read(write_shape(tmp_path, CARD, shape, FIXTURES[CARD]))
    assert [sample.question for sample in samples] == [row["question"] for row in FIXTURES[CARD].shapes["tsv"]]
    assert [sample.answers for sample in samples] == [("Not Applicable",), ("3",), ("1 by 2",), ("Yes",)]
    assert [sample.id for sample in samples] == ["7_0", "7_1", "7_2", "7_3"]
    assert {sample.group for sample in samples} == {"7"}, "four questions on one chart are one cluster"
    assert [str(sample.tags["qid"]) for sample in samples] == ["1", "12", "18", "11"], "the judge's rubrics go by it"
    assert len({sample.images[0].ref for sample in samples}) == 1
    assert not any(name in sample.tags for sample in samples for name in ("qids", "answers", "descriptive_q1"))


@pytest.mark.parametrize(
    ("place", "prefix"),
    [
        ([0, 0], "For the current plot, "),
        ([2, 1], "For the subplot at row 2 and column 1, "),
        ("the bottom subplot", "For the bottom subplot, "),
    ],
)
def test_the_place_that_is_asked_about_is_named_as_charxiv_does(place: Any, prefix: str, folder: Path) -> None:
    change(folder, subplot_loc=place)
    asked = [sample.question for sample in read(folder)]
    assert asked[0] == f"{prefix}which name?"
    assert asked[2] == "How laid out?", "a question about the whole figure names no place"


@pytest.mark.parametrize("shape", ["hub", "official"])
def test_without_the_templates_nothing_is_asked_and_one_line_says_how_to_get_them(shape: str, tmp_path: Path) -> None:
    place = write_shape(tmp_path, CARD, shape, FIXTURES[CARD])
    (place / "constants.py").rename(tmp_path / "moved.py")
    with pytest.raises(DataError, match=r"there is no constants.py near it: lay constants.py of github.com") as caught:
        read(place)
    assert "\n" not in str(caught.value) and "--source tsv" in str(caught.value)
    assert len(read(place, templates=str(tmp_path / "moved.py"))) == 4
    assert any("constants.py" in problem for problem in verify_data(Catalog().task(CARD), place).problems)


def test_the_file_may_lie_in_the_folder_src_of_the_repository(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "constants.py").rename(folder / "src" / "constants.py")
    assert len(read(folder)) == len(read(folder / "data" / "descriptive_val.json")) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DESCRIPTIVE_RESP_INST = open('/etc/passwd')", "cannot be read for DESCRIPTIVE_RESP_INST"),
        ("DESCRIPTIVE_RESP_INST = {1: 2}", "is no table of texts by number"),
        ("OTHER = {}", "assigns nothing to DESCRIPTIVE_RESP_INST"),
        ("def (", "cannot be read for DESCRIPTIVE_RESP_INST"),
        ("DESCRIPTIVE_RESP_INST = {1: 'which name?'}", "template 1 has not one {}"),
        ("DESCRIPTIVE_RESP_INST = {1: '{}a?'}", "has no template 12: another version?"),
        ("#" * 1_000_001, "is larger than any table of questions"),
        ("(" * 5000, "cannot be read for DESCRIPTIVE_RESP_INST"),
    ],
)
def test_a_file_that_holds_other_things_is_refused_and_never_run(text: str, said: str, folder: Path) -> None:
    (folder / "constants.py").write_text(text)
    with pytest.raises(DataError) as caught:
        read(folder)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "odd",
    [
        {"answers": ["a", "b", "c"]},
        {"answers": ["a", "b", "c", None]},
        {"qids": [1, 12, 18, "x"]},
        {"qids": 1},
        {"subplot_loc": [1]},
        {"subplot_loc": None},
        {"subplot_loc": [None, 2]},
    ],
)
def test_a_row_that_says_too_little_is_refused(odd: dict[str, Any], folder: Path) -> None:
    change(folder, **odd)
    with pytest.raises(DataError, match=r"descriptive_val.json record 1: "):
        read(folder)


@pytest.mark.parametrize("shape", ["hub", "official"])
def test_verify_counts_questions_and_not_charts(shape: str, tmp_path: Path) -> None:
    found = verify_data(Catalog().task(CARD), write_shape(tmp_path, CARD, shape, FIXTURES[CARD]))
    assert (found.shape, found.rows, found.expected_rows) == (shape, 4, 4000)
    assert found.problems == ["4 rows, and the card says 4,000: a part, or another version"]
