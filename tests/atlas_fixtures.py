"""Small benchmarks in the shapes of their sources, with replies whose scores are counted by hand in each protocol."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import snellen
from official_rows import CHARXIV_TEMPLATES, OFFICIAL
from snellen.core.protocols import LoadContext
from snellen.data.atlas import card_rows
from snellen.data.catalog import Catalog

Row = dict[str, Any]
UNREAD = "Hard to say here"
"""A reply that no reader of letters reads."""


class Fixture(NamedTuple):
    """The rows of one benchmark by shape, a reply to each, and the figures of every protocol."""

    shapes: Mapping[str, Sequence[Row]]
    replies: Sequence[str | None]
    expected: Mapping[str, Mapping[str, float | None]]
    """Protocol -> metric -> value over what was read; `n`, `unscored` and `failed` are those of the headline's."""
    folder: str = ""
    """Where the hub's table lies in its snapshot."""
    beside: Mapping[str, str] = {}
    """Files that lie beside the hub's table, and their text."""


def figure_of_read(metrics: Mapping[str, Any], name: str) -> float | None:
    """Return a figure over what was read: so the figures of fixtures are counted by hand."""
    found = metrics.get(f"{name}_read") or metrics[name].get("read") or metrics[name]
    value: float | None = found["value"]
    return value


def png(number: int) -> bytes:
    """Return a small picture, another one for another number."""
    buffer = io.BytesIO()
    Image.new("RGB", (32, 24), (number * 40 % 256, 90, 200)).save(buffer, "PNG")
    return buffer.getvalue()


def pdf() -> bytes:
    """Return a document of two pages."""
    buffer = io.BytesIO()
    pages = [Image.new("RGB", (64, 64), colour) for colour in ("white", "grey")]
    pages[0].save(buffer, "PDF", save_all=True, append_images=pages[1:])
    return buffer.getvalue()


def write_shape(root: Path, card: str, shape: str, fixture: Fixture) -> Path:
    """Write one shape as its source has it, pictures included, and return the place."""
    folder = root / card
    folder.mkdir(parents=True, exist_ok=True)
    rows = [dict(row) for row in fixture.shapes[shape]]
    if shape == "tsv":
        return _write_tsv(folder / "made.tsv", rows)
    if shape == "official":
        return write_official(folder, rows)
    if any("doc_id" in row for row in rows):
        _write_documents(root, rows)
    else:
        rows = [with_picture(row, number) for number, row in enumerate(rows)]
    for name, text in fixture.beside.items():
        (folder / name).write_text(text)
    by_config: dict[str, list[Row]] = {}
    for row in rows:
        by_config.setdefault(str(row.pop("config", fixture.folder)), []).append(row)
    for config, some in by_config.items():
        place = folder / config
        place.mkdir(parents=True, exist_ok=True)
        (split, *_) = [row.pop("file", "test") for row in some]
        pq.write_table(pa.Table.from_pylist(some), place / f"{split}-00000-of-00001.parquet")
    return folder


def write_official(folder: Path, rows: Sequence[Row]) -> Path:
    """Write the files of a benchmark's authors, as `official_rows` says what stands where."""
    files: dict[str, list[Row]] = {}
    beside: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows):
        if "_picture" in row:
            _write_picture(folder / row["_picture"], number)
        for name, value in row.get("_beside", {}).items():
            beside.setdefault(name, {})[row["_key"]] = value
        files.setdefault(row["_file"], []).append(row)
    for name, some in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(_official_text(name, some))
    for name, values in beside.items():
        (folder / name).write_text(json.dumps(values))
    return folder


def _write_picture(place: Path, number: int) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.suffix == ".pdf":
        place.write_bytes(pdf())
    else:
        place.write_bytes(png(number))


def _official_text(name: str, rows: Sequence[Row]) -> str:
    if "_text" in rows[0]:
        return str(rows[0]["_text"])
    bare = [{key: value for key, value in row.items() if not key.startswith("_")} for row in rows]
    if name.endswith(".jsonl"):
        return "".join(json.dumps(row) + "\n" for row in bare)
    if "_alone" in rows[0]:
        return json.dumps(bare[0])
    if "_key" in rows[0]:
        return json.dumps({row["_key"]: one for row, one in zip(rows, bare, strict=True)})
    return json.dumps({"dataset_name": "made", "data": bare} if "VQA" in name or "val_v" in name else bare)


