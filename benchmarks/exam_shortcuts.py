"""What a cheat could learn of the answers without seeing the stimulus: from global statistics of the pixels, or file size.

    python benchmarks/exam_shortcuts.py --stimuli 320

For every test with a few answers: stimuli at its middle and easiest level, half to learn from, half to be tested on; the
answer of the nearest class mean (statistics scaled by their spread). It must stay within chance + 3 standard errors.
The blind baselines (always the first answer, always the same, a random one) are at chance by construction: answers are balanced.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from snellen.sight.cards import exam_cards, eye_test
from snellen.sight.exam_trials import balanced
from snellen.sight.plate import Bench


def statistics(picture: bytes) -> list[float]:
    """Return what can be said of a picture without looking where anything is, or which way: sums over all pixels.

    Edges by direction are left out: who has them sees the gap of a ring and the run of stripes.
    """
    pixels = np.asarray(PIL.Image.open(io.BytesIO(picture)))
    counts = (
        np.stack([np.bincount(pixels[..., channel].ravel(), minlength=256) for channel in range(3)])
        / pixels[..., 0].size
    )
    values = np.arange(256)
    means = counts @ values
    spreads = np.sqrt(np.maximum(0.0, counts @ values**2 - means**2))
    shares = [counts[:, low : low + 32].sum() for low in range(0, 256, 32)]
    return [float(value) for value in (*means, *spreads, *shares)]


def nearest(learn: Any, answers: list[str], test: Any) -> list[str]:
    """Return the class whose mean is nearest."""
    spread = learn.std(0) + 1e-9
    means = {word: learn[[a == word for a in answers]].mean(0) for word in set(answers)}
    return [min(means, key=lambda word: float((((row - means[word]) / spread) ** 2).sum())) for row in test]


def main() -> None:
    """Print the table, and write it where told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stimuli", type=int, default=320)
    parser.add_argument("--tests", help="only these, separated by commas")
    parser.add_argument("-o", type=Path)
    arguments = parser.parse_args()
    chosen = arguments.tests.split(",") if arguments.tests else [n for n, card in exam_cards().items() if card.answers]
    table: dict[str, Any] = {}
    for name in chosen:
        test, card = eye_test(name), exam_cards()[name]
        middle = card.axis.level((card.axis.x(card.hardest) + card.axis.x(card.easiest)) / 2)
        for where, level in (("middle", middle), ("easiest", card.easiest)):
            answers = balanced(card.answers, arguments.stimuli, 1, name)
            drawn = [test.draw(level, a, random.Random(f"{name} {where} {n}"), Bench()) for n, a in enumerate(answers)]
            half = arguments.stimuli // 2
            chance = 1 / len(card.answers)
            bar = chance + 3 * math.sqrt(chance * (1 - chance) / half)
            figures = {"chance": round(chance, 3), "bar": round(bar, 3)}
            pixels = np.array([statistics(s.pictures[0]) for s in drawn])
            sizes = np.array([[float(len(s.pictures[0]))] for s in drawn])
            for kind, columns in (("pixels", pixels), ("file size", sizes)):
                said = nearest(columns[:half], answers[:half], columns[half:])
                figures[kind] = round(float(np.mean([a == b for a, b in zip(said, answers[half:], strict=True)])), 3)
            table[f"{name}, {where}"] = figures
            sys.stdout.write(f"{name:14s} {where:8s} {figures}\n")
            sys.stdout.flush()
    if arguments.o:
        arguments.o.write_text(json.dumps(table, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
