"""Learning that can be seen: a small model from nothing, taught to reason (SFT), then to look (feedback).

Run: python examples/train_demo.py FOLDER [--seeds 1 2 3] [--small]     (minutes on two cores; extra `train`)
Measured by CURE's figures on held-out pictures. Seeds run side by side, each on one core; the same command goes on
where it was stopped. Exits 1 where a stage gained nothing beyond its interval, or a model without eyes is above chance.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import transformers
from train_world import base_rows, scenes, sft_rows, write_cure, write_model, write_rows

STAGES = {"base": "base-trained", "sft": "sft-trained", "feedback": "dpo-trained"}
FIGURES = ("Rh", "Rcot", "Ro", "Cf", "Cb")
SIZES = {"base": 5_400, "sft": 1500, "feedback": 1500, "steps": 100, "held-out": 800}
CHANCE = {"Rh": 1 / 6, "Rcot": 1 / 216}
"""Six options a question, three steps a chain."""
LEAST_LIKELY = 0.001
"""Of so many hits by luck: two figures of three seeds are looked at, none of which should fail by chance."""
SMALL = {"base": 64, "sft": 32, "feedback": 16, "steps": 4, "held-out": 8}


def command(*arguments: object) -> float:
    """Run `snellen` in a process of its own; return its seconds."""
    started = time.monotonic()
    words = [sys.executable, "-c", "from snellen.cli.main import main; main()", *map(str, arguments)]
    # One thread: so small a model gains nothing from a second, and the other core has another seed to train.
    environment = os.environ | {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
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
    from snellen.kits.train.overlap import near_pairs, picture_marks

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
    shared = {"weights": "full", "batch_size": 32, "log_steps": 10, "save_steps": 1000}
    tables = {"training": {**shared, **training}, **others}
    for name, table in tables.items():
        if isinstance(table, dict):
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
            lines = [line.replace('{"batch_size": 128}', "{batch_size = 128}") for line in lines]
    return "\n".join(lines) + "\n"


def write_recipes(folder: Path, seed: int, small: bool) -> None:
    cut = {"steps": 4, "log_steps": 1} if small else {}
    base = {"epochs": 1, "learning_rate": 1e-3, "warmup_steps": 50, "weight_decay": 0.01, **cut}
    sft = {"epochs": 3, "learning_rate": 5e-4, "warmup_steps": 30, "weight_decay": 0.01, **cut}
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
    """Measure a model on the held-out pictures with `snellen run`; return CURE's figures, what is not read wrong."""
    out = folder / "measured" / name
    arguments = ["-o", out, "--model-arg", "batch_size=128", "--no-cache", "--quiet", *more]
    seconds = command("run", folder / "held-out" / "task.toml", "--model", f"hf/{folder / model}", *arguments)
    metrics = json.loads((out / "results.json").read_text())["tasks"]["shapes"]["metrics"]
    return {"seconds": seconds, **{figure: metrics[f"{figure}_strict"] for figure in FIGURES}}


def show(name: str, measured: dict[str, Any]) -> str:
    cells = []
    for figure in FIGURES:
        estimate = measured[figure]
        interval = "" if not estimate["ci95"] else " [{:.1f}, {:.1f}]".format(*(100 * end for end in estimate["ci95"]))
        cells.append("–" if estimate["value"] is None else f"{100 * estimate['value']:.1f}{interval}")
    return f"| {name} | {' | '.join(cells)} |"


def swap_pictures(folder: Path) -> Path:
    """Write the held-out questions, each with the picture of the one before: who looks at it can only guess."""
    items = json.loads((folder / "annotations.json").read_text())
    images = [item["image"] for item in items]
    for item, image in zip(items, [images[-1], *images], strict=False):
        item["image"] = image
    (folder / "swapped.json").write_text(json.dumps(items))
    return folder / "swapped.json"


