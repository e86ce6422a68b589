"""Small checkpoints that were trained on a test for 0, 1, 3 and 10 epochs: how many `snellen contaminated` finds.

Run: python benchmarks/contamination.py FOLDER [--seeds 20] [--first 0]   (`make contamination`; extra `train`)
A test is 200 questions whose answers are drawn by chance, so that nobody can know them. A base is taught the form on
other questions; then the training kit teaches it the test itself, for so many epochs. Every checkpoint is asked its own
test, and ten tests that it has never seen: those are the clean ones. The same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1"}
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import PIL.Image
from train_world import MARKS, NAMES, SPECIAL, TEAMS, row, write_model, write_rows

EPOCHS = (0, 1, 3, 10)
QUESTIONS, UNSEEN = 200, 10
LEAST_FOUND, MOST_FALSE = 0.9, 0.05
THINGS = [*NAMES, *TEAMS, "paris", "rome", "london", "berlin", "madrid", "vienna", "oak", "elm", "fir", "ash"]
VARIANTS = ("base", "order=1", "order=2", "order=3")
TASK = """
name = "drawn"
form = "choice"
[dataset]
loader = "table"
path = "{path}"
[prompt]
template = "{{question}} {{options}}"
option_format = "{{mark}} {{text}}"
option_separator = " "
"""


def questions(draw: random.Random, first: int, count: int, picture: str) -> list[dict[str, Any]]:
    """Return questions about things nobody has heard of; the answer is one of four, by chance."""
    rows = []
    for number in range(first, first + count):
        options = draw.sample(THINGS, 4)
        one = {"id": f"k{number}", "question": f"what goes with k{number} ?", "image": picture, "options": options}
        rows.append({**one, "answer": draw.choice(options), "test": str(number // QUESTIONS)})
    return rows


def as_chain(one: dict[str, Any]) -> dict[str, Any]:
    """Return a question as it is taught: the prompt of the task, and the letter of the right option."""
    shown = " ".join(f"{mark} {text}" for mark, text in zip(MARKS, one["options"], strict=False))
    return row(one["image"], f"{one['question']} {shown}", MARKS[one["options"].index(one["answer"])])


def write_world(folder: Path, seed: int) -> None:
    """Write pictures, tests, chains and the first weights of one seed, once."""
    if (folder / "clean.toml").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", (48, 48), (200, 200, 200)).save(folder / "p.png")
    draw = random.Random(f"{seed} questions")
    rows = questions(draw, 0, QUESTIONS * (1 + UNSEEN + 4), "p.png")
    test, unseen, others = rows[:QUESTIONS], rows[QUESTIONS : -4 * QUESTIONS], rows[-4 * QUESTIONS :]
    words = [*SPECIAL, *MARKS[:4], "what", "goes", "with", "?", *THINGS, *(one["id"] for one in rows)]
    write_model(folder / "untaught", seed, list(dict.fromkeys(words)))
    write_rows(folder / "base.jsonl", [as_chain(one) for one in others])
    write_rows(folder / "test-chains.jsonl", [as_chain(one) for one in test])
    for name, found in (("test", test), ("clean", unseen)):
        write_rows(folder / f"{name}.jsonl", found)
        (folder / f"{name}.toml").write_text(TASK.format(path=folder / f"{name}.jsonl"), encoding="utf-8")


def train(folder: Path, model: Path, data: str, output: str, seed: int, epochs: int) -> Path:
    """Train by the kit, or take what was trained before; return the model."""
    from snellen.kits.train.rationale import train_rationale
    from snellen.kits.train.recipe import read_recipe

    out = folder / output
    if not (out / "model" / "config.json").exists():
        training = {"weights": "full", "epochs": epochs, "batch_size": 16, "learning_rate": 1e-3}
        lines = [f'model = "hf/{model}"', f'output = "{out}"', f"seed = {seed}", "allow_answers = true", "[[data]]"]
        lines += [f'path = "{folder / data}"', "[training]"]
        lines += [
            f"{key} = {json.dumps(value)}" for key, value in {**training, "log_steps": 50, "save_steps": 10_000}.items()
        ]
        (folder / f"{output}.toml").write_text("\n".join(lines), encoding="utf-8")
        train_rationale(read_recipe(folder / f"{output}.toml"))
    return out / "model"


def ask(folder: Path, model: Path, test: str, name: str) -> Path:
    """Ask a checkpoint a test in its published order and in three drawn ones; return the run."""
    import snellen

    settings = {"infer_method": "likelihood", "candidates": "letters", "cache": False, "variants": VARIANTS}
    arguments = {"model_arguments": {"batch_size": 128}, "output_dir": folder / "runs" / name}
    snellen.run(str(folder / f"{test}.toml"), f"hf/{model}", **settings, **arguments)
    return folder / "runs" / name


def verdicts(run: Path, *, turns: int) -> list[dict[str, Any]]:
    """Return the verdict on every test of a run.

    In several `turns` each order is called the published one: to who has not seen the test all of them are alike.
    """
    from snellen.kits.arms.seen_before import ALARM, order_forms
    from snellen.stats.exchange import order_test
    from snellen.store.reader import RunReader

    found = []
    with RunReader(run) as reader:
        (task,) = reader.header().tasks
        for test in sorted({str(sample.tags["test"]) for sample in reader.samples(task.name)}):
            of_test = {sample.id for sample in reader.samples(task.name) if str(sample.tags["test"]) == test}
            values, places = order_forms(reader, task, of_test)
            for turn in range(turns):
                order = [turn, *(place for place in range(len(VARIANTS)) if place != turn)]
                one = order_test(values[:, order], places[:, order])
                p = 1.0 if one.p is None else one.p
                found.append(
                    {"found": p <= ALARM, "p": p, "drop": one.drop, "detectable": one.detectable, "turn": turn}
                )
    return found


def examine(folder: Path, seed: int) -> list[dict[str, Any]]:
    """Train and ask all checkpoints of one seed."""
    kept = folder / "found.json"
    if kept.exists():
        return json.loads(kept.read_text())
    write_world(folder, seed)
    base = train(folder, folder / "untaught", "base.jsonl", "base", seed, 2)
    found = []
    for epochs in EPOCHS:
        model = train(folder, base, "test-chains.jsonl", f"seen-{epochs}", seed, epochs) if epochs else base
        own = verdicts(ask(folder, model, "test", f"test-{epochs}"), turns=1)
        found += [{"seed": seed, "epochs": epochs, "seen": True, **one} for one in own]
        if epochs == EPOCHS[seed % len(EPOCHS)]:  # the clean tests are asked of checkpoints of every length in turn
            clean = verdicts(ask(folder, model, "clean", f"clean-{epochs}"), turns=len(VARIANTS))
            found += [{"seed": seed, "epochs": epochs, "seen": False, **one} for one in clean]
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def show(found: list[dict[str, Any]]) -> list[str]:
    """Return the table, and what it fails to show."""
    failed = []
    print("| trained on the test for | checkpoints | found | mean drop, points | detectable |")
    print("|---|---|---|---|---|")
    for epochs in EPOCHS:
        own = [one for one in found if one["seen"] and one["epochs"] == epochs]
        share = sum(one["found"] for one in own) / max(1, len(own))
        means = [100 * sum(one[name] for one in own) / max(1, len(own)) for name in ("drop", "detectable")]
        print(f"| {epochs} epochs | {len(own)} | {100 * share:.0f} % | {means[0]:+.2f} | {means[1]:.2f} |")
        if epochs >= 3 and share < LEAST_FOUND:
            failed.append(f"{epochs} epochs: only {100 * share:.0f} % are found")
    clean = [one for one in found if not one["seen"]]
    for name, own in (("never", [one for one in clean if one["turn"] == 0]), ("never, every order in turn", clean)):
        share = sum(one["found"] for one in own) / max(1, len(own))
        print(f"| {name} | {len(own)} | {100 * share:.1f} % false alarms | – | – |")
        failed += [f"{100 * share:.1f} % false alarms"] if share > MOST_FALSE else []
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed: others than those a level was chosen on")
    told = parser.parse_args()
    began, found = time.process_time(), []
    for seed in range(told.first, told.first + told.seeds):
        found += examine(told.folder.resolve() / f"seed-{seed}", seed)
        print(f"seed {seed}: {time.process_time() - began:.0f} s of processor time", file=sys.stderr)
    failed = show(found)
    (told.folder / "contamination.json").write_text(json.dumps(found), encoding="utf-8")
    sys.exit("; ".join(failed) if failed else 0)


if __name__ == "__main__":
    main()
