"""Questions as published beside the same questions changed, to a test of whether the published form is favoured.

Where nothing was seen before, the published form is one among equals: which of a question's forms is called the
published one could be drawn anew. The test draws it anew, question by question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..core.ids import derive_seed
from .distributions import normal_cdf, normal_quantile, t_cdf, t_quantile
from .intervals import TAIL95, Floats, Interval, mean_interval, ratio_moments

DRAWS = 4_000
_CELLS_AT_ONCE = 4_000_000
POWER, ALPHA = 0.9, 0.025
TO_ALARM, TO_FIND = normal_quantile(1 - ALPHA), normal_quantile(POWER)
TO_DETECT = TO_ALARM + TO_FIND
"""Standard errors that a true drop must have to be found nine times in ten, at 2.5 % false alarms: 3.24."""
MOST_GRADES = 24
"""Values of right, wrong and a few repeats; more are probabilities."""
FEWEST = 20
"""Questions below which no verdict is given."""


class Exchange(Struct, frozen=True):
    """What the published form has over the others, and what could have been found."""

    questions: int
    published: float | None
    """The mean of the published form, and of the others."""
    changed: float | None
    drop: float | None
    ci95: Interval | None
    p: float | None
    """One-sided: the chance of such a drop where the forms are exchangeable."""
    detectable: float | None
    """The smallest true drop that is found with a power of 90 % at 2.5 % false alarms."""
    informative: int = 0
    """Questions whose forms differ at all."""


def exchange_test(published: Floats, others: NDArray[np.float64], *purpose: str | int, draws: int = DRAWS) -> Exchange:
    """Test whether the published form of each question is favoured over its others (columns; NaN: none)."""
    usable = np.isfinite(published) & np.isfinite(others).any(axis=1) if published.size else np.zeros(0, bool)
    first, rest = published[usable], others[usable]
    count = int(first.size)
    if count < 2:
        return Exchange(count, None, None, None, None, None, None)
    forms = np.column_stack([first, rest])
    leads = _leads(forms)
    drops = leads[:, 0]
    spread = math.sqrt(float(np.nanmean(leads**2, axis=1).sum())) / count
    informative = int((np.nanmax(forms, axis=1) > np.nanmin(forms, axis=1)).sum())
    drop = float(drops.mean())
    p = _p_value(leads, drop, purpose, draws) if informative else 1.0
    interval = mean_interval(ratio_moments(drops, np.ones_like(drops)))
    changed = float(np.nanmean(rest, axis=1).mean())
    detectable = detectable_drop(spread, count, graded=_is_graded(forms))
    return Exchange(count, float(first.mean()), changed, drop, interval, p, detectable, informative)


def exchange_chance(first: Floats, others: NDArray[np.float64], *purpose: str | int, draws: int = 5 * DRAWS) -> float:
    """Return how often the first of each row differs from its others (columns; NaN: none) by as much, either way.

    Rows may carry any weights that do not hang on which of their values came first.
    """
    leads = _leads(np.column_stack([first, others]))
    if not leads.size or not np.nanmax(np.abs(leads), initial=0.0):
        return 1.0
    drop = float(leads[:, 0].mean())
    return min(1.0, 2 * min(_p_value(side * leads, side * drop, purpose, draws) for side in (1.0, -1.0)))


def _is_graded(values: NDArray[np.float64]) -> bool:
    """Tell whether values are finer than right, wrong and a few repeats."""
    return np.unique(values[np.isfinite(values)]).size > MOST_GRADES


def detectable_drop(error: float, questions: int, *, graded: bool = False) -> float:
    """Return the true drop that is found nine times in ten, where the forms differ by this standard error otherwise.

    Of right and wrong a drop makes questions differ that did not: it widens both what chance allows and its own error,
    by its size. `graded` values, such as probabilities, may all move a little.
    """
    if graded and error > 0.0:
        return TO_DETECT * error
    drop = TO_DETECT * max(error, 1.0 / questions)
    for _ in range(50):
        drop = TO_ALARM * math.sqrt(error**2 + drop / (2 * questions)) + TO_FIND * math.sqrt(
            error**2 + drop / questions
        )
    return min(1.0, drop)


def _leads(forms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return of each form what it has over the mean of the others of its question."""
    known = np.isfinite(forms)
    total = np.where(known, forms, 0.0).sum(axis=1, keepdims=True)
    others = np.maximum(known.sum(axis=1, keepdims=True) - 1, 1)
    return np.where(known, forms - (total - forms) / others, np.nan)


