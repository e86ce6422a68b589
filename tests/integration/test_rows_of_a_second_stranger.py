"""Files of a second stranger: each is planned as its owner means it, or refused in one line; what is not asked is said."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import PIL.Image
import pytest

import snellen
from knowing_server import Knowing, KnownRow, knowing_server, shaded
from row_files import Row, lines, parquet, table, text, whole
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.errors import SnellenError
from workbooks import write_workbook

Make = Callable[[Path], Path]
COLOURS = ("red", "green", "blue")
CHOICE: Row = {"id": "1", "question": "Which colour?", "image": "p10.png"}
OFFERED: Row = CHOICE | {"options": list(COLOURS)}
OPEN: Row = {"id": "1", "question": "What is caught?", "image": "p10.png"}
ANSWERED: Row = OPEN | {"answer": "nets"}


def asked(tail: str, answer: Any, **more: Any) -> Make:
    return lines(CHOICE | {"question": f"Which colour?{tail}", "answer": answer} | more)


def said(*turns: str) -> list[Row]:
    return [{"from": ("human", "gpt")[place % 2], "value": turn} for place, turn in enumerate(turns)]


def held(shade: int) -> Row:
    return {"bytes": shaded(shade), "path": "x.png"}


def shard(*members: tuple[str, bytes]) -> Make:
    def make(folder: Path) -> Path:
        with tarfile.open(folder / "rows.tar", "w") as archive:
            for name, data in members:
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, BytesIO(data))
        return folder / "rows.tar"

    return make


def broken_sheet(*cells: str) -> Make:
    """A workbook whose second row has cells that are errors."""

    def make(folder: Path) -> Path:
        header = ["id", "question", "A", "B", "C", "answer"]
        book = write_workbook(folder / "rows.xlsx", s=[header, [1, "Which colour?", *COLOURS, "A"]])
        with zipfile.ZipFile(book) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        for cell in cells:
            plain = f'<c t="inlineStr"><is><t xml:space="preserve">{cell}</t></is></c>'.encode()
            place = {"green": "D2", "A": "F2"}[cell]
            whole, last = parts["xl/worksheets/s1.xml"].rsplit(plain, 1)
            parts["xl/worksheets/s1.xml"] = whole + f'<c r="{place}" t="e"><v>#N/A</v></c>'.encode() + last
        with zipfile.ZipFile(book, "w") as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
        return book

    return make


def percent_sheet(code: str, styled: int = 1) -> Make:
    """A workbook whose answer is a fraction that is shown in percent, by a format of Excel's or by one with a code."""

    def make(folder: Path) -> Path:
        book = write_workbook(folder / "rows.xlsx", s=[["id", "question", "answer"], [1, "How much?", 0.455]])
        with zipfile.ZipFile(book) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        number, codes = (code, "") if code.isdecimal() else ("164", f'<numFmt numFmtId="164" formatCode="{code}"/>')
        formats = f'<cellXfs count="2"><xf numFmtId="0" fontId="0"/><xf fontId="0" numFmtId="{number}"/></cellXfs>'
        main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        styles = f'<styleSheet xmlns="{main}"><numFmts count="1">{codes}</numFmts>{formats}</styleSheet>'
        number_cell = b'<c r="C2" t="n" s="%d"><v>0.455</v></c>' % styled
        empty_cell = b'<c r="D1" s="1"/></row>'  # people format whole columns
        sheet = parts["xl/worksheets/s1.xml"].replace(b"<c><v>0.455</v></c>", number_cell)
        sheet = sheet.replace(b"</row>", empty_cell, 1)
        with zipfile.ZipFile(book, "w") as archive:
            for name, data in (parts | {"xl/worksheets/s1.xml": sheet, "xl/styles.xml": styles.encode()}).items():
                archive.writestr(name, data)
        return book

    return make