def run_card(root: Path, card: str, shape: str, protocol: str) -> dict[str, Any]:
    """Write a shape, ask a card in a protocol, and return the results with the samples that were asked."""
    fixture = FIXTURES[card]
    place = write_shape(root, card, shape, fixture)
    task = Catalog().task(card, [("dataset.path", str(place))], protocol)
    samples = list(card_rows.load(task, LoadContext(root=root, workdir=root / "work")))
    replies = root / "replies.jsonl"
    kept = [(sample.id, reply) for sample, reply in zip(samples, fixture.replies, strict=True) if reply is not None]
    replies.write_text("".join(json.dumps({"id": name, "text": reply}) + "\n" for name, reply in kept))
    result = snellen.run(
        snellen.RunSettings(
            tasks=(card,), model=f"replay/{replies}", protocol=protocol, data_root=root, output_dir=root / "run",
            overrides=(("dataset.path", str(place)),),
        )
    )  # fmt: skip
    return {"results": result.results, "samples": samples}


def with_picture(row: Row, number: int) -> Row:
    """Return a hub's row with its picture as bytes and path."""
    column = row.pop("picture", "image")
    file = row.get("file", "test")
    return {**row, column: {"bytes": png(number), "path": f"{number}.png"}, "file": file}


def _write_documents(root: Path, rows: Sequence[Row]) -> None:
    folder = root / "mmlongbench-doc" / "documents"
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        (folder / row["doc_id"]).write_bytes(pdf())


def _write_tsv(path: Path, rows: Sequence[Row]) -> Path:
    columns = list(dict.fromkeys([*(name for row in rows for name in row), "image"]))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, delimiter="\t", quoting=csv.QUOTE_ALL, restval="")
        writer.writeheader()
        for number, row in enumerate(rows):
            writer.writerow({"image": base64.b64encode(png(number)).decode(), **row})
    return path


def in_all(expected: Mapping[str, float | None]) -> dict[str, Mapping[str, float | None]]:
    """Return the same figures for every protocol."""
    return {"official": expected, "lmms-eval": expected, "vlmevalkit": expected}


def numbered(rows: Sequence[Row], **more: Any) -> list[Row]:
    """Return rows with VLMEvalKit's index, from 1."""
    return [{"index": number, **row, **more} for number, row in enumerate(rows, 1)]


def lettered(row: Row, options: Sequence[str], **more: Any) -> Row:
    """Return a row with its options in columns."""
    return {**row, **dict(zip("ABCDEFGHIJ", options, strict=False)), **more}


def _mmmu() -> Fixture:
    hub = [
        {"id": "validation_Art_1", "question": "Who? <image 1>", "options": "['Klee', \"O'Keeffe\"]", "answer": "B"},
        {"id": "validation_Art_2", "question": "Which?", "options": "['red', 'blue']", "answer": "A"},
        {"id": "validation_Math_3", "question": "How long?", "options": "[]", "answer": "24.5"},
        {"id": "validation_Math_4", "question": "How many?", "options": "[]", "answer": "['7', 'seven']"},
    ]
    kinds = ["multiple-choice", "multiple-choice", "open", "open"]
    hub = [
        {**row, "question_type": kind, "picture": "image_1", "file": "validation"}
        for row, kind in zip(hub, kinds, strict=True)
    ]
    tsv = [
        lettered({"question": "Who? <image 1>", "answer": "B", "category": "Art"}, ["Klee", "O'Keeffe"]),
        lettered({"question": "Which?", "answer": "A", "category": "Art"}, ["red", "blue"]),
        {"question": "How long?", "answer": "24.5", "category": "Math", "A": "", "B": ""},
        {"question": "How many?", "answer": "['7', 'seven']", "category": "Math", "A": "", "B": ""},
    ]
    rows = [
        *numbered(tsv, split="validation"),
        {**lettered({"index": 9, "question": "Old?", "answer": "A"}, ["x", "y"]), "split": "dev"},
    ]
    return Fixture(
        {"hub": hub, "tsv": rows},
        ["The answer is (B).", UNREAD, "The answer is 24.5", "It is seven"],
        {
            "official": {"accuracy": 1.0, "accuracy_strict": 0.75, "n": 3, "unscored": 1},
            "lmms-eval": {"accuracy": 1 / 3, "accuracy_strict": 0.25, "n": 3, "unscored": 1},  # open is never right
            "vlmevalkit": {"accuracy": 1.0, "accuracy_peer": 0.5, "n": 2, "unscored": 2},
        },
    )


