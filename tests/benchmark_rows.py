"""A few rows of each tier-2 benchmark in its source's shape, replies to them, and the numbers they make, by hand.

`hub` rows are written as Parquet with picture structs, `tsv` rows as a toolkit's TSV with base64, `official` as JSONL.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

Rows = list[dict[str, Any]]


def picture(number: int = 0, size: tuple[int, int] = (40, 20)) -> bytes:
    """Return a small PNG; another number gives another colour."""
    out = io.BytesIO()
    PIL.Image.new("RGB", size, (40 * number % 256, 90, 200)).save(out, "PNG")
    return out.getvalue()


def struct(number: int = 0, size: tuple[int, int] = (40, 20)) -> dict[str, Any]:
    """Return a picture as a hub's table holds it."""
    return {"bytes": picture(number, size), "path": f"{number}.png"}


def encoded(number: int = 0) -> str:
    """Return a picture as a toolkit's TSV holds it."""
    return base64.b64encode(picture(number)).decode()


@dataclass(frozen=True)
class Fixture:
    """Rows, the reply to each in order (None: the call failed), and the expected figures by protocol."""

    card: str
    shape: str
    rows: Rows
    replies: list[str | None]
    expected: dict[str, dict[str, float | None]]
    files: dict[str, bytes] = field(default_factory=dict)
    """Further files beside the table."""
    name: str = ""
    """How the table's file is called; by default by its shape."""

    def write(self, folder: Path) -> Path:
        """Write the table and what lies beside it; return the table's path."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        path = folder / (self.name or {"hub": "rows.parquet", "tsv": "rows.tsv", "official": "rows.jsonl"}[self.shape])
        if self.shape == "hub":
            pq.write_table(pa.Table.from_pylist(self.rows), path)
        elif self.shape == "tsv":
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(self.rows[0]), delimiter="\t", quoting=csv.QUOTE_ALL)
                writer.writeheader()
                writer.writerows(self.rows)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in self.rows), encoding="utf-8")
        return path


def numbered(rows: Rows, **columns: Any) -> Rows:
    """Return rows with further columns; one that is a function gets the row's number."""
    return [
        row | {name: value(number) if callable(value) else value for name, value in columns.items()}
        for number, row in enumerate(rows)
    ]


def lettered(*answers: str, options: tuple[str, ...] = ("a cat", "a dog", "a cow", "a pig")) -> Rows:
    """Return rows with options in columns A, B …"""
    columns = dict(zip("ABCDE", options, strict=False))
    return [{"question": f"What is on picture {n}?", **columns, "answer": answer} for n, answer in enumerate(answers)]


def tsv_choices(*answers: str, **columns: Any) -> Rows:
    """Return multiple-choice rows of a toolkit's TSV."""
    return numbered(lettered(*answers), index=lambda n: n + 1, image=encoded, **columns)


def tsv_texts(*pairs: tuple[str, str], **columns: Any) -> Rows:
    """Return rows of a toolkit's TSV with a question and an answer."""
    rows = [{"question": question, "answer": answer} for question, answer in pairs]
    return numbered(rows, index=lambda n: n + 1, image=encoded, **columns)


LIST = ["a cat", "a dog", "a cow", "a pig"]


def listed(*answers: Any, options: Any = LIST, **columns: Any) -> Rows:
    """Return rows of a hub with options in one column."""
    rows = [{"question": f"What is on picture {n}?", "answer": answer} for n, answer in enumerate(answers)]
    return numbered(rows, **{"options": options, "image": struct, **columns})


def _mme() -> Fixture:
    """Two pictures of `existence` (one with both right), one of `code_reasoning` with both right."""
    rows = [
        {"question_id": f"{category}/{image}.png", "question": f"{text} Please answer yes or no.", "answer": answer}
        | {"category": category, "image": struct(image)}
        for category, image, text, answer in (
            ("existence", 1, "Is there a cat?", "Yes"),
            ("existence", 1, "Is there a dog?", "No"),
            ("existence", 2, "Is there a cow?", "Yes"),
            ("existence", 2, "Is there a pig?", "No"),
            ("code_reasoning", 1, "Does it print 1?", "Yes"),
            ("code_reasoning", 1, "Does it print 2?", "No"),
        )
    ]
    # existence: 3 of 4 right and 1 of 2 pictures: 75 + 50; code_reasoning: 100 + 100. The other subtasks are not there.
    figures = {"acc_existence": 75.0, "acc_plus_existence": 50.0, "acc_code_reasoning": 100.0, "perception": None}
    replies = ["Yes", "No.", "Yes, there is.", "Yes", "yes", "no"]
    return Fixture("mme", "hub", rows, replies, {"official": figures | {"accuracy": 5 / 6}, "lmms-eval": figures})


def _pope() -> Fixture:
    rows = [
        {"question_id": str(n), "question": f"Is there a thing {n}?", "answer": answer, "category": category}
        | {"image": struct(n), "image_source": f"COCO_{n}"}
        for category in ("adversarial", "popular", "random")
        for n, answer in enumerate(("yes", "yes", "no", "no"))
    ]
    # Each setting: yes yes no no; said: yes no yes no: one true positive of two said and two real: P = R = F1 = 1/2.
    replies = ["Yes", "No", "Yes", "No"] * 3
    told = {"f1_mean": 0.5, "precision": 0.5, "recall": 0.5, "yes_ratio": 0.5, "accuracy": 0.5}
    return Fixture("pope", "hub", rows, replies, {"official": told, "lmms-eval": told})


