"""Sixty coarse annotations with pictures of our own: a coloured shape near an edge, and who put it there."""

from __future__ import annotations

import json
import random
from pathlib import Path

import PIL.Image
import PIL.ImageDraw

from snellen.core.ids import rng
from snellen.kits.curate.records import Draft, Source, shuffled
from snellen.kits.mock.drafter import POOLS

SIZE = (320, 240)
PLACES = {
    "left": (20, 90),
    "right": (240, 90),
    "top": (130, 15),
    "bottom": (130, 170),
    "middle": (130, 90),
    "corner": (10, 10),
}
BOX = (60, 55)


def write_sources(folder: Path, count: int = 60, *, sherlock: bool = False, seed: int = 1) -> Path:
    """Draw the pictures and write the annotation file; no two items are the same."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    rows, seen = [], set()
    draw = rng(seed, "sources")
    while len(rows) < count:
        colour, shape, place, person, verb = (draw.choice(pool) for pool in POOLS)
        if (colour, shape, place, person, verb) in seen:
            continue
        seen.add((colour, shape, place, person, verb))
        name = f"{len(rows):03d}.png"
        left, top = PLACES[place]
        picture(colour, shape, left, top, len(rows)).save(folder / "pictures" / name)
        clue, inference = f"a {colour} {shape} near the {place} side", f"a {person} {verb} here with the {shape}"
        rows.append(row(name, clue, inference, (left, top, *BOX), sherlock))
    path = folder / ("sherlock.json" if sherlock else "sources.jsonl")
    path.write_text(json.dumps(rows) if sherlock else "\n".join(map(json.dumps, rows)))
    return path


def row(name: str, clue: str, inference: str, box: tuple[int, int, int, int], sherlock: bool) -> dict[str, object]:
    if not sherlock:
        return {
            "id": name.removesuffix(".png"),
            "image": f"pictures/{name}",
            "box": list(box),
            "clue": clue,
            "inference": inference,
        }
    left, top, width, height = box
    image = {"url": f"http://example.org/pictures/{name}", "width": SIZE[0], "height": SIZE[1]}
    boxes = [{"left": left, "top": top, "width": width, "height": height}]
    return {
        "instance_id": name,
        "inputs": {"image": image, "bboxes": boxes, "clue": clue},
        "targets": {"inference": inference},
    }


def picture(colour: str, shape: str, left: int, top: int, number: int) -> PIL.Image.Image:
    page = PIL.Image.new(
        "RGB", SIZE, (236 - number % 20, 232 - number // 20, 223)
    )  # no two pictures have the same bytes
    pen = PIL.ImageDraw.Draw(page)
    area = (left + 8, top + 8, left + BOX[0] - 8, top + BOX[1] - 8)
    if shape in ("circle", "wheel", "lamp"):
        pen.ellipse(area, fill=colour, outline="black")
    elif shape in ("square", "kettle", "bottle"):
        pen.rectangle(area, fill=colour, outline="black")
    else:
        pen.polygon(
            [(area[0], area[3]), (area[2], area[3]), ((area[0] + area[2]) // 2, area[1])], fill=colour, outline="black"
        )
    return page


def text(draw: random.Random, person: str = "") -> str:
    words = [draw.choice(pool) for pool in POOLS]
    return f"a {words[0]} {words[1]} of the {person or words[3]} who {words[4]} at the {words[2]}"


def make_draft(number: int, *, artefact: bool = False) -> Draft:
    """A fair item: right and wrong candidates come from one pool. With the artefact only wrong ones end in a full stop."""
    draw = rng("gate-tests", number)
    person = draw.choice(POOLS[3])
    clue, inference = text(draw), text(draw, person)

    def wrong() -> list[str]:
        return [text(draw) + ("." if artefact else "") for _ in range(5)]

    steps = (
        shuffled("What is in the marked region?", clue, wrong(), number, 1),
        shuffled("Whose is it?", text(draw, person), wrong(), number, 2),
    )
    source = Source(f"{number:04d}", f"{number}.png", clue, inference, (0, 0, 10, 10), 20, 20, f"{number}.png")
    return Draft(source.id, source, steps, shuffled("What can be inferred?", inference, wrong(), number, 3))
