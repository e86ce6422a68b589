"""Object annotations (COCO instances, RefCOCO) to Items, and boxes and categories to choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...core.errors import DataError
from ...core.types import Sample
from .corpus import Corpus, Item
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
            raise DataError(
                f"{corpus.files['instances']} annotation {row['id']}: unknown category {row['category_id']}"
            )
        if not row.get("iscrowd"):
            objects.setdefault(row["image_id"], []).append(
                {"category": names[row["category_id"]], "box": tuple(row["bbox"])}
            )
    for row in corpus.rows("instances", "images"):
        found = objects.get(row["id"], [])
        if found:
            size = (row["width"], row["height"])
            yield Item(
                str(row["id"]),
                row["file_name"],
                size=size,
                data={"objects": found, "vocabulary": sorted(names.values())},
            )


class Companions:
    """Which categories are seen together: absent ones that often keep a present one company are the hard ones."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._together: dict[str, Counter[str]] = {}
        for item in items:
            present = _present(item)
            for name in present:
                self._together.setdefault(name, Counter()).update(present - {name})

    def absent(self, item: Item, count: int, recipe: Recipe) -> list[Distractor]:
        """Draw categories that are not in the picture, the most usual companions of what is there first."""
        present, company = _present(item), Counter[str]()
        for name in present:
            company.update(self._together.get(name, Counter()))
        generator = recipe.rng(item.id, "distractors")
        usual = [name for name, _ in company.most_common() if name not in present][: count * 3]
        other = [name for name in item.data["vocabulary"] if name not in present and name not in usual]
        ranked = generator.sample(usual, len(usual)) + generator.sample(other, len(other))
        return [
            Distractor(name, "absent companion" if name in usual else "absent", count=company[name])
            for name in ranked[:count]
        ]


def _present(item: Item) -> set[str]:
    return {entry["category"] for entry in item.data["objects"]}


def identify_class(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Which of these is in the picture? One present category against absent companions."""
    gathered = list(items)
    companions = Companions(gathered)
    for item in gathered:
        answer = recipe.rng(item.id, "answer").choice(sorted(_present(item)))
        wrong = require(companions.absent(item, recipe.options - 1, recipe), recipe.options - 1, f"record {item.id}")
        yield choice(_asked(item, "Which of these can be seen in the picture?", answer), corpus, recipe, wrong)


def identify_boxed(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """What is in the red box? Other categories of the same picture first, then absent companions."""
    gathered = list(items)
    companions = Companions(gathered)
    for item in gathered:
        large = [entry for entry in item.data["objects"] if _is_large(entry["box"], item.size)]
        if not large:
            continue
        target = recipe.rng(item.id, "answer").choice(large)
        inside = sorted(_present(item) - {target["category"]})
        kept = recipe.rng(item.id, "same picture").sample(inside, min(len(inside), recipe.options - 1))
        wrong = [Distractor(name, "in the picture, not in the box") for name in kept]
        wrong += companions.absent(item, recipe.options - 1 - len(wrong), recipe)
        require(wrong, recipe.options - 1, f"record {item.id}")
        asked = _asked(item, "What is the object in the red box?", target["category"])
        yield choice(msgspec.structs.replace(asked, boxes=(target["box"],)), corpus, recipe, wrong)


def find_missing(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Which of these is not in the picture? Present categories (boxed) are the wrong options, an absent companion is right."""
    gathered = list(items)
    companions = Companions(gathered)
    for item in gathered:
        boxes = {
            entry["category"]: entry["box"] for entry in item.data["objects"] if _is_large(entry["box"], item.size)
        }
        if len(boxes) < recipe.options - 1:
            continue
        shown = recipe.rng(item.id, "present").sample(sorted(boxes), min(MAX_BOXES, recipe.options - 1))
        absent = require(companions.absent(item, 1, recipe), 1, f"record {item.id}")[0]
        asked = _asked(item, "Which of these objects is missing from the picture?", absent.text)
        wrong = [Distractor(name, "present, in a box") for name in shown]
        yield choice(msgspec.structs.replace(asked, boxes=tuple(boxes[name] for name in shown)), corpus, recipe, wrong)


def read_refcoco(corpus: Corpus) -> Iterator[Item]:
    """RefCOCO: refs(unc).p (read as data, never run) and COCO instances; one Item a referred object of the split."""
    boxes = {row["id"]: row for row in corpus.rows("instances", "annotations")}
    sizes = {row["id"]: (row["width"], row["height"], row["file_name"]) for row in corpus.rows("instances", "images")}
    split = corpus.settings.get("split", "val")
    for row in corpus.rows("refs"):
        if row["split"] != split:
            continue
        if row["ann_id"] not in boxes:
            raise DataError(
                f"{corpus.files['refs']} ref {row['ref_id']}: no annotation {row['ann_id']} in {corpus.files['instances']}"
            )
        width, height, name = sizes[row["image_id"]]
        yield Item(
            id=str(row["ref_id"]),
            image=name,
            size=(width, height),
            boxes=(tuple(boxes[row["ann_id"]]["bbox"]),),
            group=str(row["image_id"]),
            data={"category": row["category_id"], "sentences": [sentence["sent"] for sentence in row["sentences"]]},
        )


def select_expression(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Which phrase means the boxed object? Phrases for others of its kind in the picture, then in it, then elsewhere."""
    gathered = list(items)
    by_image: dict[str, list[Item]] = {}
    by_category: dict[int, list[Item]] = {}
    for item in gathered:
        by_image.setdefault(str(item.group), []).append(item)
        by_category.setdefault(item.data["category"], []).append(item)
    for item in gathered:
        generator = recipe.rng(item.id, "distractors")
        same_image = by_image[str(item.group)]
        sources = (
            (
                "same kind, same picture",
                [other for other in same_image if other.data["category"] == item.data["category"]],
            ),
            ("same picture", same_image),
            ("same kind, another picture", by_category[item.data["category"]]),
            ("another picture", gathered[:200]),
        )
        wrong = _expressions(item, sources, recipe.options - 1, generator)
        require(wrong, recipe.options - 1, f"record {item.id}")
        asked = _asked(
            item, "Which phrase describes the object in the red box?", generator.choice(item.data["sentences"])
        )
        yield choice(msgspec.structs.replace(asked, boxes=item.boxes), corpus, recipe, wrong)


def _expressions(item: Item, sources: Iterable[tuple[str, list[Item]]], count: int, generator: Any) -> list[Distractor]:
    chosen: list[Distractor] = []
    for source, others in sources:
        texts = [text for other in others if other.id != item.id for text in other.data["sentences"]]
        fresh = first_unique(texts, [*item.data["sentences"], *(wrong.text for wrong in chosen)])
        picked = generator.sample(fresh, min(count - len(chosen), len(fresh)))
        chosen += [Distractor(text, source) for text in picked]
    return chosen


def _asked(item: Item, question: str, answer: str) -> Item:
    return Item(item.id, item.image, size=item.size, question=question, answer=answer, group=item.group)


def _is_large(box: tuple[float, ...], size: tuple[int, int] | None) -> bool:
    width, height = size or (1, 1)
    return box[2] * box[3] >= MIN_BOX_SHARE * width * height


READERS = {"instances": read_instances, "refcoco": read_refcoco}
METHODS = {"identify": identify_class, "boxed": identify_boxed, "missing": find_missing, "refer": select_expression}
