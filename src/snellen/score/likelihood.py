"""Stored log-likelihoods of candidates to one value an option, a choice, and its confidence. Pure: any reduction can be had later.

sum: log P(candidate | prompt). mean: by token. per-byte: by byte of UTF-8. none: as sum, the tokens' values stay in the record.
prompt-mean: mean log-probability of the whole text, prompt and candidate (its negative is the perplexity score of some harnesses).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import UsageError, did_you_mean
from ..core.types import REDUCTIONS, Prediction, Request, Sample, Score
from .calibration import softmax

IMPOSSIBLE = -1e29
"""Log-likelihoods at or below this stand for minus infinity, which JSON cannot hold."""

class Choice(NamedTuple):
    """Which option won, or None with the reason."""

    index: int | None
    tied: bool = False
    reason: str = ""


def option_values(request: Request, prediction: Prediction, reduction: str | None = None) -> list[float]:
    """Return one value for each option, in the order shown: reduced, less the prior where one was asked for, aliases joined.

    Aliases of an option: the log of their summed probability under `sum`, else the best of them.
    """
    name = reduction or request.likelihood.reduction
    if name not in REDUCTIONS:
        raise UsageError(f"unknown likelihood reduction {name!r}{did_you_mean(name, REDUCTIONS)}; known: {', '.join(REDUCTIONS)}")
    values = [_reduce(prediction, place, name) for place in range(len(prediction.loglikelihoods or ()))]
    stands_for = request.likelihood.stands_for
    if not stands_for:
        return values
    join = _log_sum if name in ("sum", "none") else max
    named: list[list[float]] = [[] for _ in range(max(stands_for) + 1)]
    for value, option in zip(values, stands_for, strict=True):
        named[option].append(value)
    return [join(names) for names in named]


def choose(values: Sequence[float]) -> Choice:
    """Return the option of the largest value; of equals the first shown. Impossible options never win."""
    if not values:
        return Choice(None, reason="no candidates")
    if any(math.isnan(value) for value in values):
        return Choice(None, reason="a log-likelihood is not a number")
    best = max(values)
    if best <= IMPOSSIBLE:
        return Choice(None, reason="every candidate is impossible to the model")
    return Choice(values.index(best), values.count(best) > 1)


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score a trial answered by likelihood: is the likeliest option right? `options["reduction"]` overrides the task's."""
    if prediction.loglikelihoods is None:
        return [Score(prediction.key, "accuracy", None, reason="not a likelihood reply")]
    reduction = options.get("reduction") or request.likelihood.reduction
    values = option_values(request, prediction, reduction)
    choice = choose(values)
    if choice.index is None:
        return [Score(prediction.key, "accuracy", None, rule=f"likelihood:{reduction}", reason=choice.reason)]
    answer = (request.shown or request.choices)[choice.index]
    right = answer.casefold() in {known.casefold() for known in sample.answers}
    probabilities = softmax([max(value, IMPOSSIBLE) for value in values])
    detail = {"values": values, "confidence": float(probabilities[choice.index]), "tied": choice.tied}
    if not sample.answers:
        return [Score(prediction.key, "accuracy", None, answer, f"likelihood:{reduction}", "the sample has no answer", detail)]
    return [Score(prediction.key, "accuracy", float(right), answer, f"likelihood:{reduction}", detail=detail)]


def _reduce(prediction: Prediction, place: int, reduction: str) -> float:
    total: float = (prediction.loglikelihoods or ())[place]
    if total <= IMPOSSIBLE:
        return total
    priors = prediction.detail.get("priors")
    value: float = total - (priors[place] if priors else 0.0)
    if reduction == "mean":
        return value / int(_counts(prediction, "tokens")[place])
    if reduction == "per-byte":
        return value / max(1, int(_counts(prediction, "bytes")[place]))
    if reduction == "prompt-mean":
        prompt = _counts(prediction, "prompt_logprobs")
        return float(sum(prompt) + total) / (len(prompt) + int(_counts(prediction, "tokens")[place]))
    return value


def _counts(prediction: Prediction, name: str) -> Sequence[Any]:
    found = prediction.detail.get(name)
    if not found:
        raise UsageError(f"this run holds no {name.replace('_', ' ')} of the candidates: choose the reduction sum, or run it again")
    return list(found)


def _log_sum(values: Sequence[float]) -> float:
    return float(np.logaddexp.reduce(np.asarray(values, dtype=np.float64)))


