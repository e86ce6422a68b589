"""Files as people have them, made by hand: each is asked whole and right from end to end, or refused with its fix."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import PIL.Image
import pyarrow
import pyarrow.parquet
import pytest

import snellen
from command_line import run_command
from knowing_server import Knowing, KnownRow, knowing_server, shaded
from row_files import Row, lines, parquet, table, text, whole
from snellen.api.load import load_run
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from workbooks import write_workbook


@pytest.fixture(scope="module")
def server() -> Iterator[Knowing]:
    with knowing_server() as serving:
        yield serving


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def text64(shade: int) -> str:
    return base64.b64encode(shaded(shade)).decode()


def large64(shade: int) -> str:
    return base64.b64encode(shaded(shade, size=(600, 600), compress_level=0)).decode()


def struct(shade: int) -> Row:
    return {"bytes": shaded(shade), "path": "x.png"}


def messages(*content: Any, **more: Any) -> Callable[[Path], Path]:
    return lines({"id": "m", "messages": [{"role": "user", "content": list(content)}], "answer": "nets", **more})


def labelled(*rows: Row, **names: list[str]) -> Callable[[Path], Path]:
    """A hub's table whose class labels are numbers, with their names in its schema."""

    def make(folder: Path) -> Path:
        content = pyarrow.Table.from_pylist(list(rows))
        features = {column: {"names": labels, "_type": "ClassLabel"} for column, labels in names.items()}
        facts = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
        pyarrow.parquet.write_table(content.replace_schema_metadata(facts), folder / "rows.parquet")
        return folder / "rows.parquet"

    return make


class Case(NamedTuple):
    """A file, and what its owner means by it."""

    make: Callable[[Path], Path]
    known: list[KnownRow]
    settings: Row | None = None


COLOURS = ("red", "green", "blue")
CHOICE: Row = {"id": "1", "question": "Which colour?", "image": "p10.png", "answer": "B"}
PICKED = [KnownRow("Which colour?", "green", COLOURS, (10,))]
OPEN: Row = {"id": "1", "question": "What is caught?", "image": "p10.png"}
TEN = [KnownRow("What is caught?", "nets", (), (10,))]
SAID = [
    {"answer": word, "answer_confidence": "yes", "answer_id": place}
    for place, word in enumerate(["net"] * 9 + ["nets"])
]
MMBENCH: Row = {
    "index": 1,
    "image": text64(20),
    "question": "Which colour?",
    "hint": "Look up.",
    "A": "red",
    "B": "green",
}

