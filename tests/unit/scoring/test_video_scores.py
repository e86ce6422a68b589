"""Whether the needle was shown, and the level at which half is told."""

from __future__ import annotations

import pytest

from snellen.core.tasks import Task
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.scoring.aggregates.level_threshold import threshold_of_level
from snellen.scoring.reading import read_tables
from snellen.scoring.scorers.shown_frames import score_shown
from snellen.scoring.table import ScoredTask

KEY = TrialKey("t", "1")


def shown(seconds: list[float] | None, span: list[float] | None = None) -> tuple[float | None, str | None]:
    meta = {"needle_seconds": span} if span else {}
    record = {"video": "a.mp4"} if seconds is None else {"video": "a.mp4", "seconds": seconds}
    sample = Sample("1", "t", Form.OPEN, "?", meta=meta)
    prediction = Prediction(KEY, text="x", detail={"videos": [record]})
    (score,) = score_shown(sample, Request(KEY, ()), prediction, {})
    return score.value, score.reason


def test_a_needle_was_shown_where_a_frame_lies_in_its_time() -> None:
    assert shown([0.0, 2.0, 4.0], [2.0, 3.0]) == (1.0, None)
    assert shown([0.0, 1.9, 3.0], [2.0, 3.0]) == (0.0, None)
    assert shown(None, [2.0, 3.0]) == (None, "which frames were seen is not known")
    assert shown([1.0]) == (None, "when the answer is shown is not known")


def scored_by_level(right: dict[float, list[float]], options: tuple[str, ...] = ()) -> ScoredTask:
    """Return a task of which these values were scored at these levels."""
    rows, trials, samples, records = [], [], [], []
    for level, values in right.items():
        for number, value in enumerate(values):
            name = f"{level:g}-{number}"
            rows.append((name, "base", 0, "accuracy", value, None, None, None))
            trials.append((name, "base", 0, None))
            records.append((name, name, {"level": level}))
            samples.append(Sample(name, "t", Form.CHOICE if options else Form.OPEN, "?", options=options))
    return ScoredTask(Task("t", {}), read_tables(rows, trials, records), lambda: iter(()), lambda: iter(samples))


def test_the_threshold_lies_where_half_is_told() -> None:
    right = {
        0.25: [0.0] * 12,
        0.5: [0.0] * 10 + [1.0] * 2,
        1.0: [0.0] * 6 + [1.0] * 6,
        2.0: [1.0] * 12,
        4.0: [1.0] * 12,
    }
    found = threshold_of_level(scored_by_level(right), {})["threshold"]
    assert found.value == pytest.approx(0.95, abs=0.2)
    assert found.ci95 is not None
    assert found.ci95[0] < 1.0 < found.ci95[1]
    assert (found.n, found.unit) == (60, "trials")


def test_chance_is_not_taken_for_seeing() -> None:
    right = {level: [1.0] * 6 + [0.0] * 6 for level in (0.25, 0.5, 1.0)} | {2.0: [1.0] * 12, 4.0: [1.0] * 12}
    found = threshold_of_level(scored_by_level(right, ("a", "b")), {})["threshold"]
    assert found.value is not None
    assert 1.0 < found.value < 2.0


def test_where_all_is_told_or_nothing_there_is_no_threshold() -> None:
    for value in (0.0, 1.0):
        found = threshold_of_level(scored_by_level({0.5: [value] * 9, 1.0: [value] * 9}), {})["threshold"]
        assert found.value is None
    assert threshold_of_level(scored_by_level({1.0: [1.0]}), {})["threshold"].value is None