class Asked(NamedTuple):
    """A file, what its only row offers, which answers are right, and what the owner had to say beside it."""

    make: Make
    options: tuple[str, ...] = COLOURS
    answers: tuple[str, ...] = ("green",)
    settings: Row | None = None
    question: str = "Which colour?"


MARKED = ("1. red", "2. green", "3. blue")
RIGHT: dict[str, Asked] = {
    "options in the question as in their column": Asked(
        lines(OFFERED | {"question": "Which colour?\nA. red\nB. green\nC. blue", "answer": "B"})
    ),
    "options in one line of the question as in their column": Asked(
        lines(OFFERED | {"question": "Which colour? (A) red (B) green (C) blue", "answer": "green"})
    ),
    "small letters in the question": Asked(asked("\n(a) red\n(b) green\n(c) blue", "(b)")),
    "small letters in one line": Asked(asked(" a. red b. green c. blue", "b")),
    "rings in the question": Asked(asked(" ①red②green③blue", "②")),
    "letters in square brackets": Asked(asked("\n[A] red\n[B] green\n[C] blue", "B")),
    "letters before dashes": Asked(asked("\nA - red\nB - green\nC - blue", "B")),
    "letters in bold": Asked(asked("\n**A.** red\n**B.** green\n**C.** blue", "B")),
    "letters in a list of Markdown": Asked(asked("\n- A. red\n- B. green\n- C. blue", "B")),
    "lines of a web page": Asked(asked("<br>A. red<br/>B. green<BR>C. blue", "B")),
    "full-width letters": Asked(asked("\nＡ．red\nＢ．green\nＣ．blue", "B")),
    "options right after a colon": Asked(asked(" Choices:(A) red (B) green (C) blue", "B"), question="Choices:"),
    "Cyrillic letters, of which one looks Latin": Asked(asked("\nА) red\nБ) green\nВ) blue", "В"), answers=("blue",)),
    "katakana before spaces": Asked(asked("\nア red\nイ green\nウ blue", "イ")),
    "an answer that is an option's text": Asked(asked("\nA. red\nB. green\nC. blue", "green")),
    "an answer with its letter and its text": Asked(asked("\nA. red\nB. green\nC. blue", "B. green")),
    "several right ones in the question": Asked(
        asked("\nA. red\nB. green\nC. blue", "A, C", question_type="multiple-response"), answers=("red", "blue")
    ),
    "MMVP's options of one cell": Asked(
        text("Index,Question,Options,Correct Answer\n1,Which colour?,(a) red (b) green (c) blue,(b)\n", "questions.csv")
    ),
    "options as tools flatten an object": Asked(
        table(CHOICE | {"options.A": "red", "options.B": "green", "options.C": "blue", "answer": "B"})
    ),
    "options as tools flatten a list": Asked(
        table(CHOICE | {"choices/0": "red", "choices/1": "green", "choices/2": "blue", "answer": "green"})
    ),
    "options in columns that the user names": Asked(
        lines(CHOICE | {"opa": "red", "opb": "green", "opc": "blue", "cop": 1}),
        settings={"columns": {"options": "opa,opb,opc", "answer": "cop"}},
    ),
    "semicolons inside options": Asked(
        lines(CHOICE | {"options": "red; or ruby|green; or lime|blue", "answer": "B"}),
        ("red; or ruby", "green; or lime", "blue"),
        ("green; or lime",),
    ),
    "options by names that have no order of letters": Asked(
        lines(CHOICE | {"options": {"甲": "red", "乙": "green", "丙": "blue"}, "answer": "乙"})
    ),
    "options by names with numbers": Asked(
        lines(CHOICE | {"options": {"option_1": "red", "option_2": "green", "option_3": "blue"}, "answer": 2})
    ),
    "a mark of another script": Asked(
        lines(CHOICE | {"options": ["А) red", "Б) green", "В) blue"], "answer": "В"}),
        ("А) red", "Б) green", "В) blue"),
        ("В) blue",),
    ),
    "a ring as mark": Asked(
        lines(CHOICE | {"options": ["①red", "②green", "③blue"], "answer": "②"}),
        ("①red", "②green", "③blue"),
        ("②green",),
    ),
    "a number in brackets as mark": Asked(
        lines(CHOICE | {"options": ["(1) red", "(2) green", "(3) blue"], "answer": "(2)"}),
        ("(1) red", "(2) green", "(3) blue"),
        ("(2) green",),
    ),
    "a text without its mark": Asked(lines(CHOICE | {"options": MARKED, "answer": "green"}), MARKED, ("2. green",)),
    "marks that the user wants counted": Asked(
        lines(CHOICE | {"options": MARKED, "answer": "2"}), MARKED, ("2. green",), {"answer_kind": "mark"}
    ),
    "marks in another order, taken off": Asked(
        lines(CHOICE | {"options": ["B. green", "A. red", "C. blue"], "answer": "B"}),
        ("green", "red", "blue"),
        ("green",),
        {"answer_kind": "mark", "strip_marks": True},
    ),
    "names that only look marked": Asked(
        lines(CHOICE | {"options": ["S. aureus", "E. coli", "B. subtilis"], "answer": "B"}),
        ("S. aureus", "E. coli", "B. subtilis"),
        ("E. coli",),
    ),
    "a whole float that is a place": Asked(lines(OFFERED | {"answer": 1.0})),
    "answers in two columns that agree": Asked(lines(OFFERED | {"answer": "B", "correct_answer": "green"})),
    "options in two columns that agree": Asked(
        lines(OFFERED | {"choices": ["A. red", "green", "blue"], "answer": "B"})
    ),
    "a tuple in a cell": Asked(table(OPEN | {"answer": "('net', 'nets')"}), (), ("net", "nets"), None, "What is"),
    "coordinates in two columns": Asked(
        lines(OPEN | {"answer": "(3, 4)", "ground_truth": "(3, 4)"}), (), ("(3, 4)",), None, "What is"
    ),
    "a set in a cell": Asked(table(OPEN | {"answer": "{'nets', 'net'}"}), (), ("net", "nets"), None, "What is"),
    "an answer in a column of its usual names": Asked(
        text("Nr;Frage;Antwort;Bild\n1;Was ist das?;Netze;p10.png\n", "rows.csv"), (), ("Netze",), None, "Was ist das?"
    ),
    "a day that a table keeps as a moment": Asked(
        parquet({"question": "When?", "answer": datetime(2024, 3, 1)}), (), ("2024-03-01",), None, "When?"
    ),
    "a moment of a table": Asked(
        parquet({"question": "When?", "answer": datetime(2024, 3, 1, 9, 30)}),
        (),
        ("2024-03-01 09:30:00",),
        None,
        "When?",
    ),
    "numbers for yes and no": Asked(
        lines(OPEN | {"answer": "1", "form": "yesno"}), (), ("yes",), None, "What is caught?"
    ),
    "statements that are numbered and counted": Asked(
        lines(OPEN | {"question": "How many are true?\n1. x\n2. y\n3. z", "answer": "2"}),
        (),
        ("2",),
        None,
        "How many are true?\n1. x\n2. y\n3. z",
    ),
    "a formula that speaks of an image": Asked(
        lines({"id": 1, "question": "What is \\\\text{image} of f?", "answer": "R"}), (), ("R",), None, "text{image}"
    ),
    "lines of code": Asked(
        lines(OPEN | {"question": "Which is printed?\na: cat\nb: dog\nprint(b)", "answer": "dog"}),
        (),
        ("dog",),
        None,
        "a: cat\nb: dog\nprint(b)",
    ),
    "speakers called A and B": Asked(
        lines(OPEN | {"question": "Read.\nA: Hello, Bob.\nB: Hello, Ann.\nWho is A?", "answer": "Ann"}),
        (),
        ("Ann",),
        None,
        "A: Hello, Bob.\nB: Hello, Ann.",
    ),
}


