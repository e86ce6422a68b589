"""Learning that can be seen: a small model from nothing, taught to reason (SFT), then to look (feedback).

Run: python examples/train_demo.py FOLDER [--seed 1] [--small]     (minutes a seed on two cores; extra `train`)
Measured by CURE's figures on held-out pictures.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import transformers
from train_world import base_rows, scenes, sft_rows, write_cure, write_model, write_rows

FIGURES = ("Rh", "Rcot", "Ro", "Cf", "Cb")
SIZES = {"base": 4_000, "sft": 1500, "feedback": 1500, "steps": 100, "held-out": 1000}
SMALL = {"base": 64, "sft": 32, "feedback": 16, "steps": 4, "held-out": 8}


def command(*arguments: object) -> float:
    """Run `snellen` in a process of its own; return its seconds."""
    started = time.monotonic()
    words = [sys.executable, "-c", "from snellen.cli.main import main; main()", *map(str, arguments)]
    environment = os.environ | {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words[3:])}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return time.monotonic() - started


def write_worlds(folder: Path, seed: int, sizes: dict[str, int]) -> None:
    """Paint all pictures and write all files; what is held out is painted apart."""
    draw = random.Random(f"{seed} rows")
    write_rows(folder / "base.jsonl", base_rows(scenes(sizes["base"], seed, "base", folder), draw))
    write_rows(folder / "sft.jsonl", sft_rows(scenes(sizes["sft"], seed, "sft", folder), draw))
    for name in ("feedback", "steps", "held-out"):
        (folder / name).mkdir(exist_ok=True)
        write_cure(folder / name, scenes(sizes[name], seed, name, folder / name), draw)


def drop_near(folder: Path) -> int:
    """Take held-out pictures out that look like one trained on; return how many. The same colours are drawn again."""
    from snellen.core.types import Image
    from snellen.train.near_pictures import near_pairs
    from snellen.train.overlap import picture_marks

    held = sorted((folder / "held-out" / "held-out").glob("*.png"))
    taught = [path for path in sorted(folder.rglob("*.png")) if path not in held]
    marks = [picture_marks((path.stem, Image(str(path))) for path in paths)[0] for paths in (taught, held)]
    near = {marks[1][place].name for _, place in near_pairs(*marks)}
    file = folder / "held-out" / "annotations.json"
    items = json.loads(file.read_text())
    file.write_text(json.dumps([item for item in items if Path(item["image"]["url"]).stem not in near]))
    return len(near)


def recipe(model: str, output: str, seed: int, data: list[str], training: dict[str, Any], **others: Any) -> str:
    """Return a recipe as TOML."""
    lines = [f'model = "hf/{model}"', f'output = "{output}"', f"seed = {seed}"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in others.items() if not isinstance(value, dict)]
    for path in data:
        steps = "false" if path.startswith("feedback") else "true"
        lines += ["[[data]]", f'path = "{path}"', f"steps = {steps}"]
    shared = {"weights": "full", "batch_size": 32, "log_steps": 10, "save_steps": 400}
    tables = {"training": {**shared, **training}, **others}
    for name, table in tables.items():
        if isinstance(table, dict):
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
            lines = [line.replace('{"batch_size": 128}', "{batch_size = 128}") for line in lines]
    return "\n".join(lines) + "\n"


def write_recipes(folder: Path, seed: int, small: bool) -> None:
    cut = {"steps": 4} if small else {}
    base = {"epochs": 3, "learning_rate": 1e-3, "warmup_steps": 50, "weight_decay": 0.01, **cut}
    sft = {"epochs": 5, "learning_rate": 5e-4, "warmup_steps": 30, "weight_decay": 0.01, **cut}
    dpo = {"trainer": "dpo", "epochs": 3, "learning_rate": 1e-4, **cut}
    sampling = {"samples": 6, "temperature": 1.0, "max_tokens": 32, "model_arguments": {"batch_size": 128}}
    against = {"against": ["held-out/task.toml"]}
    put = {
        "base": recipe("untaught", "base-trained", seed, ["base.jsonl"], base, **against, trl={"adam_beta2": 0.98}),
        "sft": recipe("base-trained/model", "sft-trained", seed, ["sft.jsonl"], sft, **against),
        "feedback": recipe(
            "sft-trained/model", "dpo-trained", seed, ["feedback/task.toml", "steps/task.toml"], dpo, **against,
            stage="feedback", feedback=sampling,
            trl={"beta": 0.1, "loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 1.0]},
        ),
    }  # fmt: skip
    for name, text in put.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")


def measure(folder: Path, name: str, model: str, *more: str) -> dict[str, Any]:
    """Measure a model on the held-out pictures with `snellen run`, and return CURE's figures."""
    out = folder / "measured" / name
    arguments = ["-o", out, "--model-arg", "batch_size=128", "--no-cache", "--quiet", *more]
    seconds = command("run", folder / "held-out" / "task.toml", "--model", f"hf/{folder / model}", *arguments)
    metrics = json.loads((out / "results.json").read_text())["tasks"]["shapes"]["metrics"]
    return {"seconds": seconds, **{figure: metrics[figure] for figure in FIGURES}}


def show(name: str, measured: dict[str, Any]) -> str:
    cells = []
    for figure in FIGURES:
        estimate = measured[figure]
        interval = "" if not estimate["ci95"] else " [{:.1f}, {:.1f}]".format(*(100 * end for end in estimate["ci95"]))
        cells.append("–" if estimate["value"] is None else f"{100 * estimate['value']:.1f}{interval}")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="a few steps, to see that everything works")
    given = parser.parse_args()
    folder = given.folder.resolve() / f"seed-{given.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    if not (folder / "feedback.toml").exists():  # the same command goes on where it was stopped
        write_worlds(folder, given.seed, SMALL if given.small else SIZES)
        transformers.utils.logging.disable_progress_bar()
        write_model(folder / "untaught", given.seed)
        print(f"{drop_near(folder)} held-out pictures look like one trained on and are left out")
        write_recipes(folder, given.seed, given.small)
    print(f"pictures painted: {time.monotonic() - started:.0f} s", flush=True)
    print(f"| seed {given.seed} | {' | '.join(FIGURES)} |", flush=True)
    table = {}
    for stage, model in (("base", "base-trained"), ("sft", "sft-trained"), ("feedback", "dpo-trained")):
        seconds = command("train", "run", folder / f"{stage}.toml")
        table[stage] = measure(folder, stage, f"{model}/model") | {"training_seconds": seconds}
        asked = table[stage]["seconds"]
        print(f"{show(stage, table[stage])} trained in {seconds:.0f} s, measured in {asked:.0f} s", flush=True)
    table["blind"] = measure(folder, "blind", "dpo-trained/model", "-p", "dataset.pictures=false")
    print(show("the last, blind", table["blind"]))
    table["whole"] = {"seconds": time.monotonic() - started}
    (folder / "figures.json").write_text(json.dumps(table, indent=1))
    print(f"{time.monotonic() - started:.0f} s in all")


if __name__ == "__main__":
    main()
