"""The same 200 questions by likelihood: any batch size, any order, killed twice; every number the same."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from extras import needs

needs("torch", "transformers")

from command_line import COMMAND
from tiny_checkpoints import checkpoint
from waiting import stored_trials, wait_until

pytestmark = pytest.mark.slow
WORDS = ["red", "blue", "green", "orange", "a dog", "a cat", "a bus", "two people", "the street", "yes"]
COUNT = 200


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    draw = random.Random(5)
    rows = []
    for number in range(COUNT):
        pixels = np.random.default_rng(number % 20).integers(0, 255, (36, 36, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number % 20}.png")
        options = draw.sample(WORDS, 4)
        row = {
            "id": f"q{number}",
            "question": f"What is in picture {number}?",
            "image": f"{number % 20}.png",
            "options": options,
        }
        rows.append(row | {"answer": draw.choice(options)})
    for name, order in (("forward", rows), ("backward", rows[::-1])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in order))
    return folder


def command(data: Path, run: Path, *more: str) -> list[str]:
    model = ["--model", f"hf/{checkpoint('llava')}", "--infer-method", "likelihood", "--no-cache", "--quiet"]
    return [*COMMAND, "run", str(data), *model, "-o", str(run), "-p", "name=questions", *more]


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}


def finish(data: Path, run: Path, *more: str) -> dict[str, object]:
    subprocess.run(command(data, run, *more), check=True, env=environment(), capture_output=True, text=True)
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert len(records) == COUNT
    return {record["sample"]: (record["answer"], record["loglikelihoods"], record["value"]) for record in records}


def kill_after(data: Path, run: Path, count: int, *more: str) -> None:
    process = subprocess.Popen(
        command(data, run, *more), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: process.poll() is not None or stored_trials(run) >= count, f"{count} stored trials")
    process.kill()
    process.wait()


def test_batch_size_order_and_kills_change_nothing(data, tmp_path):
    alone = finish(data / "forward.jsonl", tmp_path / "one", "--model-arg", "batch_size=1")
    batched = finish(data / "backward.jsonl", tmp_path / "sixteen", "--model-arg", "batch_size=16")
    assert batched == alone
    killed = tmp_path / "killed"
    kill_after(data / "forward.jsonl", killed, 30, "--model-arg", "batch_size=16")
    first = stored_trials(killed)
    assert 30 <= first < COUNT
    kill_after(data / "forward.jsonl", killed, first + 30, "--model-arg", "batch_size=1")
    assert first < stored_trials(killed) < COUNT
    assert finish(data / "forward.jsonl", killed, "--model-arg", "batch_size=16") == alone
    one, again = (json.loads((run / "results.json").read_text())["tasks"] for run in (tmp_path / "one", killed))
    assert one == again
    assert len({answer for answer, _, _ in alone.values()}) > 3, "the model does not always say the same"
