"""A made-up annotation file of CURE's shape and size: 1,622 items, 4,726 steps, and its artefact of full stops.

The published annotations are not ours to copy. Counts and proportions follow them (chain lengths, the places of the right
answers, who ends in a full stop, how often the right inference is the shortest); every word is our own.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

CHAINS = {2: 271, 3: 1220, 4: 131}
"""Steps of a chain -> items that have so many."""
ITEMS, STEPS = 1622, 4726
RIGHT_WEIGHTS = (236, 236, 276, 268, 292, 314)
"""How often each place holds the right inference."""
BOXES = {1: 1419, 2: 147, 3: 47, 6: 9}

WHO = (
    "The baker",
    "A gardener",
    "The twin sisters",
    "Their neighbour",
    "An old sailor",
    "The referee",
    "A clerk",
    "The crew",
)
DOES = ("is waiting for", "has just repaired", "wants to sell", "is about to paint", "lost", "will hide", "keeps")
WHAT = (
    "the kettle",
    "a bicycle",
    "two umbrellas",
    "the harvest",
    "a wooden boat",
    "the parcel",
    "some lanterns",
    "a kite",
)
MORE = (
    "before the market opens",
    "because of the storm",
    "for the parade at noon",
    "in the cellar",
    "near the old bridge",
)
SHORT = (
    "wet",
    "blue",
    "in a basket",
    "on the roof",
    "made of tin",
    "half full",
    "behind the door",
    "very old",
    "being washed",
)
ASK = ("What is the state of {}?", "Where is {}?", "What could be done with {}?", "Which word describes {}?")


def write_standin(path: Path, seed: int = 7) -> Path:
    """Write the file as one JSON array although its name says JSONL, as the published one is."""
    path.write_text(json.dumps(make_items(seed), indent=4), encoding="utf-8")
    return path


def make_items(seed: int = 7) -> list[dict[str, Any]]:
    """Return the items; the same for the same seed."""
    draw = random.Random(seed)
    lengths = [steps for steps, count in CHAINS.items() for _ in range(count)]
    boxes = [count for count, items in BOXES.items() for _ in range(items)]
    draw.shuffle(lengths)
    draw.shuffle(boxes)
    return [_item(draw, number, steps, boxes[number]) for number, steps in enumerate(lengths)]


def _item(draw: random.Random, number: int, steps: int, boxes: int) -> dict[str, Any]:
    width, height = draw.choice([(500, 375), (1920, 1080), (640, 480)])
    thing = draw.choice(WHAT)
    return {
        "image": {"url": f"https://example.org/VG_100K/{number}.jpg", "width": width, "height": height},
        "bboxes": [_box(draw, width, height) for _ in range(boxes)],
        "clue": f"{thing} {draw.choice(MORE)}",
        "inference": _inference(draw),
        "cot_inference": {"total_step": steps, "chain": [_step(draw, thing) for _ in range(steps)]},
    }


def _box(draw: random.Random, width: int, height: int) -> dict[str, int]:
    left, top = draw.randrange(width // 2), draw.randrange(height // 2)
    return {"left": left, "top": top, "width": draw.randint(1, width // 2), "height": draw.randint(1, height // 2)}


def _inference(draw: random.Random) -> dict[str, Any]:
    """Six stories; in two thirds of the items only the wrong ones end in a full stop, and the right one is often short."""
    stories = [f"{who} {draw.choice(DOES)} {draw.choice(WHAT)}" for who in draw.sample(WHO, 6)]  # six different ones
    right, wrong = stories[0], [f"{story} {draw.choice(MORE)}" for story in stories[1:]]
    if draw.random() > 0.5:
        right += f" {draw.choice(MORE)}"
    wrong_stop, right_stop = draw.choices([(True, False), (True, True), (False, False)], (0.65, 0.33, 0.02))[0]
    place = draw.choices(range(6), RIGHT_WEIGHTS)[0]
    texts = [text + "." * wrong_stop for text in wrong]
    texts.insert(place, right + "." * right_stop)
    return {"candidate": texts, "gt": place}


def _step(draw: random.Random, thing: str) -> dict[str, Any]:
    """Six short answers; in one step of six only the right one ends in a full stop, elsewhere all do."""
    texts = [text.capitalize() for text in draw.sample(SHORT, 6)]
    place, everyone = draw.randrange(6), draw.random() > 0.16
    stops = [text + "." * (everyone or index == place) for index, text in enumerate(texts)]
    return {"question": draw.choice(ASK).format(thing), "candidate": stops, "gt": place}
