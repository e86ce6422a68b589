"""A small CURE file of our own: two pictures, chains of two and three steps, boxes that reach over the edge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import PIL.Image

LETTERS = "abcdef"


def choice(right: int, stem: str, *, period: bool = True) -> dict[str, Any]:
    """Six candidates; as in the published file the wrong ones end in a full stop and the right one does not."""
    texts = [
        f"{stem} {letter}." if period and place != right else f"{stem} {letter}" for place, letter in enumerate(LETTERS)
    ]
    return {"candidate": texts, "gt": right}


def item(number: int, steps: int, right: int = 2, url: str = "") -> dict[str, Any]:
    chain = [
        {"question": f"What is seen at {number}.{step}?", **choice((right + step) % 6, f"thing {number}{step}")}
        for step in range(1, steps + 1)
    ]
    return {
        "image": {"url": url or f"https://example.org/VG_100K/{number}.png", "width": 100, "height": 80},
        "bboxes": [{"left": 60, "top": -1, "width": 41, "height": 40}, {"left": 0, "top": 0, "width": 1, "height": 1}],
        "clue": f"clue {number}",
        "inference": choice(right, f"story {number}"),
        "cot_inference": {"total_step": steps, "chain": chain},
    }


def write_cure(folder: Path, items: list[dict[str, Any]] | None = None, *, pictures: bool = True) -> Path:
    """Write the file as one JSON array although its name says JSONL, and the pictures below VG_100K."""
    found = items if items is not None else [item(0, 2), item(1, 3, right=5), item(2, 2, right=0)]
    (folder / "VG_100K").mkdir(parents=True, exist_ok=True)
    if pictures:
        for number in range(len(found)):
            PIL.Image.new("RGB", (100, 80), (number * 40, 90, 90)).save(folder / "VG_100K" / f"{number}.png")
    path = folder / "cure.jsonl"
    path.write_text(json.dumps(found, indent=1))
    return path
