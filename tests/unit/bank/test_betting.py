"""The gate's verdicts: false ones at most one in twenty, for any bank; by hand, and at the end exact."""

from __future__ import annotations

import numpy as np
import pytest

from drawn_banks import drawn_bank
from draws import drawn, leeway
from snellen.core.errors import UsageError
from snellen.kits.bank.betting import BETTER, OPEN, SAME, WORSE, Gate, Wagers, prepare, repeats_for, sampling_noise

BANK = drawn_bank(40, 300)
BASE, OTHERS = BANK[20], np.delete(BANK, 20, 0)
MARGIN = 9 / 300


def changes(lost: int, gained: int, rows: int, chance: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    key = draw.exponential(size=(rows, BASE.size)) / chance
    change = np.zeros((rows, BASE.size))
    for count, side, sign in ((lost, BASE == 1, -1.0), (gained, BASE == 0, 1.0)):
        at = np.argsort(np.where(side, key, np.inf), axis=1)[:, :count]
        np.put_along_axis(change, at, sign, 1)
    return change


def false_verdicts(prepared, change: np.ndarray, draw: np.random.Generator) -> tuple[float, float]:
    """Shares of gates in which a wealth ever reaches 20: the bet on more than -m, and that on less than 0."""
    rows, items = change.shape
    order = np.argsort(draw.exponential(size=change.shape) / prepared.score, axis=1)
    wagers, at = Wagers(prepared, MARGIN, np.array([-MARGIN, 0.0]), rows), np.arange(rows)
    above = below = np.zeros(rows, bool)
    for step in range(items):
        wagers.add(order[:, step], change[at, order[:, step]])
        above, below = above | (wagers.wealth_above[:, 0] >= 20), below | (wagers.wealth_below[:, 1] >= 20)
    return float(above.mean()), float(below.mean())


@drawn(3000)
@pytest.mark.parametrize("how", ["expected", "hostile", "evenly"])
def test_false_verdicts_are_at_most_one_in_twenty(how: str, draws: int) -> None:
    draw, prepared = np.random.default_rng(1), prepare(BASE, OTHERS)
    chance = {"expected": prepared.score**4, "hostile": prepared.score**-4.0, "evenly": np.ones(300)}[how]
    false_same, _ = false_verdicts(prepared, changes(9 + 9, 9, draws, chance, draw), draw)
    _, false_worse = false_verdicts(prepared, changes(9, 9, draws, chance, draw), draw)
    assert false_same <= 0.05 + leeway(0.008, 3000, draws)
    assert false_worse <= 0.05 + leeway(0.008, 3000, draws)
    assert false_same > 0.005  # the bound is used, not wasted


def test_the_formulas_by_hand() -> None:
    """Forty steps recomputed with loops from section 2 of the specification."""
    prepared = prepare(BASE, OTHERS)
    g, s, items = prepared.expected, prepared.score, BASE.size
    near = np.argsort(np.abs(OTHERS - BASE).sum(axis=1), kind="stable")[:20]
    assert g == pytest.approx((OTHERS[near] - BASE).sum(axis=0) / 22)
    differ = np.abs(OTHERS[near] - BASE)
    root = np.sqrt((differ.sum(axis=0) + 1) / (20 + 1 / differ.mean()))
    assert s == pytest.approx(0.5 * root / root.mean() + 0.5)
    draw = np.random.default_rng(2)
    order, d = prepared.order(draw), changes(30, 10, 1, np.ones(300), draw)[0]
    wagers = Wagers(prepared, MARGIN, np.array([-MARGIN]))
    wealth = {1.0: 1.0, 3.0: 1.0}
    for t in range(1, 41):
        past, left = order[: t - 1], order[t - 1 :]
        n = items - t + 1
        weights = [s[order[k:]].sum() / (s[order[k]] * (items - k)) for k in range(t)]
        lambdas = [
            min(1.0, max(0.0, sum(weights[j] * d[order[j]] * g[order[j]] for j in range(k))
                / (sum(weights[j] * g[order[j]] ** 2 for j in range(k)) + 30 * (g**2).mean())))
            for k in range(t)
        ]  # fmt: skip
        xs = [(d[order[k]] - lambdas[k] * g[order[k]]) * weights[k] for k in range(t)]
        mu = (items * -MARGIN - d[past].sum() - lambdas[-1] * g[left].sum()) / n
        v = (30 * 0.06 + sum(x * x for x in xs[:-1])) / (30 + t - 1)
        largest = s[left].sum() / (s.min() * n) * (1 + lambdas[-1] * np.abs(g).max()) + abs(mu)
        for kappa in wealth:
            beta = min(kappa * MARGIN * min(items / n, 5) / v, 0.95 / largest)
            wealth[kappa] *= 1 + beta * (xs[-1] - mu)
        wagers.add(order[t - 1 : t], d[order[t - 1 : t]])
    assert wagers.wealth_above[0, 0] == pytest.approx(0.5 * wealth[1.0] + 0.5 * wealth[3.0])


def gated(difference: np.ndarray, seed: int = 1, bank: np.ndarray | None = OTHERS, **options) -> Gate:
    prepared = prepare(BASE, bank)
    gate = Gate(prepared, MARGIN, **options)
    for unit in prepared.order(np.random.default_rng(seed)):
        gate.add(int(unit), float(difference[unit]))
    return gate


def test_verdicts_of_plain_cases() -> None:
    draw = np.random.default_rng(3)
    ones = np.ones(300)
    assert gated(np.zeros(300)).word == SAME
    assert gated(changes(60, 0, 1, ones, draw)[0]).word == WORSE
    assert gated(np.ones(300) * 0.4, bank=None).word == BETTER
    same = gated(np.zeros(300)).verdict()
    assert same.asked < 200
    assert same.interval is not None and same.interval[0] >= -MARGIN and same.interval[1] > 0.0


def test_an_interval_holds_the_truth_whenever_the_gate_stops() -> None:
    draw, missed = np.random.default_rng(4), 0
    for seed in range(30):
        change = changes(12, 6, 1, np.ones(300), draw)[0]
        low, high = gated(change, seed).interval
        missed += not low <= change.mean() <= high
    assert missed <= 5


def test_everything_asked_is_exact() -> None:
    prepared = prepare(BASE)
    gate = Gate(prepared, MARGIN, error=1e-12)  # no bet can win so much: everything is asked
    for unit in range(300):
        assert gate.word == OPEN
        gate.add(unit, -1.0 if unit % 100 == 0 else 0.0)
    assert gate.verdict() == (SAME, 300, pytest.approx(-0.01), None)


def test_groups_are_one_unit_and_the_mean_is_that_of_questions() -> None:
    groups = np.sort(np.random.default_rng(5).integers(0, 60, 300))
    groups = np.unique(groups, return_inverse=True)[1]
    prepared = prepare(BASE, OTHERS, groups)
    change = changes(20, 10, 1, np.ones(300), np.random.default_rng(6))[0]
    means = np.bincount(groups, weights=change) / np.bincount(groups)
    assert (prepared.weight * means).mean() == pytest.approx(change.mean())
    gate = Gate(prepared, MARGIN)
    for unit in prepared.order(np.random.default_rng(7)):
        gate.add(int(unit), float(means[unit]))
    assert gate.word in (SAME, WORSE, BETTER)


def test_too_much_sampling_noise_is_refused_and_repeats_would_help() -> None:
    noise = sampling_noise(0.2, 1, 0.2, 1, 300)
    with pytest.raises(UsageError, match="noise"):
        Gate(prepare(BASE), MARGIN, noise=noise)
    repeats = repeats_for(MARGIN, 0.2, 0.2, 300)
    assert 3.3 * sampling_noise(0.2, repeats, 0.2, repeats, 300) <= MARGIN
