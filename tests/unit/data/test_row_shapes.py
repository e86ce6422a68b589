"""Rows of any shape: never a traceback, and no picture or option of an accepted row is missing from its prompt."""

from __future__ import annotations

import csv
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow
import pyarrow.feather
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

import snellen
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.errors import SnellenError
from snellen.core.message_parts import MARKER, holds_marker, without_markers, write_markers
from snellen.core.types import Form
from snellen.data.files.records import parse_literal
from snellen.data.loaders.option_texts import alphabets_of, options_in_text
from snellen.data.loaders.row_options import parse_list

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)
WORD = st.sampled_from([
    *("cat", "dog", "a red car", "None", "nan", "12", "A", "(B)", "yes", "[x]", "%s {x}"),
    *("<image>", "<image 1>", "<image_2>", "the <image1> cat"),
])  # fmt: skip
PICTURE = st.sampled_from(
    ["in.pdf", "a.png", "sub/b.jpg", "https://example.org/c.png", "data:image/png;base64,iVBORw0KGgo="]
)
CELL = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.floats(allow_nan=False), TEXT, WORD, PICTURE,
    st.lists(st.one_of(WORD, PICTURE, TEXT), max_size=4), st.lists(WORD, max_size=4).map(str),
    st.dictionaries(st.sampled_from(["A", "B", "bytes", "path", "url"]), WORD, max_size=3),
)  # fmt: skip
OPTIONS = st.lists(WORD, min_size=2, max_size=5, unique=True)
COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("id", "index", "group", "round", "form", "question_type", "hint", "topic", "doc"), CELL),
    **dict.fromkeys(("max_tokens", "max_out_len", "pages"), CELL),
    **dict.fromkeys(("answer", "answers", "target"), st.one_of(WORD, CELL)),
    **dict.fromkeys(("options", "choices"), st.one_of(OPTIONS, OPTIONS.map(str), OPTIONS.map(json.dumps), CELL)),
    **dict.fromkeys(("image", "images", "img_path", "image_1", "image_2", "scan"), st.one_of(PICTURE, CELL)),
    **dict.fromkeys(("A", "B", "C"), st.one_of(WORD, CELL)),
    **dict.fromkeys(("messages", "conversations"), st.one_of(st.none(), CELL)),
}
ROW = st.lists(st.sampled_from(sorted(COLUMNS)), max_size=4, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({"question": st.one_of(WORD, TEXT)} | {name: COLUMNS[name] for name in names})
)
"""A few columns a row: with all of them at once nearly every row is refused."""
PICTURE_COLUMNS = ("image", "images", "img_path", "image_1", "image_2")


def pictures_of(row: dict[str, Any]) -> int:
    """Count what anybody would call a picture of this row, whatever the loader thinks."""
    cells = [row.get(column) for column in PICTURE_COLUMNS]
    flat = [one for cell in cells for one in (cell if isinstance(cell, list) else [cell])]
    return sum(isinstance(one, str) and one.endswith((".png", ".jpg")) for one in flat)


CLEAN = st.sampled_from(["cat", "a red car", "None", "yes", "12", "x, y", "x|y", "ä ö", "[x]", "%s {x}"])
TYPES = st.sampled_from(["", "multiple-choice", "multiple-response", "yes-no", "open"])
WHOLE_ROW = st.fixed_dictionaries(
    {
        "question": CLEAN,
        "question_type": TYPES,
        "options": st.one_of(st.just([]), st.lists(CLEAN, min_size=2, max_size=5, unique=True)),
        "answer": st.sampled_from(["A", "B", "A,B", "AB", "yes", "12", ""]),
        "image": st.sampled_from(["", "in.pdf", "zipped.png", "plain.png"]),
        "pages": st.sampled_from(["", "1", "2,1", "1-3"]),
        "max_tokens": st.sampled_from(["", "0", "7"]),
    }
)
PAGES = 3


