"""How fast is data made ready for training, in how much memory, and what do we cost over a bare TRL loop?

`python benchmarks/train.py` needs the extra `train`; everything is made here, no network. CPU seconds of this process are counted:
on shared cores they say more than the clock.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import PIL.Image

from snellen.kits.train.blend import Blended, PreparedChains, RowMaker, prepare_chains
from snellen.kits.train.chains import read_chains, sft_row

SAMPLES, PICTURES, OPENED = 100_000, 2_000, 20_000
LEAST_PER_SECOND, MOST_GROWTH_MB, MOST_OVERHEAD = 2_000, 64.0, 0.05
STEPS, ROUNDS = 40, 3


def resident_mb() -> float:
    """Return the memory this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def write_rows(folder: Path, count: int) -> Path:
    """Write conversations about small pictures."""
    for number in range(PICTURES):
        colour = (number % 256, number // 8 % 256, 90)
        PIL.Image.new("RGB", (48, 48), colour).save(folder / f"{number}.png")
    path = folder / f"rows-{count}.jsonl"
    with path.open("w") as stream:
        for number in range(count):
            turns = [
                {"from": "human", "value": "<image>\nWhat colour is the truck in the picture, and where does it go?"},
                {"from": "gpt", "value": f"I see a truck. It is number {number}. So the answer is orange."},
            ]
            stream.write(json.dumps({"id": number, "image": f"{number % PICTURES}.png", "conversations": turns}) + "\n")
    return path


def bench_preparation() -> bool:
    """Read, check, count and write 100,000 conversations, then open some of them as rows; memory must not follow the count."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = write_rows(folder, 1_000), write_rows(folder, SAMPLES)
        prepare_chains([Blended("s", 1.0, partial(read_chains, small))], folder / "small", seed=0)
        before = resident_mb()
        started = time.process_time()
        prepare_chains([Blended("l", 1.0, partial(read_chains, large))], folder / "large", seed=0)
        prepared_s = time.process_time() - started
        chains = PreparedChains(folder / "large")
        make = RowMaker(chains, sft_row)
        started = time.process_time()
        for place in range(0, OPENED, 32):
            make({"place": list(range(place, place + 32))})
        opened_s = time.process_time() - started
        growth = resident_mb() - before
        chains.close()
    each = prepared_s / SAMPLES + opened_s / OPENED
    rate = 1 / each
    print(
        f"preparation: {SAMPLES / prepared_s:,.0f} conversations/s read, checked and written; {OPENED / opened_s:,.0f} rows/s opened with their picture"
    )
    print(
        f"{'PASS' if rate >= LEAST_PER_SECOND else 'FAIL'} both together {rate:,.0f} samples/s of one core (bar {LEAST_PER_SECOND:,})"
    )
    print(
        f"{'PASS' if growth <= MOST_GROWTH_MB else 'FAIL'} memory grew by {growth:.0f} MB for {SAMPLES:,} samples (bar {MOST_GROWTH_MB:.0f} MB)"
    )
    return rate >= LEAST_PER_SECOND and growth <= MOST_GROWTH_MB


def bench_overhead() -> bool:
    """Train the same rows by TRL alone and by our recipe, in turns; compare the CPU seconds of `train()`."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    import datasets
    import trl
    from transformers import PrinterCallback

    from snellen.kits.train import tuned_weights as weights
    from snellen.kits.train.recipe import DataSource, Recipe, Training
    from snellen.kits.train.trl_door import Parts, make_arguments, make_trainer, open_dataset
    from snellen.kits.train.tuning import TrainingMonitor
    from tiny_checkpoints import checkpoint

    datasets.disable_progress_bars()
    base = weights.open_base(f"hf/{checkpoint('llava')}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_rows(folder, 400)
        prepare_chains([Blended("s", 1.0, partial(read_chains, path))], folder / "data", seed=0)
        rows = [sft_row(chain) for chain in read_chains(path)]
        bare_rows = datasets.Dataset.from_dict({"place": list(range(len(rows)))})

        def bare(batch: dict[str, list[int]]) -> dict[str, list[Any]]:
            """What anybody writes: open the picture, make messages."""
            found = [rows[place] for place in batch["place"]]
            images = [[PIL.Image.open(folder / f"{place % PICTURES}.png").convert("RGB")] for place in batch["place"]]
            prompts = [[dict(turn) for turn in row["prompt"]] for row in found]
            return {"images": images, "prompt": prompts, "completion": [row["completion"] for row in found]}

        training = Training(steps=STEPS, batch_size=8, save_steps=10_000, log_steps=1)
        recipe = Recipe(model="hf/x", data=(DataSource("x"),), output=str(folder / "out"), training=training)
        seconds: dict[str, list[float]] = {"bare": [], "ours": []}
        for kind in list(seconds) * ROUNDS:
            arguments = make_arguments(recipe, folder / kind, 8, 1)
            model, processor = weights.load_trainable(base), weights.open_processor(base)
            if kind == "bare":
                data = bare_rows.with_transform(bare)
                from snellen.kits.train.trl_door import make_adapter

                trainer = trl.SFTTrainer(
                    model=model,
                    args=arguments,
                    train_dataset=data,
                    processing_class=processor,
                    peft_config=make_adapter(recipe.lora),
                )
                trainer.remove_callback(PrinterCallback)  # lines on a terminal are no part of a loop
            else:
                (folder / "out").mkdir(exist_ok=True)
                data = open_dataset(PreparedChains(folder / "data"), "sft")
                monitor = TrainingMonitor(folder / "out", lambda _: None)
                trainer = make_trainer(recipe, Parts(arguments, model, None, processor, data), [monitor])
            started = time.process_time()
            trainer.train()
            seconds[kind].append(time.process_time() - started)
    best = {kind: min(found) for kind, found in seconds.items()}
    overhead = best["ours"] / best["bare"] - 1
    print(
        f"overhead: {STEPS} steps of 8, TRL alone {best['bare']:.2f} s, ours {best['ours']:.2f} s of CPU (best of {ROUNDS} each, in turns)"
    )
    print(
        f"{'PASS' if overhead <= MOST_OVERHEAD else 'FAIL'} over a bare TRL loop {100 * overhead:+.1f} % (bar {100 * MOST_OVERHEAD:.0f} %)"
    )
    return overhead <= MOST_OVERHEAD


if __name__ == "__main__":
    sys.exit(0 if all([bench_preparation(), bench_overhead()]) else 1)
