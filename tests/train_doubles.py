"""What tests of training share: rows about coloured pictures, a recipe on a tiny checkpoint, the losses it wrote."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import PIL.Image

from snellen.core.types import Prediction, Request
from snellen.kits.train.recipe import DataSource, Recipe, Training

COLOURS = ("red", "blue", "green", "orange", "teal", "black", "white", "yellow")


def write_rows(folder: Path, count: int = 16) -> Path:
    """Write pictures of one colour and rows that reason about them."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(count):
        colour = COLOURS[number % len(COLOURS)]
        PIL.Image.new("RGB", (32, 32), colour).save(folder / f"{number}.png")
        turns = [
            {"role": "user", "content": "<image>what colour is the truck?"},
            {"role": "assistant", "content": f"there is an image of {colour}. the answer is {colour}."},
        ]
        rows.append({"images": [f"{number}.png"], "messages": turns})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "rows.jsonl"


def small_recipe(model: Path, data: Path, output: Path, **changes: Any) -> Recipe:
    """Return a recipe of a few steps; `changes` are fields of its training."""
    given = {"steps": 6, "batch_size": 4, "learning_rate": 1e-3, "save_steps": 2, **changes}
    return Recipe(model=f"hf/{model}", data=(DataSource(str(data)),), output=str(output), training=Training(**given))


def losses_of(output: Path) -> dict[int, float]:
    """Return the loss of every step as it was written."""
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return {int(line["step"]): float(line["loss"]) for line in lines if "loss" in line}


def assert_same_losses(found: dict[int, float], wanted: dict[int, float]) -> None:
    """Every step was trained once, with the same loss to 1e-6."""
    assert sorted(found) == sorted(wanted)
    assert all(math.isclose(found[step], wanted[step], rel_tol=0, abs_tol=1e-6) for step in wanted), (found, wanted)


def write_chains(folder: Path, count: int = 6) -> Path:
    """Write annotated chains whose right candidates are those without a full stop, as `sampled_rationale` knows."""
    from cure_fixtures import item, write_cure

    return write_cure(folder, [item(number, 2, right=number % 6) for number in range(count)])


async def sampled_rationale(request: Request) -> Prediction:
    """Reply as a model that is sampled: the first time right and grounded, then worse each time; steps always right."""
    right = next(text for text in request.shown if not text.endswith("."))
    wrong = next(text for text in request.shown if text.endswith("."))
    number, _, part = request.key.sample.partition(".")
    if part != "h":
        return Prediction(request.key, text=f"Answer: {mark_of(request, right)}. {right}")
    place = "abcdef".index(right[-1])
    facts = [f"thing {int(number)}{step} {'abcdef'[(place + step) % 6]}" for step in (1, 2)]
    answer = right if request.key.repeat < 2 else wrong
    seen = facts[: 2 - request.key.repeat % 3]
    lines = [f"What is seen there? It is {fact}" for fact in seen] or ["Nothing much is there", "I only guess it"]
    return Prediction(request.key, text="\n".join([*lines, f"Answer: {mark_of(request, answer)}. {answer}"]))


def mark_of(request: Request, text: str) -> str:
    return request.marks[request.shown.index(text)]