def write_delimited(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows([{**row, "options": json.dumps(row["options"])} for row in rows])


def write_arrow(path: Path, rows: list[dict[str, Any]]) -> None:
    pyarrow.feather.write_feather(pyarrow.Table.from_pylist(rows), path)


def write_json(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")


WRITERS = {".jsonl": write_json, ".csv": write_delimited, ".tsv": write_delimited, ".feather": write_arrow}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a PDF, a picture, and a picture in an archive."""
    folder = tmp_path_factory.mktemp("rows")
    canvas = Canvas(str(folder / "in.pdf"), pagesize=(30, 20))
    for _ in range(PAGES):
        canvas.showPage()
    canvas.save()
    PIL.Image.new("L", (4, 4)).save(folder / "plain.png")
    with zipfile.ZipFile(folder / "more.zip", "w") as archive:
        archive.write(folder / "plain.png", "zipped.png")
    return folder


def shown_pictures(row: dict[str, Any]) -> int:
    """Count the pictures of a row, whatever the loader thinks."""
    if row["image"] == "in.pdf":
        return {"": PAGES, "1": 1, "2,1": 2, "1-3": 3}[row["pages"]]
    return int(bool(row["image"]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(WHOLE_ROW, min_size=1, max_size=3), ending=st.sampled_from(sorted(WRITERS)))
def test_files_of_any_kind_are_asked_whole(rows: list[dict[str, Any]], ending: str, pictures: Path) -> None:
    path = pictures / f"rows{ending}"
    WRITERS[ending](path, [{"id": f"r{number}"} | row for number, row in enumerate(rows)])
    made = RunSettings(tasks=(str(path),), model="openai/x", output_dir=pictures / "run", temperature=0.0)
    try:
        (planned,) = make_plan(made).tasks
    except SnellenError as error:
        assert "\n" not in str(error).strip(), "an error is one line"
        return
    for row, sample in zip(rows, planned.dataset, strict=True):
        request = planned.prompter.build(sample)
        said = "\n".join(turn.text for turn in request.messages)
        assert row["question"] in said
        assert all(option in said for option in row["options"])
        assert sum(len(turn.images) for turn in request.messages) == shown_pictures(row)
        assert request.params.max_tokens == (7 if row["max_tokens"] == "7" else None)
        assert len(sample.answers) == (
            2 if sample.form is Form.MULTIPLE and len(row["answer"]) > 1 else bool(row["answer"])
        )


@given(st.lists(ROW, min_size=1, max_size=3))
def test_what_is_accepted_is_asked_whole(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        made = RunSettings(
            tasks=(str(path),), model="openai/x", output_dir=Path(name) / "run", allow_missing_images=True
        )
        try:
            (planned,) = make_plan(made).tasks
        except SnellenError as error:
            assert "\n" not in str(error).strip(), "an error is one line"
            return
        samples = list(planned.dataset)
        for sample in samples:
            request = planned.prompter.build(sample)
            said = " ".join(" ".join(turn.text for turn in write_markers(request.messages)).split())
            assert all(
                " ".join(piece.split()) in without_markers(said)
                for text in sample.options
                for piece in MARKER.split(text)[::2]
            )
            shown = [image for turn in request.messages for image in turn.images]
            assert set(shown) == set(sample.images)
            assert len(shown) >= len(sample.images)
            assert not sample.images or not any(map(holds_marker, (turn.text for turn in request.messages)))
        if len(samples) == len(rows):
            for row, sample in zip(rows, samples, strict=True):
                assert len(sample.images) >= min(1, pictures_of(row))
                options = row.get("options")
                if isinstance(options, list) and options:
                    assert list(map(without_markers, sample.options)) == [without_markers(str(one)) for one in options]


@given(st.lists(st.sampled_from(["red", "dark blue", "It's", "a. b", "7 cm", "green;"]), min_size=2, max_size=6, unique=True),
       st.sampled_from(["({0}) {1}", "[{0}] {1}", "{0}. {1}", "{0}) {1}", "{0}: {1}", "{0}、{1}", "{0} - {1}", "**{0}.** {1}"]),
       st.sampled_from(["\n", " ", "<br>", "\n- "]), st.sampled_from(["ABCDEF", "abcdef", "АБВГДЕ", "アイウエオカ", "①②③④⑤⑥"]))  # fmt: skip
def test_options_in_a_text_are_found_as_they_were_written(
    texts: list[str], form: str, between: str, alphabet: str
) -> None:
    form = (
        "{0} {1}" if alphabet[0] == "①" else "{0}. {1}" if alphabet == "abcdef" and form[3:5] in (": ", " -") else form
    )
    written = between.join(form.format(alphabet[place], text) for place, text in enumerate(texts))
    found = options_in_text(f"Which colour?\n{written}", alphabets_of(alphabet[0]))
    assert found is not None
    assert (found.question, found.options) == ("Which colour?", tuple(text.rstrip(";") for text in texts))


@pytest.mark.parametrize(
    "text",
    [
        "What does plan A. say?",
        "A or B?",
        "(A) one",
        "Is vitamin C. in it?",
        "",
        "(B) x (C) y",
        "(A) x (A) x",
        "(A) (B)",
    ],
)
def test_what_is_no_list_of_options_is_left_alone(text: str) -> None:
    assert options_in_text(text) is None


def test_what_follows_the_options_stays_with_the_question() -> None:
    found = options_in_text("Look.\nWhich?\n(A) one\n(B) two\nAnswer with the letter.")
    assert found is not None
    assert (found.question, found.options) == ("Look.\nWhich?\nAnswer with the letter.", ("one", "two"))


@given(
    st.lists(st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), max_size=30), min_size=1, max_size=12)
)
def test_lists_are_read_back_as_every_tool_writes_them(texts: list[str]) -> None:
    array = np.array(texts, dtype=object)
    written = {"python": str(texts), "json": json.dumps(texts), "numpy": str(array), "repr": repr(array)}
    for tool, text in written.items():
        assert parse_literal(text) == texts, tool


@given(
    st.lists(st.sampled_from(["red", "dark blue", "It's", "7"]), min_size=2, max_size=4, unique=True),
    st.sampled_from(["list", "label", "letters", "columns", "padded", "numpy"]),
    st.data(),
)
def test_options_of_any_shape_are_all_offered(texts: list[str], shape: str, data: st.DataObject) -> None:
    letters = "ABCD"[: len(texts)]
    shapes: dict[str, Any] = {
        "list": texts,
        "label": [{"label": letter, "text": text} for letter, text in zip(letters, texts, strict=True)],
        "letters": [{letter: text} for letter, text in zip(letters, texts, strict=True)],
        "columns": {"text": texts, "label": list(letters)},
        "padded": [*texts, None, float("nan")],
        "numpy": str(np.array(texts, dtype=object)),
    }
    right = data.draw(st.sampled_from(range(len(texts))))
    row = {"question": "Which?", "options": shapes[shape], "answer": letters[right]}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.jsonl"
        path.write_text(json.dumps(row), "utf-8")
        (sample,) = snellen.load_dataset(str(path))
    assert (sample.options, sample.answers) == (tuple(texts), (texts[right],))


MARKS = {"none": "", "letters": "ABCD", "small": "abcd", "numbers": "1234", "rings": "①②③④", "kana": "アイウエ"}


@given(
    st.lists(st.sampled_from(["red", "dark blue", "It's", "seven"]), min_size=2, max_size=4, unique=True),
    st.sampled_from(sorted(MARKS)),
    st.sampled_from(["{0}. {1}", "({0}) {1}", "{0}) {1}", "{0}、{1}"]),
    st.sampled_from(["mark", "letter", "text", "marked text", "index", "index as text", "float"]),
    st.data(),
)
def test_an_answer_means_what_its_owner_means_or_is_refused(
    texts: list[str], marks: str, form: str, way: str, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(texts)))) if marks != "none" else []
    called = [MARKS[marks][place] for place in order]
    options = [form.format(*pair) for pair in zip(called, texts, strict=True)] if called else texts
    right = data.draw(st.sampled_from(range(len(texts))))
    answers = {"letter": "ABCD"[right], "text": texts[right], "index": right, "index as text": str(right)}
    answers |= {
        "marked text": options[right],
        "float": float(right),
        "mark": called[right] if called else "ABCD"[right],
    }
    row = {"question": "Which?", "options": options, "answer": answers[way]}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.jsonl"
        path.write_text(json.dumps(row), "utf-8")
        try:
            (sample,) = snellen.load_dataset(str(path))
        except SnellenError as error:
            assert "answer_kind" in str(error) or "strip_marks" in str(error) or "is not among" in str(error)
            assert marks != "none", "what bears no marks can always be read"
            return
    assert (sample.options, sample.answers) == (tuple(options), (options[right],))


def held_picture(shade: int) -> dict[str, Any]:
    stream = io.BytesIO()
    PIL.Image.new("L", (2, 2), shade).save(stream, "PNG")
    return {"bytes": stream.getvalue(), "path": None}


HELD = st.sampled_from([0, 60, 120])
HELD_COLUMNS = ("image", "image_1", "image_2", "image_3", "decoded_image", "page_1", "page_2", "scan")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(HELD_COLUMNS), HELD, min_size=1, max_size=4),
    st.lists(HELD, max_size=2),
    st.booleans(),
)
def test_no_picture_of_a_hub_is_passed_over(single: dict[str, int], several: list[int], nested: bool) -> None:
    cells: dict[str, Any] = {column: held_picture(shade) for column, shade in single.items()}
    cells |= {"images": [held_picture(shade) for shade in several]} if several else {}
    cells |= {"seen": {"first": held_picture(0), "width": 2}} if nested else {}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.feather"
        write_arrow(path, [{"question": "Which?", "answer": "x", **cells}])
        try:
            (sample,) = snellen.load_dataset(str(path))
        except SnellenError as error:
            assert "images=" in str(error)
            return
        shown = set()
        for image in sample.images:
            with PIL.Image.open(image.ref) as picture:
                shown.add(picture.getpixel((0, 0)))
    assert not nested
    assert shown == {*single.values(), *several}


def test_python_lists_are_read_and_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    assert parse_list("['It\\'s', \"two\"]", "here") == ["It's", "two"]
    assert parse_literal(f"[__import__('pathlib').Path({str(marker)!r}).touch()]") is None
    assert parse_literal("[" * 5000) is None
    assert not marker.exists()
