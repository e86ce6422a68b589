"""Spatial annotations (CLEVR programs, VSR statements, Matterport house files) to Items, and relations to choices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...core.errors import DataError
from ...core.types import Sample
from ...data.answer_kinds import word_lists
from .corpus import Corpus, Item, Tags
from .distractors import Distractor
from .family_count import near_integers
from .formulate import Recipe, choice, fixed, native

VALUES = {
    "query_color": ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow"),
    "query_shape": ("cube", "sphere", "cylinder"),
    "query_size": ("large", "small"),
    "query_material": ("rubber", "metal"),
}
OPPOSITES = {
    "left of": "right of", "at the left side of": "at the right side of", "in front of": "behind", "above": "below",
    "over": "under", "on top of": "beneath", "inside": "outside", "in": "outside", "facing": "facing away from",
    "touching": "far away from", "close to": "far away from", "near": "far away from", "next to": "far away from",
    "toward": "away from", "parallel to": "perpendicular to",
}  # fmt: skip
OPPOSITES |= {value: key for key, value in OPPOSITES.items() if value not in OPPOSITES}
WHICH_STATEMENT = "Which statement about the picture is true?"
SIDES = ("to the left of", "to the right of", "in front of", "behind")


def read_clevr(corpus: Corpus) -> Iterator[Item]:
    """CLEVR: questions whose program walks along a spatial relation (`relate`)."""
    for row in corpus.rows("questions", "questions"):
        steps = [step.get("function", step.get("type", "")) for step in row["program"]]
        if "relate" not in steps:
            continue
        name, image, kind = str(row["question_index"]), row["image_filename"], steps[-1]
        tags = Tags(question_type=kind)
        yield Item(name, image, (), row["question"], str(row["answer"]), kinds=(kind,), tags=tags)


def choose_value(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """CLEVR answers have closed vocabularies: the attribute's values (drawn from when many), yes/no, near numbers."""
    for item in items:
        if item.answer in ("yes", "no"):
            yield fixed(item, corpus, recipe, ("yes", "no"))
        else:
            yield choice(item, corpus, recipe, _other_values(item, recipe))


def _other_values(item: Item, recipe: Recipe) -> list[Distractor]:
    kind, generator, count = item.kinds[0], recipe.rng(item.id, "distractors"), recipe.wrong
    if item.answer.isdigit():
        return near_integers(int(item.answer), count, generator)
    if kind not in VALUES:
        raise DataError(f"record {item.id}: answer {item.answer!r} of {kind!r} has no known set of values")
    others = [value for value in VALUES[kind] if value != item.answer]
    return [Distractor(text, f"values of {kind}") for text in generator.sample(others, min(len(others), count))]


def read_vsr(corpus: Corpus) -> Iterator[Item]:
    """VSR: JSON Lines with image, caption, label and relation.

    Only true captions whose relation has an opposite are used: that a caption is false does not make its opposite true.
    """
    for number, row in enumerate(corpus.rows("statements"), 1):
        relation, caption = row["relation"], row["caption"].strip().rstrip(".")
        if not int(row["label"]) or relation not in OPPOSITES:
            continue
        changed = re.sub(rf"\b{re.escape(relation)}\b", OPPOSITES[relation], caption, count=1)
        if changed == caption:
            continue
        name, tags = f"{row['image'].rsplit('.', 1)[0]}_{number}", Tags(relation=relation)
        yield Item(name, row["image"], (), WHICH_STATEMENT, caption, data={"wrong": changed}, tags=tags)


