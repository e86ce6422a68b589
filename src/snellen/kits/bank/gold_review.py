"""Many models' answers to the same questions to how doubtful each gold answer is: a ranking for people, no verdict.

With chosen options: do strong models agree on another option, and do the stronger choose it more. With right and wrong
alone: is "gold is wrong" likelier than "gold is right", given who was right. Neither is a probability: models are
relatives of each other, so lists must be controlled by review. Figures: docs/benchmarks.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from .item_bank import Array, fit_factors, sigmoid

MOST_WEIGHT = 3.0
SLOPES = np.linspace(0.4, 2.0, 9)
PLACES = np.linspace(-5.0, 5.0, 21)
EM_STEPS = 15
SLIPS = np.array([0.1, 0.25, 0.45, 0.7, 0.95])
SLIP_SHARES = np.array([0.35, 0.25, 0.2, 0.12, 0.08])
"""Where gold is wrong, models that know better choose it by slip; those who do not, by a chance up to nearly all."""
RISE = 0.35
"""How much the correlation of choosing the other option with ability adds to the vote."""
NOBODY = -1


class Votes(NamedTuple):
    """Of every item: the vote, the option that most weight lies on beside gold, and whether it rises with ability."""

    doubt: Array
    vote: Array
    rival: NDArray[np.int64]
    """`NOBODY` where no other option was chosen."""
    rise: Array


def abilities(results: Array) -> Array:
    """Return standardised abilities of the models (one factor), NaN in `results` where a model was not asked."""
    found = fit_factors(results, most=1).abilities[:, 0]
    spread = float(found.std())
    return np.asarray((found - found.mean()) / spread if spread > 0.0 else found * 0.0)


def model_weights(results: Array) -> Array:
    """Return how much each model's choice counts: 1 for the median, up to 3 for the strongest, 0 for the weakest."""
    ability = rasch_abilities(results)
    return np.clip(1.0 + ability - np.median(ability), 0.0, MOST_WEIGHT)


def rasch_abilities(results: Array) -> Array:
    """Return standardised abilities of equal slopes: a model's share right, as a logit beside what it was asked."""
    seen = ~np.isnan(results)
    known = np.where(seen, results, 0.0)
    place, ease = np.zeros(len(results)), np.zeros(results.shape[1])
    for _ in range(30):
        for axis in (1, 0):
            share = sigmoid(place[:, None] + ease)
            gradient = ((known - share) * seen).sum(axis=axis)
            information = (share * (1.0 - share) * seen).sum(axis=axis)
            if axis:
                place += np.clip((gradient - 0.1 * place) / (information + 0.1), -1.0, 1.0)
            else:
                ease += np.clip((gradient - 0.1 * ease) / (information + 0.1), -1.0, 1.0)
    spread = float(place.std())
    return np.asarray((place - place.mean()) / spread if spread > 0.0 else place * 0.0)


def option_votes(chosen: NDArray[np.int64], gold: NDArray[np.int64], options: int) -> Votes:
    """Return the votes from chosen options: models × items with option numbers, `NOBODY` for no answer."""
    asked = (chosen != NOBODY).any(axis=0)
    results = np.where(chosen == NOBODY, np.nan, (chosen == gold).astype(np.float64))
    weight = model_weights(results)
    ability = rasch_abilities(results)
    items = chosen.shape[1]
    tally = np.zeros((items, options))
    for option in range(options):
        tally[:, option] = ((chosen == option) * weight[:, None]).sum(axis=0)
    at = np.arange(items)
    for_gold = tally[at, gold].copy()
    tally[at, gold] = -1.0
    rival = tally.argmax(axis=1)
    for_rival = np.maximum(tally[at, rival], 0.0)
    vote = (for_rival - for_gold) / max(float(weight.sum()), 1e-12)
    rise = _rises((chosen == rival).astype(np.float64), chosen != NOBODY, ability)
    doubt = np.where(asked, vote + RISE * np.where(for_rival > 0.0, rise, 0.0), -np.inf)
    return Votes(doubt, vote, np.where(for_rival > 0.0, rival, NOBODY), rise)


def _rises(takes: Array, asked: NDArray[np.bool_], ability: Array) -> Array:
    """Return the correlation of taking an option with ability among those who answered; 0 where all or none take it."""
    count = np.maximum(asked.sum(axis=0), 1)
    centred = np.where(asked, takes - (takes * asked).sum(axis=0) / count, 0.0)
    able = np.where(asked, ability[:, None] - (ability[:, None] * asked).sum(axis=0) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) * (able**2).sum(axis=0))
    shared = (able * centred).sum(axis=0)
    return np.asarray(np.divide(shared, spread, out=np.zeros(takes.shape[1]), where=spread > 1e-9))


def wrong_gold_ratios(results: Array) -> Array:
    """Return log P(results | gold wrong) - log P(results | gold right) of every item, from right and wrong alone."""
    seen = ~np.isnan(results)
    right = np.where(seen, results, 0.0).T
    wrong = np.where(seen, 1.0 - results, 0.0).T
    ability = abilities(results)
    curves = sigmoid(SLOPES[:, None, None] * ability + PLACES[None, :, None]).reshape(-1, ability.size)
    fair = right @ np.log(curves).T + wrong @ np.log1p(-curves).T
    share = np.full(len(curves), 1.0 / len(curves))
    for _ in range(EM_STEPS):
        posterior = _normalised(fair + np.log(share))
        share = np.maximum(posterior.mean(axis=0), 1e-12)
    mixed = np.log(share)
    turned = []
    for slip, part in zip(SLIPS, SLIP_SHARES, strict=True):
        chance = np.clip((1.0 - curves) * slip, 1e-9, 1.0 - 1e-9)
        turned.append(_log_sum(right @ np.log(chance).T + wrong @ np.log1p(-chance).T + mixed) + np.log(part))
    return np.asarray(_log_sum(np.stack(turned, axis=1)) - _log_sum(fair + mixed))


def _log_sum(logs: Array) -> Array:
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))


def _normalised(logs: Array) -> Array:
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


class GoldRange(Struct, frozen=True):
    """A score under the official gold, the settled one, and over everything that is undecided."""

    official: float
    corrected: float
    low: float
    high: float
    undecided: int
    """Rows with more than one admissible gold."""
    rows: int


def gold_range(official: Array, corrected: Array, admissible: list[Array]) -> GoldRange:
    """Return the range of the mean over undecided rows; a NaN is "drop the row", which moves the denominator.

    `admissible` holds, for every row, its value under each gold that may be right; `corrected` the settled value.
    """
    low, high = (_extreme(admissible, sign) for sign in (1.0, -1.0))
    undecided = sum(len(np.unique(values)) > 1 for values in admissible)
    return GoldRange(_mean(official), _mean(corrected), low, high, undecided, len(official))


def _mean(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _extreme(admissible: list[Array], sign: float) -> float:
    """Return the least mean (sign 1) or the largest (-1): rows that may be dropped are, worst first, while it helps."""
    fixed: list[float] = []
    loose: list[float] = []
    for values in admissible:
        known = values[~np.isnan(values)]
        best = float((sign * known).min()) if known.size else np.nan
        if np.isnan(best):
            continue
        (loose if known.size < values.size else fixed).append(best)
    loose.sort()  # least first: keep the least, drop the rest
    total, count = float(np.sum(fixed)), len(fixed)
    found = [total / count] if count else []
    for value in loose:
        total, count = total + value, count + 1
        found.append(total / count)
    return sign * min(found) if found else float("nan")
