"""The files of a benchmark's authors: recognised by name, joined where they are several, refused where they cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlas_fixtures import FIXTURES, write_shape
from command_line import run_command
from documentation import docs_tool
from official_rows import OFFICIAL
from snellen.core.errors import DataError
from snellen.core.protocols import LoadContext
from snellen.core.types import Sample
from snellen.data.atlas import card_rows
from snellen.data.atlas.card_sources import CardSource, choose_source
from snellen.data.atlas.verify import verify_data
from snellen.data.catalog import Catalog

TIER_1 = range(1, 21)

pytestmark = pytest.mark.usefixtures("own_folder")


def read(card: str, place: Path, context: LoadContext | None = None, **told: str) -> list[Sample]:
    overrides = [("dataset.path", str(place)), *((f"dataset.{key}", value) for key, value in told.items())]
    return list(card_rows.load(Catalog().task(card, overrides), context or LoadContext(workdir=place.parent / "w")))


@pytest.mark.parametrize("card", OFFICIAL)
def test_official_files_are_known_for_what_they_are_and_bring_their_pictures(card: str, tmp_path: Path) -> None:
    context = LoadContext(workdir=tmp_path / "w")
    samples = read(card, write_shape(tmp_path, card, "official", FIXTURES[card]), context)
    assert f"read as the official form of {card}" in context.notes
    assert len(samples) == len(FIXTURES[card].replies)
    assert all(Path(image.ref).is_file() for sample in samples for image in sample.images)
    assert all(sample.images for sample in samples)


@pytest.mark.parametrize("card", OFFICIAL)
def test_the_hub_s_rows_are_never_taken_for_the_official_ones(card: str, tmp_path: Path) -> None:
    context = LoadContext(root=tmp_path, workdir=tmp_path / "w")
    read(card, write_shape(tmp_path, card, "hub", FIXTURES[card]), context)
    assert f"read as the hub form of {card}" in context.notes


def test_every_card_of_tier_1_reads_official_files_or_says_why_not() -> None:
    catalog = Catalog()
    pages = docs_tool("docs_pages").card_pages()
    for name in catalog.names("datasets"):
        table = catalog.task_table(name)
        about = table.get("about") or {}
        if about.get("number") not in TIER_1:
            continue
        sources = catalog.task(name, protocol="official").dataset["sources"]
        told = about.get("official", "")
        assert bool(told) != ("official" in sources), name
        if told.startswith("same as "):
            same = told.removeprefix("same as ").split(":")[0]
            assert same in sources, name
            assert same in FIXTURES[name].shapes, name
        else:
            assert told.startswith("not read: ") or name in OFFICIAL or "refuse" in sources["official"], name
        assert (told or next(iter(sources["official"]["files"]))) in pages[f"cards/{name}.md"], name


def test_one_half_alone_is_refused_in_a_folder_and_read_as_a_file(tmp_path: Path) -> None:
    folder = write_shape(tmp_path, "chartqa", "official", FIXTURES["chartqa"])
    (folder / "test_augmented.json").unlink()
    with pytest.raises(DataError, match=r"holds test_human.json and not test_augmented.json: bring it, or name"):
        read("chartqa", folder)
    half = read("chartqa", folder / "test_human.json")
    assert {sample.tags["type"] for sample in half} == {"human_test"}


def test_a_column_in_another_file_is_joined_and_never_left_out(tmp_path: Path) -> None:
    folder = write_shape(tmp_path, "mathvista", "official", FIXTURES["mathvista"])
    assert read("mathvista", folder)[0].question == "Hint: …\nQuestion: Question 0?\nChoices:\n(A) 3/11\n(B) 8/11"
    queries = json.loads((folder / "query.json").read_text())
    (folder / "query.json").write_text(json.dumps({key: value for key, value in queries.items() if key != "2"}))
    with pytest.raises(DataError, match=r"record 3: query.json says nothing of '2'"):
        read("mathvista", folder)
    (folder / "query.json").write_text("[]")
    with pytest.raises(DataError, match=r"query.json is not a JSON object by id"):
        read("mathvista", folder)
    (folder / "query.json").unlink()
    with pytest.raises(DataError, match=r"query.json must lie beside the table"):
        read("mathvista", folder)


def test_replies_are_scored_without_the_file_that_holds_the_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"pid": "1", "question": "Q?", "question_type": "free_form", "answer_type": "integer", "answer": "3"}
    file = tmp_path / "testmini.json"
    file.write_text(json.dumps([row | {"response": "3"}]))
    assert run_command(["score", file, "--task", "mathvista", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == 1.0


@pytest.mark.parametrize("shape", ["hub", "official"])
def test_a_form_without_the_benchmark_s_instructions_says_so(shape: str, tmp_path: Path) -> None:
    context = LoadContext(root=tmp_path, workdir=tmp_path / "w")
    place = write_shape(tmp_path, "charxiv-reasoning", shape, FIXTURES["charxiv-reasoning"])
    read("charxiv-reasoning", place, context)
    assert any(note.startswith("asked without the instructions") for note in context.notes)


def test_verify_counts_the_rows_of_official_files_that_are_asked(tmp_path: Path) -> None:
    folder = write_shape(tmp_path, "hallusionbench", "official", FIXTURES["hallusionbench"])
    found = verify_data(Catalog().task("hallusionbench"), folder)
    assert (found.shape, found.rows, found.expected_rows) == ("official", 4, 951)
    assert found.notes[-1] == "1 rows of other splits are left out"


def test_verify_holds_the_rows_against_the_file_that_has_their_questions(tmp_path: Path) -> None:
    folder = write_shape(tmp_path, "mathvista", "official", FIXTURES["mathvista"])
    task = Catalog().task("mathvista")
    assert [problem for problem in verify_data(task, folder).problems if "query.json" in problem] == []
    (folder / "query.json").write_text("{}")
    assert "record 1: query.json says nothing of '0': another version?" in verify_data(task, folder).problems
    (folder / "query.json").unlink()
    assert any("query.json must lie beside the table" in one for one in verify_data(task, folder).problems)


def test_a_file_that_two_shapes_fit_is_the_one_that_names_it() -> None:
    table = {"hub": CardSource(columns=("a",)), "official": CardSource(columns=("a",), files={"x/own.json": ""})}
    assert choose_source(table, "", ["a", "b"], Path("own.json"))[0] == "official"
    assert choose_source(table, "", ["a", "b"], Path("other.json"))[0] == "hub"
    assert choose_source(table, "official", ["a", "b"], Path("other.json"))[0] == "official"
    two = {"one": CardSource(columns=("a",)), "two": CardSource(columns=("a",))}
    with pytest.raises(DataError, match="can be one or two by its columns"):
        choose_source(two, "", ["a"], Path("other.json"))


def test_what_a_user_tells_wins_over_what_a_card_says_of_a_shape(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    row = {"question": "Which?", "options": ["3", "1", "2"], "answer": "2", "image": "a.png"}
    file.write_text(json.dumps(row) + "\n")
    assert read("ai2d", file)[0].answers == ("2",)  # the card: an index, and the third option is `2`
    row["answer"] = "1"
    file.write_text(json.dumps(row) + "\n")
    assert read("ai2d", file)[0].answers == ("1",)
    assert read("ai2d", file, answer_kind="text")[0].answers == ("1",)
    row["answer"] = "3"
    file.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="'3' read as index"):
        read("ai2d", file)
    assert read("ai2d", file, answer_kind="text")[0].answers == ("3",)


def test_pictures_that_a_user_has_elsewhere_are_looked_for_there(tmp_path: Path) -> None:
    folder = write_shape(tmp_path, "mm-vet", "official", FIXTURES["mm-vet"])
    (folder / "images").rename(tmp_path / "elsewhere")
    samples = read("mm-vet", folder, image_root=str(tmp_path / "elsewhere"))
    assert all(Path(image.ref).is_file() for sample in samples for image in sample.images)
