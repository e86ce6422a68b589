"""Object annotations (COCO instances, RefCOCO) to Items, and boxes and categories to choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

from ...core.errors import DataError
from ...core.types import Sample
from .corpus import Box, Corpus, Item
from .distractors import Distractor, first_unique, require
from .formulate import Recipe, choice

MIN_BOX_SHARE = 0.01
"""A box smaller than this share of the picture is not asked for."""
MAX_BOXES = 4


def read_instances(corpus: Corpus) -> Iterator[Item]:
    """COCO instances: each picture with its objects (category and box in pixels), crowds left out."""
    names = {row["id"]: row["name"] for row in corpus.rows("instances", "categories")}
    objects: dict[int, list[dict[str, Any]]] = {}
    for row in corpus.rows("instances", "annotations"):
        if row["category_id"] not in names:
            where = f"{corpus.files['instances']} annotation {row['id']}"
            raise DataError(f"{where}: unknown category {row['category_id']}")
        if not row.get("iscrowd"):
            entry = {"category": names[row["category_id"]], "box": tuple(row["bbox"])}
            objects.setdefault(row["image_id"], []).append(entry)
    vocabulary = sorted(names.values())
    for row in corpus.rows("instances", "images"):
        if row["id"] in objects:
            data = {"objects": objects[row["id"]], "vocabulary": vocabulary}
            yield Item(str(row["id"]), row["file_name"], size=(row["width"], row["height"]), data=data)


class Companions:
    """Which categories are seen together: absent ones that often keep a present one company are the hard ones."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._together: dict[str, Counter[str]] = {}
        for item in items:
            present = sorted(_present(item))  # a set's own order is another in every process, and ties follow it
            for name in present:
                self._together.setdefault(name, Counter()).update(other for other in present if other != name)

    def absent(self, item: Item, count: int, recipe: Recipe) -> list[Distractor]:
        """Draw categories that are not in the picture, the most usual companions of what is there first."""
        present, company = _present(item), Counter[str]()
        for name in sorted(present):
            company.update(self._together.get(name, Counter()))
        generator = recipe.rng(item.id, "distractors")
        usual = [name for name, _ in company.most_common() if name not in present][: count * 3]
        other = [name for name in item.data["vocabulary"] if name not in present and name not in usual]
        ranked = generator.sample(usual, len(usual)) + generator.sample(other, len(other))
        sources = {name: "absent companion" if name in usual else "absent" for name in ranked[:count]}
        return [Distractor(name, source, count=company[name]) for name, source in sources.items()]


def _present(item: Item) -> set[str]:
    return {entry["category"] for entry in item.data["objects"]}


