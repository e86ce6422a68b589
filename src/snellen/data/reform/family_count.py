"""Counting questions to Items, and numbers to choices among near numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ...core.errors import DataError
from ...core.types import Sample
from .corpus import Corpus, Item, need
from .family_ground import read_instances
from .formulate import Recipe, choice
from .written_numbers import near_integers


def read_countqa(corpus: Corpus) -> Iterator[Item]:
    """CountQA: a list of Image_ID, Question, Answer (an integer) and Resolved_COCO_category."""
    for number, row in enumerate(corpus.rows("questions"), 1):
        where = f"{corpus.files['questions']} record {number}"
        answer = str(need(row, "Answer", where))
        if not answer.isdigit():
            raise DataError(f"{where}: answer {answer!r} is not a whole number")
        tags = {"category": row.get("Resolved_COCO_category")}
        yield Item(str(number), str(row["Image_ID"]), question=row["Question"].strip(), answer=answer, tags=tags)


def read_counts(corpus: Corpus) -> Iterator[Item]:
    """COCO instances: one question for each category of a picture."""
    for item in read_instances(corpus):
        counts = Counter(entry["category"] for entry in item.data["objects"])
        for category, number in sorted(counts.items()):
            question, tags = f"How many of this are in the picture: {category}?", {"category": category}
            name = f"{item.id}_{category}"
            yield Item(name, item.image, size=item.size, question=question, answer=str(number), tags=tags)


def choose_number(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Number to choice: near integers, the answer's rank among them uniform."""
    for item in items:
        wrong = near_integers(int(item.answer), recipe.wrong, recipe.rng(item.id, "distractors"))
        yield choice(item, corpus, recipe, wrong)


READERS = {"countqa": read_countqa, "instances": read_counts}
METHODS = {"numbers": choose_number}
