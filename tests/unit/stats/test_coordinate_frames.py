"""Frames of simulated answerers: named where they can be, said where they cannot; most draws are in the benchmark."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snellen.core.frames import read_frame
from snellen.stats.coordinate_frames import fit_frames, probabilities, tell_frame

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "coordinates.py"
ONE_CANVAS_ONLY = "sent-pixels side=1568"
"""One canvas alone is over this limit: a side and an area are the same there."""


@pytest.fixture(scope="module")
def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("coordinates_benchmark", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_frame_is_named_at_four_pixels_and_said_at_fifteen(benchmark: Any) -> None:
    for name in benchmark.TRUTHS:
        near, far = (benchmark.judged(name, noise, 20, seed=7) for noise in benchmark.NOISES_PX)
        assert near["named"] >= 0.95 or name == ONE_CANVAS_ONLY, (name, near)
        assert near["said"] >= 0.97 and far["said"] >= 0.95, (name, near, far)
        assert near["px"] <= 6.0, (name, near)


@pytest.mark.nightly
def test_the_bar_of_frames_is_met_by_500_answerers_each(benchmark: Any) -> None:
    for name in benchmark.TRUTHS:
        said = [benchmark.judged(name, noise, 250, seed=2)["said"] for noise in benchmark.NOISES_PX]
        assert np.mean(said) >= benchmark.BAR, (name, said)


def test_a_frame_of_999_is_that_of_1000_and_said_so(benchmark: Any) -> None:
    answers, _ = benchmark.answers_in(read_frame("0-999"), 4.0, 20, np.random.default_rng(5))
    fitted = fit_frames(answers)
    rules, chances = [one.name for one in fitted], probabilities(fitted)
    for answerer in range(20):
        told = tell_frame(fitted, chances, answerer)
        both = {rules[told.number], *(rules[rival.number] for rival in told.rivals if rival.apart_px < 6.0)}
        assert "0-1000" in both and told.probability > 0.9


def test_probabilities_are_shares_and_rivals_are_in_their_order(benchmark: Any) -> None:
    answers, _ = benchmark.answers_in(read_frame("sent-pixels"), 15.0, 5, np.random.default_rng(6))
    fitted = fit_frames(answers)
    chances = probabilities(fitted)
    assert chances.shape == (len(fitted), 5) and np.allclose(chances.sum(axis=0), 1.0)
    rivals = tell_frame(fitted, chances, 0).rivals
    assert [one.probability for one in rivals] == sorted((one.probability for one in rivals), reverse=True)
