"""Paired comparison and first divergence."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest

from snellen.core.types import (
    Failure,
    FailureKind,
    Form,
    Image,
    ImageSent,
    Params,
    Prediction,
    Request,
    Sample,
    Score,
    TrialKey,
    Turn,
)
from snellen.report.pages.comparison import verdict
from snellen.scoring.aggregates.means import mean
from snellen.scoring.compare.divergence import STAGES, StageMarks, fingerprint
from snellen.scoring.compare.paired import RunSide, compare_all, compare_pair
from snellen.scoring.tables.table_builder import read_tables
from snellen.stats.intervals import mcnemar


def side(
    name: str, values: dict[str, list[float | None]], group: dict[str, str] | None = None, metric: str = "accuracy"
) -> RunSide:
    rows: Any = [
        (sample, "base", r, metric, value, None, None, None if value is not None else "refusal")
        for sample, found in values.items()
        for r, value in enumerate(found)
    ]
    samples = [(sample, (group or {}).get(sample), {}) for sample in values]
    return RunSide(name, read_tables(rows, samples=samples, metrics=[metric])[metric])


def test_mcnemar_on_single_trials() -> None:
    first = {f"q{i}": [float(i < 50)] for i in range(100)}
    second = {f"q{i}": [float(i < 40 or i >= 70)] for i in range(100)}
    result = compare_pair(side("a", first), side("b", second))
    assert (result.test, result.paired) == ("McNemar exact", 100)
    assert result.p == pytest.approx(mcnemar(10, 30))
    assert result.difference == pytest.approx(0.2)
    assert result.ci95 is not None
    assert 0.0 < result.ci95[0] < 0.2 < result.ci95[1] < 0.4
    assert (len(result.better), len(result.worse)) == (30, 10)
    back = compare_pair(side("b", second), side("a", first))
    assert back.difference == pytest.approx(-0.2)
    assert back.p == result.p


def test_of_errors_the_lower_is_better_and_a_reply_that_cannot_be_read_is_the_worst() -> None:
    low = {f"q{i}": [0.1] for i in range(40)}
    high = {f"q{i}": [0.9] for i in range(40)}
    (found,) = compare_all([side("low", low, metric="wer"), side("high", high, metric="wer")])
    assert verdict(found) == "low is better"
    assert (len(found.better), len(found.worse)) == (0, 40)
    (turned,) = compare_all([side("high", high, metric="wer"), side("low", low, metric="wer")])
    assert verdict(turned) == "low is better"
    silent = side("silent", {f"q{i}": [None] for i in range(40)}, metric="wer")
    (lost,) = compare_all([side("low", low, metric="wer"), silent])
    assert (lost.second_value, verdict(lost)) == (1.0, "low is better")


@pytest.mark.parametrize(("metric", "worst"), [("accuracy", 0.0), ("wer", 1.0), ("cer", 1.0)])
def test_what_was_not_read_counts_at_its_worst(metric: str, worst: float) -> None:
    table = side("a", {"x": [0.5], "y": [None]}, metric=metric).table
    estimates = mean(table)
    assert estimates[f"{metric}_read"].value == 0.5
    assert estimates[metric].value == pytest.approx((0.5 + worst) / 2)


def test_unpaired_samples_are_counted_and_listed() -> None:
    result = compare_pair(side("a", {"x": [1.0], "y": [0.0]}), side("b", {"y": [1.0], "z": [1.0]}))
    assert (result.paired, result.only_first, result.only_second) == (1, ("x",), ("z",))
    assert result.first_value == 0.0
    nothing = compare_pair(side("a", {"x": [1.0]}), side("b", {"z": [1.0]}))
    assert (nothing.paired, nothing.difference, nothing.p, nothing.ci95) == (0, None, None, None)
    assert compare_all([side("a", {"x": [1.0]}), side("b", {"z": [1.0]})])[0].p_adjusted is None


def test_unscored_count_as_zero_unless_left_out() -> None:
    first, second = side("a", {"x": [1.0], "y": [1.0]}), side("b", {"x": [1.0], "y": [None]})
    strict = compare_pair(first, second)
    assert (strict.second_value, strict.not_scored) == (0.5, (0, 1))
    lenient = compare_pair(first, second, scored_only=True)
    assert (lenient.second_value, lenient.paired, lenient.only_first) == (1.0, 1, ("y",))


def test_repeats_and_clusters_use_the_randomisation_test() -> None:
    repeated = compare_pair(side("a", {"x": [1.0, 0.0], "y": [0.0]}), side("b", {"x": [1.0], "y": [1.0]}))
    assert repeated.test == "paired randomisation"
    assert repeated.difference == pytest.approx(0.75)
    group = {f"q{i}": f"doc{i // 10}" for i in range(40)}
    clustered = compare_pair(
        side("a", {name: [0.0] for name in group}, group),
        side("b", {name: [float(group[name] != "doc0")] for name in group}, group),
    )
    assert clustered.test == "paired randomisation"
    assert clustered.p is not None
    assert clustered.p > 0.05, "three documents of four are not forty independent questions"


def test_holm_over_all_pairs_and_order_independence() -> None:
    values = {f"q{i}": [float(i % 3 == 0)] for i in range(60)}
    better = {f"q{i}": [float(i % 3 != 1)] for i in range(60)}
    results = compare_all([side("a", values), side("b", better), side("c", values)])
    assert [(one.first, one.second) for one in results] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert results[1].p == 1.0
    assert results[0].p_adjusted is not None
    assert results[0].p is not None
    assert results[0].p_adjusted == pytest.approx(min(1.0, 3 * results[0].p))
    shuffled = list(better.items())
    random.Random(1).shuffle(shuffled)
    again = compare_all([side("a", values), side("b", dict(shuffled)), side("c", values)])
    assert msgspec.json.encode(again) == msgspec.json.encode(results)


def test_only_common_variants_are_paired() -> None:
    rows: Any = [("x", "base", 0, "m", 1.0, None, None, None), ("x", "wording=1", 0, "m", 0.0, None, None, None)]
    result = compare_pair(RunSide("a", read_tables(rows)["m"]), RunSide("b", read_tables(rows[:1])["m"]))
    assert (result.first_value, result.second_value, result.difference) == (1.0, 1.0, 0.0)


KEY = TrialKey("task", "s")
SAMPLE = Sample("s", "d", Form.CHOICE, "Which?", options=("cat", "dog"), answers=("cat",))
REQUEST = Request(
    KEY,
    (Turn("user", "Which?", (Image("/here/a.png", sha256="aa"),)),),
    Params(temperature=0.0, timeout_s=5),
    marks=("A", "B"),
    shown=("cat", "dog"),
)
PREDICTION = Prediction(KEY, text="A")
SCORE = Score(KEY, "accuracy", 1.0, "cat", "letter")
replace = msgspec.structs.replace


@pytest.mark.parametrize(
    ("stage", "sample", "request_", "prediction", "score"),
    [
        ("same", SAMPLE, REQUEST, PREDICTION, SCORE),
        ("data", replace(SAMPLE, answers=("dog",)), REQUEST, PREDICTION, SCORE),
        (
            "image",
            SAMPLE,
            replace(REQUEST, messages=(Turn("user", "Which?", (Image("/here/a.png", sha256="bb"),)),)),
            PREDICTION,
            SCORE,
        ),
        ("image", SAMPLE, REQUEST, replace(PREDICTION, images=(ImageSent("cc", "image/png", 1, 1, 9),)), SCORE),
        (
            "same",
            SAMPLE,
            replace(REQUEST, messages=(Turn("user", "Which?", (Image("/there/b.png", sha256="aa"),)),)),
            PREDICTION,
            SCORE,
        ),
        ("prompt", SAMPLE, replace(REQUEST, shown=("dog", "cat")), PREDICTION, SCORE),
        ("params", SAMPLE, replace(REQUEST, params=Params(temperature=1.0)), PREDICTION, SCORE),
        ("same", SAMPLE, replace(REQUEST, params=Params(temperature=0.0, timeout_s=99)), PREDICTION, SCORE),
        ("reply", SAMPLE, REQUEST, replace(PREDICTION, text="B"), SCORE),
        ("reply", SAMPLE, REQUEST, Prediction(KEY, failure=Failure(FailureKind.TIMEOUT, "late")), SCORE),
        ("extraction", SAMPLE, REQUEST, PREDICTION, replace(SCORE, rule="cue")),
        ("score", SAMPLE, REQUEST, PREDICTION, replace(SCORE, value=0.5)),
    ],
)
def test_first_divergence(stage: str, sample: Sample, request_: Request, prediction: Prediction, score: Score) -> None:
    base = fingerprint(SAMPLE, REQUEST, PREDICTION, [SCORE])
    other = fingerprint(sample, request_, prediction, [score])
    differing = [name for name, one, two in zip(STAGES, base, other, strict=True) if one != two]
    assert [*differing, "same"][0] == stage


def test_divergence_of_a_sample_is_its_earliest() -> None:
    base = fingerprint(SAMPLE, REQUEST, PREDICTION, [SCORE])
    other = fingerprint(SAMPLE, REQUEST, replace(PREDICTION, text="B"), [replace(SCORE, value=0.0, answer="dog")])
    first, second = side("a", {"s": [1.0], "t": [1.0]}), side("b", {"s": [0.0], "t": [1.0]})
    marks = {("s", "base", 0): base, ("s", "base", 1): base, ("t", "base", 0): base}
    marked = marks | {("s", "base", 0): other}
    result = compare_pair(
        replace(first, marks=StageMarks(marks.items())), replace(second, marks=StageMarks(marked.items()))
    )
    assert result.divergence == {"reply": 1, "same": 1}
    assert result.worse[0].divergence == "reply"
    assert np.all([stage in STAGES or stage == "same" for stage in result.divergence])