def identify_class(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Which of these is in the picture? One present category against absent companions."""
    gathered = list(items)
    companions = Companions(gathered)
    for item in gathered:
        answer = recipe.rng(item.id, "answer").choice(sorted(_present(item)))
        asked = _asked(item, "Which of these can be seen in the picture?", answer)
        yield choice(asked, corpus, recipe, companions.absent(item, recipe.wrong, recipe), complete=True)


def identify_boxed(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """What is in the red box? Other categories of the same picture first, then absent companions."""
    gathered = list(items)
    companions = Companions(gathered)
    for item in gathered:
        large = _large_objects(item)
        if not large:
            continue
        target = recipe.rng(item.id, "answer").choice(large)
        inside = sorted(_present(item) - {target["category"]})
        kept = recipe.rng(item.id, "same picture").sample(inside, min(len(inside), recipe.wrong))
        wrong = [Distractor(name, "in the picture, not in the box") for name in kept]
        wrong += companions.absent(item, recipe.wrong - len(wrong), recipe)
        asked = _asked(item, "What is the object in the red box?", target["category"], (target["box"],))
        yield choice(asked, corpus, recipe, wrong, complete=True)


def find_missing(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Which of these is not in the picture? Present (boxed) ones are wrong options, an absent companion is right."""
    gathered = list(items)
    companions = Companions(gathered)
    for item in gathered:
        boxes = {entry["category"]: entry["box"] for entry in _large_objects(item)}
        if len(boxes) < recipe.wrong:
            continue
        shown = recipe.rng(item.id, "present").sample(sorted(boxes), min(MAX_BOXES, recipe.wrong))
        absent = require(companions.absent(item, 1, recipe), 1, f"record {item.id}")[0].text
        question, marked = "Which of these objects is missing from the picture?", tuple(boxes[name] for name in shown)
        wrong = [Distractor(name, "present, in a box") for name in shown]
        yield choice(_asked(item, question, absent, marked), corpus, recipe, wrong)


def read_refcoco(corpus: Corpus) -> Iterator[Item]:
    """RefCOCO: refs(unc).p (read as data, never run) and COCO instances; one Item a referred object of the split."""
    boxes = {row["id"]: row for row in corpus.rows("instances", "annotations")}
    sizes = {row["id"]: (row["width"], row["height"], row["file_name"]) for row in corpus.rows("instances", "images")}
    split = corpus.settings.get("split", "val")
    for row in corpus.rows("refs"):
        if row["split"] != split:
            continue
        if row["ann_id"] not in boxes:
            missing = f"no annotation {row['ann_id']} in {corpus.files['instances']}"
            raise DataError(f"{corpus.files['refs']} ref {row['ref_id']}: {missing}")
        width, height, name = sizes[row["image_id"]]
        box, group = tuple(boxes[row["ann_id"]]["bbox"]), str(row["image_id"])
        data = {"category": row["category_id"], "sentences": [sentence["sent"] for sentence in row["sentences"]]}
        yield Item(str(row["ref_id"]), name, size=(width, height), boxes=(box,), group=group, data=data)


def select_expression(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Which phrase means the boxed object? Against phrases for others of its kind there, then any, then elsewhere."""
    gathered = list(items)
    by_image: dict[str, list[Item]] = {}
    by_category: dict[int, list[Item]] = {}
    for item in gathered:
        by_image.setdefault(str(item.group), []).append(item)
        by_category.setdefault(item.data["category"], []).append(item)
    for item in gathered:
        generator, category = recipe.rng(item.id, "distractors"), item.data["category"]
        same_image = by_image[str(item.group)]
        sources = {
            "same kind, same picture": [other for other in same_image if other.data["category"] == category],
            "same picture": same_image,
            "same kind, another picture": by_category[category],
            "another picture": gathered[:200],
        }
        wrong = _expressions(item, sources, recipe.wrong, generator)
        answer = generator.choice(item.data["sentences"])
        asked = _asked(item, "Which phrase describes the object in the red box?", answer, item.boxes)
        yield choice(asked, corpus, recipe, wrong, complete=True)


def _expressions(item: Item, sources: Mapping[str, list[Item]], count: int, generator: Random) -> list[Distractor]:
    chosen: list[Distractor] = []
    for source, others in sources.items():
        texts = [text for other in others if other.id != item.id for text in other.data["sentences"]]
        fresh = first_unique(texts, [*item.data["sentences"], *(wrong.text for wrong in chosen)])
        picked = generator.sample(fresh, min(count - len(chosen), len(fresh)))
        chosen += [Distractor(text, source) for text in picked]
    return chosen


def _asked(item: Item, question: str, answer: str, boxes: tuple[Box, ...] = ()) -> Item:
    return Item(item.id, item.image, (), question, answer, size=item.size, boxes=boxes, group=item.group)


def _large_objects(item: Item) -> list[dict[str, Any]]:
    width, height = item.size or (1, 1)
    smallest = MIN_BOX_SHARE * width * height
    return [entry for entry in item.data["objects"] if entry["box"][2] * entry["box"][3] >= smallest]


READERS = {"instances": read_instances, "refcoco": read_refcoco}
METHODS = {"identify": identify_class, "boxed": identify_boxed, "missing": find_missing, "refer": select_expression}
