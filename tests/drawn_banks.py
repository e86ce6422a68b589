"""Drawn models and questions: a bank whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import snellen


def drawn_bank(models: int = 40, items: int = 300, seed: int = 1, stronger: float = 0.0) -> np.ndarray:
    """Return right and wrong answers of models that differ in ability and in taste; the first are the weakest."""
    draw = np.random.default_rng(seed)
    ability = np.c_[np.sort(draw.normal(0.3 + stronger, 1.0, models)), draw.normal(0.0, 1.0, (models, 2))]
    slopes = np.c_[draw.normal(0.9, 0.4, items), draw.normal(0.0, 0.5, (items, 2))]
    chance = 1.0 / (1.0 + np.exp(-(ability @ slopes.T + draw.normal(0.0, 1.5, items))))
    return (draw.random(chance.shape) < chance).astype(float)


def write_questions(path: Path, count: int, groups: int = 0) -> Path:
    """Write questions with four options as JSON lines; `groups` of equal size where given."""
    with path.open("w") as file:
        for number in range(count):
            row = {"id": f"q{number}", "question": f"Question {number}?", "answer": f"right {number}"}
            row |= {"options": [f"right {number}", f"left {number}", f"up {number}", f"down {number}"]}
            row |= {"tags": {"half": "first" if number < count // 2 else "second"}}
            file.write(json.dumps(row | ({"group": f"g{number % groups}"} if groups else {})) + "\n")
    return path


def write_replies(path: Path, right: np.ndarray) -> Path:
    """Write what a model replies to each question: the right option, or another."""
    with path.open("w") as file:
        for number, value in enumerate(right):
            text = f"right {number}" if value else f"left {number}"
            file.write(json.dumps({"id": f"q{number}", "prediction": text}) + "\n")
    return path


def make_runs(folder: Path, results: np.ndarray, names: str = "model") -> list[Path]:
    """Run every row of results as a model of its own on the same questions; return the run folders."""
    data = write_questions(folder / "task.jsonl", results.shape[1])
    folders = []
    for number, row in enumerate(results):
        replies = write_replies(folder / f"{names}-{number}.jsonl", row)
        place = folder / "runs" / f"{names}-{number}"
        snellen.run(str(data), f"replay/{replies}", output_dir=place, cache=False)
        folders.append(place)
    return folders