def choose_statement(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """The true statement against the one with the opposite relation."""
    for item in items:
        yield choice(item, corpus, recipe, [Distractor(item.data["wrong"], "opposite relation")])


def read_houses(corpus: Corpus) -> Iterator[Item]:
    """Matterport3D .house files: pairs of objects in one camera's view, and which side each lies on as it sees them.

    Only what the file says is used (camera matrices, object centres, regions); a wall between is not known.
    """
    for path in corpus.glob("houses"):
        house = _parse_house(path)
        for view in house["images"]:
            yield from _view_items(path.stem, view, _visible(house, view))


def _view_items(house: str, view: dict[str, Any], seen: list[dict[str, Any]]) -> Iterator[Item]:
    for place, (left, right) in enumerate(pairwise(seen)):
        relation = _relation(left, right)
        if relation:
            question = f"Seen from the camera, where would you look for the {left['name']}?"
            wordings = (question, f"From the viewer's place, where would you find the {left['name']}?")
            tags = {"relation": relation, "depth_m": round(left["at"][2], 2)}
            name, image = f"{house}_{view['name']}_{place}", f"{house}/{view['name']}"
            answer, data = f"{relation} the {right['name']}", {"relation": relation, "beside": right["name"]}
            yield Item(name, image, question=question, wordings=wordings, answer=answer, tags=tags, data=data)


def _parse_house(path: Path) -> dict[str, list[Any]]:
    """Read the ASCII records that matter: C categories, P panoramas, I images, O objects."""
    found: dict[str, list[Any]] = {name: [] for name, _ in RECORDS.values()}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        parts = line.split()
        if not parts or parts[0] not in RECORDS:
            continue
        name, parse = RECORDS[parts[0]]
        try:
            found[name].append(parse(parts))
        except (IndexError, ValueError):
            raise DataError(f"{path.name} line {number} is not a complete {parts[0]} record") from None
    return found


def _parse_category(parts: list[str]) -> str:
    return parts[3].replace("#", " ")


def _parse_panorama(parts: list[str]) -> dict[str, Any]:
    return {"name": parts[1], "region": int(parts[3])}


def _parse_object(parts: list[str]) -> dict[str, Any]:
    centre = [float(parts[4]), float(parts[5]), float(parts[6])]
    return {"region": int(parts[2]), "category": int(parts[3]), "centre": centre}


def _parse_view(parts: list[str]) -> dict[str, Any]:
    """Read an I record: panorama, file name, extrinsic and intrinsic matrix, size in pixels."""
    numbers = [float(value) for value in parts[6:38]]
    camera = {"world": numbers[:16], "lens": numbers[16:25], "size": (numbers[25], numbers[26])}
    return {"panorama": int(parts[2]), "name": f"{parts[3]}_i{parts[4]}_{parts[5]}.jpg", **camera}


RECORDS: dict[str, tuple[str, Callable[[list[str]], Any]]] = {
    "C": ("categories", _parse_category),
    "P": ("panoramas", _parse_panorama),
    "I": ("images", _parse_view),
    "O": ("objects", _parse_object),
}


def _visible(house: dict[str, list[Any]], view: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of the view's region whose centre falls into the picture, left to right.

    Of a name that two of them have, neither: a question for it would have two answers.
    """
    region = house["panoramas"][view["panorama"]]["region"]
    seen: dict[str, list[dict[str, Any]]] = {}
    for thing in house["objects"]:
        if thing["region"] != region or not 0 <= thing["category"] < len(house["categories"]):
            continue
        at = _to_camera(thing["centre"], view["world"])
        name = house["categories"][thing["category"]]
        if name not in word_lists()["no_things"]["words"] and _in_frame(at, view):
            seen.setdefault(name, []).append({"name": name, "at": at})
    single = [things[0] for things in seen.values() if len(things) == 1]
    return sorted(single, key=lambda thing: float(thing["at"][0] / thing["at"][2]))


def _to_camera(point: list[float], matrix: list[float]) -> tuple[float, float, float]:
    """World to camera: the file's extrinsics map to x right, y up, z backwards; we count depth forwards."""
    x, y, z = (sum(matrix[4 * row + k] * point[k] for k in range(3)) + matrix[4 * row + 3] for row in range(3))
    return x, y, -z


def _in_frame(at: tuple[float, float, float], view: dict[str, Any]) -> bool:
    if at[2] <= 0.2:
        return False
    lens, (width, height) = view["lens"], view["size"]
    u, v = lens[0] * at[0] / at[2] + lens[2], lens[4] * -at[1] / at[2] + lens[5]
    return bool(0 <= u < width and 0 <= v < height)


def _relation(left: dict[str, Any], right: dict[str, Any]) -> str | None:
    """Return the relation when one axis clearly rules, else None."""
    dx, dz = left["at"][0] - right["at"][0], left["at"][2] - right["at"][2]
    if abs(dx) > 2 * abs(dz) and abs(dx) > 0.3:
        return SIDES[0] if dx < 0 else SIDES[1]
    if abs(dz) > 2 * abs(dx) and abs(dz) > 0.3:
        return SIDES[2] if dz < 0 else SIDES[3]
    return None


def choose_side(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """The relation against the other three."""
    for item in items:
        sides = [side for side in SIDES if side != item.data["relation"]]
        others = [Distractor(f"{side} the {item.data['beside']}", "other relation") for side in sides]
        yield choice(item, corpus, recipe, others[: recipe.wrong], complete=True)


READERS = {"clevr": read_clevr, "vsr": read_vsr, "houses": read_houses}
METHODS = {"values": choose_value, "statement": choose_statement, "side": choose_side, "native": native}