def losses(folder: Path) -> list[tuple[int, float]]:
    """Return the loss by step, as the training wrote it down."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [(line["step"], round(line["loss"], 4)) for line in lines if "loss" in line]


def luck(hits: int, count: int, chance: float) -> float:
    """Return how likely so many hits or more are for one who guesses."""
    return sum(math.comb(count, n) * chance**n * (1 - chance) ** (count - n) for n in range(hits, count + 1))


def above_chance(blind: dict[str, Any]) -> list[str]:
    """Return which figures of a model that does not see its picture are better than guessing."""
    found = []
    for figure, chance in CHANCE.items():
        value, count = blind[figure]["value"], blind[figure]["n"]
        if value is not None and luck(round(value * count), count, chance) < LEAST_LIKELY:
            found.append(
                f"without its picture, {figure} is {100 * value:.1f}, above {100 * chance:.1f}: the data leaks"
            )
    return found


def paired_gains(folder: Path) -> list[dict[str, Any]]:
    """Return what each stage gained, picture by picture, with intervals."""
    from snellen.kits.train.before_after import find_gains

    names, runs = list(STAGES), folder / "measured"
    return [
        {"from": before, "to": after, "figure": gain.figure, "gain": gain.difference, "ci95": gain.ci95}
        for before, after in pairwise(names)
        for gain in find_gains(runs / before, runs / after)
        if gain.figure in ("Ro", "Cf")
    ]


def no_gain(gains: list[dict[str, Any]]) -> list[str]:
    """Return which gains are none, or might be none."""
    weak = [one for one in gains if one["ci95"] is None or one["ci95"][0] <= 0]
    return [f"{one['figure']} from {one['from']} to {one['to']}: no gain beyond its interval" for one in weak]


def show_gain(gain: dict[str, Any]) -> str:
    interval = "no interval" if gain["ci95"] is None else "[{:+.1f}, {:+.1f}]".format(*(100 * e for e in gain["ci95"]))
    value = "–" if gain["gain"] is None else f"{100 * gain['gain']:+.1f}"
    return f"{gain['from']} to {gain['to']}: {gain['figure']} {value} {interval}"


def prepare(folder: Path, seed: int, small: bool) -> None:
    """Paint, draw the first weights and write the recipes, once."""
    if (folder / "feedback.toml").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_worlds(folder, seed, SMALL if small else SIZES)
    transformers.utils.logging.disable_progress_bar()
    write_model(folder / "untaught", seed)
    print(f"{drop_near(folder)} held-out pictures look like one trained on and are left out")
    write_recipes(folder, seed, small)


def demonstrate(folder: Path, seed: int, small: bool) -> list[str]:
    """Train and measure all stages of one seed; return what it failed to show."""
    started = time.monotonic()
    prepare(folder, seed, small)
    print(f"pictures painted: {time.monotonic() - started:.0f} s", flush=True)
    print(f"| seed {seed} | {' | '.join(FIGURES)} |", flush=True)
    table: dict[str, Any] = {}
    for stage, place in STAGES.items():
        seconds = command("train", "run", folder / f"{stage}.toml")
        curve = losses(folder / place)
        table[stage] = measure(folder, stage, f"{place}/model") | {"training_seconds": seconds, "losses": curve}
        asked = table[stage]["seconds"]
        print(f"{show(stage, table[stage])} trained in {seconds:.0f} s, measured in {asked:.0f} s", flush=True)
    last, swapped = f"{STAGES['feedback']}/model", swap_pictures(folder / "held-out")
    table["blind"] = measure(folder, "blind", last, "-p", "dataset.pictures=false")
    table["swapped"] = measure(folder, "swapped", last, "-p", f"dataset.path={swapped}")
    table["gains"] = paired_gains(folder)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    table["whole"] = {"seconds": time.monotonic() - started, "cpu_seconds": used.ru_utime + used.ru_stime}
    (folder / "figures.json").write_text(json.dumps(table, indent=1))
    blind = [show("the last, blind", table["blind"]), show("the last, another's picture", table["swapped"])]
    print(*blind, *map(show_gain, table["gains"]), sep="\n")
    print("{seconds:.0f} s in all, {cpu_seconds:.0f} s of CPU time".format(**table["whole"]))
    return [] if small else no_gain(table["gains"]) + above_chance(table["blind"]) + above_chance(table["swapped"])


def side_by_side(given: argparse.Namespace) -> list[str]:
    """Run each seed in a process of its own, all at the same time; return those that failed."""
    started = time.monotonic()
    words = [sys.executable, __file__, str(given.folder), *(["--small"] if given.small else [])]
    running = {seed: subprocess.Popen([*words, "--seeds", str(seed)]) for seed in given.seeds}
    failed = [f"seed {seed} failed" for seed, process in running.items() if process.wait()]
    print(f"{len(running)} seeds: {time.monotonic() - started:.0f} s in all")
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--small", action="store_true", help="a few steps, to see that everything works")
    given = parser.parse_args()
    if len(given.seeds) > 1:
        faults = side_by_side(given)
    else:
        (seed,) = given.seeds
        faults = demonstrate(given.folder.resolve() / f"seed-{seed}", seed, given.small)
    raise SystemExit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
