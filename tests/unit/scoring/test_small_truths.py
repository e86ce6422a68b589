"""Figures of a few trials, worked out by hand: what guessing earns, chains that are not known, objects by their sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from snellen.core.tasks import Task
from snellen.core.types import Form, Image, Prediction, Request, Sample, Score, TrialKey
from snellen.kits.arms.figures import chance_of
from snellen.scoring.aggregates.consistency import Chains, score_label
from snellen.scoring.aggregates.detections import SET, average_precision
from snellen.scoring.aggregates.detections import score as score_objects
from snellen.scoring.protocols.peer_scores import headline_note, score_with_peer
from snellen.scoring.tables.table import ScoredTask

KEY = TrialKey("t", "1")
TASK = Task("t", {"loader": "table"}, Form.OPEN)


@pytest.mark.parametrize(
    ("form", "options", "chance"),
    [
        (Form.CHOICE, ("a", "b", "c", "d"), 0.25),
        (Form.CHOICE, ("a", "b"), 0.5),
        (Form.CHOICE, ("a",), 0.0),
        (Form.YESNO, (), 0.5),
        (Form.OPEN, ("a", "b"), 0.0),
    ],
)
def test_a_guess_earns_one_in_the_options_and_nothing_where_none_are_shown(
    form: Form, options: tuple[str, ...], chance: float
) -> None:
    assert chance_of(Sample("1", "t", form, "?", options=options)) == chance


@pytest.mark.parametrize("right", [True, False])
def test_what_is_not_known_of_a_chain_counts_as_told_and_what_is_known_stays(right: bool) -> None:
    nothing = np.zeros(3, dtype=bool)
    said, known = np.array([True, False, True]), np.array([True, True, False])
    chains = Chains(
        inference=said,
        steps=said[:, None],
        lengths=np.ones(3, dtype=np.int64),
        clusters=np.arange(3),
        inference_known=known,
        steps_known=known[:, None],
        steps_failed=nothing[:, None],
        steps_stored=~nothing[:, None],
        failed=nothing,
        inference_failed=nothing,
    )
    counted = chains.counted_as(right=right)
    assert counted.inference.tolist() == [True, False, right]
    assert counted.steps[:, 0].tolist() == [True, False, right]
    assert counted.inference_known.all()
    assert counted.steps_known.all()


@pytest.mark.parametrize(("text", "answer", "value"), [("2", "2", 1.0), ("1", "1", 0.0)])
def test_a_label_is_kept_as_the_answer_that_was_read(text: str, answer: str, value: float) -> None:
    sample = Sample("1", "t", Form.OPEN, "?", answers=("2",))
    (score,) = score_label(sample, Request(KEY, ()), Prediction(KEY, text), {})
    assert (score.answer, score.value) == (answer, value)


def test_precision_is_the_mean_of_the_sets_and_none_without_objects() -> None:
    options = {"coordinates": {"reply": "pixels", "gold": "pixels"}}

    def of(name: str, reply: str) -> tuple[Sample, Score]:
        picture = (Image("/a.png", width=100, height=100),)
        answers = ('[["cat", [0, 0, 50, 50]]]',)
        sample = Sample(name, "t", Form.OPEN, "?", picture, answers=answers, tags={SET: name})
        key = TrialKey("t", name)
        (one,) = score_objects(sample, Request(key, ()), Prediction(key, reply), options)
        return sample, one

    pairs = [of("found", '[{"bbox": [0, 0, 50, 50], "label": "cat"}]'), of("missed", "[]")]
    found = average_precision(ScoredTask(TASK, {}, lambda: iter(pairs)), {})
    assert found["mAP50"].value == pytest.approx(0.5)
    assert found["mAP50"].n == 2
    assert average_precision(ScoredTask(TASK, {}, lambda: iter(())), {})["mAP"].value is None


def test_another_headline_than_the_benchmarks_is_said_with_both_names() -> None:
    task = Task("t", {"loader": "table"}, Form.OPEN, headline="F1")
    assert headline_note(task, {"headline": "F1"}) == []
    (note,) = headline_note(task, {"headline": "accuracy"})
    assert "F1" in note
    assert "accuracy" in note


def unread(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    return [Score(prediction.key, "accuracy", None, reason="unparsed")]


@pytest.mark.parametrize(
    ("fallback", "reply", "value"),
    [
        ("left-out", "words", None),
        ("empty-left-out", "words", 0.0),
        ("empty-left-out", " ", None),
        ("minus-one", "words", -1.0),
        ("wrong", "words", 0.0),
        ("random", "words", 0.0),
        ("nearest", "words", 0.0),
    ],
)
def test_a_tool_counts_what_it_cannot_read_as_its_fallback_says(fallback: str, reply: str, value: float | None) -> None:
    """No options were shown, so a tool that draws has nothing to draw."""
    trial = (Sample("1", "t", Form.OPEN, "?", answers=("a",)), Request(KEY, ()), Prediction(KEY, reply))
    own, peer = score_with_peer(fallback, unread, trial, {})
    assert own.value is None
    assert peer.metric == "accuracy_peer"
    assert peer.value == value