RIGHT: dict[str, Case] = {
    "capital columns of a sheet": Case(
        lines({"ID": 1, "Question": "Which colour?", "Options": list(COLOURS), "Answer": "B", "Image": "p10.png"}),
        PICKED,
    ),
    "options in Option A, Option B": Case(
        lines(CHOICE | {f"Option {letter}": colour for letter, colour in zip("ABC", COLOURS, strict=True)}), PICKED
    ),
    "options in option1, option2, answer counted from 1": Case(
        lines(CHOICE | {"answer": 2} | {f"option{place}": colour for place, colour in enumerate(COLOURS, 1)}), PICKED
    ),
    "options with label and text": Case(
        lines(
            CHOICE | {"options": [{"label": letter, "text": word} for letter, word in zip("ABC", COLOURS, strict=True)]}
        ),
        PICKED,
    ),
    "options as objects of one letter": Case(
        lines(CHOICE | {"options": [{"A": "red"}, {"B": "green"}, {"C": "blue"}]}), PICKED
    ),
    "twelve numbered options": Case(
        lines(CHOICE | {"options": {str(place): f"hue {place}" for place in range(1, 13)}, "answer": "10"}),
        [KnownRow("Which colour?", "hue 10", tuple(f"hue {place}" for place in range(1, 13)), (10,))],
    ),
    "choices as a struct of lists": Case(
        parquet(
            {
                "question": "Which colour?",
                "image": struct(10),
                "answer": "B",
                "choices": {"label": list("ABC"), "text": list(COLOURS)},
            }
        ),
        PICKED,
    ),
    "options as pandas writes an array": Case(
        table(CHOICE | {"options": "['red' 'green'\n 'blue']"}, name="rows.csv", delimiter=","), PICKED
    ),
    "options as an array of objects": Case(
        table(CHOICE | {"options": "array(['red', 'green', 'blue'], dtype=object)"}), PICKED
    ),
    "options filled up with nothing": Case(lines(CHOICE | {"options": [*COLOURS, None, None]}), PICKED),
    "options on lettered lines of one cell": Case(table(CHOICE | {"options": "A. red\nB. green\nC. blue"}), PICKED),
    "an index in a column with gaps": Case(parquet(CHOICE | {"options": list(COLOURS), "answer": 1.0}), PICKED),
    "an answer with its letter and its text": Case(
        lines(CHOICE | {"options": list(COLOURS), "answer": "B. green"}), PICKED
    ),
    "a full-width letter": Case(lines(CHOICE | {"options": list(COLOURS), "answer": "Ｂ"}), PICKED),
    "answers of ten people": Case(lines(OPEN | {"answers": SAID}), TEN),
    "answers of ten people, of a hub": Case(
        parquet(
            {
                "question_id": 7,
                "question": "What is caught?",
                "image": struct(10),
                "answers": SAID,
                "question_type": "what is",
            }
        ),
        TEN,
    ),
    "answers as a struct of lists": Case(
        parquet(
            {
                "question_id": 7,
                "question": "What is caught?",
                "image": struct(10),
                "answers": {"answer": ["net", "nets"], "answer_id": [1, 2]},
            }
        ),
        TEN,
    ),
    "answers as pandas writes an array": Case(
        table(OPEN | {"answers": "['net' 'nets']"}, name="rows.csv", delimiter=","), TEN
    ),
    "a value and its aliases": Case(
        lines(OPEN | {"answer": {"value": "net", "aliases": ["nets"], "normalized_value": "net"}}), TEN
    ),
    "MMBench with nan for nothing": Case(
        table(
            MMBENCH | {"C": "blue", "D": "nan", "E": "", "answer": "b", "category": "a\tb", "split": "dev"},
            MMBENCH
            | {
                "index": 1000001,
                "image": "1",
                "question": "And which?",
                "hint": "nan",
                "C": "nan",
                "D": "nan",
                "E": "",
                "answer": "A",
                "category": "a\tb",
                "split": "dev",
            },
        ),
        [
            KnownRow("Look up.\nWhich colour?", "green", COLOURS, (20,)),
            KnownRow("And which?", "red", ("red", "green"), (20,)),
        ],
    ),
    "MMMU with large pictures in a list as Python writes it": Case(
        table(
            {
                "index": 1,
                "image": str([large64(20), large64(30)]),
                "question": "<image 1> or <image 2>?",
                "A": "one",
                "B": "two",
                "answer": "B",
            }
        ),
        [KnownRow("?", "two", ("one", "two"), (20, 30))],
    ),
    "Chinese columns": Case(
        lines({"序号": 1, "问题": "哪个？", "选项": ["猫", "狗"], "答案": "B", "图片": "p10.png"}),
        [KnownRow("哪个？", "狗", ("猫", "狗"), (10,))],
    ),
    "Chinese columns of lettered options": Case(
        table(
            {"编号": 1, "题目": "哪个？", "选项A": "猫", "选项B": "狗", "正确答案": "B", "图片": "p10.png"},
            name="rows.csv",
            delimiter=",",
            encoding="utf-8-sig",
        ),
        [KnownRow("哪个？", "狗", ("猫", "狗"), (10,))],
    ),
    "Japanese columns": Case(
        lines({"id": 1, "質問": "どれ？", "選択肢": ["犬", "猫"], "正解": "猫", "画像": "p10.png"}),
        [KnownRow("どれ？", "猫", ("犬", "猫"), (10,))],
    ),
    "Arabic columns": Case(
        lines({"id": 1, "السؤال": "ما هذا؟", "الإجابة": "قطة", "الصورة": "p10.png"}),
        [KnownRow("ما هذا؟", "قطة", (), (10,))],
    ),
    "spaces in a header": Case(text("id, question, answer, image\n1,What is caught?,nets,p10.png\n", "rows.csv"), TEN),
    "LLaVA's conversation with options in its text": Case(
        lines(
            {
                "id": "s",
                "image": "p10.png",
                "conversations": [
                    {
                        "from": "human",
                        "value": "<image>\nWhich colour?\nA. red\nB. green\nC. blue\nAnswer with the letter.",
                    },
                    {"from": "gpt", "value": "B"},
                ],
            }
        ),
        PICKED,
    ),
    "FlagEval's question_type beside a hub's picture": Case(
        parquet(
            {
                "question_id": "1",
                "question": "Which colour?",
                "question_type": "multiple-choice",
                "image": struct(10),
                "options": "['red', \"green\", 'blue']",
                "answer": "B",
            }
        ),
        PICKED,
    ),
}