def _mathvista() -> Fixture:
    texts = [
        ("multi_choice", "text", ["3/11", "8/11"], "8/11", None),
        ("free_form", "float", None, "1.2", 1.0),
        ("free_form", "integer", None, "14", None),
        ("multi_choice", "text", ["yes", "no"], "no", None),
    ]

    def query(at: int, choices: list[str] | None) -> str:
        listed = "".join(f"\n({letter}) {text}" for letter, text in zip("AB", choices or (), strict=False))
        return f"Hint: …\nQuestion: Question {at}?" + (f"\nChoices:{listed}" if choices else "")

    hub = [
        {"pid": str(at), "question": f"Question {at}?", "query": query(at, choices), "choices": choices,
         "question_type": kind, "answer_type": answers, "answer": answer, "precision": precision,
         "metadata": {"task": "geometry", "source": "made"}, "picture": "decoded_image", "file": "testmini"}
        for at, (kind, answers, choices, answer, precision) in enumerate(texts)
    ]  # fmt: skip
    tsv = [
        {"question": query(at, choices), "question_type": kind, "answer_type": answers, "answer": answer,
         "choices": "" if choices is None else str(choices), "answer_option": "", "precision": precision or ""}
        for at, (kind, answers, choices, answer, precision) in enumerate(texts)
    ]  # fmt: skip
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["(B)", "1.24", "The number missing is 14.", ""],
        {
            # the empty reply is nearest to `no`, which is right: the official rule gives it a point, we do not
            "official": {"accuracy": 1.0, "accuracy_peer": 1.0, "accuracy_strict": 0.75, "n": 3, "unscored": 1},
            "lmms-eval": {"accuracy": 2 / 3, "accuracy_peer": 0.75, "n": 3},  # every decimal answer is wrong
            "vlmevalkit": {"accuracy": 1.0, "accuracy_peer": 0.25, "n": 1, "unscored": 3},  # the judge would read three
        },
    )


def _mmbench(l2: str = "L2-category") -> Fixture:
    turned = [("cat", "dog", "A"), ("dog", "cat", "B")]
    rows = [
        {"index": group + copy * 1_000_000, "question": f"Question {group}?", "hint": "Look." if group == 1 else "nan",
         "A": first, "B": second, "C": "nan", "D": "nan", "answer": answer, "category": "x", l2: "y", "split": "dev"}
        for group in (1, 2, 3)
        for copy, (first, second, answer) in enumerate(turned)
    ]  # fmt: skip
    tsv = [
        {key: "" if value == "nan" else value for key, value in row.items() if key != l2} | {"l2-category": "y"}
        for row in rows
    ]
    hub = [{**row, "file": "dev"} for row in rows]
    expected = {
        # three questions: all rotations right; one wrong; one unread
        "circular": 0.5, "circular_strict": 1 / 3, "circular_peer": 1 / 3, "vanilla": 0.8, "n": 2, "unscored": 1,
    }  # fmt: skip
    return Fixture(
        {"hub": hub, "tsv": tsv},
        ["A", "B", "A", "A", "A", UNREAD],
        in_all(expected),
    )


def _ai2d() -> Fixture:
    options = ["leaf", "root", "stem", "seed"]
    hub = [{"question": f"Part {at}?", "options": options, "answer": "2"} for at in range(3)]
    tsv = [lettered({"question": f"Part {at}?", "answer": "C", "category": "x"}, options) for at in range(3)]
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["C", "The answer is C.", UNREAD],
        {
            "official": {"accuracy": 1.0, "accuracy_peer": 2 / 3, "n": 2, "unscored": 1},
            "lmms-eval": {"accuracy": 1.0, "accuracy_peer": 1 / 3, "n": 1, "unscored": 2},  # a sentence is not read
            "vlmevalkit": {"accuracy": 1.0, "accuracy_peer": 2 / 3, "n": 2, "unscored": 1},
        },
    )


