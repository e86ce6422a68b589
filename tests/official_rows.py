"""The small benchmarks of `atlas_fixtures` as their authors' own files have them: the shape of every row and file.

A row says in `_file` which file it stands in, in `_picture` where its picture lies, in `_key` under which key of an
object it stands (else in a list, or `_alone`), in `_beside` what other files say of it; `_text` is a file as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


def _plain(row: Mapping[str, Any], *dropped: str) -> Row:
    return {key: value for key, value in row.items() if key not in ("file", "picture", *dropped)}


def _mathvista(hub: Rows) -> list[Row]:
    return [
        {**_plain(row, "query"), "precision": row["precision"] and int(row["precision"]), "image": f"images/{row['pid']}.png"}
        | {"_file": "testmini.json", "_key": row["pid"], "_picture": f"images/{row['pid']}.png"}
        | {"_beside": {"query.json": row["query"]}}
        for row in hub
    ]  # fmt: skip


def _ai2d(hub: Rows) -> list[Row]:
    """The archive: a file of questions a picture, letters as boxes over words; the list has a picture without any."""
    rows: list[Row] = []
    for at, row in enumerate(hub):
        asked = {"abcLabel": at == 0, "answerTexts": row["options"], "correctAnswer": int(row["answer"])}
        questions = {row["question"]: {**asked, "questionId": f"{at}.png-0"}}
        text = {"T0": {"rectangle": [[2, 3], [20, 20]], "replacementText": "A", "value": "leaf"}}
        rows += [
            {"imageName": f"{at}.png", "questions": questions, "_file": f"questions/{at}.png.json", "_alone": True}
            | {"_picture": f"images/{at}.png"},
            {"text": text, "_file": f"annotations/{at}.png.json", "_alone": True},
        ]
    ids = [*range(len(hub)), 999]
    return [*rows, {"_file": "ai2d_test_ids.csv", "_text": "".join(f"{one}\n" for one in ids)}]


def _docvqa(hub: Rows) -> list[Row]:
    return [
        {**_plain(row), "image": f"documents/{at}.png", "_file": "val_v1.0.json", "_picture": f"documents/{at}.png"}
        for at, row in enumerate(hub)
    ]


def _infovqa(hub: Rows) -> list[Row]:
    return [
        {**_plain(row), "image_local_name": f"{at}.png", "image_url": "https://example.org/a.png"}
        | {"_file": "infographicsVQA_val_v1.0_withQT.json", "_picture": f"infographicsvqa_images/{at}.png"}
        for at, row in enumerate(hub)
    ]


def _chartqa(hub: Rows) -> list[Row]:
    return [
        {"imgname": f"{at}.png", "query": row["question"], "label": row["answer"], "_picture": f"png/{at}.png"}
        | {"_file": "test_human.json" if row["type"] == "human_test" else "test_augmented.json"}
        for at, row in enumerate(hub)
    ]


def _ocrbench(hub: Rows) -> list[Row]:
    return [
        {"dataset_name": row["dataset"], "id": 211, "image_path": f"made/{at}.png", "question": row["question"]}
        | {"answers": row["answer"] if len(row["answer"]) > 1 else row["answer"][0], "type": row["question_type"]}
        | {"_file": "OCRBench.json", "_picture": f"OCRBench_Images/made/{at}.png"}
        for at, row in enumerate(hub)
    ]


def _hallusionbench(hub: Rows) -> list[Row]:
    named = [f"hallusion_bench/VD/illusion/{row['set_id']}_{row['figure_id']}.png" for row in hub]
    rows = [
        {**_plain(row), "filename": f"./{name}", "_file": "HallusionBench.json", "_picture": name}
        for row, name in zip(hub, named, strict=True)
    ]
    unseen = {**_plain(rows[0], "_picture"), "visual_input": "0", "figure_id": "0", "filename": None}
    return [*rows, unseen]


def _textvqa(hub: Rows) -> list[Row]:
    return [
        {**_plain(row), "image_id": f"abc{at}", "set_name": "val", "_file": "TextVQA_0.5.1_val.json"}
        | {"_picture": f"train_images/abc{at}.jpg"}
        for at, row in enumerate(hub)
    ]


def _mm_vet(hub: Rows) -> list[Row]:
    return [
        {"imagename": f"{row['question_id']}.png", "question": row["question"], "answer": row["answer"]}
        | {"capability": row["capability"].split(","), "_file": "mm-vet.json", "_key": row["question_id"]}
        | {"_picture": f"images/{row['question_id']}.png"}
        for row in hub
    ]


def _mathvision(file: str) -> Callable[[Rows], list[Row]]:
    def rows(hub: Rows) -> list[Row]:
        return [
            {**_plain(row), "image": f"images/{row['id']}.jpg", "_file": file, "_picture": f"images/{row['id']}.jpg"}
            for row in hub
        ]

    return rows


def _charxiv_reasoning(hub: Rows) -> list[Row]:
    return [
        {"figure_id": at, "query": row["reasoning_q"], "answer": row["reasoning_a"], "inst_category": 3, "qa_source": 1}
        | {"_file": "data/reasoning_val.json", "_key": str(at), "_picture": f"images/{at}.jpg"}
        for at, row in enumerate(hub)
    ]


CHARXIV_TEMPLATES = '''import nothing.that.exists
raise SystemExit("it is parsed and never run")
OTHER = {1: "no question"}
DESCRIPTIVE_RESP_INST = {
    1: "{}which name?",
    11: "{}any crossing?",
    12: """{}how many?
    * A number.
    """,
    18: "How laid out?",
}
'''


def _charxiv_descriptive(hub: Rows) -> list[Row]:
    numbers = range(1, 5)
    rows: list[Row] = [
        {"figure_id": int(row["original_id"]), "num_subplots": row["num_subplots"]}
        | {"subplot_loc": [row["subplot_row"], row["subplot_col"]]}
        | {
            "qids": [row[f"descriptive_q{at}"] for at in numbers],
            "answers": [row[f"descriptive_a{at}"] for at in numbers],
        }
        | {
            "_file": "data/descriptive_val.json",
            "_key": row["original_id"],
            "_picture": f"images/{row['original_id']}.jpg",
        }
        for row in hub
    ]
    return [*rows, {"_file": "constants.py", "_text": CHARXIV_TEMPLATES}]


def _mmlongbench(hub: Rows) -> list[Row]:
    return [
        {**_plain(row), "doc_type": "Guide", "evidence_sources": "['Table']", "_file": "data/samples.json"}
        | {"_picture": f"data/documents/{row['doc_id']}"}
        for row in hub
    ]


def _mathverse(hub: Rows) -> list[Row]:
    return [
        {**_plain(row), "image": f"images_version_1-4/{at}.png", "_file": "testmini.json"}
        | {"_picture": f"images_version_1-4/{at}.png"}
        for at, row in enumerate(hub)
    ]


def _vstar(hub: Rows) -> list[Row]:
    return [
        {**_plain(row), "image": f"{row['category']}/{at}.jpg", "_file": "test_questions.jsonl"}
        | {"_picture": f"{row['category']}/{at}.jpg"}
        for at, row in enumerate(hub)
    ]


OFFICIAL: Mapping[str, Callable[[Rows], list[Row]]] = {
    "mathvista": _mathvista,
    "ai2d": _ai2d,
    "ai2d-no-mask": _ai2d,
    "docvqa": _docvqa,
    "infovqa": _infovqa,
    "chartqa": _chartqa,
    "ocrbench": _ocrbench,
    "hallusionbench": _hallusionbench,
    "textvqa": _textvqa,
    "mm-vet": _mm_vet,
    "mathvision": _mathvision("data/test.jsonl"),
    "mathvision-mini": _mathvision("data/testmini.jsonl"),
    "charxiv-reasoning": _charxiv_reasoning,
    "charxiv-descriptive": _charxiv_descriptive,
    "mmlongbench-doc": _mmlongbench,
    "mathverse": _mathverse,
    "vstar": _vstar,
}
"""Card -> the rows of its official files, made of those of the hub's form."""