ASKED = {"type": "text", "text": "What is caught?"}
RIGHT |= {
    "a hub's class labels": Case(
        labelled({"question": "Is it caught?", "image": struct(10), "answer": 1}, answer=["No", "Yes"]),
        [KnownRow("Is it caught?", "yes", (), (10,))],
    ),
    "a CSV in UTF-16": Case(
        text("id,question,answer,image\n1,What is caught?,nets,p10.png\n".encode("utf-16"), "rows.csv"), TEN
    ),
    "JSON lines in UTF-16": Case(text(json.dumps(OPEN | {"answer": "nets"}).encode("utf-16"), "rows.jsonl"), TEN),
    "NaN in JSON lines": Case(text(json.dumps(OPEN | {"answer": "nets", "hint": float("nan")}), "rows.jsonl"), TEN),
    "records beside their description": Case(
        whole({"info": {"year": 2014}, "questions": [OPEN | {"answer": "nets"}]}), TEN
    ),
    "a path as Windows writes it": Case(lines(OPEN | {"answer": "nets", "image": "in\\p 10.png"}), TEN),
    "a path as a web page writes it": Case(lines(OPEN | {"answer": "nets", "image": "in/p%2010.png"}), TEN),
    "names of files with commas between them": Case(
        table(OPEN | {"answer": "nets", "image": "p10.png, p20.png"}, name="rows.csv", delimiter=","),
        [KnownRow("What is caught?", "nets", (), (10, 20))],
    ),
    "a part that shows the row's picture": Case(messages({"type": "image"}, ASKED, images=["p10.png"]), TEN),
    "a picture between two texts of a row's message": Case(
        messages({"type": "text", "text": "First"}, {"type": "image"}, ASKED, images=["p10.png"]), TEN
    ),
    "a part with its source": Case(
        messages({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": text64(10)}}, ASKED),
        TEN,
    ),
    "parts without a type": Case(messages({"image": "p10.png"}, {"text": "What is caught?"}), TEN),
    "MME's pairs of one id, joined with the question": Case(
        parquet(
            {"question_id": "a/1.png", "image": struct(10), "question": "Is it red?", "answer": "Yes"},
            {"question_id": "a/1.png", "image": struct(10), "question": "Is it blue?", "answer": "No"},
        ),
        [KnownRow("Is it red?", "Yes", (), (10,)), KnownRow("Is it blue?", "No", (), (10,))],
        {"columns": {"id": "question_id,question"}},
    ),
    "image1 and image2": Case(
        lines({"id": 1, "question": "What is caught?", "answer": "nets", "image1": "p10.png", "image2": "p20.png"}),
        [KnownRow("What is caught?", "nets", (), (10, 20))],
    ),
    "a hint and a question that stands in the picture": Case(
        table(MMBENCH | {"question": "", "hint": "Answer the drawn one.", "answer": "B"}),
        [KnownRow("Answer the drawn one.", "green", ("red", "green"), (20,))],
    ),
    "a TSV with commas": Case(text("id,question,answer,image\n1,What is caught?,nets,p10.png\n", "rows.tsv"), TEN),
    "what Excel is told of its marks": Case(
        text("sep=;\r\nid;question;answer;image;;\r\n1;What is caught?;nets;p10.png;;\r\n", "rows.csv"), TEN
    ),
    "a developer's message": Case(
        lines(
            {
                "id": 1,
                "messages": [{"role": "developer", "content": "Be terse."}, {"role": "user", "content": "What?"}],
                "answer": "x",
            }
        ),
        [KnownRow("What?", "x")],
    ),
    "MMMU's test rows have ? for answers": Case(
        parquet(
            {"id": "1", "question": "Which <image 1>?", "options": "['a', 'b']", "answer": "?", "image_1": struct(10)},
            {"id": "2", "question": "What <image 1>?", "options": "['a', 'b']", "answer": "B", "image_1": struct(10)},
        ),
        [KnownRow("What", "b", ("a", "b"), (10,))],
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_file_as_people_have_it_is_right_from_end_to_end(name: str, server: Knowing, tmp_path: Path) -> None:
    case = RIGHT[name]
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "in").mkdir()
    for name, shade in (("p10.png", 10), ("p20.png", 20), ("in/p 10.png", 10)):
        (folder / name).write_bytes(shaded(shade))
    server.known[:] = case.known
    task = case.make(folder)
    settings: Row = {"base_url": server.url, "output_dir": tmp_path / "run", "cache": False, **(case.settings or {})}
    result = snellen.run(str(task), "openai/m", **settings)
    metrics = result.results["tasks"][task.stem]["metrics"]
    headline = metrics.get("accuracy") or metrics["exact_match"]
    assert (headline["value"], headline["n"]) == (1.0, len(case.known))


def drawn_workbook(folder: Path) -> Path:
    book = write_workbook(folder / "b.xlsx", s=[["id", "question", "answer"], [1, "What is it?", "x"]])
    with zipfile.ZipFile(book, "a") as archive:
        archive.writestr("xl/media/image1.png", shaded(10))
    return book


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "options in a column of another name": (
        lines(CHOICE | {"candidates": list(COLOURS)}),
        "rows.jsonl record 1: column 'candidates' looks like options and is not used; --map options=candidates",
    ),
    "a letter as answer and a list beside it": (
        lines(CHOICE | {"picks": list(COLOURS)}),
        "column 'picks' looks like options and is not used",
    ),
    "an empty option in the middle": (
        lines(CHOICE | {"options": ["red", None, "blue"]}),
        "record 1: option 2 of 3 is empty; leave it out",
    ),
    "options that say which is right": (
        lines(CHOICE | {"options": [{"text": "red", "correct": True}, {"text": "green", "correct": False}]}),
        "record 1: options are objects with text, correct; write a list of texts",
    ),
    "options with commas between them": (
        lines(CHOICE | {"options": "red, green, blue"}),
        "record 1: options is one text without | or ;",
    ),
    "a number that is an option's name and another's text": (
        lines(CHOICE | {"option1": "2", "option2": "3", "answer": 2}),
        "answer 2 can mean option 2 or the text '2'",
    ),
    "a place from 0 where options are numbered from 1": (
        lines(CHOICE | {"option1": "x", "option2": "y", "answer": 0}),
        "answer 0 is none of the options 1, 2",
    ),
    "a box": (lines(OPEN | {"answer": [10, 20, 30, 40]}), "record 1: answer is a list of 4 numbers"),
    "answers in two columns": (
        lines(OPEN | {"answer": "net", "answers": ["net", "nets"]}),
        "columns 'answer' and 'answers' differ; --map answer=answers",
    ),
    "half an array": (table(OPEN | {"answer": "['net' ... 'nets']"}), "answer looks like a list and is none"),
    "an object nobody knows": (lines(OPEN | {"answer": {"en": "net"}}), "answer is an object with en"),
    "a picture by its number": (
        lines({"question_id": 5, "image_id": 262148, "question": "Where?", "answer": "net"}),
        "record 1: column 'image_id' looks like pictures and is not used; -p 'dataset.image=FOLDER/{image_id}.jpg'",
    ),
    "GQA's object by id": (
        whole({"029": {"question": "Is it?", "imageId": "n161", "answer": "no"}}),
        "column 'imageId' looks like pictures",
    ),
    "a picture that lies elsewhere": (
        whole({"v1_0": {"imagename": "v1_0.png", "question": "x?", "answer": "5"}}),
        "column 'imagename' looks like pictures",
    ),
    "POPE's text and label": (
        lines({"question_id": 1, "image": "p10.png", "text": "Is there a cat?", "label": "no"}),
        "has no question (did you mean 'text'?); name its column with --map question=COLUMN",
    ),
    "a second column of pictures": (
        lines(OPEN | {"answer": "x", "scan": "p10.png"}),
        "--map images=image,scan shows them",
    ),
    "a picture in the words of the question": (
        lines({"id": 1, "question": "<img>p10.png</img> What?", "answer": "x"}),
        "the question shows a picture ('<img>p10.png</img>') and the row has none; name its file in a column",
    ),
    "one id twice": (
        lines(OPEN | {"answer": "x"}, OPEN | {"answer": "y"}),
        "samples that repeat an id: 1 ('1'); ids must be unique (--map id=COLUMN",
    ),
    "a list in JSON lines": (
        text('[{"question": "a"}]', "rows.jsonl"),
        "is a list, not an object (a whole list? name it .json)",
    ),
    "an object over several lines": (
        text('{\n"question": "a"}', "rows.jsonl"),
        "(one object over several lines? name it .json)",
    ),
    "an ending nobody reads": (text("a", "rows.txt"), "rows.txt': unknown ending '.txt'; known: .jsonl"),
    "lists that belong together": (
        whole({"images": [{"id": 1, "file_name": "p10.png"}], "annotations": [{"image_id": 1, "caption": "a cat"}]}),
        "rows.json holds several lists of records (images, annotations); join them into one list of rows",
    ),
    "a sheet in another country's letters": (
        text("id,question,answer\n1,这是什么？,猫\n".encode("gbk"), "rows.csv"),
        "rows.csv cannot be read: it is not UTF-8 (byte 21): save it as UTF-8",
    ),
    "a comma in a cell without quotes": (
        text("id,question,answer\n1,Hello, you?,x\n", "rows.csv"),
        "record 1 has more cells than the header (4 for 3 columns); put",
    ),
    "a title above the header": (
        lambda folder: write_workbook(
            folder / "b.xlsx", s=[["Set", "", ""], ["id", "question", "answer"], [1, "q?", "x"]]
        ),
        "the first row must name every column; a title above it must go",
    ),
    "a column without a name": (
        text("id,question,options,,answer\n1,Which?,x|z,y,x\n", "rows.csv"),
        "rows.csv record 1: the column of 'y' has no name; give it one in the first row",
    ),
    "a merged header": (
        lambda folder: write_workbook(
            folder / "b.xlsx", s=[["id", "question", "options", "", "answer"], [1, "q?", "x|z", "y", "x"]]
        ),
        "record 1: the column of 'y' has no name; give it one",
    ),
    "pictures that lie on a sheet": (drawn_workbook, "b.xlsx has 1 picture on its sheets and in no cell; save them"),
    "an object that is no picture": (
        lines(OPEN | {"image": {"left": "p10.png"}}),
        "record 1: an image is an object with left, and bytes, path or url",
    ),
    "placeholders without their pictures": (
        lines(
            {"id": 1, "conversations": [{"from": "human", "value": "<image>\nWhat?"}, {"from": "gpt", "value": "x"}]}
        ),
        "1 × <image> in its messages and 0 pictures in its columns; one picture each is needed (--map images=COLUMN",
    ),
    "a tool's message": (
        lines({"id": 1, "messages": [{"role": "user", "content": "Hi"}, {"role": "tool", "content": "x"}]}),
        "record 1: a message has role 'tool' (role or from: user",
    ),
    "a question that is a list": (lines(OPEN | {"question": ["a"]}), "column 'question' holds list, not text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_asked_wrongly_is_refused_in_one_line(
    name: str, server: Knowing, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make, said = REFUSED[name]
    (tmp_path / "p10.png").write_bytes(shaded(10))
    server.asked.clear()
    arguments = ["run", make(tmp_path), "--model", "openai/m", "--base-url", server.url, "-o", tmp_path / "run"]
    assert run_command([*arguments, "--quiet"]) == 2
    told = capfd.readouterr().err
    assert told.startswith("error: ") and told.count("\n") == 1
    assert said in told
    assert not server.asked


def test_pictures_are_found_by_a_column_that_has_their_number(server: Knowing, tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    (tmp_path / "val" / "COCO_000000000042.png").write_bytes(shaded(30))
    server.known[:] = [KnownRow("What is caught?", "nets", (), (30,))]
    rows = {"questions": [{"question_id": 420, "image_id": 42, "question": "What is caught?", "answers": SAID}]}
    where = "dataset.image=val/COCO_{image_id:012}.png"
    arguments = ["run", whole(rows)(tmp_path), "--model", "openai/m", "--base-url", server.url, "-p", where]
    assert run_command([*arguments, "-o", tmp_path / "run", "--quiet"]) == 0
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["tasks"]["rows"]["metrics"]["exact_match"]["value"] == 1.0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pages.tiff", "has 2 pages: save each as a file, or all as a PDF"),
        ("moving.gif", "is an animation of 2 frames: save the one that is meant, or show it as a video"),
        ("moving.webp", "is an animation of 2 frames"),
        ("moving.png", "is an animation of 2 frames"),
    ],
)
def test_a_file_of_several_pictures_is_not_shown_in_part(name: str, said: str, server: Knowing, tmp_path: Path) -> None:
    with PIL.Image.open(io.BytesIO(shaded(10))) as first, PIL.Image.open(io.BytesIO(shaded(200))) as second:
        first.save(tmp_path / name, save_all=True, append_images=[second])
    (tmp_path / "p10.png").write_bytes(shaded(10))
    server.known[:] = TEN
    rows = [OPEN | {"answer": "nets"}, OPEN | {"id": "2", "answer": "nets", "image": name}]
    task = str(lines(*rows)(tmp_path))
    result = snellen.run(task, "openai/m", base_url=server.url, output_dir=tmp_path / "run", cache=False)
    metric = result.results["tasks"]["rows"]["metrics"]["exact_match"]
    assert (metric["value"], metric["n"], metric["failed"]) == (1.0, 1, 1)
    with load_run(result.folder) as run:
        (failed,) = [trial.prediction for trial in run.trials("rows") if trial.prediction.failure]
    assert said in failed.failure.message


def test_the_plan_says_what_is_not_asked_and_which_column_may_be_the_answer(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "question": "Who?", "context": "Anna paid.", "gt": "Anna"},
        {"id": 2, "question": "Which?", "options": ["A. x", "B. y"], "gt": "A"},
        {"id": 3, "question": "Which <ImageHere>?", "options": ["x", "y"], "answer": ["A", "B"], "image": "p10.png"},
        {"id": 4, "question": "Which of a and b?", "answer": "b"},
        {"id": 5, "question": "Which?", "A": "x", "B": "y", "D": "z", "answer": "A"},
    ]
    (tmp_path / "p10.png").write_bytes(shaded(10))
    settings = RunSettings(tasks=(str(lines(*rows)(tmp_path)),), model="openai/x", output_dir=tmp_path / "run")
    (planned,) = make_plan(settings).tasks
    said = "\n".join(planned.survey.notes)
    assert "2 rows without an answer: asked, and unscored; is it 'gt'? --map answer=gt" in said
    assert "column 'context' that is not asked (--map hint=context puts it first)" in said
    assert "1 row with a letter as answer and no options found: matched as exact text (4)" in said
    assert "1 row with a column 'D' that is no option: the letters before it have a gap" in said
    assert "1 row with several right options: any one of them counts (--form multiple asks for all) (3)" in said
    assert "1 row whose question holds another tool's marker (<ImageHere>): it is sent as text" in said
    assert "options begin with letters of their own (-p dataset.strip_marks=true takes them off)" in said