def _pope_official_reader() -> Fixture:
    """The official reader takes whatever is not no for yes: an apology too."""
    rows = _pope().rows
    replies = ["I am sorry, I do not see a picture", "Certainly", "No, not here", "It cannot be seen"] * 3
    # peers: not → no; else yes: no(wrong), yes(right), no(right), yes(wrong)
    return Fixture("pope", "hub", rows, replies, {"peers": {"accuracy": 0.5, "f1": 0.5}})


def _hrbench(k: str) -> Fixture:
    rows = numbered(
        lettered("A", "B", "C", "D", "A", "B", "C", "D"),
        index=lambda n: n,
        image=encoded,
        category=lambda n: ("single", "cross")[n // 4],
        cycle_category=lambda n: f"cycle_{n % 4 + 1}",
    )
    # Cycle 1: A right, A wrong; 2: both right; 3: both wrong; 4: right and unread.
    replies = ["A", "B", "A", "D", "B", "B", "A", "I do not know which"]
    # Means of cycles: 1/2, 1, 0, 1 (one unread is no wrong) -> 0.625; single 3/4 ... cross 1 of 3.
    expected: dict[str, float | None] = {"cycles": 0.625, "cycles_strict": 0.5, "fsp": 0.75, "fcp": 1 / 3}
    return Fixture(f"hrbench-{k}", "hub", rows, replies, {"official": expected})


def _cv_bench() -> Fixture:
    def prompt(n: int) -> str:
        return f"How many are on picture {n}? Select from the following choices.\n(A) 1\n(B) 2"

    rows = numbered(
        [{"answer": f"({letter})"} for letter in "ABABAB"],
        idx=lambda n: n,
        prompt=prompt,
        question=lambda n: f"How many are on picture {n}?",
        choices=["1", "2"],
        source=lambda n: ("ADE20K", "COCO", "Omni3D")[n // 2],
        task="Count",
        image=struct,
    )
    # ADE20K 2/2, COCO 1/2, Omni3D 0/2: 2D = 0.75, 3D = 0, overall 0.375 (micro would be 0.5).
    replies = ["(A)", "The answer is B", "(A)", "(A)", "(B)", "(A)"]
    official: dict[str, float | None] = {"cv_2d": 0.75, "cv_3d": 0.0, "cv_bench": 0.375, "accuracy": 0.5}
    # lmms-eval reads T in `The answer is B`: wrong.
    return Fixture("cv-bench", "hub", rows, replies, {"official": official, "lmms-eval": {"accuracy": 2 / 6}})


def _screenspot(card: str, box: list[float], **columns: Any) -> Fixture:
    rows = numbered(
        [{"instruction": f"open file {n}", "bbox": box} for n in range(4)],
        image=lambda n: struct(n, (800, 400)),
        **columns,
    )
    # The element is (0.25, 0.25)–(0.5, 0.75): inside, outside, a box around it (its middle counts), no point.
    replies = ["(300, 500)", "(900, 500)", "[250, 250, 500, 750]", "I cannot click."]
    percent = ["(30, 50)", "(90, 50)", "[25, 25, 50, 75]", "I cannot click."]
    assert len(replies) == len(percent)
    expected: dict[str, float | None] = {"accuracy": 2 / 3, "accuracy_strict": 0.5, "text": 0.5, "icon": 1.0}
    return Fixture(card, "hub", rows, replies, {"official": expected})


def _refcoco(card: str) -> Fixture:
    # x, y, width, height in pixels of 800 x 400: (0.25, 0.25)–(0.5, 0.75).
    rows = numbered(
        [{"question_id": str(n), "answer": ["the left cat", "cat on the left"]} for n in range(4)],
        bbox=[200.0, 100.0, 200.0, 200.0],
        question="Describe the region.",
        image=lambda n: struct(n, (800, 400)),
        file_name=lambda n: f"{n}.jpg",
    )
    # The same box; its left half (1/2); shifted by half a width (1/3); two boxes: unscored.
    replies = ["[250, 250, 500, 750]", "[250, 250, 375, 750]", "(375,250),(625,750)", "[0,0,1,1] or [5,5,9,9]"]
    expected = {"iou": (1 + 1 / 2 + 1 / 3) / 3, "acc_0.5": 2 / 3, "acc_0.5_strict": 0.5}
    return Fixture(card, "hub", rows, replies, {"official": expected})


def _ref_l4() -> Fixture:
    rows = numbered(
        [{"id": f"{n:06}", "caption": "the long haired cat on the left of the sofa"} for n in range(4)],
        bbox=[200.0, 100.0, 200.0, 200.0],
        ori_category_id="o365_1",
        file_name=lambda n: f"{n}.png",
    )
    files = {f"images/{n}.png": picture(n, (800, 400)) for n in range(4)}
    replies = ["[250, 250, 500, 750]", "[250, 250, 375, 750]", "(375,250),(625,750)", "[0,0,1,1] or [5,5,9,9]"]
    expected: dict[str, float | None] = {"iou": (1 + 1 / 2 + 1 / 3) / 3, "acc_0.5": 2 / 3, "acc_0.5_strict": 0.5}
    return Fixture("ref-l4", "hub", rows, replies, {"official": expected}, files)


def _osworld_g() -> Fixture:
    # In pixels of 800 x 400: boxes as x, y, width, height, a triangle by its corners; three targets are not there.
    box, triangle = [200.0, 100.0, 200.0, 200.0], [200.0, 100.0, 400.0, 100.0, 200.0, 300.0]
    facts = [("bbox", box)] * 3 + [("polygon", triangle)] * 2 + [("refusal", [0.0, 0.0, 0.0, 0.0])] * 3
    rows = [
        {"id": f"g{n}", "instruction": f"open file {n}", "box_type": kind, "box_coordinates": target}
        | {"image_size": [800, 400], "image": struct(n, (800, 400))}
        for n, (kind, target) in enumerate(facts)
    ]
    # Of boxes one hit, one miss, one refusal; of the triangle its upper left half and not its lower right one; of the
    # absent ones a refusal by numbers, a click, and a refusal in words, which the authors' rule does not take.
    replies = ["(300, 500)", "(900, 500)", "[-1, -1]", "(300, 300)", "(450, 700)"]
    replies += ["[-1, -1]", "(300, 300)", "The file does not exist."]
    boxes: dict[str, float | None] = {"boxes": 1 / 3, "polygons": 1 / 2, "present_refused": 1 / 5}
    numbers = boxes | {"accuracy": 3 / 7, "accuracy_strict": 3 / 8, "absent": 1 / 2, "absent_clicked": 1 / 2}
    words = boxes | {"accuracy": 4 / 8, "accuracy_strict": 4 / 8, "absent": 2 / 3, "absent_clicked": 1 / 3}
    return Fixture("osworld-g", "hub", rows, replies, {"official": numbers, "said": words})


def _tir_bench() -> Fixture:
    # Each task by hand: task, answer, reply, how right that is (None: not read).
    facts: list[tuple[str, str, str, float | None]] = [
        ("maze", "C", "The answer is C.", 1.0),
        ("color", "D", "I think it is (A).", 0.0),
        ("math", "12", "So x = 12.", 1.0),
        ("instrument", "3.5", "It reads 3.4", 0.0),
        ("ocr", "Welcome", "The sign says: Welcome home", 1.0),
        ("word_search", "[2, 3]", "It begins at row 2, 3 to the right: (2, 3)", 1.0),
        ("spot_difference", "[1, 4, 7]", "Differences: 1, 4, 8", 2 / 4),
        ("jigsaw", "[1, 2, 3, 4]", "The order is 1, 3, 2, 4", 2 / 4),
        ("visual_search", "B", "No idea.", None),
    ]
    rows = [
        {"id": n, "task": task, "prompt": f"Look at it ({n}).", "answer": answer, "image_1": f"data/{n}.png"}
        for n, (task, answer, _, _) in enumerate(facts)
    ]
    values = [value for _, _, _, value in facts if value is not None]
    expected: dict[str, float | None] = {"accuracy": sum(values) / 8, "accuracy_strict": sum(values) / 9}
    files = {f"data/{n}.png": picture(n) for n in range(len(facts))}
    return Fixture("tir-bench", "official", rows, [reply for _, _, reply, _ in facts], {"official": expected}, files)


def _refspatial(split: str) -> Fixture:
    # A mask of 40 x 20 whose right half is white, but for a grey that is out.
    mask = PIL.Image.new("L", (40, 20), 100)
    mask.paste(255, (20, 0, 40, 20))
    out = io.BytesIO()
    mask.save(out, "PNG")
    shown = {"bytes": out.getvalue(), "path": "mask.png"}
    rows = [
        {"id": n, "prompt": "Point at the cup.", "suffix": "Answer as [(x1, y1)].", "step": 1}
        | {"mask": shown, "image": struct(n)}
        for n in range(5)
    ]
    # In; out; one of two; in and outside of the picture; no point at all.
    replies = [
        "[(0.75, 0.5)]",
        "[(0.25, 0.5)]",
        "[(0.5, 0.0), (0.49, 0.0)]",
        "(0.99, 0.99), (1.5, 0.5)",
        "There is none.",
    ]
    expected: dict[str, float | None] = {"accuracy": (1 + 0 + 0.5 + 0.5) / 4, "accuracy_strict": 2 / 5}
    return Fixture(f"refspatial-{split}", "hub", rows, replies, {"official": expected, "lmms-eval": expected})


def _odinw() -> Fixture:
    # Pictures of 40 x 20 pixels in two sets; the frame of replies is 0-1000.
    facts = [("Raccoon", ["raccoon"], [[10, 5, 20, 15]], ["raccoon"]), ("Raccoon", ["raccoon"], [], [])]
    facts += [("pothole", ["pothole", "car"], [[0, 0, 20, 20], [20, 0, 40, 20]], ["pothole", "car"])] * 2
    rows = [
        {"dataset_name": name, "categories": classes, "bboxes": boxes, "labels": labels, "image": struct(n)}
        for n, (name, classes, boxes, labels) in enumerate(facts)
    ]
    replies = [
        '```json\n[{"bbox_2d": [250, 250, 500, 750], "label": "Raccoon"}]\n```',
        "[]",
        '[{"bbox": [0, 0, 500, 1000], "label": "pothole"}, {"bbox": [500, 0, 1000, 1000], "label": "pothole"}]',
        "There are two.",
    ]
    # Raccoon 1; of two potholes one is found first (recall 1/2, precision 1): 51 of 101 recalls, of cars none.
    expected: dict[str, float | None] = {"mAP": (1 + (51 / 101 + 0) / 2) / 2, "found_0.5": 0.75}
    return Fixture("odinw-13", "hub", rows, replies, {"official": expected})


def _mm_vet_v2() -> Fixture:
    """Pictures between the words, by numbered columns."""
    facts = {"answer": "x=2", "capability": ["ocr", "math"], "added_in": "v2"}
    rows = [
        {"id": f"v2_{n}", "question": f"Which {n} of<IMG><image_0>and<IMG><image_1>?", **facts}
        | {"image_0": struct(n), "image_1": struct(n + 5), "image_2": None}
        for n in range(2)
    ]
    return Fixture("mm-vet-v2", "hub", rows, ["x=2", "a tree"], {"official": {"exact_without_judge": 0.5}})


def _visualwebbench() -> list[Fixture]:
    """Candidates with letters on the picture, answers counted from 0; the other tasks are left out."""
    boxes = [[0.1, 0.1, 0.2, 0.2]] * 8
    facts = [
        ("element_ground", "the search field", None, 0),
        ("element_ground", "the logo", None, 7),
        ("action_ground", None, "log in", 2),
        ("action_ground", None, "log out", 1),
    ]
    ground = [
        {"id": f"w{n}", "task_type": task, "elem_desc": said, "instruction": asked, "answer": answer, "options": boxes}
        | {"image": struct(n), "raw_image": struct(n), "image_size": [40, 20]}
        for n, (task, said, asked, answer) in enumerate(facts)
    ]
    pages = [f"A page about {what}" for what in ("cats", "dogs", "cows", "pigs", "hens", "bees", "rats", "bats")]
    action = [
        {"id": f"a{n}", "task_type": "action_prediction", "bbox": [0.1, 0.2, 0.3, 0.4], "answer": n, "options": pages}
        | {"image": struct(n), "raw_image": struct(n), "image_size": [40, 20]}
        for n in range(3)
    ]
    expected: dict[str, float | None] = {"accuracy": 0.75, "element": 1.0, "action": 0.5}
    return [
        Fixture(
            "visualwebbench-ground",
            "hub",
            ground,
            ["A", "H. or G", "(B), no: the answer is (C)", "D"],
            {"official": expected},
        ),
        Fixture("visualwebbench-action", "hub", action, ["A", "C", "C"], {"official": {"accuracy": 2 / 3}}),
    ]


def _vl_rewardbench() -> Fixture:
    facts = [("mathverse_1", [0, 1]), ("RLHF-V-2", [1, 0]), ("wildvision-battle_3", [0, 1]), ("VLFeedback_4", [1, 0])]
    rows = [
        {"id": name, "query": "What is it?", "response": ["a cat", "a dog"], "human_ranking": ranks}
        | {"image": struct(n)}
        for n, (name, ranks) in enumerate(facts)
    ]
    # reasoning 1, hallucination 0, general 1 of 2: their mean is a half.
    expected: dict[str, float | None] = {"kinds": 0.5, "accuracy": 0.5}
    return Fixture("vl-rewardbench", "hub", rows, ["A", "A", "A", "A"], {"official": expected})


def _naturalbench() -> Fixture:
    rows = [
        {"Index": str(n), "Image": struct(n), "Question": f"Is it {n // 2 % 2}?", "Answer": ("Yes", "No")[n % 2]}
        | {"Question_Type": "yes_no"}
        for n in range(4)
    ] + [
        {"Index": str(n), "Image": struct(n), "Question": "Where? Option: A: left; B: right;", "Answer": "AB"[n % 2]}
        | {"Question_Type": "multiple_choice"}
        for n in range(4, 8)
    ]
    # First set all right; second: right, right, right, wrong: questions 1 of 2, pictures 1 of 2, the set not.
    replies = ["Yes", "No", "yes.", "no", "A", "B", "A", "A"]
    expected: dict[str, float | None] = {"accuracy": 7 / 8, "q_acc": 0.75, "i_acc": 0.75, "g_acc": 0.5}
    return Fixture("naturalbench", "hub", rows, replies, {"official": expected})


def _dynamath() -> Fixture:
    rows = tsv_texts(
        *[("What is x?", "3.142")] * 2,
        *[("Which?", "B")] * 2,
        qid=lambda n: n // 2,
        varid=lambda n: n % 2 + 1,
        answer_type=lambda n: ("float", "multiple choice")[n // 2],
        subject="algebra",
        knowledge_level="easy",
    )
    replies = [
        '{"solution": "…", "short answer": "3.142"}',
        '{"solution": "…", "short answer": "3.1418"}',
        '{"short answer": "B"}',
        '{"short answer": "C"}',
    ]
    return Fixture("dynamath", "tsv", rows, replies, {"official": {"accuracy": 0.75, "worst_case": 0.5}})


def _longdocurl() -> Fixture:
    pages = [f"/data/oss/pdf_pngs/4000/{n}.png" for n in range(3)]
    rows = [
        {"question_id": f"q{n}", "question": f"Question {n}?", "answer": answer, "answer_format": kind, "images": pages}
        | {"doc_no": "4000", "question_type": "extract", "task_tag": "Understanding", "total_pages": 3}
        for n, (answer, kind) in enumerate(
            ((7, "Integer"), (12.5, "Float"), ("blue whale", "String"), (["a cat", "a dog"], "List"))
        )
    ]
    files = {f"pdf_pngs/4000/{n}.png": picture(n) for n in range(3)}
    # 7; 12.6 is within one per cent of 12.5; one letter of ten is another: 0.9; the list in another order.
    replies = ["7", "12.6", "blue while", "['a dog', 'a cat']"]
    return Fixture("longdocurl", "official", rows, replies, {"official": {"document_answer": 0.975}}, files)


def _slidevqa() -> Fixture:
    pages = {f"page_{n + 1}": struct(n) for n in range(20)}
    rows = [
        {"deck_name": "d", "question": f"Question {n}?", "answer": answer, "reasoning_type": "single", **pages}
        for n, answer in enumerate(("blue whale", "42"))
    ]
    # ANLS: "blue whales" 10/11, "41" exactly half: 0. Words: one of two shared; none.
    expected: dict[str, float | None] = {"anls": 10 / 11 / 2, "word_f1": 0.25, "exact_match": 0.0}
    return Fixture("slidevqa", "hub", rows, ["blue whales", "41"], {"official": expected})


def _cmmmu() -> Fixture:
    options = {f"option{at}": text for at, text in enumerate(("红色", "蓝色", "绿色", "黄色"), 1)}
    none = dict.fromkeys(options, None)
    facts = [
        ("选择", "B", options, "答案是(B)"),
        ("选择", "AC", options, "Answer: A, C"),  # the script counts the A of Answer too: A alone
        ("选择", "D", options, "我不知道"),  # nothing is named: the script draws
        ("判断", "错", none, "这个说法不对"),  # the script finds 对 in 不对
        ("判断", "对", none, "所以是正确的"),
        ("判断", "对", none, "这个说法没错"),  # the script finds 错
        ("填空", "12.5", none, "答案是12.50"),
        ("填空", "长江", none, "这条河是黄河"),
    ]
    rows = [
        {"id": number, "type": kind, "question": f'看<img="a{number}.png">，第{number}题', "answer": answer, **some}
        | {"subcategory": "地理", "image_1": struct(number), "image_1_filename": f"a{number}.png"}
        for number, (kind, answer, some, _) in enumerate(facts)
    ]
    expected = {protocol: {"accuracy": 3 / 7} for protocol in ("official", "lmms-eval")} | {
        "snellen": {"accuracy": 5 / 6}
    }
    return Fixture("cmmmu", "hub", rows, [reply for *_, reply in facts], expected)


def _circular() -> Fixture:
    rows = numbered(lettered("A", "B", "A", "B"), index=lambda n: (n // 2) + 1_000_000 * (n % 2), image=struct)
    rows = numbered(rows, **{"category": "food", "L2-category": "culture"})
    # The first question is right in both rotations, the second in one of two.
    return Fixture("ccbench", "hub", rows, ["A", "B", "A", "A"], {"official": {"accuracy": 0.75, "circular": 0.5}})


def _chartqapro() -> Fixture:
    facts = [
        (["How many?"], ["100"], "Factoid", ["NO"]),
        (["Which year?", "And the next?"], ["2019", "2020"], "Conversational", ["YES", "YES"]),
        (["It grew."], ["true"], "Fact Checking", ["NO"]),
        (["Which two?"], ["[Asia, Europe]"], "Hypothetical", ["NO"]),
    ]
    rows = [
        {"Question": asked, "Answer": said, "Question Type": kind, "Year": years, "image": picture(n)}
        | {"Paragraph": "Look at the bars."}
        for n, (asked, said, kind, years) in enumerate(facts)
    ]
    # 104 is within 5 %; 2021 is another year; true; one of two places.
    replies = ["104", "2021", "True.", "['Asia', 'Africa']"]
    expected = {"chart_answer": 2.5 / 4, "factoid": 1.0, "conversational": 0.0, "hypothetical": 0.5}
    return Fixture("chartqapro", "hub", rows, replies, {"official": expected})  # type: ignore[arg-type]


def _mmvp() -> Fixture:
    rows = [
        {"Index": n + 1, "Question": "Is the door open?", "Options": "(a) Open (b) Closed"}
        | {"Correct Answer": ("(a)", "(b)")[n % 2], "image": struct(n)}
        for n in range(4)
    ]
    expected: dict[str, dict[str, float | None]] = {
        "official": {"accuracy": 0.75, "pairs": 0.5},
        "vlmevalkit": {"accuracy": 0.75, "pairs": 0.5},
    }
    return Fixture("mmvp", "hub", rows, ["A", "B", "A", "A"], expected)


def _realworld(card: str) -> Fixture:
    options = ["(A) a cat", "(B) a dog", "(C) a cow", "(D) a pig", "(E) it is not there"]
    rows = numbered(
        listed("A", "B", "E"),
        **{"multi-choice options": options, "index": lambda n: n, "bytes": encoded},
        **{"category": "Perception/OCR", "l2-category": "scene"},
    )
    for row in rows:
        del row["options"], row["image"]
    return Fixture(card, "hub", rows, ["A", "Based on it, the answer is B", "(E)"], {"official": {"accuracy": 1.0}})


RIGHT_WRONG = ["A", "The answer is B.", "C", "A", "D or A, I cannot say"]
"""To ABCDA: right, right, right, wrong, unread."""
ABCDA: dict[str, float | None] = {"accuracy": 0.75, "accuracy_strict": 0.6}
VQA_TEN = [{"answer": answer, "answer_id": n} for n, answer in enumerate(["cat"] * 3 + ["dog"] * 7)]


def _vqa(card: str, **columns: Any) -> Fixture:
    """Ten annotators, three of whom say cat: the official soft accuracy of `cat` is 0.9, of `dog` 1."""
    answers = ["cat"] * 3 + ["dog"] * 7
    rows = [{"question_id": n, "question": f"What is {n}?", "answers": answers, "image": struct(n)} for n in range(3)]
    expected = {"official": {"vqa_accuracy": (0.9 + 1.0 + 0.0) / 3}}
    return Fixture(card, "hub", numbered(rows, **columns), ["a cat.", "Dog", "cow"], expected)  # type: ignore[arg-type]


def tier2_fixtures() -> list[Fixture]:
    """Return one set of rows or more for every card of tier 2."""
    ids = {"idx": str, "task": "Counting", "image_relation": "x", "image_list": lambda n: [struct(n), struct(n + 1)]}
    muir = [
        {**row, "question": f"<image> and <image>: which is {n}?"} for n, row in enumerate(listed("A", "B", "C", **ids))
    ]
    for row in muir:
        del row["image"]
    return [
        Fixture(
            "muirbench",
            "hub",
            muir,
            ["A", "B. a dog", "The answer is C"],
            {"official": {"accuracy": 1.0}, "lmms-eval": {"accuracy_peer": 2 / 3}},
        ),
        Fixture("muirbench", "tsv", tsv_choices(*"ABCDA", category="Counting"), RIGHT_WRONG, {"official": ABCDA}),
        _mme(),
        _pope(),
        _pope_official_reader(),
        Fixture(
            "seedbench-img",
            "hub",
            [
                {"question_id": str(n), "question": f"What is {n}?", "choice_a": "x", "choice_b": "y", "choice_c": "z"}
                | {"choice_d": "w", "answer": "A", "data_type": kind, "question_type_id": 1, "image": [struct(n)]}
                for n, kind in enumerate(("image", "image", "video"))
            ],
            ["A", "B", "A"],
            {"official": {"seed_image": 0.5}, "lmms-eval": {"seed_image": 0.5}},
        ),
        Fixture(
            "seedbench-2-plus",
            "tsv",
            tsv_choices(*"ABCDA", category="Chart"),
            RIGHT_WRONG,
            {"official": ABCDA, "vlmevalkit": {"accuracy_peer": 0.6}},
        ),
        Fixture(
            "scienceqa-img",
            "hub",
            numbered(
                [
                    {"question": f"Which {n}?", "choices": LIST, "answer": n, "hint": ("", "Look.")[n % 2]}
                    for n in range(3)
                ],
                image=struct,
                subject="natural science",
            ),
            ["A", "B.", "D"],
            {"official": {"accuracy": 2 / 3}, "lmms-eval": {"accuracy": 2 / 3}},
        ),
        Fixture(
            "vqav2",
            "hub",
            [
                {"question_id": n, "question": f"What is {n}?", "answers": VQA_TEN, "answer_type": "other"}
                | {"image": struct(n)}
                for n in range(2)
            ],
            ["cat", "dog"],
            {"official": {"vqa_accuracy": 0.95}},
        ),
        _vqa("ok-vqa"),
        _vqa("vizwiz-vqa", category="other"),
        Fixture(
            "gqa",
            "tsv",
            tsv_texts(("What?", "cat"), ("Which?", "left")),
            ["A cat", "right"],
            {"official": {"any_exact": 0.5}},
        ),
        *(_realworld(card) for card in ("mme-realworld", "mme-realworld-lite", "mme-realworld-cn")),
        _hrbench("4k"),
        _hrbench("8k"),
        _cv_bench(),
        _screenspot(
            "screenspot", [0.25, 0.25, 0.5, 0.75], data_type=lambda n: ("text", "icon")[n // 2], data_source="web"
        ),
        _screenspot(
            "screenspot-v2", [0.25, 0.25, 0.5, 0.75], data_type=lambda n: ("text", "icon")[n // 2], data_source="web"
        ),
        _screenspot(
            "screenspot-pro",
            [200, 100, 400, 300],
            ui_type=lambda n: ("text", "icon")[n // 2],
            application="word",
            group="Office",
        ),
        *(_refcoco(card) for card in ("refcoco", "refcoco-plus", "refcocog")),
        Fixture(
            "countbenchqa",
            "hub",
            [
                {
                    "question": "How many dogs are there?",
                    "number": n,
                    "text": f"A photo of {n} dogs",
                    "image": struct(n),
                }
                for n in (3, 4)
            ],
            ["There are three dogs.", "5"],
            {"official": {"accuracy": 0.5}},
        ),
        Fixture(
            "pixmo-count",
            "hub",
            [{"question": "How many?", "answer": n, "image": struct(n)} for n in (3, 4)],
            ["3", "5"],
            {"official": {"accuracy": 0.5}},
        ),
        Fixture(
            "tallyqa",
            "tsv",
            tsv_texts(("How many?", "3"), ("How many cats?", "0")),
            ["3", "0"],
            {"official": {"accuracy": 1.0}},
        ),
        Fixture(
            "we-math",
            "hub",
            [
                {"ID": f"w{n}", "question": f"What is {n}?", "option": "A. 1 cm; B. 2 cm; C. 3 cm", "answer": "B"}
                | {"knowledge concept": "area", "image_path": struct(n)}
                for n in range(2)
            ],
            ["B", "C"],
            {"official": {"accuracy": 0.5}},
        ),
        _dynamath(),
        _slidevqa(),
        Fixture(
            "mp-docvqa",
            "hub",
            [
                {"questionId": n, "question": "Which date?", "answers": "['12 May', '12th of May']", "doc_id": "d"}
                | {"image_1": struct(n), "image_2": struct(n + 1)}
                for n in range(2)
            ],
            ["12 may", "nothing of the kind"],
            {"official": {"anls": 0.5}},
        ),
        _longdocurl(),
        _mmvp(),
        Fixture(
            "simplevqa",
            "hub",
            [
                {
                    "data_id": n,
                    "image": encoded(n),
                    "language": "EN",
                    "question": f"Who is {n}?",
                    "answer": "Ada Lovelace",
                }
                | {"original_category": "people"}
                for n in range(2)
            ],
            ["Ada Lovelace", "It is Ada Lovelace, I think"],
            {"official": {"any_exact": 0.5, "contains": 1.0}},
        ),
        Fixture(
            "zerobench",
            "hub",
            [
                {
                    "question_id": str(n),
                    "question_text": "How much?",
                    "question_answer": "5.90",
                    "question_images": ["a.png"],
                }
                | {"question_images_decoded": [struct(n)]}
                for n in range(2)
            ],
            ["It costs {5.9}", "{6}"],
            {"official": {"accuracy": 0.5}},
        ),
        Fixture(
            "zerobench-subquestions",
            "hub",
            [
                {
                    "question_id": f"1_{n}",
                    "question_text": "How many?",
                    "question_answer": "7",
                    "question_images": ["a"],
                }
                | {"question_images_decoded": [struct(n), struct(n + 1)]}
                for n in range(2)
            ],
            ["So there are {7}", "{8}"],
            {"official": {"accuracy": 0.5}},
        ),
        Fixture(
            "treebench",
            "tsv",
            [
                {"question": f"Which, {n}?", "multi-choice options": "(A) a cat\n(B) a dog\n(C) a cow\n(D) a pig"}
                | {"answer": "ABCDA"[n], "category": "Reasoning/Ordering", "target_instances": "[[1, 2, 3, 4]]"}
                | {"image": encoded(n)}
                for n in range(5)
            ],
            RIGHT_WRONG,
            {"official": ABCDA},
        ),
        Fixture(
            "all-angles",
            "official",
            numbered(
                lettered(*"ABCA", options=("left", "right", "behind")),
                category=lambda n: ("counting", "counting", "counting", "manipulation")[n],
                folder="scene",
                image_path=lambda n: [f"scene/{n}.png", f"scene/{n + 1}.png"],
                pair_idx=lambda n: n,
                sourced_dataset="EgoHumans",
            ),
            ["A", "B", "A", "B"],
            # Counting 2 of 3, manipulation 0 of 1.
            {"official": {"accuracy": 0.5, "kinds": 1 / 3}},
            {f"scene/{n}.png": picture(n) for n in range(5)},
        ),
        Fixture(
            "space-10",
            "hub",
            numbered(lettered(*"ABCDA"), index=lambda n: n, image=lambda n: [struct(n), struct(n + 1)]),
            RIGHT_WRONG,
            {"official": ABCDA},
        ),
        _ref_l4(),
        _osworld_g(),
        _tir_bench(),
        *_visualwebbench(),
        *map(_refspatial, ("location", "placement", "unseen")),
        _mm_vet_v2(),
        _odinw(),
        _vl_rewardbench(),
        Fixture(
            "vibe-eval",
            "hub",
            [
                {
                    "example_id": f"v{n}",
                    "category": "difficulty-hard",
                    "prompt": "What is it?",
                    "reference": "a red cat",
                }
                | {"media_filename": f"{n}.png", "media_url": f"https://example.org/{n}.png", "image": struct(n)}
                for n in range(2)
            ],
            ["a red cat", "nothing"],
            {"official": {"rouge_l": 0.5}},
        ),
        Fixture(
            "erqa",
            "hub",
            [
                {
                    "question_id": f"e{n}",
                    "question": "Where? Choices: A. left. B. right. C. up. D. down.",
                    "answer": "B",
                }
                | {"question_type": "Pointing", "images": [struct(n)]}
                for n in range(2)
            ],
            ["B", "The answer is A."],
            {"official": {"accuracy": 0.5}, "lmms-eval": {"accuracy": 0.5}},
        ),
        Fixture(
            "mmsi-bench",
            "hub",
            [
                {"id": n, "question": "Where? Options: A: left, B: right, C: up, D: down", "answer": "A"}
                | {"question_type": "Motion", "images": [picture(n), picture(n + 1)]}
                for n in range(2)
            ],
            ["A", "B"],
            {"official": {"accuracy": 0.5}},
        ),
        Fixture(
            "vlms-are-blind",
            "hub",
            [
                {"task": task, "prompt": "Count. Answer in curly brackets, e.g. {3}.", "groundtruth": truth}
                | {"image": struct(n)}
                for n, (task, truth) in enumerate(
                    (
                        ("Counting Grid - Blank Grids", "3,4"),
                        ("Counting Grid - Word Grids", "5,5"),
                        ("Touching Circles", "Yes"),
                        ("Circled Letter", "r"),
                    )
                )
            ],
            ["rows={3} columns={4}", "{4} {5}", "yes", "{R}"],
            # Grids 1 of 2, circles 1, letters 1: mean of three tasks.
            {"official": {"task_mean": 2.5 / 3, "accuracy": 0.75}},
        ),
        Fixture(
            "embspatial",
            "hub",
            numbered(
                [{"question_id": f"m{n}", "question": "Where?", "answer_options": LIST, "answer": n} for n in range(2)],
                relation="above",
                data_source="ai2thor",
                image=struct,
            ),
            ["A", "The answer is B"],
            {"official": {"accuracy": 1.0}, "lmms-eval": {"accuracy": 0.5}},
        ),
        Fixture(
            "omnispatial",
            "hub",
            numbered(
                [{"id": str(n), "question": "Where?", "options": LIST, "gt": "AB"[n]} for n in range(2)],
                task_type="Dynamic",
                sub_task_type="Motion",
                image_path=lambda n: f"{n}.png",
            ),
            ["A", "C"],
            {"official": {"accuracy": 0.5}},
            {f"{n}.png": picture(n) for n in range(2)},
        ),
        Fixture(
            "mtvqa",
            "tsv",
            tsv_texts(("何ですか", "東京駅"), ("Was?", "Hauptbahnhof"), category="JA"),
            ["東京駅です", "Bahnhof"],
            {"official": {"contains_anywhere": 0.5}},
        ),
        Fixture(
            "a-okvqa-mc",
            "hub",
            numbered(
                [
                    {"question_id": f"a{n}", "question": "What?", "choices": LIST, "correct_choice_idx": n}
                    for n in range(2)
                ],
                image=struct,
                direct_answers="['cat', 'dog']",
            ),
            ["A", "C"],
            {"official": {"accuracy": 0.5}},
        ),
        Fixture(
            "mmt-bench",
            "tsv",
            tsv_choices("A", "A", "A", "B", **{"category": lambda n: ("x", "x", "x", "y")[n], "l2-category": "z"}),
            ["A", "A", "B", "C"],
            {"official": {"accuracy": 0.5, "subtasks": (2 / 3 + 0) / 2}},
        ),
        _naturalbench(),
        _chartqapro(),
        Fixture(
            "logicvista",
            "hub",
            [
                {"question": f"Which, {n}?", "answer": "A, C", "skill": "['inductive']", "image": struct(n)}
                for n in range(3)
            ],
            ["C, A", "A", "It is the third figure, as it turns."],
            {"official": {"accuracy": 0.5, "accuracy_strict": 1 / 3}},
        ),
        Fixture(
            "chartmuseum",
            "official",
            [
                {
                    "image": f"images/{n}.png",
                    "question": "Which bar?",
                    "answer": "the red one",
                    "reasoning_type": "visual",
                }
                for n in range(2)
            ],
            ["The red one", "It is the red one there"],
            {"official": {"any_exact": 0.5, "contains": 1.0}},
            {f"images/{n}.png": picture(n) for n in range(2)},
        ),
        Fixture(
            "amber",
            "tsv",
            tsv_texts(
                *[("Is it so?", "Yes")] * 4,
                category=lambda n: ("discriminative-attribute-state", "discriminative-hallucination", "relation")[
                    n % 3
                ],
                image_path=lambda n: f"{n // 2}.jpg",
            ),
            ["Yes", "Yes", "No", "No"],
            # Attribute 1 of 2, existence 1, relation 0.
            {"official": {"attribute": 0.5, "existence": 1.0, "relation": 0.0, "amber": 0.5, "accuracy": 0.5}},
        ),
        Fixture("crpe", "tsv", tsv_choices(*"ABCDA", category="relation"), RIGHT_WRONG, {"official": ABCDA}),
        Fixture(
            "vmcbench",
            "hub",
            numbered(lettered(*"ABCDA"), index=lambda n: n, category="VQAv2", image=struct),
            RIGHT_WRONG,
            {"official": ABCDA},
        ),
        Fixture(
            "jmmmu",
            "hub",
            [
                {
                    "id": "validation_Design_1",
                    "question": "<image 1> 何ですか",
                    "options": "['猫', '犬']",
                    "answer": "B",
                }
                | {"question_type": "multiple-choice", "image_1": struct(1)},
                {"id": "validation_Design_2", "question": "<image 1> いくつ", "options": "[]", "answer": "24"}
                | {"question_type": "open", "image_1": struct(2)},
            ],
            ["B", "25"],
            {"official": {"accuracy": 0.5}},
        ),
        _cmmmu(),
        _circular(),
        Fixture("mmmb", "tsv", tsv_choices(*"ABCDA", category="code"), RIGHT_WRONG, {"official": ABCDA}),
        Fixture(
            "emma",
            "hub",
            [
                {"pid": "m1", "question": "Which follows <image_1>?", "options": LIST, "answer": "B", "context": ""}
                | {"type": "Multiple Choice", "subject": "Math", "category": "x", "image_1": struct(1)},
                {"pid": "m2", "question": "How much is <image_1>?", "options": [], "answer": "12", "context": "Look."}
                | {"type": "Open-ended", "subject": "Physics", "category": "y", "image_1": struct(2)},
            ],
            [r"So it is \boxed{B}", r"Therefore \boxed{13}"],
            {"official": {"accuracy": 0.5}},
        ),
        Fixture(
            "visulogic",
            "official",
            [
                {"id": f"v{n}", "question": "Which comes next?", "label": "C", "image_path": f"images/{n}.png"}
                for n in range(2)
            ],
            ["The answer is C", "A"],
            {"official": {"accuracy": 0.5}},
            {f"images/{n}.png": picture(n) for n in range(2)},
        ),
        Fixture(
            "vsr-zeroshot",
            "tsv",
            tsv_texts(("Is the cat left?", "Yes"), ("Is it right?", "No")),
            ["Yes", "yes"],
            {"official": {"accuracy": 0.5}, "vlmevalkit": {"accuracy": 0.5}},
        ),
        Fixture(
            "ocr-vqa",
            "tsv",
            tsv_texts(("Who wrote it?", "Ada Lovelace"), ("When?", "1843")),
            ["ada lovelace", "1844"],
            {"official": {"any_exact": 0.5}},
        ),
        Fixture(
            "st-vqa",
            "hub",
            [{"question": "What is written?", "answers": ["STOP"], "image": struct(n)} for n in range(2)],
            ["stop", "go on"],
            {"official": {"anls": 0.5}},
        ),
        Fixture(
            "llava-bench-wild",
            "hub",
            [
                {"question_id": n, "question": "Describe it.", "gpt_answer": "a cat on a mat", "caption": "a cat"}
                | {"category": "detail", "image": struct(n)}
                for n in range(2)
            ],
            ["a cat on a mat", "a cat on a mat"],
            {"official": {"rouge_l": 1.0}},
        ),
    ]