def _anls() -> Fixture:
    pairs = [("What stands there?", ["ab"]), ("Which city?", ["New York", "NYC"])]
    hub = [
        {"questionId": str(at), "question": text, "answers": answers, "file": "validation"}
        for at, (text, answers) in enumerate(pairs)
    ]
    tsv = [{"question": text, "answer": str(answers)} for text, answers in pairs]
    peers = {"anls": 0.75, "n": 2}  # exactly half is kept
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["ax", "new  york"],
        {"official": {"anls": 0.5}, "lmms-eval": peers, "vlmevalkit": peers},
    )


def _chartqa() -> Fixture:
    rows = [("human_test", "1000"), ("human_test", "Yes"), ("augmented_test", "42"), ("augmented_test", "0")]
    hub = [{"type": kind, "question": f"Bar {at}?", "answer": answer} for at, (kind, answer) in enumerate(rows)]
    tsv = [
        {"question": f"Bar {at}?", "answer": answer, "split": f"test_{kind[:5]}"}
        for at, (kind, answer) in enumerate(rows)
    ]
    m4 = [
        {"query": f"Bar {at}?", "label": [answer], "human_or_machine": int(kind != "human_test")}
        for at, (kind, answer) in enumerate(rows)
    ]
    peers = {"relaxed_accuracy": 0.5, "halves": 0.5}  # no commas; 0 is compared as text
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv), "m4": m4},
        ["1,000", "yes", "41", "0.0"],
        {"official": {"relaxed_accuracy": 1.0, "halves": 1.0}, "lmms-eval": peers, "vlmevalkit": peers},
    )


def _ocrbench() -> Fixture:
    rows = [
        ("IIIT5K", "Regular Text Recognition", ["STOP"]),
        ("HME100k", "Handwritten Mathematical Expression Recognition", ["x^2"]),
    ]
    rows.append(("DocVQA", "Doc-oriented VQA", ["12 May", "May 12"]))
    hub = [
        {"dataset": name, "question": f"Read {name}", "question_type": kind, "answer": answer}
        for name, kind, answer in rows
    ]
    tsv = [{"question": f"Read {name}", "answer": str(answer), "category": kind} for name, kind, answer in rows]
    expected = in_all({"points": 2000 / 3, "accuracy": 2 / 3})
    return Fixture({"hub": hub, "tsv": numbered(tsv)}, ["It says stop here.", "x ^ 2", "13 May"], expected)


INSTRUCTED = "Please answer directly with only the letter of the correct option and nothing else."


def _realworldqa() -> Fixture:
    options = ["Left", "Right"]
    text = f"Which way {{}}?\nA. Left\nB. Right\n{INSTRUCTED}"
    hub = [
        {"question": text.format(1), "answer": "A"},
        {"question": "How many cars?", "answer": "3"},
        {"question": text.format(2), "answer": "B"},
    ]
    tsv = [
        lettered({"question": "Which way 1?", "answer": "A"}, options),
        {"question": "How many cars?", "answer": "3", "A": "", "B": ""},
    ]
    tsv.append(lettered({"question": "Which way 2?", "answer": "B"}, options))
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["A", "3.", "All of them"],
        {
            "official": {"accuracy": 1.0, "n": 2, "unscored": 1},
            "lmms-eval": {"accuracy": 2 / 3, "n": 3, "unscored": 0},  # the A of All
            "vlmevalkit": {"accuracy": 1.0, "accuracy_peer": 2 / 3, "n": 2, "unscored": 1},
        },
    )


def _mmstar() -> Fixture:
    options = ["red", "blue", "green", "grey"]
    inside = ", ".join(f"{mark}: {text}" for mark, text in zip("ABCD", options, strict=True))
    facts = [("coarse", "a", "A"), ("coarse", "a", "B"), ("fine", "b", "C")]
    hub = [
        {
            "index": at,
            "question": f"Colour {at}?\nOptions: {inside}",
            "answer": answer,
            "category": kind,
            "l2_category": finer,
            "file": "val",
        }
        for at, (kind, finer, answer) in enumerate(facts)
    ]
    tsv = [
        lettered(
            {"index": at, "question": f"Colour {at}?", "answer": answer, "category": kind, "l2_category": finer},
            options,
        )
        for at, (kind, finer, answer) in enumerate(facts)
    ]
    return Fixture(
        {"hub": hub, "tsv": tsv},
        ["A", "D", "The answer is C"],
        {
            "official": {"accuracy": 2 / 3},
            "lmms-eval": {"accuracy": 2 / 3, "average": 0.75},
            "vlmevalkit": {"accuracy": 2 / 3},
        },
    )


