"""Folders as a training leaves them, without training: a record, metrics of every trainer, a sample, checkpoints."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any


def step_line(step: int, planned: int = 40, trainer: str = "sft") -> dict[str, Any]:
    """Return the line of one step, with the columns that the trainer writes."""
    line: dict[str, Any] = {"step": step, "loss": 4 * math.exp(-step / 12) + 0.1 + 0.05 * (step % 3), "grad_norm": 1.5}
    line |= {"learning_rate": 1e-4 * (1 + math.cos(math.pi * step / planned)) / 2, "num_tokens": 100.0 * step}
    if trainer == "dpo":
        line |= {"rewards/chosen": step / 50, "rewards/rejected": -step / 20, "rewards/accuracies": step / planned}
    elif trainer == "grpo":
        line |= {"reward": step / planned, "reward_std": 0.2}
    else:
        line |= {"mean_token_accuracy": 1 - math.exp(-step / 10)}
    return line | {"epoch": step / planned, "seconds": 0.8 * step}


def training_record(trainer: str = "sft", **changes: Any) -> dict[str, Any]:
    """Return what training.json holds of a training that is under way."""
    how = {"trainer": trainer, "weights": "lora", "epochs": 1.0, "steps": None, "batch_size": 8, "accumulate": 1}
    stage = "sft" if trainer == "sft" else "feedback"
    source = {
        "path": "/data/chains.jsonl",
        "weight": 1.0,
        "records": 320,
        "rows": 320,
        "rationales": 300,
        "sha256": "a",
    }
    data = {"sources": [source], "rows": 320, "rationales": 300, "pictures": 310, "missing": 0, "sha256": "b"}
    return {
        "recipe": {"model": "hf//weights/small-llava", "stage": stage, "seed": 3, "training": how, "data": []},
        "base": {"checkpoint": "small-llava", "dtype": "float32", "files": "3a964106e74449cc"},
        "data": data,
        "versions": {"torch": "2.13.0", "trl": "1.16.0"},
        "snellen": "0.2.0",
        "events": [],
        "finished": False,
        "final": {},
        "planned": 40,
        **changes,
    }


def make_training(folder: Path, steps: int = 25, trainer: str = "sft", **changes: Any) -> Path:
    """Write a training's folder with so many steps of forty; `changes` are fields of its record."""
    (folder / "checkpoints" / "checkpoint-20").mkdir(parents=True)
    (folder / "training.json").write_text(json.dumps(training_record(trainer, **changes)))
    lines = [json.dumps(step_line(step, trainer=trainer)) for step in range(1, steps + 1)]
    (folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (folder / "sample.txt").write_text("<s> <image>×16 what colour ? ⟦ there is a red truck . red </s> ⟧\n")
    return folder
