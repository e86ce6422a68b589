"""The score of the whole from a part: unbiased, covered, narrower with a bank, never fooled by a hostile one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from drawn_banks import drawn_bank
from draws import drawn, leeway
from snellen.kits.bank.bank_estimate import FOLDS, cross_fit, estimates, repetition_error, whole_estimate
from snellen.kits.bank.item_bank import OUTSIDE_WEIGHT, fit_components, fit_factors, fit_predictor
from snellen.stats.intervals import wilson

BANK = drawn_bank(60, 400)
WEAK, STRONG = BANK[:45], BANK[45:]
HOSTILE = {
    "inverted": 1.0 - WEAK,
    "permuted": WEAK[:, np.random.default_rng(1).permutation(400)],
    "random": (np.random.default_rng(2).random(WEAK.shape) < 0.5).astype(float),
    "another benchmark": drawn_bank(45, 400, seed=77),
}


def trials(bank: np.ndarray | None, held: np.ndarray, asked: int, draws: int, seed: int = 3):
    """Coverage, width, width without the bank, and mean error of random prefixes of models that are not in the bank."""
    draw = np.random.default_rng(seed)
    predictor = None if bank is None else fit_predictor(bank)
    rows = held[np.arange(draws) % len(held)]
    index = np.argsort(draw.random(rows.shape), axis=1)[:, :asked]
    found = estimates(cross_fit(predictor, index, np.take_along_axis(rows, index, 1)), rows.shape[1])
    truth = rows.mean(axis=1)
    intervals = np.array([found.interval(row) for row in range(draws)])
    plain = np.array([found.interval(row, plain=True) for row in range(draws)])
    covered = ((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])).mean()
    return covered, np.ptp(intervals, axis=1).mean(), np.ptp(plain, axis=1).mean(), (found.value - truth).mean()


@drawn(600)
@pytest.mark.parametrize("asked", [50, 100, 200])
def test_models_stronger_than_the_bank_are_covered_with_fewer_questions(asked: int, draws: int) -> None:
    covered, width, plain, error = trials(WEAK, STRONG, asked, draws)
    assert 0.95 - leeway(0.025, 600, draws) <= covered <= 0.95 + leeway(0.03, 600, draws)
    assert (width / plain) ** 2 < 0.9
    assert abs(error) < leeway(0.006, 600, draws)


@drawn(600)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_bank_costs_no_width_and_no_truth(kind: str, draws: int) -> None:
    covered, width, plain, error = trials(HOSTILE[kind], STRONG, 100, draws)
    assert 0.95 - leeway(0.025, 600, draws) <= covered
    assert (width / plain) ** 2 <= 1.01
    assert abs(error) < leeway(0.006, 600, draws)


def test_with_full_trust_the_estimate_is_exactly_unbiased_over_all_draws() -> None:
    """All 252 draws of 5 from 10 in their fixed order of folds: the mean of the estimates is the score of the whole."""
    rng = np.random.default_rng(4)
    bank = (rng.random((12, 10)) < np.linspace(0.2, 0.9, 10)).astype(float)
    tested = (rng.random(10) < 0.6).astype(float)
    predictor = fit_predictor(bank)
    found = []
    for chosen in combinations(range(10), 5):
        for turn in range(FOLDS):  # every item takes every fold
            index = np.roll(np.array(chosen), turn)[None]
            fit = cross_fit(predictor, index, tested[index])
            own = np.take_along_axis(fit.predictions, index[:, None], axis=2)[0]
            parts = []
            for fold in range(FOLDS):
                others = [position for position in range(5) if position % FOLDS != fold]
                predicted = fit.predictions[0, fold].sum() - own[fold, others].sum()
                missed = (10 - 4) * (tested[index[0, fold]] - own[fold, fold])
                parts.append((tested[index[0, others]].sum() + predicted + missed) / 10)
            found.append(np.mean(parts))
    assert np.mean(found) == pytest.approx(tested.mean(), abs=1e-12)


def test_the_formulas_by_hand() -> None:
    """One draw recomputed with loops from section 1 of the specification."""
    predictor, tested, asked, items = fit_predictor(WEAK), STRONG[0], 60, 400
    index = np.random.default_rng(8).permutation(items)[:asked]
    y = tested[index]
    fit = cross_fit(predictor, index[None], y[None])
    folds = np.arange(asked) % 5
    out = np.array([fit.predictions[0, folds[i], index[i]] for i in range(asked)])
    theta = 0.0
    for k in range(5):
        f, other, own = fit.predictions[0, k], index[folds != k], index[folds == k]
        rest = np.setdiff1d(np.arange(items), other)
        missed = (tested[own] - f[own]).sum() * (items - other.size) / own.size
        theta += own.size / asked * (tested[other].sum() + f[rest].sum() + missed) / items
    trust = np.clip(np.cov(y, out)[0, 1] / np.var(out, ddof=1), 0, 1)
    s_y, s_r = np.var(y, ddof=1), np.var(y - trust * out, ddof=1) * (asked - 1) / (asked - 2)
    v = (asked * min(s_r, s_y) + 10 * s_y) / (asked + 10)
    d = np.clip(v / (y.mean() * (1 - y.mean()) * asked / (asked - 1)), 0.02, 1)
    value = (1 - trust) * y.mean() + trust * theta
    found = whole_estimate(fit, items)
    assert found.trust == pytest.approx(trust)
    assert found.value == pytest.approx(value)
    expected = wilson(value, asked / (d * (1 - asked / items)), 2.000995378088265)  # t of 59 degrees, scipy
    assert found.interval == pytest.approx(expected, abs=1e-9)


def test_fold_predictions_do_not_see_their_own_fold() -> None:
    predictor, index = fit_predictor(WEAK), np.arange(50)[None]
    first = cross_fit(predictor, index, STRONG[:1, :50])
    values = STRONG[:1, :50].copy()
    values[0, 0::5] = 1 - values[0, 0::5]  # everything of fold 0
    second = cross_fit(predictor, index, values)
    assert np.array_equal(first.predictions[0, 0], second.predictions[0, 0])
    assert not np.array_equal(first.predictions[0, 1], second.predictions[0, 1])


def test_everything_asked_is_exact() -> None:
    found = whole_estimate(cross_fit(fit_predictor(WEAK), np.arange(400)[None], STRONG[:1]), 400)
    assert found.interval is None
    assert found.value == pytest.approx(STRONG[0].mean())


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_outcomes_all_alike_have_an_interval(value: float) -> None:
    found = whole_estimate(cross_fit(fit_predictor(WEAK), np.arange(50)[None], np.full((1, 50), value)), 400)
    assert found.interval is not None
    assert found.half_width > 0.02
    assert found.value == value


def test_groups_widen_the_interval_and_are_covered() -> None:
    draw = np.random.default_rng(5)
    sizes, asked = 3, 50
    held = np.repeat((draw.random((200, 134)) < 0.6).astype(float), sizes, axis=1)[:, :402]
    members = np.arange(402).reshape(-1, sizes)
    order = np.argsort(draw.random((200, 134)), axis=1)[:, :asked]
    index = members[order].reshape(200, -1)
    units = np.repeat(np.arange(asked), sizes)[None].repeat(200, 0)
    fit = cross_fit(None, index, np.take_along_axis(held, index, 1), units)
    found = estimates(fit, 402)
    inside = [
        low <= truth <= high for (low, high), truth in zip(map(found.interval, range(200)), held.mean(1), strict=True)
    ]
    assert 0.9 <= np.mean(inside) <= 0.99
    alone = estimates(cross_fit(None, index, np.take_along_axis(held, index, 1)), 402)
    assert found.effect == pytest.approx(sizes * alone.effect, rel=0.1)


def test_holes_are_masked_and_items_outside_have_the_mean_of_those_asked() -> None:
    holes = np.where(np.random.default_rng(6).random(WEAK.shape) < 0.5, np.nan, WEAK)
    full, half = fit_predictor(WEAK), fit_predictor(holes)
    index, values = np.arange(100)[None], STRONG[:1, :100]
    one = np.ones((1, 1, 100))
    assert np.corrcoef(full.predict(index, values, one)[0, 0], half.predict(index, values, one)[0, 0])[0, 1] > 0.9
    columns = np.where(np.arange(400) % 4 == 0, -1, np.arange(400))
    found = full.for_items(columns).predict(index, values, one)[0, 0]
    asked = values[0, ::4]
    expected = (asked.sum() + OUTSIDE_WEIGHT * values.mean()) / (asked.size + OUTSIDE_WEIGHT)
    assert found[columns < 0] == pytest.approx(expected)


def test_few_models_make_few_factors_and_components() -> None:
    small = drawn_bank(6, 50)
    assert fit_factors(small).slopes.shape == (50, 1)
    assert fit_components(small).loadings.shape == (50, 3)
    assert np.isfinite(fit_predictor(small).predict(np.arange(9)[None], small[:1, :9], np.ones((1, 1, 9)))).all()


def test_a_tag_is_estimated_from_its_own_questions() -> None:
    index = np.random.default_rng(9).permutation(400)[None, :200]
    fit = cross_fit(fit_predictor(WEAK), index, STRONG[:1][:, index[0]])
    within = np.arange(400) < 200
    found = whole_estimate(fit, 400, within)
    assert found.items == 200
    assert found.asked == int(within[index].sum())
    assert found.interval is not None and found.interval[0] <= STRONG[0, :200].mean() <= found.interval[1]


def test_repetition_error_is_that_of_the_mean_of_all() -> None:
    assert repetition_error(np.full(50, 0.2), 4, 1000) == pytest.approx(np.sqrt(0.2 / 4 / 1000))