def planned(path: Path, folder: Path, **settings: Any) -> Any:
    """Plan a file; `settings` are fields of its dataset table."""
    overrides = tuple((f"dataset.{name}", value) for name, value in settings.items())
    made = RunSettings(
        tasks=(str(path),),
        model="openai/x",
        base_url="http://127.0.0.1:9",
        output_dir=folder / "run",
        overrides=overrides,
    )
    return make_plan(made).tasks[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    for shade in (10, 20):
        (tmp_path / f"p{shade}.png").write_bytes(shaded(shade))
    return tmp_path


@pytest.mark.parametrize("name", RIGHT)
def test_a_row_is_planned_as_its_owner_means_it(name: str, folder: Path) -> None:
    case = RIGHT[name]
    task = planned(case.make(folder), folder, **(case.settings or {}))
    (sample,) = task.dataset
    assert (sample.options, sample.answers) == (case.options, case.answers)
    prompt = "\n".join(turn.text for turn in task.prompter.build(sample).messages)
    assert case.question in prompt
    assert all(prompt.count(option) == 1 for option in case.options)


KEYED = CHOICE | {"answer": "B"}
REFUSED: dict[str, tuple[Make, str]] = {
    "a place or a mark": (
        lines(CHOICE | {"options": MARKED, "answer": "2"}),
        "answer '2' can mean '3. blue' by index or '2. green' by mark; set -p dataset.answer_kind=index|mark",
    ),
    "marks with a gap": (
        lines(CHOICE | {"options": ["A. red", "C. green", "D. blue"], "answer": "C"}),
        "answer 'C' can mean 'D. blue' by letter or 'C. green' by mark",
    ),
    "marks in another order": (
        lines(CHOICE | {"options": ["B. green", "A. red", "C. blue"], "answer": "C"}),
        "its options begin with letters of their own, B, A, C; -p dataset.strip_marks=true takes them off",
    ),
    "a float that is a text or a place": (
        lines(CHOICE | {"options": [1.5, 2.0, 2.5], "answer": 2.0}),
        "answer 2.0 can mean the text '2.0' or place 2; set -p dataset.answer_kind=text|index",
    ),
    "a flag for each option": (
        lines(OFFERED | {"answer": [0, 1, 0]}),
        "answer [0, 1, 0] can be a flag for each option, or places among them; write the letters",
    ),
    "a flag for each of several right options": (
        lines(OFFERED | {"answer": [1, 0, 1], "form": "multiple"}),
        "can be a flag for each option",
    ),
    "several letters that nobody said may be right": (
        asked("\nA. red\nB. green\nC. blue", "A, C"),
        "several right options? question_type multiple-response, or --form multiple",
    ),
    "an answer among none": (lines(OFFERED | {"answer": "pink"}), "write the letter, the text or the place (from 0)"),
    "options in columns of short names": (
        lines(CHOICE | {"opa": "red", "opb": "green", "opc": "blue", "cop": 1}),
        "columns 'opa' and 'opb' look like options; --map options=opa,opb,opc offers them, -p dataset.not_options=",
    ),
    "two ways to do something": (
        lines({"id": 1, "question": "How?", "sol1": "push", "sol2": "pull", "label": 1}),
        "columns 'sol1' and 'sol2' look like options",
    ),
    "wrong options in columns": (
        lines(CHOICE | {"distractor1": "red", "distractor2": "blue", "correct_answer": "green"}),
        "columns 'distractor1' and 'distractor2' look like options",
    ),
    "wrong options in a list": (
        lines(CHOICE | {"incorrect_answers": ["red", "blue"], "answer": "green"}),
        "column 'incorrect_answers' looks like options and is not used",
    ),
    "two columns of options": (
        lines(KEYED | {"options": ["A", "B", "C"], "choices": list(COLOURS)}),
        "columns 'options' and 'choices' offer different options; --map options=options or --map options=choices",
    ),
    "a list of options, and columns of them": (
        lines(KEYED | {"options": ["A", "B", "C"], "A": "red", "B": "green", "C": "blue"}),
        "columns 'options' and 'A' offer different options",
    ),
    "a cell in percent": (percent_sheet("9"), "cell C2 is shown in percent and holds 0.455; save the table as CSV"),
    "a cell in percent by a format of one's own": (percent_sheet("0.0%"), "cell C2 is shown in percent"),
    "a key twice in a row": (
        text('{"question": "What?", "answer": "x", "answer": "y"}\n', "rows.jsonl"),
        "line 1 has the key 'answer' twice in one object; the last one would count",
    ),
    "a key twice among options, behind a byte order mark": (
        text('\ufeff{"question": "What?", "options": {"A": "x", "B": "y", "A": "z"}, "answer": "A"}\n', "rows.jsonl"),
        "line 1 has the key 'A' twice in one object",
    ),
    "a key twice beside one that stands apart from its colon": (
        text('{"question" : "What?", "answer": "x", "answer": "y"}\n', "rows.jsonl"),
        "line 1 has the key 'answer' twice in one object",
    ),
    "a key twice in a list of rows": (
        text(
            '[{"question": "What?", "answer": "x"}, {"question": "Who?", "question": "Why?", "answer": "y"}]',
            "rows.json",
        ),
        "rows.json has the key 'question' twice in one object",
    ),
    "options in another order in one line of the question": (
        lines(OFFERED | {"question": "Which colour? (A) green (B) red (C) blue", "answer": "B"}),
        "the question lists the options in another order than their column",
    ),
    "options in another order in the question": (
        lines(OFFERED | {"question": "Which colour?\nA. green\nB. red\nC. blue", "answer": "B"}),
        "the question lists the options in another order than their column; take them out of one of both",
    ),
    "two right options": (
        lines(OFFERED | {"answer": "A", "correct_answer": "green"}),
        "columns 'answer' and 'correct_answer' name different options; --map answer=answer",
    ),
    "two right answers": (
        lines(OPEN | {"answer": "rods", "correct_answer": "nets"}),
        "columns 'answer' and 'correct_answer' differ; --map answer=correct_answer takes it",
    ),
    "answers that say which are right": (
        lines(OPEN | {"answers": [{"text": "nets", "correct": True}, {"text": "rods", "correct": False}]}),
        "an answer says by 'correct' whether it is right; write the right ones alone, as a list",
    ),
    "a web page's picture as option": (
        lines(
            {"id": 1, "question": "Which?", "options": ["<img src='p10.png'>", "<img src='p20.png'>"], "answer": "A"}
        ),
        "shows a picture (\"<img src='p10.png'>\") and the row has none",
    ),
    "a picture of Markdown as option": (
        lines({"id": 1, "question": "Which?", "options": ["![](p10.png)", "![](p20.png)"], "answer": "A"}),
        "shows a picture ('![](p10.png)') and the row has none",
    ),
    "a long picture in the words of a question": (
        lines({"id": 1, "question": f"![](data:image/png;base64,{'iVBOR' * 400}) What?", "answer": "x"}),
        "shows a picture ('data:image/png;base64,')",
    ),
    "another tool's marker in a conversation": (
        whole([{"id": 1, "conversations": said("Picture 1: <img>p10.png</img>\nWhat?", "x")}]),
        "shows a picture ('<img>p10.png</img>') and the row has none",
    ),
    **{
        f"the marker {marker} without a picture": (
            lines({"id": 1, "question": f"{marker} What?", "answer": "x"}),
            f"shows a picture ({marker!r}) and the row has none",
        )
        for marker in ("[IMAGE]", "[image 1]", "{{image}}", "<image_placeholder>", "<im_patch>", "<IMG_CONTEXT>")
    },
    "SEED-Bench without its pictures": (
        whole(
            {
                "questions": [
                    {"question": "Which?", "choice_a": "x", "choice_b": "y", "answer": "A", "data_type": "image"}
                ]
            }
        ),
        "column 'data_type' says 'image' and the row shows no picture; -p 'dataset.image=FOLDER/{COLUMN}.jpg'",
    ),
    "a video in a column of another name": (
        lines({"id": 1, "question": "What?", "answer": "x", "clip": "a.mp4"}),
        "column 'clip' names a video and is not used; --map video=clip shows it",
    ),
    "pictures in a list of objects": (
        lines({"id": 1, "question": "What?", "answer": "x", "attachments": [{"type": "image", "path": "p10.png"}]}),
        "column 'attachments' looks like pictures",
    ),
    "a picture inside an object": (
        parquet(
            {
                "id": "1",
                "question": "What?",
                "answer": "x",
                "seen": {"image": {"bytes": shaded(10), "path": "a"}, "w": 4},
            }
        ),
        "column 'seen' looks like pictures",
    ),
    "a hub's picture, and numbered ones": (
        parquet({"question": "What?", "answer": "x", "image": held(10), "image_1": held(20), "image_2": held(30)}),
        "has pictures in columns image and image_1; say which with --map images=image,image_1,image_2 (all of them)",
    ),
    "a hub's picture, and another one": (
        parquet({"question": "What?", "answer": "x", "image": held(10), "decoded_image": held(20)}),
        "has pictures in columns decoded_image and image",
    ),
    "the address of a picture": (
        lines({"id": 1, "question": "What?", "answer": "x", "photo": "https://x.org/show?id=7"}),
        "column 'photo' looks like pictures and is not used; --map images=photo shows them",
    ),
    "several questions in one text": (
        lines(OPEN | {"question": "['Who rows?', 'What is caught?']", "answer": "['Ann', 'nets']"}),
        "the question is a list of 2; give each a row (group and round make them a dialogue), or write them as `messages`",
    ),
    "options with something else among them": (
        lines(KEYED | {"options": {"A": "red", "B": "green", "note": "x"}}),
        "options have a field 'note' beside letters; keep it in a column of its own",
    ),
    "a place among columns with a gap": (
        lines({"id": 1, "question": "Which?", "A": "red", "B": "", "C": "blue", "D": "black", "answer": "2"}),
        "answer 2 is a place among options with a gap (A, C, D); write its letter",
    ),
    "the number of a picture beside messages": (
        lines({"id": 1, "image_id": "77", "messages": [{"role": "user", "content": "What?"}], "answer": "x"}),
        "column 'image_id' looks like pictures",
    ),
    "messages that do not ask the question": (
        lines({"id": 1, "messages": [{"role": "user", "content": "Hello"}], "question": "What?", "answer": "x"}),
        "record 1 has messages and a question that is not in them",
    ),
    "two system prompts": (
        whole(
            [
                {
                    "id": 1,
                    "system": "Be terse.",
                    "conversations": [{"from": "system", "value": "Be kind."}, *said("Q", "x")],
                }
            ]
        ),
        "has a system prompt in its messages and another one in a column",
    ),
    "an answer that thinks aloud": (
        whole([{"id": 1, "conversations": said("What?", "<think>fish</think>nets")}]),
        "the answer holds thinking ('<think>fish</think>nets'); write what follows </think> alone",
    ),
    "an option that is an error": (broken_sheet("green"), "rows.xlsx cell D2 holds the error #N/A; mend it"),
    "an answer that is an error": (broken_sheet("A"), "rows.xlsx cell F2 holds the error #N/A; mend it"),
    "questions inside a picture's record": (
        whole([{"image": "p10.png", "qas": [{"question": "Who?", "answer": "Ann"}]}]),
        "has no question: column 'qas' holds some; give each a row of its own, with its picture and its answer",
    ),
    "records without names of columns": (
        whole({"columns": ["question", "answer"], "data": [["Who?", "Ann"]]}),
        "rows.json record 1 is a list, not an object (each must be an object with named fields)",
    ),
    "a shard that is packed": (
        lambda folder: text(gzip.compress(shard(("7.json", b"{}"))(folder).read_bytes()), "rows.tar")(folder),
        "rows.tar is not a readable tar archive: truncated header (packed with gzip? unpack it)",
    ),
    "an empty question": (
        text("id,question,answer\n1,,x\n", "rows.csv"),
        "record 1 has no question: column 'question' is empty; name its column",
    ),
    "a question of spaces": (lines({"id": 1, "question": "  ", "answer": "x"}), "column 'question' is empty"),
    "a picture that holds the question": (
        parquet({"id": "1", "image": {"bytes": shaded(10), "path": "a"}, "options": ["x", "y"], "answer": "A"}),
        "where it stands in the picture, add an empty column `question`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_asked_or_scored_wrongly_is_refused_in_one_line(name: str, folder: Path) -> None:
    make, told = REFUSED[name]
    with pytest.raises(SnellenError) as refusal:
        planned(make(folder), folder)
    message = str(refusal.value)
    assert told in message
    assert "\n" not in message
    assert message.startswith("rows.")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lines(ANSWERED | {"image": "https://x.org/a.png"}), "save them as files (addresses are never fetched)"),
        (text(b"", "rows.jsonl.gz"), "unknown ending '.gz'; unpack it; known: .jsonl"),
    ],
)
def test_a_refusal_says_what_to_do(make: Make, told: str, folder: Path) -> None:
    with pytest.raises(SnellenError) as refusal:
        planned(make(folder), folder)
    assert told in str(refusal.value)