def _hallusionbench() -> Fixture:
    facts = [("1", "0", "1"), ("1", "1", "0"), ("2", "0", "1"), ("2", "1", "1")]
    hub = [
        {"category": "VD", "subcategory": "illusion", "visual_input": "1", "set_id": "5", "figure_id": figure, "question_id": question,
         "question": f"Is it so, {figure} {question}?", "gt_answer": gold, "gt_answer_details": "It is so.", "file": "image"}
        for figure, question, gold in facts
    ]  # fmt: skip
    tsv = [
        {"index": f"VD_illusion_1_5_{figure}_{question}", "question": f"Is it so, {figure} {question}?", "answer": "Yes" if gold == "1" else "No",
         "category": "VD", "l2-category": "VD_illusion"}
        for figure, question, gold in facts
    ]  # fmt: skip
    expected = {
        "aAcc": 2 / 3, "aAcc_strict": 0.5, "fAcc": 0.0, "qAcc": 0.5, "mean_of_three": (2 / 3 + 0.0 + 0.5) / 3,
        "mean_of_three_peer": (0.5 + 0.0 + 0.5) / 3,
    }  # fmt: skip
    return Fixture(
        {"hub": hub, "tsv": tsv},
        ["Yes", "Yes, it is.", "Yes.", "Hard to tell."],
        in_all(expected),
    )


def _textvqa() -> Fixture:
    rows = [("what does the ACME sign say?", ["stop"] * 4 + ["go"] * 6), ("which brand?", ["acme"] + ["zenith"] * 9)]
    hub = [
        {"question_id": at, "question": text, "answers": answers, "file": "validation"}
        for at, (text, answers) in enumerate(rows)
    ]
    tsv = [{"question": text, "answer": str(answers)} for text, answers in rows]
    expected = in_all({"vqa_accuracy": (1.0 + 0.3) / 2})
    return Fixture({"hub": hub, "tsv": numbered(tsv)}, ["stop", "acme"], expected)


def _blink() -> Fixture:
    facts = [("Counting", 1, "(B)"), ("Counting", 2, "(A)"), ("IQ_Test", 1, "(B)")]
    hub = [
        {"idx": f"val_{task}_{at}", "question": f"{task} {at}?", "sub_task": task, "choices": ["one", "two"], "answer": answer,
         "prompt": f"{task} {at}?\nSelect from the following choices.\n(A) one\n(B) two", "picture": "image_1", "config": task, "file": "val"}
        for task, at, answer in facts
    ]  # fmt: skip
    tsv = [
        lettered({"question": f"{task} {at}?", "answer": answer.strip("()"), "category": task}, ["one", "two"])
        for task, at, answer in facts
    ]
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["(B)", "The answer is (A)", "B"],
        {
            "official": {"mean_of_tasks": 1.0, "accuracy": 1.0},
            "lmms-eval": {"mean_of_tasks": 0.75, "accuracy": 2 / 3},  # T of The is no option
            "vlmevalkit": {"accuracy": 1.0},
        },
    )


def _mmmu_pro() -> Fixture:
    hub = [
        {
            "id": f"test_Art_{at}",
            "question": f"Who {at}?",
            "options": "['Klee', 'Marc']",
            "answer": "B",
            "subject": "Art",
            "picture": "image_1",
        }
        for at in range(3)
    ]
    tsv = [lettered({"question": f"Who {at}?", "answer": "B", "category": "Art"}, ["Klee", "Marc"]) for at in range(3)]
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["It could be (A) or (C).\nAnswer: B", "B", UNREAD],
        {
            "official": {"accuracy": 1.0, "n": 2, "unscored": 1},
            "lmms-eval": {"accuracy": 0.5, "n": 2, "unscored": 1},  # the bracketed letter wins over the last line
            "vlmevalkit": {
                "accuracy": 1.0,
                "accuracy_peer": 1 / 3,
                "n": 1,
                "unscored": 2,
            },  # two letters: for the judge
        },
        "standard (10 options)",
    )


