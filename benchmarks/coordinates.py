"""Simulated answerers of known frames sit the exam's test of coordinates: how often their frame is named.

    python benchmarks/coordinates.py                    # 500 answerers a frame, half of each noise
    python benchmarks/coordinates.py --answerers 100

An answerer sees every target with Laplacian noise of 4 or 15 px, one answer in twenty is anywhere, and numbers are
rounded as people write them. `named`: the rule found is the answerer's. `said`: it is, or stands among the frames that
the result itself cannot tell from the one it names; the bar of 0.97 is on this. `px`: how far the named frame places
answers from where the answerer's own does, in 97 of 100 answerers (the largest of an answerer's answers).
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from snellen.core.frames import Frame, read_frame
from snellen.sight.coordinates import CANVASES, MARGIN, PLACES
from snellen.stats.coordinate_frames import Answers, fit_frames, probabilities, tell_frame

TRUTHS = {
    "0-1": "0-1",
    "0-100": "0-100",
    "0-1000": "0-1000",
    "0-1024": "0-1024",
    "0-896": "0-N",
    "0-448": "0-N",
    "sent-pixels": "pixels",
    "sent-pixels side=1024": "side",
    "sent-pixels side=1568": "side",
    "sent-pixels area=1150000": "area",
    "sent-pixels grid=28": "grid",
    "sent-pixels grid=28 area=1003520": "grid within an area",
    "0-1000 padded": "0-N padded corner",
    "0-1000 padded-middle": "0-N padded middle",
    "0-672 padded-middle": "0-N padded middle",
    "0-1000 y-first": "0-1000, y first",
    "0-1024 y-first": "0-1024, y first",
    "0-1000 y-up": "0-1000, from below",
    "sent-pixels y-first": "pixels, y first",
}
"""The frame of an answerer -> the rule that should be named."""
NOISES_PX = (4.0, 15.0)
WILD = 0.05
BAR = 0.97


def answers_in(frame: Frame, noise_px: float, count: int, draw: np.random.Generator) -> tuple[Answers, Any]:
    """Return what so many answerers say in a frame, and which of their answers are wild."""
    size = np.repeat(np.array(CANVASES, float), PLACES, axis=0)
    true = MARGIN + draw.random((count, len(size), 2)) * (size - 2 * MARGIN)
    seen = (true + draw.laplace(0.0, noise_px / np.sqrt(2.0), true.shape)) / size
    said = np.empty_like(true)
    for place, canvas in enumerate(size):
        corner, right, below = (np.array(frame.write(one, _whole(canvas))) for one in ((0, 0), (1, 0), (0, 1)))
        said[:, place] = corner + seen[:, place, :1] * (right - corner) + seen[:, place, 1:] * (below - corner)
    wild = draw.random(said.shape[:2]) < WILD
    said[wild] = draw.random((int(wild.sum()), 2)) * said.max()
    digits = 3 if frame.edge == 1.0 else 1 if frame.edge == 100.0 else 0
    return Answers(np.round(said, digits), true, size), wild


def _whole(canvas: Any) -> tuple[int, int]:
    return int(canvas[0]), int(canvas[1])


def judged(name: str, noise_px: float, count: int, seed: int = 0) -> dict[str, float]:
    """Return how often the frame of so many answerers is named, how often it is said, and how far off the named is."""
    frame, rule = read_frame(name), TRUTHS[name]
    answers, wild = answers_in(frame, noise_px, count, np.random.default_rng([38, seed, int(noise_px)]))
    fitted = fit_frames(answers)
    chances, rules = probabilities(fitted), [one.name for one in fitted]
    named, said, far = 0, 0, []
    for answerer in range(count):
        told = tell_frame(fitted, chances, answerer)
        named += rules[told.number] == rule
        said += rule in (rules[told.number], *(rules[rival.number] for rival in told.rivals))
        own = [
            np.array(frame.place(numbers, _whole(canvas), anywhere=True)) * canvas
            for numbers, canvas in zip(answers.said[answerer], answers.size, strict=True)
        ]
        apart = np.abs(fitted[told.number].placed[answerer] - np.array(own)).max(axis=1)
        far.append(float(apart[~wild[answerer]].max()))
    return {"named": named / count, "said": said / count, "px": round(float(np.quantile(far, 0.97)), 1)}


def main() -> None:
    """Print the table as JSON, and whether the bar is met."""
    options = argparse.ArgumentParser()
    options.add_argument("--answerers", type=int, default=500)
    count = options.parse_args().answerers // len(NOISES_PX)
    table = {name: {f"{noise:g} px": judged(name, noise, count, seed=1) for noise in NOISES_PX} for name in TRUTHS}
    means = {name: float(np.mean([row["said"] for row in rows.values()])) for name, rows in table.items()}
    print(json.dumps(table, indent=1))
    print(f"least share said: {min(means.values()):.3f} ({min(means, key=lambda name: means[name])}), bar {BAR}")


if __name__ == "__main__":
    main()