SAID: dict[str, tuple[Make, str]] = {
    "options that are listed twice": (
        lines(OFFERED | {"question": "Which colour?\nA. red\nB. green\nC. blue", "answer": "B"}),
        "1 row whose question lists its options as their column does: shown once",
    ),
    "a place": (
        lines(OFFERED | {"answer": 1}),
        "with a number as answer: the place of an option, from 0 (-p dataset.answer_kind=index1 counts from 1)",
    ),
    "a place that is a text": (lines(OFFERED | {"answer": "1"}), "the place of an option, from 0"),
    "places of several": (lines(OFFERED | {"answer": [0, 2], "form": "multiple"}), "the place of an option, from 0"),
    "an answer that may be none": (
        lines(OPEN | {"answer": "nan"}),
        "whose answer is 'nan': compared as a text; leave the cell empty where there is none",
    ),
    "an option that may be none": (
        lines({"id": 1, "question": "Which?", "A": "red", "B": "green", "C": "nan", "answer": "B"}),
        "with an option 'nan': it is offered; leave the cell empty where there is none",
    ),
    "a list without quotes": (table(OPEN | {"answer": "[net, nets]"}), "may hold several"),
    "several answers in one text": (
        lines(OPEN | {"answer": "-1 <OR> -5"}),
        "joins texts by <AND> or <OR>: right where",
    ),
    "several answers with a stroke": (lines(OPEN | {"answers": "net||nets"}), "may hold several (|)"),
    "a letter in a conversation": (
        whole([{"id": 1, "conversations": said("Who?", "Ann", "Which?\nA. x\nB. y", "B")}]),
        "with a letter as answer and no options found: matched as exact text",
    ),
    "a list without the answer": (
        asked("\nA. red\nB. green\nC. blue", "The answer is B."),
        "whose question lists what may be options, without the answer: asked as it is",
    ),
    "neither yes nor no": (
        lines(OPEN | {"answer": "perhaps", "form": "yesno"}),
        "neither yes nor no: asked, and unscored",
    ),
    "no number": (lines(OPEN | {"answer": "10 to 12", "form": "number"}), "not one number: asked, and unscored"),
    "a form nobody knows": (lines(ANSWERED | {"form": "4B"}), "column 'form' says '4B', which is no form"),
    "no question beside a picture": (lines(ANSWERED | {"question": ""}), "with an empty question: only their pictures"),
    "what was said before": (
        lines(ANSWERED | {"history": [["Who?", "Ann"]]}),
        "with a column 'history' that is not asked (a list `messages` can hold it)",
    ),
    "a system prompt of its own": (
        lines(ANSWERED | {"system_prompt": "Be terse."}),
        "with a system prompt of their own: it is sent",
    ),
    "an answer by its place in a set": (
        parquet({"question": "Which?", "choices": ["x", "y"], "correct_choice_idx": 1}),
        "is it 'correct_choice_idx'? --map answer=correct_choice_idx",
    ),
    **{
        f"a text in a column {column}": (
            lines(ANSWERED | {column: "The men went out at dawn."}),
            f"with a column {column!r} that is not asked (--map hint={column} puts it first)",
        )
        for column in ("document", "story", "caption", "table", "premise", "instruction", "few_shot", "system")
    },
}


