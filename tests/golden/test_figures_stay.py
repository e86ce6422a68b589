"""Every estimate over drawn data is what it was when recorded: no figure moves between two versions unseen.

Whether a figure is right is tested beside its module; here it only stays. One that moves on purpose is said in the
CHANGELOG and recorded anew: `python tests/golden/test_figures_stay.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import pytest

import look_runs
import recount
from drawn_banks import drawn_bank
from snellen.core.builtins import default_registry
from snellen.core.errors import SnellenError
from snellen.core.tasks import Task
from snellen.core.types import Form, Image, ImageSent, Prediction, Request, Sample, Score, TrialKey
from snellen.kits.arms import figures as arms
from snellen.kits.arrays import sup_band
from snellen.kits.bank import bank_estimate, betting, gold_review, item_bank
from snellen.kits.looks import second_look
from snellen.kits.reform import figures as reform_figures
from snellen.scoring.aggregates import (
    calibration,
    consistency,
    error_groups,
    instability,
    robustness,
    summary,
    variance,
)
from snellen.scoring.tables.table import ScoredTask, ScoreTable
from snellen.scoring.tables.table_builder import TableBuilder
from snellen.stats import (
    agreement,
    average_precision,
    bootstrap,
    confidence,
    coordinate_frames,
    distributions,
    exchange,
    intervals,
    logistic,
    paired,
    power,
    prediction_powered,
    psychometric,
    sequential,
    threshold_grid,
)
from snellen.store.reader import RunReader

RECORDED = Path(__file__).parent / "figures_that_stay.json"
TOLERANCE = 1e-6


def plain(value: Any) -> Any:
    """Return what JSON can hold of a result; a long array as its shape, its sum and a sum by place."""
    if isinstance(value, np.ndarray) and value.size > 12:
        finite = value[np.isfinite(value)].astype(float)
        return [
            list(value.shape),
            int(finite.size),
            float(finite.sum()),
            float(finite @ np.cos(np.arange(finite.size))),
        ]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, list | tuple) and not hasattr(value, "_asdict"):
        return [plain(one) for one in value]
    if callable(value):
        return plain(value())
    named = named_parts(value)
    return value if named is None else {str(name): plain(one) for name, one in named.items()}


def named_parts(value: Any) -> dict[str, Any] | None:
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    return value if isinstance(value, dict) else None


def draw(seed: int = 5) -> np.random.Generator:
    return np.random.default_rng(seed)


def binary(size: int, share: float = 0.6, seed: int = 5) -> np.ndarray:
    return (draw(seed).random(size) < share).astype(float)


def of_intervals() -> Iterator[Any]:
    values, clusters = binary(60), np.arange(60) // 3
    graded = draw(2).random(60) * 3.0 - 1.0
    for share, trials in ((0.0, 7), (1.0, 7), (0.3, 40.5), (0.999, 12)):
        yield intervals.wilson(share, trials)
    for of, groups, is_share in ((values, None, True), (values, clusters, True), (graded, clusters, False)):
        sums, sizes = intervals.cluster_totals(of, groups)
        moments = intervals.ratio_moments(sums, sizes)
        yield [moments, moments.degrees(), intervals.share_interval(moments), intervals.mean_interval(moments)]
        yield intervals.estimate_mean(of, groups, n=70, unscored=3, failed=2, is_share=is_share)
        yield intervals.estimate_ratio(sums, sizes, bounded=is_share, n=60)
    for few in (np.zeros(0), np.ones(1), np.ones(9), np.zeros(9), np.array([0.5, 0.5]), np.array([0.0, 1.0])):
        yield [intervals.estimate_mean(few), intervals.estimate_mean(few, is_share=False)]
    parts = [(values[:30], clusters[:30]), (values[30:45], clusters[30:45]), (values[45:], clusters[45:])]
    macro = intervals.macro_moments(parts)
    yield [macro, macro.degrees(), intervals.share_interval(macro)]
    yield intervals.sum_interval([(1.0, 0.4, (0.3, 0.6)), (-2.0, 0.2, (0.1, 0.25))])
    yield [intervals.unseen_interval(0.0, 20), intervals.unseen_interval(0.1, 4)]
    yield [intervals.paired_share_interval(*of) for of in ((0, 0, 10), (5, 2, 40), (9, 0, 12), (0, 12, 12))]
    yield [intervals.mcnemar(*of) for of in ((0, 0), (1, 0), (5, 2), (40, 20), (3, 3))]
    yield intervals.holm([0.01, None, 0.04, 0.03, 0.5, 0.01])


def of_distributions() -> Iterator[Any]:
    for x in (-8.0, -1.2, 0.0, 0.7, 3.3):
        yield [distributions.normal_cdf(x), distributions.t_cdf(x, 1.0), distributions.t_cdf(x, 3.5)]
        yield distributions.t_cdf(x, 250.0)
    for p in (1e-9, 0.025, 0.3, 0.5, 0.9, 0.9999):
        yield [distributions.normal_quantile(p), *(distributions.t_quantile(p, of) for of in (1.0, 2.5, 40.0))]
        yield [distributions.beta_cdf(p, *of) for of in ((0.5, 0.5), (2.0, 7.0), (30.0, 3.0))]
        yield [distributions.binomial_cdf(*of, p) for of in ((0, 5), (3, 5), (5, 5), (40, 100))]


def of_draws() -> Iterator[Any]:
    columns = np.c_[draw(1).random(25), np.ones(25)]
    drawn = bootstrap.resample(columns, 50, "a", 1)
    yield [drawn, bootstrap.percentile_interval(bootstrap.ratio(drawn), 25)]
    yield bootstrap.bootstrap_interval(columns, bootstrap.ratio, "b", draws=300, limits=(0.0, 1.0))
    yield bootstrap.bootstrap_interval(columns[:3], bootstrap.ratio, "b", draws=300)
    differences, sizes = draw(3).normal(0.2, 1.0, 30), draw(4).integers(1, 4, 30).astype(float)
    yield bootstrap.difference_interval(differences, sizes, "c", draws=300)
    yield bootstrap.difference_p_value(differences, sizes, "c", draws=300)
    yield [bootstrap.swap_p_value(of, "d", draws=300) for of in (differences, differences[:6], np.zeros(5))]
    yield [bootstrap.has_no_spread(of) for of in (np.ones(4), np.array([1.0, 1.0 + 1e-3]))]


def of_confidence() -> Iterator[Any]:
    right = binary(80, 0.7)
    sure = np.clip(0.3 + 0.4 * right + draw(7).normal(0.0, 0.25, 80), 0.0, 1.0)
    clusters = np.arange(80) // 2
    yield confidence.describe_confidence("stated", sure, right, clusters, without=4)
    yield confidence.describe_confidence("stated", np.round(sure, 1), right)
    yield [confidence.describe_confidence("stated", sure[:size], right[:size]) for size in (0, 5, 12)]
    yield [confidence.risk_at(np.round(sure, 1), right, share) for share in (0.1, 0.5, 0.95, 1.0)]
    yield [confidence.softmax([-1.0, -2.5, -900.0]), confidence.softmax([0.0, 1.0], 2.0)]


def of_pairs() -> Iterator[Any]:
    one, other, clusters = binary(70, 0.5, 1), binary(70, 0.65, 2), np.arange(70) // 2
    for groups, single in ((None, None), (clusters, None), (None, True), (None, False)):
        yield paired.paired_difference(one, other, groups, "p", single=single)
    yield paired.paired_difference(one * 0.5, other, clusters, "p")
    yield [paired.paired_difference(one[:size], other[:size]) for size in (0, 1, 2)]
    yield paired.paired_ratio(other * 3.0, 1.0 + one, clusters)
    yield paired.kept_share(one, other, 0.25, clusters)
    yield paired.kept_share(one, other, 0.2, chance_without=0.1)
    yield [paired.fewer_by_chance(3, 20, 12, 20), paired.guessed_by_chance(9, 20, 0.25), paired.sign_by_chance(9, 2)]
    yield paired.discoveries([0.001, 0.2, 0.012, 0.03, 0.9])
    verdicts, labels = binary(90, 0.7, 3), np.where(np.arange(90) % 3 == 0, binary(90, 0.6, 4), np.nan)
    for groups in (None, np.arange(90) // 2):
        yield prediction_powered.prediction_powered_mean(verdicts, labels, groups)
    yield prediction_powered.prediction_powered_mean(verdicts * 4.0, labels * 4.0, scale=(0.0, 4.0))


def of_designs() -> Iterator[Any]:
    given = power.Assumptions(accuracy=0.8, question_share=0.5, likeness=0.3)
    for split in ((0.1, 0.02, 0.05), (0.1, None, 0.05), (None, None, None), (0.0, 0.0, 0.0), (0.2, None, None)):
        found = power.VarianceSplit(*split, 100, 2.0, 3.0)
        yield [found.stderr, found.predicted_stderr(200, 2, 3), found.predicted_stderr(100, 4, 1)]
        yield power.assume(found, 0.75, likeness=0.4)
    for repeats in (1, 4):
        yield power.difference_variance(given, repeats)
        yield [power.questions_for(0.03, repeats, given), power.gap_for(500, repeats, given)]
    by_gap, by_count = power.plan(given, gap=0.05), power.plan(given, questions=400)
    yield [by_gap, by_count]
    yield [power.recommend(by_gap, by_questions=False), power.recommend(by_count, by_questions=True)]
    yield [betting.sampling_noise(0.2, 2, 0.15, 3, 400), betting.repeats_for(0.02, 0.2, 0.15, 400)]


def of_gates() -> Iterator[Any]:
    bank = drawn_bank(25, 150, 3)
    bank[draw(1).random(bank.shape) < 0.1] = np.nan
    base = drawn_bank(26, 150, 3)[-1]
    for seed, (share, with_bank, grouped, noise) in enumerate(
        ((0.02, True, False, 0.0), (0.3, True, False, 0.0), (0.1, False, True, 0.002), (0.05, True, True, 0.0))
    ):
        changed = draw(seed).random(150) < share
        candidate = np.where(changed, 0.0 if seed % 2 else 1.0, base)
        groups = np.arange(150) // 3 if grouped else None
        prepared = betting.prepare(base, bank if with_bank else None, groups)
        yield prepared
        differences = candidate - base
        if groups is not None:
            differences = np.bincount(groups, weights=differences) / 3.0
        one = betting.Gate(prepared, 0.05, noise=noise)
        for count, unit in enumerate(prepared.order(draw(seed)).tolist(), 1):
            one.add(unit, float(differences[unit]))
            if count in (1, 10, 40) or count == differences.size:
                yield [one.verdict(), one.interval, one.wagers.wealth_above, one.wagers.wealth_below]


def of_banks() -> Iterator[Any]:
    results = drawn_bank(30, 80, 2)
    results[draw(1).random(results.shape) < 0.1] = np.nan
    yield [item_bank.fit_factors(results), item_bank.fit_components(drawn_bank(30, 80, 2))]
    predictor = item_bank.fit_predictor(results)
    index, units = draw(3).permutation(80)[None, :40], None
    values = binary(40, 0.7, 8)[None]
    yield predictor.predict(index, values, np.ones((1, 40)))
    yield predictor.for_items(np.arange(20)).items
    for groups in (units, np.arange(40)[None] // 2):
        fit = bank_estimate.cross_fit(predictor, index, values, groups)
        yield [fit.predictions, bank_estimate.whole_estimate(fit, 80), bank_estimate.estimates(fit, 80).interval(0)]
    plain_fit = bank_estimate.cross_fit(None, index, values)
    within = np.arange(80) < 50
    yield [bank_estimate.whole_estimate(plain_fit, 80), bank_estimate.whole_estimate(plain_fit, 80, within)]
    yield bank_estimate.repetition_error(np.array([0.1, 0.2, 0.0]), 3, 100)
    yield [gold_review.abilities(results), gold_review.rasch_abilities(results), gold_review.model_weights(results)]
    yield gold_review.wrong_gold_ratios(results)


def of_curves() -> Iterator[Any]:
    x = np.linspace(-1.0, 2.0, 9)
    trials = np.full(9, 12.0)
    right = np.array([2.0, 3, 2, 4, 7, 9, 11, 12, 11])
    each = draw(9).binomial(4, (right / 12.0)[:, None], (9, 6)).astype(float).T
    tried = np.full(each.shape, 4.0)
    for guess, lapse in ((0.0, 0.0), (0.2, 0.02)):
        curve = logistic.fit_curve(x, right, trials, guess=guess, lapse=lapse)
        assert curve is not None
        yield [curve, curve.probability(0.4), curve.where(0.6), curve.where(0.01)]
        yield logistic.threshold_interval(x, each, tried, 0.6, guess=guess, lapse=lapse, draws=60)
    yield [logistic.fit_curve(x, of, trials) for of in (trials, trials * 0.0, trials / 2.0, right[::-1])]
    for law in (psychometric.LOGISTIC, *psychometric.OTHER_LAWS):
        yield [psychometric.right_share(np.linspace(-3, 3, 7), np.array(2.0), 0.1, np.array(0.03), law), law.far]
    for weight in (np.ones(9), np.linspace(0.2, 1.0, 9)):
        yield psychometric.fit_threshold(psychometric.Rows(x, trials, right, np.full(9, 0.1), weight))
    single = psychometric.Rows(x, np.ones(9), (right > 5).astype(float), np.full(9, 0.25), np.ones(9))
    yield psychometric.fit_threshold(single)
    yield psychometric.log_likelihood(right, trials, np.linspace(0.1, 0.9, 9)[:, None], 0.2)


def of_exams() -> Iterator[Any]:
    for low, high, guess, glyphs in ((0.0, 1.5, 0.1, 5), (0.0, 1.2, 0.25, 1)):
        grid = threshold_grid.ThresholdGrid(low, high, guess, glyphs)
        others = [grid.under(law) for law in psychometric.OTHER_LAWS]
        beliefs = [one.start(2) for one in (grid, *others)]
        draws = draw(glyphs)
        for _ in range(8):
            places = grid.choose(beliefs[0], 2, easiest_first=True)[:, 0]
            right = (draws.random(2) < 0.6) * 1.0 if glyphs == 1 else draws.integers(0, glyphs + 1, 2).astype(float)
            beliefs = [one.learn(of, places, right) for one, of in zip((grid, *others), beliefs, strict=True)]
        known = grid.known(beliefs[0])
        pairs = list(zip((grid, *others), beliefs, strict=True))
        yield [known, grid.known(beliefs[0], 0.5), threshold_grid.across_laws(known, pairs)]
        yield [
            threshold_grid.law_weights(beliefs),
            threshold_grid.threshold_mass(beliefs),
            grid.information(beliefs[0]),
        ]
        yield [threshold_grid.log_evidence(beliefs[0]), grid.far_places(beliefs[0])]
        yield grid.known(grid.learn_at(beliefs[0], 0.4, 1.0, glyphs, guess))
        finer = grid.refined(1, threshold_grid.SLOPES[::2])
        yield finer.known(finer.learn(finer.start(), np.array([20]), np.array([1.0])))
        yield [grid.place_of(0.33), grid.x_of(np.array([3, 9])), grid.end]
    by_level = threshold_grid.ThresholdGrid(0.0, 0.5, 0.3, guesses=np.linspace(0.5, 0.1, 51))
    belief = by_level.learn(by_level.start(), np.array([7]), np.array([1.0]))
    yield by_level.known(belief)
    yield threshold_grid.shared_lapses(np.array([0.0, 3.0, 12.0]), np.array([60.0, 20.0, 60.0]))
    yield threshold_grid.flat_evidence(np.array([[3.0, 5.0]]), np.array([[5.0, 5.0]]), 0.1, 5)
    yield threshold_grid.cell_quantiles(np.arange(6.0), np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1]), (0.025, 0.5, 0.9))


def of_looks() -> Iterator[Any]:
    values, questions = binary(60, 0.6, 1), np.arange(60) // 3
    yield second_look.chance_flips(values, questions, 22)
    plain_means = values.reshape(-1, 3).mean(axis=1)
    base, called = binary(20, 0.7, 2), binary(20, 0.5, 3)
    flips = second_look.chance_flips(values, questions, 20)
    for chance in (None, flips):
        yield second_look.split_worth(plain_means, second_look.Replies(base, base * called, called), chance)
    grey, gold = binary(20, 0.4, 4), binary(20, 0.95, 5)
    yield second_look.reliance(base, grey, gold, np.arange(20) // 2)
    yield second_look.price_of_one(draw(6).random(20) * 100, base - plain_means)
    crops = np.array([[0, 0, 10, 10], [5, 5, 20, 12], [30, 30, 40, 41]], float)
    golds = np.array([[2, 2, 8, 20], [6, 6, 7, 7]], float)
    yield [second_look.held(crops, golds), second_look.union_area(crops), second_look.union_area(crops[:0])]
    yield average_precision.overlaps(crops, golds)
    pictures = [average_precision.Picture(golds, crops), average_precision.Picture(crops, crops[::-1])]
    yield [average_precision.average_precision(pictures, least) for least in (0.1, 0.5, 1.0)]
    yield average_precision.mean_average_precision([pictures, pictures[:1], []])


def of_orders() -> Iterator[Any]:
    published, others = draw(1).normal(0.0, 1.0, 40), draw(2).normal(-0.3, 1.0, (40, 5))
    yield exchange.exchange_test(published, others, "x", draws=200)
    yield exchange.exchange_chance(published, others, "x", draws=500)
    graded = np.round(np.clip(others, -1, 1))
    yield exchange.exchange_test(np.round(np.clip(published, -1, 1)), graded, "x", draws=200)
    yield [exchange.detectable_drop(0.02, 100), exchange.detectable_drop(0.02, 100, graded=True)]
    yield exchange.beside_references(0.2, 0.05, [0.01, 0.05, -0.02])
    places = np.argsort(draw(3).random((40, 5)), axis=1)
    yield exchange.order_test(binary(200, 0.6).reshape(40, 5), places)
    sequence = sequential.ConfidenceSequence(half_width=0.1)
    for count, value in enumerate(binary(120, 0.8), 1):
        sequence.add(float(value))
        if count in (1, 7, 30, 120):
            yield [sequence.mean, sequence.interval, sequence.is_narrow]
    clusters = np.arange(50) // 2
    yield sup_band.simultaneous_band(draw(4).normal(0.1, 1.0, (50, 4)), clusters, "s")
    yield [sup_band.share_of_level(look, 3) for look in range(1, 5)]
    yield sup_band.fall(binary(50, 0.8, 6), binary(50, 0.5, 7), clusters, 0.05)
    judges = agreement.Agreement()
    labels = draw(5).integers(0, 3, (30, 3))
    for row in labels.tolist():
        judges.change({}, {f"j{place}": str(label) for place, label in enumerate(row) if label or place})
    judges.change({"j0": "1", "j1": "2"}, {"j0": "1"})
    yield [judges.observed, judges.kappa("j0", "j1"), judges.kappas(), judges.alpha]


def of_frames() -> Iterator[Any]:
    canvases = np.array([(640, 480), (1024, 1024), (480, 960), (1600, 900)], float)
    size = np.repeat(canvases, 6, axis=0)
    true = 20.0 + draw(1).random((3, 24, 2)) * (size - 40.0)
    near = true + draw(2).laplace(0.0, 3.0, true.shape)
    near[1, 5] = (3.0, 3.0)
    told = {
        "thousandths": near / size * 1000.0,
        "pixels": near,
        "fractions": near / size,
        "y first": (near / size * 1000.0)[..., ::-1],
        "1001": near / size * 1001.0,
    }
    for name, said in told.items():
        fitted = coordinate_frames.fit_frames(
            coordinate_frames.Answers(np.round(said, 3 if name == "fractions" else 0), true, size)
        )
        chances = coordinate_frames.probabilities(fitted)
        yield [coordinate_frames.tell_frame(fitted, chances, answerer) for answerer in range(3)]
        yield [chances, np.array([one.cost.sum() for one in fitted]), fitted[0].placed]


def of_table(**how: Any) -> ScoreTable:
    """Return the table of a drawn run: questions in groups, variants, repeats, unread and failed replies."""
    draws, variants, repeats = draw(int(how.get("seed", 1))), how.get("variants", ("base",)), how.get("repeats", 1)
    builder = TableBuilder()
    samples: list[tuple[str, str | None, dict[str, Any]]] = [
        (
            f"s{at:02}",
            f"g{at // 2}" if at % 3 else None,
            {"topic": "ab"[at % 2], "level": 1 + at % 4, "round": at % 3 + 1},
        )
        for at in range(18)
    ]
    if how.get("chains"):
        samples = [
            (f"c{chain}-{step}", f"c{chain}", {"role": "step" if step else "inference", "step": step, "steps": 3})
            for chain in range(9)
            for step in range(4)
        ]
    builder.add_samples(samples)
    keys = [(name, variant, at) for name, *_ in samples for variant in variants for at in range(repeats)]
    fates = draws.choice(["failed", "unread", "said"], len(keys), p=[0.05, 0.1, 0.85])
    builder.add_trials(
        [
            (*key, "server" if fate == "failed" else None, row)
            for row, (key, fate) in enumerate(zip(keys, fates, strict=True))
        ]
    )
    able = np.array([0.2 + 0.75 * draws.random() for _ in samples])
    rows = []
    for row, (name, variant, repeat) in enumerate(keys):
        chance = able[row // (len(variants) * repeats)] * (1.0 - 0.25 * variants.index(variant))
        right, other = float(draws.random() < chance), "BCD"[int(draws.integers(3))]
        score = (
            (None, None, "rule", "unparsed")
            if fates[row] == "unread"
            else (right, "A" if right else other, "rule", None)
        )
        if fates[row] != "failed":
            rows.append((name, variant, repeat, str(how.get("metric", "accuracy")), *score))
    builder.add_scores(rows)
    (table,) = builder.tables().values()
    return table


SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "repeated": {"repeats": 3},
    "varied": {"variants": ("base", "order=1", "order=2")},
    "both": {"variants": ("base", "order=1"), "repeats": 3, "seed": 4},
    "perturbed": {"variants": ("base", "perturb=jpeg:1", "perturb=jpeg:3", "perturb=blur:2"), "seed": 5},
    "errors": {"metric": "wer", "repeats": 2, "variants": ("base", "perturb=jpeg:2")},
    "chains": {"chains": True},
    "chains twice": {"chains": True, "repeats": 2, "seed": 7},
}


def of_summaries() -> Iterator[Any]:
    for shape, how in SHAPES.items():
        table = of_table(**how)
        keys = () if "chains" in shape else ("topic", "level")
        yield [shape, summary.summarize({table.metric: table}, group_by=keys)]
        split = variance.split_variance(table)
        yield [split, variance.advise(split)]
        for ladder in robustness.ladders(table):
            yield [robustness.curve(ladder), robustness.retention(ladder, 0.25), robustness.flips(ladder)]
            yield [robustness.worst_case(ladder), robustness.worst_case(ladder, errors=True)]
            yield robustness.critical_severity(ladder, 0.25)
        yield [
            instability.answer_entropy(table),
            instability.variant_range(table),
            reform_figures.format_hit_rate(table),
        ]
        if "chains" in shape:
            yield [consistency.aggregate(table, {"convention": of}) for of in ("conditional", "over-n")]
            yield consistency.settled_chains(table)


KEY = TrialKey("t", "s")
PICTURE = Image("/a.png", width=400, height=300)
OPTIONS = ("a red bus", "two cats", "12", "No, nothing")
FREE = (
    *("42", "The answer is 42.", "about 41.9", "forty-two", "42 %", "0.42", "1,042", "$42.00", "between 40 and 44"),
    *(
        "a red bus",
        "A Red Bus!",
        "the red buses",
        "red",
        "It is a red bus, not a blue one.",
        "yes",
        "No.",
        "Yes, it is 42",
    ),
    *(
        "<think>7</think> 42",
        "<think>42",
        "",
        "I cannot see the picture.",
        '{"answer": 42}',
        '```json\n{"total": "42"}\n```',
    ),
    *(
        "3 m to 7 m",
        "x = \\\\boxed{42}",
        "12 - 17 seconds",
        "From 10s to 20s",
        "Paris; London",
        "Paris, London and Rome",
    ),
)
POINTING = (
    *("[40, 30, 200, 150]", "(40, 30)", "[0.1, 0.1, 0.5, 0.5]", "<box>(100,100),(500,500)</box>", "x: 120, y: 90"),
    *('[{"bbox_2d": [40, 30, 200, 150], "label": "cat"}]', "[1, 2, 3, 4] or [5, 6, 7, 8]", "I cannot find it.", ""),
    *(
        '[{"bbox_2d": [42, 28, 190, 160], "label": "cat"}, {"bbox_2d": [0, 0, 9, 9], "label": "dog"}]',
        "[200, 150, 40, 30]",
    ),
    *(
        "[(120, 90), (10, 10)]",
        "(0.3, 0.3)",
        "[40, 30, 160, 120]",
        "<point x='30' y='30'>cat</point>",
        "[300, 300, 900, 900]",
    ),
)
CHOOSING = (
    *(
        "B",
        "(b)",
        "The answer is B.",
        "two cats",
        "A or B",
        "Not A. It is B",
        "b) two cats\n\nAnswer: C",
        "",
        "Z",
        "AB",
    ),
    *(
        "I think it is the bus",
        "A, B and D",
        "12",
        "Neither",
        "<think>A</think>**B**",
        "none of them",
        "No",
        "B and C",
        "D.",
    ),
)
ROWS = (
    "KSNR\nHVDOZ\nCNKRS",
    "KSNR HVDOZ",
    "KSNR\n\nHVD0Z\nCNKR",
    "HVDOZ\nCNKRS",
    "1. KSNR\n2. HVDQZ\n3. ?????",
    "KSNR",
    "K S N R",
    "KSN",
    "ksnr",
    "KSNRX",
    "Row 1: KSNR",
    "RNSK",
    "KXNR",
    "nothing",
    "",
    "I read: K, S, N, R.",
)


def asked(form: Form, *answers: str, **how: Any) -> Sample:
    return Sample("s", "d", form, how.pop("question", "What is it?"), images=(PICTURE,), answers=answers, **how)


FREELY = (
    *("anls", "any_exact", "braced", "caption", "chart_answer", "closed_forms", "contains", "document_answer", "exact"),
    *(
        "json_answer",
        "kie",
        "kie_f1",
        "kie_reform",
        "label_set",
        "mmmu_by_form",
        "mra",
        "needle",
        "needle-case",
        "number",
    ),
    *(
        "ocr",
        "ocr_reform",
        "relaxed",
        "short",
        "temporal-iou",
        "vqa",
        "vqa_simple",
        "wer",
        "word_f1",
        "annotated",
        "by_form",
    ),
)
OPEN = (
    asked(Form.OPEN, "42"),
    asked(Form.OPEN, "a red bus", "red bus"),
    asked(Form.OPEN, "0.42", tags={"answer_type": "float", "precision": 2}),
    asked(Form.OPEN, "Paris", "London"),
    asked(Form.OPEN, "10", "20", question="From when to when?"),
    asked(Form.OPEN, *["yes"] * 6, *["no"] * 3, "42", question="Is it so?"),
    asked(Form.KIE, "42", meta={"fields": {"total": "42", "city": "Paris"}}),
    asked(Form.OPEN, "42", tags={"type": "Conversational", "answer_format": "Int"}, question="How many?"),
)
CHOICES = (
    asked(Form.CHOICE, "two cats", options=OPTIONS),
    asked(Form.MULTIPLE, "a red bus", "two cats", options=OPTIONS),
)
YES_NO = (asked(Form.YESNO, "yes", options=("yes", "no")), asked(Form.YESNO, "no", options=("yes", "no")))
PLACES = (
    asked(Form.OPEN, "[40, 30, 200, 150]"),
    asked(Form.OPEN, "[80, 60, 160, 120]"),
    asked(Form.OPEN, "[120, 90]"),
)
DETECTED = (
    asked(Form.OPEN, '[["cat", [40, 30, 200, 150]]]'),
    asked(Form.OPEN, '[["cat", [40, 30, 200, 150]], ["dog", [0, 0, 9, 9]]]'),
)
LINES = [
    {"text": text, "height_px": 40 * 0.7**at, "contrast": 1.0} for at, text in enumerate(("KSNR", "HVDOZ", "CNKRS"))
]
CHARTS = tuple(
    asked(
        Form.OCR,
        "\n".join(str(line["text"]) for line in LINES[:rows]),
        tags={"axis": "base", "script": "letters"},
        meta={"lines": LINES[:rows], "alphabet": "CDHKNORSVZ", "chance": 0.1},
    )
    for rows in (1, 3)
)
FRAMES = ({}, *({"coordinates": {"gold": "pixels", "reply": reply}} for reply in ("pixels", "0-1000", "0-1")))
TOLD: tuple[tuple[tuple[str, ...], tuple[Sample, ...], tuple[str, ...], tuple[dict[str, Any], ...]], ...] = (
    (FREELY, OPEN, FREE, ({},)),
    (("choice", "multiple", "option_index", "mmmu_by_form", "by_form", "annotated", "mra"), CHOICES, CHOOSING, ({},)),
    (("yesno", "choice", "by_form"), YES_NO, (*FREE, "no and yes", "Not really", "yes!"), ({},)),
    (("box", "place", "click", "points"), PLACES, POINTING, FRAMES),
    (("detections",), DETECTED, POINTING, FRAMES),
    (("eyechart", "exact", "ocr", "wer"), CHARTS, ROWS, ({},)),
)


def verdict(score: Callable[..., Any], sample: Sample, reply: str, options: dict[str, Any]) -> str:
    request = Request(KEY, (), marks=tuple("ABCD"[: len(sample.options)]), shown=sample.options)
    sent = ImageSent("0" * 64, "image/png", 200, 150, 1, original=(400, 300))
    try:
        scores = score(sample, request, Prediction(KEY, text=reply, images=(sent,)), options)
    except (SnellenError, KeyError) as error:
        return type(error).__name__
    told = (
        f"{one.metric} {'-' if one.value is None else f'{one.value:.5g}'} {str(one.answer)[:20]} {one.reason or ''}"
        for one in scores
    )
    return ";".join(told).strip()


def of_verdicts() -> Iterator[Any]:
    registry = default_registry()
    for names, samples, replies, ways in TOLD:
        for name, number, way in product(names, range(len(samples)), range(len(ways))):
            scorer = registry.get("scorer", name)
            said = [verdict(scorer, samples[number], reply, ways[way]) for reply in replies]
            yield [f"{name} {number} {way}", *(said if len(set(said)) > 1 else said[:1])]


NAMED = (
    *("calibration", "compensated", "consistency", "cure", "instability", "ladder", "macro", "mean", "page-cost"),
    *("perturbed", "reform", "repeats", "robustness", "rounds", "threshold", "variance", "variants"),
)
ARMS = ("base", "control=none", "control=blank")


def of_tasks() -> Iterator[Any]:
    """Every aggregate by name, over tasks with scores that say how sure they are and which rung they reached."""
    registry = default_registry()
    rates = {"variants": ("base", "fps=1", "fps=4"), "repeats": 2, "seed": 9}
    for shape, how in {**SHAPES, "rates": rates, "arms": {"variants": ARMS, "repeats": 3, "seed": 8}}.items():
        table = of_table(**how)
        samples = {name: sample_of(name, place) for place, name in enumerate(table.samples)}
        scores = [scored_as(table, row, samples) for row in range(len(table)) if table.scored[row]]
        task = Task(
            "t", {"loader": "table"}, Form.CHOICE, repeats=how.get("repeats", 1), variants=tuple(table.variants)
        )
        scored = ScoredTask(task, {table.metric: table}, lambda pairs=scores: iter(pairs), samples.values().__iter__)
        for name in NAMED:
            try:
                yield [shape, name, registry.get("aggregate", name)(scored, {"chance": 0.25})]
            except (SnellenError, KeyError) as error:
                yield [shape, name, type(error).__name__]
        yield [calibration.describe_sureness(scored), calibration.by_repeats(table)]
        for arm in ARMS[1:] if shape == "arms" else ():
            found = arms.Arms(table, arms.chances(samples.values()))
            yield [found.names, found.needs_picture(), found.questions(), found.by_group(("topic", "level"))]
            yield [found.describe(name) for name in found.names if name != arm]


def sample_of(name: str, place: int) -> Sample:
    meta = {"visual_tokens": {"a": {"qwen": 300 + place, "gemma": 256}}}
    tags = {"context_tokens": 1000 + 10 * place, "role": "step" if place % 4 else "inference"}
    return Sample(
        name, "d", Form.CHOICE, "Which is it?", options=OPTIONS, answers=(OPTIONS[place % 4],), tags=tags, meta=meta
    )


def scored_as(table: ScoreTable, row: int, samples: dict[str, Sample]) -> tuple[Sample, Score]:
    name, value = table.samples[table.sample[row]], float(table.value[row])
    sure = round(0.4 + 0.5 * value + 0.01 * (row % 9), 3)
    detail = {
        "confidence": sure,
        "stated_confidence": 1.0 - sure,
        "ladder": {"exact": value, "contains": float(row % 2)},
    }
    key = TrialKey("t", name, table.variants[table.variant[row]], int(table.repeat[row]))
    return samples[name], Score(key, table.metric, value, "A", "rule", detail=detail)


def of_runs() -> Iterator[Any]:
    """Whole runs, written, scored and summed up: drawn ones, and one of an agent that looks again."""
    with TemporaryDirectory() as folder:
        for seed in (1, 2, 5, 8):
            run = recount.draw_run(seed)
            tasks = recount.write_run(run, Path(folder) / str(seed))["tasks"]
            yield [seed, {name: task["metrics"] for name, task in tasks.items()}]
        looked = look_runs.make_look_run(Path(folder) / "looks", count=12, repeats=2)
        (task,) = json.loads((looked / "results.json").read_bytes())["tasks"].values()
        yield [task["metrics"], task["looks"], task["notes"]]
        with RunReader(looked) as reader:
            yield [len(group.trials) for group in error_groups.read_errors(reader, "squares")]


FIGURES: dict[str, Callable[[], Iterator[Any]]] = {
    name.removeprefix("of_"): one
    for name, one in sorted(globals().items())
    if name.startswith("of_") and name != "of_table"
}


def differences(before: Any, now: Any, place: str) -> Iterator[str]:
    """Yield where two results differ by more than rounding."""
    if isinstance(before, dict) and isinstance(now, dict) and before.keys() == now.keys():
        for name in before:
            yield from differences(before[name], now[name], f"{place}.{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif isinstance(before, float) and isinstance(now, float):
        if now != pytest.approx(before, rel=TOLERANCE, abs=TOLERANCE):
            yield f"{place}: {before} -> {now}"
    elif before != now:
        yield f"{place}: {before} -> {now}"


def measured(name: str) -> Any:
    return json.loads(json.dumps(list(map(plain, FIGURES[name]()))))


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_what_they_were(name: str) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[name]
    moved = list(differences(recorded, measured(name), name))
    assert not moved, "\n".join(moved[:20])


if __name__ == "__main__":
    found = {name: measured(name) for name in FIGURES}
    rounded = json.loads(json.dumps(found), parse_float=lambda text: float(f"{float(text):.10g}"))
    lines = ",\n".join(f'"{name}": {json.dumps(of)}' for name, of in rounded.items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    sys.stdout.write(f"{RECORDED.stat().st_size} bytes\n")