def _mmmu_pro_vision() -> Fixture:
    hub = [{"id": f"test_Art_{at}", "options": "['Klee', 'Marc']", "answer": "B", "subject": "Art"} for at in range(3)]
    tsv = [lettered({"answer": "B", "category": "Art"}, ["Klee", "Marc"]) for _ in range(3)]
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["The last one.\nAnswer: B", "B.", "B"],
        {
            "official": {"accuracy": 1.0},
            "lmms-eval": {"accuracy": 1.0, "accuracy_peer": 1 / 3, "n": 1, "unscored": 2},
            "vlmevalkit": {"accuracy": 1.0},
        },
        "vision",
    )


def _mm_vet() -> Fixture:
    hub = [
        {"question_id": f"v1_{at}", "question": f"What {at}?", "answer": "x=2", "capability": "ocr,math"}
        for at in range(2)
    ]
    tsv = [{"question": f"What {at}?", "answer": "x=2", "category": "ocr,math"} for at in range(2)]
    expected = in_all({"exact_without_judge": 0.5})
    return Fixture({"hub": hub, "tsv": numbered(tsv)}, ["x=2", "a tree"], expected)


def _mathvision(split: str) -> Fixture:
    facts = [(["1/2", "2"], "A"), ([], "12"), (["1/2", "2"], "B")]
    hub = [
        {
            "id": str(at),
            "question": f"Solve {at}.",
            "options": options,
            "answer": answer,
            "level": 1,
            "subject": "algebra",
            "picture": "decoded_image",
            "file": split,
        }
        for at, (options, answer) in enumerate(facts)
    ]
    tsv = [
        {"question": f"Solve {at}.", "choices": str(options), "answer": answer, "category": "algebra"}
        for at, (options, answer) in enumerate(facts)
    ]
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["so \\boxed{0.5}", "The answer is 12.", "\\boxed{A}"],
        {
            "official": {"accuracy": 2 / 3},
            "lmms-eval": {"accuracy": 2 / 3},
            "vlmevalkit": {"accuracy": 0.0, "accuracy_peer": 0.0, "n": 1, "unscored": 2},  # its judge would read two
        },
    )


def _charxiv_reasoning() -> Fixture:
    hub = [
        {"original_id": str(at), "reasoning_q": f"Which {at}?", "reasoning_a": "7", "category": "cs", "file": "val"}
        for at in range(2)
    ]
    tsv = [{"question": f"Which {at}?", "answer": "7"} for at in range(2)]
    judged = {"exact_without_judge": 1.0, "exact_without_judge_peer": 0.5, "n": 1, "unscored": 1}
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["7", ""],
        {
            "official": judged,
            "vlmevalkit": judged,
            "lmms-eval": {"exact_without_judge": 1.0, "exact_without_judge_peer": 0.0},
        },
    )


def _charxiv_descriptive() -> Fixture:
    """One chart, the right one of two; the templates are made up, and stand in the file in which CharXiv has its own."""
    prefix = "For the subplot at row 1 and column 2, "
    asked = [f"{prefix}which name?", f"{prefix}how many?\n    * A number.", "How laid out?", f"{prefix}any crossing?"]
    answers = ["Not Applicable", "3", "1 by 2", "Yes"]
    tsv = [{"question": text, "answer": answer} for text, answer in zip(asked, answers, strict=True)]
    hub = {f"descriptive_q{at}": number for at, number in enumerate((1, 12, 18, 11), 1)}
    hub |= {f"descriptive_a{at}": answer for at, answer in enumerate(answers, 1)}
    hub |= {
        "original_id": "7",
        "num_subplots": 2,
        "subplot_row": 1,
        "subplot_col": 2,
        "subplot_loc": None,
        "file": "val",
    }
    expected = in_all({"exact_without_judge": 0.5})
    replies = ["Not Applicable", "4", "1 by 2", "They do"]
    return Fixture({"tsv": numbered(tsv), "hub": [hub]}, replies, expected, beside={"constants.py": CHARXIV_TEMPLATES})