def test_a_number_of_another_format_is_read_as_it_is(folder: Path) -> None:
    (sample,) = planned(percent_sheet("0.00")(folder), folder).dataset
    assert sample.answers == ("0.455",)


def test_an_empty_cell_in_percent_lends_the_next_one_nothing(folder: Path) -> None:
    (sample,) = planned(percent_sheet("9", styled=0)(folder), folder).dataset
    assert sample.answers == ("0.455",)


@pytest.mark.parametrize("name", SAID)
def test_the_plan_says_what_is_not_asked_and_how_an_answer_is_taken(name: str, folder: Path) -> None:
    make, told = SAID[name]
    assert told in "\n".join(planned(make(folder), folder).survey.notes)


@pytest.mark.parametrize("told", [{"system": "Be terse."}, {"system_prompt": "Be terse."}])
def test_a_system_prompt_beside_messages_is_sent(told: Row, folder: Path) -> None:
    row = {"id": "1", "messages": [{"role": "user", "content": "What is caught?"}], "answer": "nets", **told}
    task = planned(lines(row)(folder), folder)
    (sample,) = task.dataset
    first, *_ = task.prompter.build(sample).messages
    assert (first.role, first.text) == ("system", "Be terse.")


PICTURED: dict[str, tuple[Make, list[int]]] = {
    "one picture of a hub twice": (
        parquet({"question": "What?", "answer": "x", "image": held(10), "images": [held(10)]}),
        [10],
    ),
    "a picture of a hub and its name": (
        parquet({"question": "What?", "answer": "x", "image": "images/1.jpg", "decoded_image": held(20)}),
        [20],
    ),
    "a dozen pictures of a shard": (
        shard(
            ("7.json", b'{"question": "What?", "answer": "x"}'),
            *((f"7.{number}.png", shaded(10 * number)) for number in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9)),
        ),
        [10 * number for number in range(12)],
    ),
}


