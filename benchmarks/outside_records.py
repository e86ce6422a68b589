"""How fast are predictions of other programs scored? `python benchmarks/scoring.py outside`"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from snellen import score_predictions
from snellen.core.ids import rng

RECORDS, REPEATS, MOST_BYTES = 100_000, 5, 300_000_000
OPTIONS = ["a cat", "a dog", "a rabbit", "a horse"]
REPLIES = [
    "(A)", "(B) a dog", "The answer is C.", "b", "I cannot say", "D", "The picture shows a horse, so the answer is (D).",
    "Answer: (d)", "a dog", "正确答案是B",
]  # fmt: skip
CASES: dict[str, tuple[dict[str, Any], float]] = {
    "plain": ({}, 15.0),
    "stability and rounds": ({"eval_stability": True, "multi_round_eval": True}, 15.0),
    "stability and rounds, profile reform": (
        {"eval_stability": True, "multi_round_eval": True, "profile": "reform"},
        13.0,
    ),
}
"""Options, and the most seconds of one core."""


def bench_outside() -> bool:
    """Store and score a file of 100,000 SingleChoice records, 5 repeats a sample, each case in a process of its own."""
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "predictions.jsonl")
        with path.open("w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(record) + "\n" for record in _records())
        for name in CASES:
            command = [sys.executable, __file__, str(path), name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            cpu_s, peak, accuracy = map(float, done.stdout.split())
            in_bars = cpu_s <= CASES[name][1] and peak <= MOST_BYTES
            print(
                f"{'PASS' if in_bars else 'FAIL'}  100,000 outside records, {name}: {cpu_s:.1f} s of one core "
                f"(bar {CASES[name][1]:.0f}), peak memory {peak / 1e6:.0f} MB (bar {MOST_BYTES / 1e6:.0f}), "
                f"accuracy {accuracy:.4f}"
            )
            passed &= in_bars
    return passed


def _records() -> Iterator[dict[str, Any]]:
    random = rng("benchmark", "outside")
    for number in range(RECORDS):
        options = random.sample(OPTIONS, len(OPTIONS))
        yield {
            "sample_id": f"sample-{number // REPEATS:06}",
            "answer": random.randrange(len(options)),
            "answer_options": options,
            "prediction": random.choice(REPLIES),
            "round_id": number // REPEATS % 8,
        }


def _measure(path: str, name: str) -> None:
    started = time.process_time()
    result = score_predictions(path, "SingleChoice", **CASES[name][0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(time.process_time() - started, peak, result["metrics"]["accuracy"]["value"])


if __name__ == "__main__":
    _measure(*sys.argv[1:])