def _mmlongbench() -> Fixture:
    facts = [("Int", "12"), ("Str", "blue"), ("None", "Not answerable")]
    hub = [
        {
            "doc_id": "a.pdf",
            "question": f"Question {at}?",
            "answer": answer,
            "answer_format": kind,
            "evidence_pages": "[1]",
            "file": "train",
        }
        for at, (kind, answer) in enumerate(facts)
    ]
    whole = base64.b64encode(pdf()).decode()
    tsv = [
        {
            "question": f"Question {at}?",
            "answer": answer,
            "answer_format": kind,
            "image": whole,
            "evidence_pages": "[1]",
        }
        for at, (kind, answer) in enumerate(facts)
    ]
    expected = {"accuracy": 2 / 3, "f1": 2 * 1 / (1 + 2)}  # answered: one of two answerable, and that right
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["12", "Not answerable", "Not answerable"],
        in_all(expected),
        "data",
    )


def _mathverse() -> Fixture:
    asked = "What is the angle?\nChoices:\nA:30°\nB:60°"
    facts = [("Vision Only", "B", asked), ("Text Lite", "B", asked), ("Text Lite", "12", "What is x?")]
    hub = [
        {"sample_index": str(at), "problem_index": "1", "problem_version": version, "question": "", "question_for_eval": text, "answer": answer,
         "question_type": "multi-choice" if answer == "B" else "free-form", "metadata": {"subject": "plane"}, "query_wo": f"Answer directly.\n{text}", "file": "testmini"}
        for at, (version, answer, text) in enumerate(facts)
    ]  # fmt: skip
    tsv = [
        {
            "question": f"Answer directly.\n{text}",
            "question_for_eval": text,
            "answer": answer,
            "problem_version": version,
        }
        for version, answer, text in facts
    ]
    expected = in_all({"letter_without_judge": 2 / 3, "vision_only": 1.0})
    return Fixture({"hub": hub, "tsv": numbered(tsv)}, ["B", "A", "12"], expected)


def _vstar() -> Fixture:
    text = "Is it red {}?\n(A) yes it is\n(B) no\nAnswer with the option's letter from the given choices directly."
    hub = [
        {"text": text.format(at), "category": "direct_attributes", "label": label, "question_id": at}
        for at, label in enumerate("AB")
    ]
    tsv = [
        lettered(
            {"question": f"Is it red {at}?", "answer": label, "category": "direct_attributes"}, ["yes it is", "no"]
        )
        for at, label in enumerate("AB")
    ]
    return Fixture(
        {"hub": hub, "tsv": numbered(tsv)},
        ["Based on the picture, the answer is (A).", "B"],
        {"official": {"accuracy": 1.0}, "lmms-eval": {"accuracy": 0.5}, "vlmevalkit": {"accuracy": 1.0}},  # B of Based
    )


FIXTURES: dict[str, Fixture] = {
    "mmmu": _mmmu(),
    "mathvista": _mathvista(),
    "mmbench-en": _mmbench(),
    "mmbench-cn": _mmbench(),
    "ai2d": _ai2d(),
    "ai2d-no-mask": _ai2d(),
    "docvqa": _anls(),
    "infovqa": _anls(),
    "chartqa": _chartqa(),
    "ocrbench": _ocrbench(),
    "realworldqa": _realworldqa(),
    "mmstar": _mmstar(),
    "hallusionbench": _hallusionbench(),
    "textvqa": _textvqa(),
    "blink": _blink(),
    "mmmu-pro": _mmmu_pro(),
    "mmmu-pro-vision": _mmmu_pro_vision(),
    "mm-vet": _mm_vet(),
    "mathvision": _mathvision("test"),
    "mathvision-mini": _mathvision("testmini"),
    "charxiv-reasoning": _charxiv_reasoning(),
    "charxiv-descriptive": _charxiv_descriptive(),
    "mmlongbench-doc": _mmlongbench(),
    "mathverse": _mathverse(),
    "vstar": _vstar(),
}
FIXTURES["mmbench-en-v11"] = FIXTURES["mmbench-cn-v11"] = _mmbench()._replace(
    shapes={"tsv": _mmbench().shapes["tsv"]},
    expected={name: found for name, found in _mmbench().expected.items() if name != "lmms-eval"},
)
for _card, _rows in OFFICIAL.items():
    _shapes = FIXTURES[_card].shapes
    FIXTURES[_card] = FIXTURES[_card]._replace(shapes={**_shapes, "official": _rows(_shapes["hub"])})