@pytest.mark.parametrize("name", PICTURED)
def test_every_picture_is_shown_once_and_in_order(name: str, folder: Path) -> None:
    make, shades = PICTURED[name]
    (sample,) = planned(make(folder), folder).dataset
    seen = []
    for image in sample.images:
        with PIL.Image.open(image.ref) as picture:
            seen.append(picture.convert("RGB").tobytes()[0])
    assert seen == shades


@pytest.fixture(scope="module")
def server() -> Iterator[Knowing]:
    with knowing_server() as serving:
        yield serving


def test_files_of_all_kinds_are_right_from_end_to_end(server: Knowing, folder: Path) -> None:
    server.known[:] = [KnownRow("Which colour?", "green", COLOURS, (10,))]
    makes = [RIGHT[name].make for name in ("small letters in one line", "rings in the question", "lines of a web page")]
    makes += [RIGHT["options as tools flatten an object"].make, RIGHT["options by names with numbers"].make]
    for place, make in enumerate(makes):
        task = make(folder)
        result = snellen.run(str(task), "openai/m", base_url=server.url, output_dir=folder / f"run{place}", cache=False)
        metric = result.results["tasks"][task.stem]["metrics"]["accuracy"]
        assert (metric["value"], metric["n"]) == (1.0, 1)