def _p_value(leads: NDArray[np.float64], observed: float, purpose: Sequence[str | int], draws: int) -> float:
    """Return how often a drawn choice of the published form leads by as much."""
    moving = leads[np.nanmax(np.abs(leads), axis=1) > 0.0]
    generator = np.random.default_rng(derive_seed("exchange", *purpose))
    known = np.isfinite(moving)
    sizes = known.sum(axis=1)
    packed = np.take_along_axis(moving, np.argsort(~known, axis=1, kind="stable"), axis=1)
    wanted, beyond = observed * leads.shape[0], 0
    step = max(1, _CELLS_AT_ONCE // max(1, moving.shape[0]))
    rows = np.arange(moving.shape[0])
    for start in range(0, draws, step):
        chosen = (generator.random((min(step, draws - start), moving.shape[0])) * sizes).astype(np.int64)
        beyond += int(np.count_nonzero(packed[rows, chosen].sum(axis=1) >= wanted - 1e-9))
    return (1.0 + beyond) / (1.0 + draws)


def beside_references(drop: float, error: float, references: Sequence[float]) -> tuple[float, float]:
    """Return the one-sided p of a drop beside those of honest models, and the drop that could have been found.

    z = (drop - mean) / √(error² + spread² (1 + 1/R)); with a single reference its spread is not known, and is taken to
    be the error of the drop.
    """
    mean = float(np.mean(references))
    spread = float(np.std(references, ddof=1)) if len(references) > 1 else error
    whole = math.sqrt(error**2 + spread**2 * (1.0 + 1.0 / len(references)))
    return (1.0 - normal_cdf((drop - mean) / whole) if whole else 1.0), TO_DETECT * whole


def order_test(values: NDArray[np.float64], places: NDArray[np.int64]) -> Exchange:
    """Test whether the published order of options (first column) is favoured over drawn ones (the others; NaN: none).

    What the place of the right answer earns is taken off, as the drawn orders tell it: a liking for A is no memory. The
    published mean is set against that of drawn orders, weighted to have right answers in the same places; a t test over
    questions, each of which counts with all its orders.
    """
    usable = np.isfinite(values[:, 0]) & np.isfinite(values[:, 1:]).any(axis=1)
    values, places = values[usable], places[usable]
    count = int(usable.sum())
    if count < 2:
        return Exchange(count, None, None, None, None, None, None)
    shares = _place_weights(values, places)
    drawn = np.where(np.isfinite(values[:, 1:]), values[:, 1:], 0.0)
    earned = _place_means(values, places)
    residuals = np.where(np.isfinite(values), values - earned[places], 0.0)
    parts = residuals[:, 0] / count - (shares * residuals[:, 1:]).sum(axis=1)
    drop = float(values[:, 0].mean() - (shares * drawn).sum())
    error = math.sqrt(count / (count - 1) * float(((parts - parts.mean()) ** 2).sum()))
    half = t_quantile(TAIL95, count - 1.0) * error
    p = 1.0 - t_cdf(drop / error, count - 1.0) if error > 0.0 else (0.0 if drop > 0.0 else 1.0)
    spread = np.nanmax(values, axis=1) - np.nanmin(values, axis=1)
    found = values[:, 0].mean(), values[:, 0].mean() - drop
    interval = (drop - half, drop + half) if error > 0.0 else None
    return Exchange(
        count,
        float(found[0]),
        float(found[1]),
        drop,
        interval,
        p,
        detectable_drop(error, count, graded=_is_graded(values)),
        int((spread > 0).sum()),
    )


def _place_weights(values: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weight of every drawn order: places of the right answer count as often as they were published."""
    known, size = np.isfinite(values[:, 1:]), int(places.max()) + 1
    published = np.bincount(places[:, 0], minlength=size) / len(places)
    drawn = np.bincount(places[:, 1:][known], minlength=size)
    covered = np.where(drawn > 0, published, 0.0)
    covered = covered / covered.sum() if covered.sum() else covered
    return np.asarray(np.where(known, (covered / np.maximum(drawn, 1))[places[:, 1:]], 0.0), dtype=np.float64)


def _place_means(values: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    known, size = np.isfinite(values[:, 1:]), int(places.max()) + 1
    drawn = np.bincount(places[:, 1:][known], minlength=size)
    total = np.bincount(places[:, 1:][known], weights=values[:, 1:][known], minlength=size)
    return np.asarray(total / np.maximum(drawn, 1), dtype=np.float64)
