"""What is kept without the evidence: programmed shares come back, intervals cover, verdicts hold their rate."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.stats.paired import discoveries, fewer_by_chance, guessed_by_chance, kept_share

SHARES = (0.0, 0.25, 0.5, 0.83, 1.0)
CHURN = 0.03


def read_both_ways(draw: np.random.Generator, n: int, blind: float, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """A reader that knows 60 % with the picture, keeps the share `blind` of it without, and guesses the rest."""
    known = draw.random(n) < 0.6
    kept = known & (draw.random(n) < blind)
    answers = [knows | (draw.random(n) < chance) for knows in (known, kept)]
    for at, answer in enumerate(answers):
        answers[at] = np.where(draw.random(n) < CHURN, draw.random(n) < chance, answer)
    return answers[0].astype(float), answers[1].astype(float)


def simulate(blind: float, chance: float, readers: int, n: int = 1000) -> tuple[float, float]:
    draw = np.random.default_rng(round(100 * blind) + round(1000 * chance))
    found = [kept_share(*read_both_ways(draw, n, blind, chance), chance) for _ in range(readers)]
    covered = [one.ci95 is not None and one.ci95[0] - 1e-9 <= blind <= one.ci95[1] + 1e-9 for one in found]
    return float(np.mean([one.value for one in found])), float(np.mean(covered))


@pytest.mark.parametrize("blind", SHARES)
@pytest.mark.parametrize("chance", [0.0, 0.25])
def test_a_programmed_share_of_blind_answers_comes_back(blind: float, chance: float) -> None:
    value, covered = simulate(blind, chance, readers=300)
    assert value == pytest.approx(blind, abs=0.01)
    # Who never answers blind, where guessing earns nothing, cannot be missed: all others lie around 95 %.
    assert covered == 1.0 if (blind, chance) == (0.0, 0.0) else 0.91 <= covered <= 0.99


@pytest.mark.nightly
@pytest.mark.parametrize("blind", SHARES)
@pytest.mark.parametrize("chance", [0.0, 0.25, 0.5])
def test_intervals_cover_what_they_say(blind: float, chance: float) -> None:
    value, covered = simulate(blind, chance, readers=4000)
    assert value == pytest.approx(blind, abs=0.01)
    assert covered == 1.0 if (blind, chance) == (0.0, 0.0) else 0.93 <= covered <= 0.97


def test_clusters_widen_the_interval() -> None:
    with_it, without = read_both_ways(np.random.default_rng(0), 300, 0.5, 0.25)
    alone = kept_share(with_it, without, 0.25)
    tripled = kept_share(np.repeat(with_it, 3), np.repeat(without, 3), 0.25, np.repeat(np.arange(300), 3))
    as_if = kept_share(np.repeat(with_it, 3), np.repeat(without, 3), 0.25)
    assert tripled.value == pytest.approx(alone.value)
    assert width(tripled) == pytest.approx(width(alone), rel=0.05)
    assert width(as_if) < 0.7 * width(alone)


def width(estimate: object) -> float:
    low, high = estimate.ci95  # type: ignore[attr-defined]
    return high - low


def test_a_share_of_nothing_is_not_told() -> None:
    draw = np.random.default_rng(1)
    guessed = (draw.random(200) < 0.25).astype(float), (draw.random(200) < 0.25).astype(float)
    assert kept_share(*guessed, 0.25).value is None
    assert kept_share(np.ones(1), np.ones(1)).value is None


def test_who_declines_does_not_guess() -> None:
    with_it, without = np.ones(200), np.r_[np.ones(100), np.zeros(100)]
    answered = np.r_[np.full(100, 0.25), np.zeros(100)]
    assert kept_share(with_it, without, 0.25, chance_without=answered).value == pytest.approx(0.5)
    assert (kept_share(with_it, without, 0.25).value or 0) < 0.35


def test_an_interval_of_questions_that_are_all_alike_has_a_width() -> None:
    assert width(kept_share(np.ones(50), np.ones(50))) > 0.01


def test_exact_tests_are_those_of_the_books() -> None:
    assert fewer_by_chance(4, 4, 0, 4) == pytest.approx(1 / 70)
    assert fewer_by_chance(3, 4, 3, 4) == pytest.approx(1 - 14 / 70 * 1, abs=0.3)
    assert guessed_by_chance(4, 4, 0.25) == pytest.approx(0.25**4)
    assert guessed_by_chance(0, 4, 0.25) == 1.0


def test_verdicts_on_questions_hold_their_rate_of_false_discoveries() -> None:
    draw, false, found = np.random.default_rng(5), [], 0
    for _ in range(60):
        needs = draw.random(400) < 0.4
        same = draw.random(400)
        with_it = draw.binomial(5, np.where(needs, 0.95, same))
        without = draw.binomial(5, np.where(needs, 0.1, same))
        said = discoveries([fewer_by_chance(int(a), 5, int(b), 5) for a, b in zip(with_it, without, strict=True)])
        found += int(said.sum())
        false.append(float((said & ~needs).sum() / max(1, said.sum())))
    assert np.mean(false) <= 0.05
    assert found > 60 * 60  # of 160 that need it


def test_answered_without_holds_its_rate_too() -> None:
    draw, false = np.random.default_rng(6), []
    for _ in range(60):
        knows = draw.random(400) < 0.3
        right = draw.binomial(5, np.where(knows, 0.95, 0.25))
        said = discoveries([guessed_by_chance(int(count), 5, 0.25) for count in right])
        assert said[knows].mean() > 0.6
        false.append(float((said & ~knows).sum() / max(1, said.sum())))
    assert np.mean(false) <= 0.05
