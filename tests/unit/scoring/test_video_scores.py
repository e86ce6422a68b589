"""Whether the needle was shown, and the level at which half is told."""

from __future__ import annotations

import pytest

from snellen.core.errors import DataError
from snellen.core.tasks import Task
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.kits.films.level_threshold import threshold_of_level
from snellen.kits.pages.needle_scorer import score_shown
from snellen.scoring.aggregates.means import macro
from snellen.scoring.aggregates.robustness import ladders, perturbed
from snellen.scoring.results import aggregates_of
from snellen.scoring.scorers.video_scores import read_span, relative_accuracy, score_mra, score_span, span_overlap
from snellen.scoring.tables.table import ScoredTask
from snellen.scoring.tables.table_builder import read_tables

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


@pytest.mark.parametrize("level", [0.0, -1.0, float("inf")])
def test_a_level_that_has_no_logarithm_is_refused_by_name(level: float) -> None:
    with pytest.raises(DataError, match=f"{level:g}"):
        threshold_of_level(scored_by_level({level: [1.0] * 6, 2.0: [0.0] * 6}), {})


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


def scored_by_rate(told: dict[float, float], films: int = 12) -> ScoredTask:
    """Return films of three levels asked at several frame rates, of which these shares are told."""
    rows, trials, samples, records = [], [], [], []
    for level in (0.5, 1.0, 2.0):
        for number in range(films):
            name = f"{level:g}-{number}"
            records.append((name, name, {"level": level}))
            samples.append(Sample(name, "t", Form.CHOICE, "?", options=("l", "r", "u", "d")))
            for rate, share in told.items():
                rows.append((name, f"fps={rate:g}", 0, "accuracy", float(number < share * films), None, None, None))
                trials.append((name, f"fps={rate:g}", 0, None))
    return ScoredTask(Task("t", {}), read_tables(rows, trials, records), lambda: iter(()), lambda: iter(samples))


def test_the_lowest_frame_rate_lies_where_half_of_what_chance_leaves_is_told() -> None:
    found = threshold_of_level(scored_by_rate({1: 0.25, 2: 0.25, 4: 0.625, 8: 1.0, 16: 1.0}), {})["threshold_fps"]
    assert found.value == pytest.approx(4.0, rel=0.2)
    assert found.ci95 is not None
    assert found.ci95[0] < 4.0 < found.ci95[1]
    assert (found.n, found.unit) == (180, "trials")
    blind = threshold_of_level(scored_by_rate({1: 0.25, 4: 0.25, 16: 0.25}), {})["threshold_fps"]
    assert blind.value is None, "chance is not seeing"
    assert "threshold_fps" not in threshold_of_level(scored_by_rate({4: 0.5}), {})


def test_disturbances_of_time_have_their_ladder_as_those_of_pictures_do() -> None:
    rows, trials, records = [], [], []
    for number in range(10):
        records.append((f"q{number}", None, {}))
        for variant, right in (("base", 10), ("tempo=bitrate:1", 9), ("tempo=bitrate:5", 2), ("perturb=jpeg:3", 5)):
            rows.append((f"q{number}", variant, 0, "accuracy", float(number < right), None, None, None))
            trials.append((f"q{number}", variant, 0, None))
    task = Task("t", {}, variants=("base", "tempo=bitrate:1", "tempo=bitrate:5", "perturb=jpeg:3"))
    scored = ScoredTask(task, read_tables(rows, trials, records), lambda: iter(()), lambda: iter(()))
    assert "perturbed" in aggregates_of(Task("t", {}, variants=("base", "tempo=bitrate:1")))
    found = perturbed(scored, {})
    assert found["accuracy_bitrate_1"].value == pytest.approx(0.9)
    assert found["retention_bitrate_5"].value == pytest.approx(0.2)
    assert found["accuracy_jpeg_3"].value == pytest.approx(0.5)
    assert {ladder.family for ladder in ladders(scored.tables["accuracy"], "perturb")} == {"jpeg"}


def test_where_all_is_told_or_nothing_there_is_no_threshold() -> None:
    for value in (0.0, 1.0):
        found = threshold_of_level(scored_by_level({0.5: [value] * 9, 1.0: [value] * 9}), {})["threshold"]
        assert found.value is None
    assert threshold_of_level(scored_by_level({1.0: [1.0]}), {})["threshold"].value is None


@pytest.mark.parametrize(
    ("value", "answer", "expected"),
    [
        (4.0, 4.0, 1.0),
        (4.4, 4.0, 0.9),
        (6.0, 4.0, 0.1),
        (6.1, 4.0, 0.0),
        (2.0, 4.0, 0.1),
        (0.0, 0.0, 1.0),
        (1.0, 0.0, 0.0),
    ],
)
def test_relative_accuracy_is_the_share_of_tolerances_kept(value: float, answer: float, expected: float) -> None:
    assert relative_accuracy(value, answer) == pytest.approx(expected)


def test_a_number_is_scored_by_tolerance_and_a_choice_as_a_choice() -> None:
    number = Sample("1", "t", Form.OPEN, "How many?", answers=("4",))
    (score,) = score_mra(number, Request(KEY, ()), Prediction(KEY, text="4.4"), {})
    assert score.value == pytest.approx(0.9)
    (unread,) = score_mra(number, Request(KEY, ()), Prediction(KEY, text="I cannot tell."), {})
    assert unread.value is None
    choice = Sample("1", "t", Form.CHOICE, "Which?", options=("a", "b"), answers=("b",))
    request = Request(KEY, (), marks=("A", "B"), shown=("a", "b"))
    assert score_mra(choice, request, Prediction(KEY, text="B"), {})[0].value == 1.0


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("12.5 - 20", (12.5, 20.0)),
        ("From 00:12 to 01:05.", (12.0, 65.0)),
        ("1:00:01 - 1:00:03.5", (3601.0, 3603.5)),
        ("[0.0, 6.9]", (0.0, 6.9)),
        ("20 - 12", None),
        ("at 12 s", None),
        ("between 1 and 2, or 3", None),
        ("", None),
    ],
)
def test_a_span_is_exactly_two_times_in_order(text: str, span: tuple[float, float] | None) -> None:
    assert read_span(text) == span


def test_overlaps_are_scored_and_nothing_is_guessed() -> None:
    assert span_overlap((0, 10), (5, 15)) == pytest.approx(1 / 3)
    assert span_overlap((0, 1), (2, 3)) == 0.0
    sample = Sample("1", "t", Form.OPEN, "When?", answers=("0", "10"))
    scores = score_span(sample, Request(KEY, ()), Prediction(KEY, text="<think>3 or 4</think>5 - 10"), {})
    assert {s.metric: s.value for s in scores} == {
        "temporal_iou": 0.5, "recall_0.3": 1.0, "recall_0.5": 1.0, "recall_0.7": 0.0
    }  # fmt: skip
    assert all(s.value is None for s in score_span(sample, Request(KEY, ()), Prediction(KEY, text="at 5"), {}))


def test_the_mean_of_groups_counts_each_group_once() -> None:
    scored = scored_by_level({1.0: [1.0] * 8, 2.0: [0.0, 0.0, 1.0, 0.0]})
    task = Task("t", {}, group_by=("level",))
    found = macro(ScoredTask(task, scored.tables, scored.scores, scored.samples), {})["macro"]
    assert found.value == pytest.approx((1.0 + 0.25) / 2)
    assert found.n == 12
    assert macro(scored, {}) == {}
