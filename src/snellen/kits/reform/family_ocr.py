"""Text in pictures (word images, text regions, questions about text) to Items with answer sets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...core.errors import DataError
from .corpus import Corpus, Item
from .formulate import open_ended
from .matlab import read_matrices

ASK_WORD = "What is written in the picture?"
ASK_BOX = "What is written in the red box?"
ILLEGIBLE = frozenset(("", "###", ".", "*"))
_QUOTED = re.compile(r"^(?P<image>[^,]+),\s*\"(?P<word>.*)\"\s*$")


def read_words(corpus: Corpus) -> Iterator[Item]:
    """One word image a line: `name, "word"` (ICDAR 2015) or `name word` (CUTE80, WordArt)."""
    for number, line in corpus.lines("labels"):
        quoted = _QUOTED.match(line)
        name, _, word = line.strip().partition("\t" if "\t" in line else " ")
        if quoted:
            name, word = quoted["image"], quoted["word"].replace('\\"', '"')
        if not word.strip():
            raise DataError(f"{corpus.files['labels']} line {number} has no word: expected `image word`")
        yield _word(str(number), name.strip(), word.strip())


def read_iiit5k(corpus: Corpus) -> Iterator[Item]:
    """IIIT5K: testdata.mat, a struct array of ImgName and GroundTruth."""
    for number, row in enumerate(read_matrices(corpus.path("labels"))["testdata"], 1):
        yield _word(str(number), _text(row["ImgName"]), _text(row["GroundTruth"]))


def _text(value: Any) -> str:
    return str(value[0]) if isinstance(value, list) else str(value)


def read_quads(corpus: Corpus) -> Iterator[Item]:
    """ICDAR 2015 localisation: gt_IMAGE.txt files of `x1,y1,…,x4,y4,text`; illegible regions are left out."""
    for path in corpus.glob("regions"):
        image = path.stem.removeprefix("gt_")
        for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
            parts = line.split(",", 8)
            if len(parts) != 9:
                raise DataError(f"{path.name} line {number}: expected eight coordinates and a text")
            text = parts[8].strip()
            if text in ILLEGIBLE:
                continue
            xs, ys = [float(value) for value in parts[0:8:2]], [float(value) for value in parts[1:8:2]]
            box = (min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))
            yield Item(f"{image}_{number}", image, question=ASK_BOX, answer=text, boxes=(box,))


def read_regions(corpus: Corpus) -> Iterator[Item]:
    """COCO-Text and TextOCR: `imgs` and `anns` keyed by id; legible machine-readable regions of the split."""
    tables = dict(corpus.members("annotations"))
    split, crop = corpus.settings.get("split", "val"), bool(corpus.settings.get("crop"))
    for number, row in tables["anns"].items():
        image = tables["imgs"].get(str(row["image_id"]))
        if image is None:
            raise DataError(f"{corpus.files['annotations']} annotation {number}: no picture {row['image_id']}")
        text = str(row.get("utf8_string") or "").strip()
        if image.get("set", split) != split or text in ILLEGIBLE or row.get("legibility", "legible") != "legible":
            continue
        question, boxes, size = ASK_WORD if crop else ASK_BOX, (tuple(row["bbox"]),), (image["width"], image["height"])
        yield Item(str(number), str(image["file_name"]), (), question, text, boxes=boxes, size=size, crop=crop)


def read_textvqa(corpus: Corpus) -> Iterator[Item]:
    """TextVQA: ten answers a question, all accepted."""
    for row in corpus.rows("annotations", "data"):
        yield _question(row["question_id"], row["image_id"], row["question"], row["answers"])


def read_docvqa(corpus: Corpus) -> Iterator[Item]:
    """DocVQA: a page image and one or more accepted answers."""
    for row in corpus.rows("annotations", "data"):
        yield _question(row["questionId"], row["image"], row["question"], row["answers"])


def read_ocrvqa(corpus: Corpus) -> Iterator[Item]:
    """OCR-VQA: books keyed by id with lists of questions and answers; split 3 is the test set."""
    split = int(corpus.settings.get("split", 3))
    for number, book in corpus.members("annotations"):
        if book["split"] != split:
            continue
        for place, (question, answer) in enumerate(zip(book["questions"], book["answers"], strict=True)):
            yield _question(f"{number}_{place}", number, question, [answer])


def _question(number: Any, image: Any, question: str, answers: list[str]) -> Item:
    texts = tuple(str(answer).strip() for answer in answers if str(answer).strip())  # soft accuracy counts annotators
    if not texts:
        raise DataError(f"question {number} has no answer")
    return Item(str(number), str(image), question=question, answer=texts[0], accepted=texts)


def _word(number: str, image: str, word: str) -> Item:
    return Item(number, image, question=ASK_WORD, answer=word)


READERS = {
    "words": read_words, "iiit5k": read_iiit5k, "quads": read_quads, "regions": read_regions,
    "textvqa": read_textvqa, "docvqa": read_docvqa, "ocrvqa": read_ocrvqa,
}  # fmt: skip
METHODS = {"open": open_ended}
