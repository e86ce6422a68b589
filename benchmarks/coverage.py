"""Do 95 % intervals cover, and do paired tests keep their level? `python benchmarks/coverage.py [runs]`"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from math import lgamma

import numpy as np

from snellen.stats.bootstrap import difference_p_value, swap_p_value
from snellen.stats.confidence import area, expected_error
from snellen.stats.intervals import estimate_mean, estimate_ratio, mcnemar
from snellen.stats.sequential import ConfidenceSequence

BANDS = {"0.3-0.7": (0.3, 0.7), "0.75-0.9": (0.75, 0.9), "0.9-0.99": (0.9, 0.99)}


def bench_single(n: int, band: tuple[float, float]) -> float:
    """Exact coverage of n single 0/1 trials, averaged over 101 true shares."""
    counts = np.arange(n + 1)
    intervals = np.array([estimate_mean(np.r_[np.ones(k), np.zeros(n - k)]).ci95 for k in counts])
    log_ways = np.array([lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) for k in counts])
    total = 0.0
    for share in np.linspace(*band, 101):
        chance = np.exp(log_ways + counts * np.log(share) + (n - counts) * np.log1p(-share))
        total += float(chance[(intervals[:, 0] <= share) & (share <= intervals[:, 1])].sum())
    return total / 101


def bench_clusters(
    clusters: int, size: int, icc: float, band: tuple[float, float], runs: int, *, unequal: bool
) -> float:
    """Coverage for clusters of 0/1 trials with a shared beta-distributed chance."""
    generator = np.random.default_rng(1)
    hits = 0
    for share in np.linspace(*band, runs):
        sizes = generator.integers(1, 2 * size, clusters) if unequal else np.full(clusters, size)
        chance = (
            generator.beta(share * (1 - icc) / icc, (1 - share) * (1 - icc) / icc, clusters)
            if icc
            else np.full(clusters, share)
        )
        right = generator.binomial(sizes, chance).astype(float)
        low, high = estimate_ratio(right, sizes.astype(float), bounded=True, n=0).ci95 or (0.0, 0.0)
        hits += low <= share <= high
    return hits / runs


def bench_paired(questions: int, size: int, runs: int = 2000) -> dict[str, float]:
    """Share of null runs in which each paired test finds a difference at 5 %."""
    generator = np.random.default_rng(2)
    found = {"mcnemar": 0, "randomisation": 0, "bootstrap": 0}
    sizes = np.full(questions, size)
    for i in range(runs):
        chance = generator.beta(2, 1, questions)
        change = (generator.binomial(sizes, chance) - generator.binomial(sizes, chance)).astype(float)
        found["randomisation"] += swap_p_value(change, "bench", i, draws=999) < 0.05
        found["bootstrap"] += difference_p_value(change, sizes.astype(float), "bench", i, draws=999) < 0.05
        found["mcnemar"] += size == 1 and mcnemar(int((change < 0).sum()), int((change > 0).sum())) < 0.05
    return {name: count / runs for name, count in found.items() if name != "mcnemar" or size == 1}


def bench_sequence(share: float, runs: int = 300, looks: int = 1000) -> float:
    """Share of runs in which the true mean is inside at every one of the looks."""
    generator = np.random.default_rng(3)
    inside = 0
    for _ in range(runs):
        sequence = ConfidenceSequence(half_width=0.03, grid=200)
        for value in (generator.random(looks) < share).tolist():
            sequence.add(float(value))
        inside += sequence.interval[0] <= share <= sequence.interval[1]
    return inside / runs


def bench_confidence(questions: int, too_sure: float, levels: int, runs: int) -> dict[str, float]:
    """Coverage of the intervals of the calibration error and of the area of risk over coverage.

    Confidences are drawn from a curve, or from so many `levels` as repeats and stated percentages give; a model is
    right less often than it says by `too_sure`.
    """
    generator = np.random.default_rng(4)

    def answers(count: int) -> tuple[np.ndarray, np.ndarray]:
        sure = generator.beta(5, 2, count).clip(0.05, 1.0)
        sure = np.ceil(sure * levels) / levels if levels else sure
        return sure, (generator.random(count) < (sure - too_sure).clip(0.0, 1.0)).astype(float)

    many = 400_000
    sure, right = answers(many)
    true_error = expected_error(sure, (sure - too_sure).clip(0.0, 1.0), np.arange(many)).value or 0.0
    order = np.argsort(-sure, kind="stable")
    last = np.searchsorted(-sure[order], -sure[order], side="right")  # equally sure ones are taken together
    true_area = float((np.cumsum(1.0 - right[order])[last - 1] / last).mean())
    covered = {"calibration error": 0, "area of risk": 0}
    for _ in range(runs):
        sure, right = answers(questions)
        alone = np.arange(questions)
        for name, found, true in (
            ("calibration error", expected_error(sure, right, alone), true_error),
            ("area of risk", area(sure, right, alone), true_area),
        ):
            low, high = found.ci95 or (1.0, 0.0)
            covered[name] += low <= true <= high
    return {name: count / runs for name, count in covered.items()}


def figures(runs: int) -> Iterator[tuple[str, float, float, float]]:
    """Yield (what, figure, least, most)."""
    for n, (name, band) in product((50, 100, 200, 500, 2000), BANDS.items()):
        yield f"single trials, n={n}, share {name}", bench_single(n, band), 0.94, 0.96
    for (clusters, size), icc, unequal in product(
        ((25, 2), (50, 4), (100, 5), (200, 10), (400, 5)), (0.0, 0.1, 0.3, 0.6), (False, True)
    ):
        name = f"clusters {clusters}×{f'1-{2 * size - 1}' if unequal else size}, icc {icc}, share 0.3-0.85"
        drawn = (
            4 * runs if clusters < 50 else runs
        )  # coverage of few clusters lies near its bar: it is counted more finely
        yield name, bench_clusters(clusters, size, icc, (0.3, 0.85), drawn, unequal=unequal), 0.94, 0.96
    for icc in (0.1, 0.3):
        figure = bench_clusters(100, 5, icc, (0.95, 0.98), runs, unequal=False)
        yield f"rare errors, clusters 100×5, icc {icc}, share 0.95-0.98", figure, 0.94, 0.96
    for questions, size in ((50, 1), (200, 1), (1000, 1), (50, 4), (200, 4)):
        for test, share in bench_paired(questions, size).items():
            yield f"null runs, {questions} questions × {size}, {test}", share, 0.0, 0.055
    for questions, too_sure, levels in product((100, 300, 1000), (0.0, 0.1, 0.3), (0, 10)):
        for name, share in bench_confidence(questions, too_sure, levels, max(1, runs // 20)).items():
            what = f"{name}, {questions} questions, {100 * too_sure:g} points too sure, {levels or 'any'} levels"
            yield what, share, 0.92, 1.0 if name == "calibration error" else 0.975
    for share in (0.5, 0.9):
        yield f"confidence sequence, share {share}, at all of 1000 looks", bench_sequence(share), 0.95, 1.0


def main(runs: int) -> bool:
    """Print every figure with its bar."""
    passed = True
    for what, figure, low, high in figures(runs):
        good = low <= figure <= high
        passed &= good
        print(f"{'PASS' if good else 'FAIL'} {what}: {figure:.4f} (bar {low:g}…{high:g})")
    return passed


if __name__ == "__main__":
    raise SystemExit(0 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000) else 1)
