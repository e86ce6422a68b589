"""Turns stored log-likelihoods of candidates into one value an option, a choice and its confidence.

Nothing is lost on the way, so any reduction can be had later. sum: log P(candidate | prompt). mean: by token. per-byte:
by byte of UTF-8. none: as sum, the tokens' values stay in the record. prompt-mean: mean log-probability of the whole
text, prompt and candidate (its negative is the perplexity score of some harnesses).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import DataError, UsageError, did_you_mean
from ...core.types import REDUCTIONS, Prediction, Request, Sample, Score
from ...stats.confidence import softmax

METRIC = "accuracy"
INDEX_ONLY = "plugin-index"
"""The route of models that name the likeliest candidate and nothing else: no confidence can be had of them."""
NO_LIKELIHOOD, TIE = "no_likelihood", "tie"
MINUS_INFINITY = -1e30
IMPOSSIBLE = -1e29
"""Log-likelihoods at or below this stand for minus infinity, which JSON cannot hold."""


class Choice(NamedTuple):
    """Which options are likeliest (more than one: a tie), or none with the reason."""

    likeliest: tuple[int, ...]
    reason: str = ""


def option_values(request: Request, prediction: Prediction, reduction: str | None = None) -> list[float]:
    """Return one value for each option, in the order shown: reduced, less the prior if asked for, aliases joined.

    Aliases of an option: the log of their summed probability under `sum`, else the best of them.
    """
    name = reduction or request.likelihood.reduction
    if name not in REDUCTIONS:
        raise UsageError(
            f"unknown likelihood reduction {name!r}{did_you_mean(name, REDUCTIONS)}; known: {', '.join(REDUCTIONS)}"
        )
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
    """Return the options of the largest value. Impossible options never win, and if all are there is no choice."""
    best = max(values, default=-math.inf)
    if best <= IMPOSSIBLE:
        return Choice((), NO_LIKELIHOOD)
    return Choice(tuple(place for place, value in enumerate(values) if value == best))


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score a trial answered by likelihood: is the likeliest option right? `options["reduction"]` overrides the task's.

    Of equally likely options the first in the sample's own order is taken, so that no shuffling moves the answer. Where
    some of them are right and some are wrong, nothing was chosen: the place of the answer in the data would decide.
    """
    reduction = (options or {}).get("reduction") or request.likelihood.reduction
    rule = "likelihood" if reduction == "sum" else f"likelihood:{reduction}"
    names = request.shown or request.choices or sample.options
    values = option_values(request, prediction, reduction)
    if len(values) != len(names):
        raise DataError(
            f"sample {sample.id!r}: {len(values)} log-likelihoods for {len(names)} options; score every option"
        )
    choice = choose(values)
    if not choice.likeliest:
        return [Score(prediction.key, METRIC, None, None, rule, choice.reason)]
    best = _first_in_order(sample, names, choice.likeliest)
    detail: dict[str, Any] = {"values": values, "ties": len(choice.likeliest)}
    if prediction.detail.get("route") != INDEX_ONLY:
        detail["confidence"] = float(softmax(values)[best])
    if not sample.answers:
        return [Score(prediction.key, METRIC, None, names[best], rule, "the sample has no answer", detail)]
    if len({is_right(sample, names[place]) for place in choice.likeliest}) > 1:
        return [Score(prediction.key, METRIC, None, None, rule, TIE, detail)]
    return [Score(prediction.key, METRIC, float(is_right(sample, names[best])), names[best], rule, detail=detail)]


def _first_in_order(sample: Sample, names: Sequence[str], likeliest: Sequence[int]) -> int:
    """Return the option that stands first in the sample itself, however the options were shuffled."""
    order = {text: place for place, text in enumerate(sample.options)}
    return min(likeliest, key=lambda place: (order.get(names[place], len(order)), place))


def is_right(sample: Sample, answer: str) -> bool:
    """Tell whether an option is an answer: the very text, or for yes/no questions the same in any case."""
    return answer in sample.answers or (
        not sample.options and answer.casefold() in {known.casefold() for known in sample.answers}
    )


def _reduce(prediction: Prediction, place: int, reduction: str) -> float:
    total: float = (prediction.loglikelihoods or ())[place]
    if math.isnan(total) or total <= IMPOSSIBLE:
        return MINUS_INFINITY
    priors = prediction.detail.get("priors")
    value: float = total - (priors[place] if priors else 0.0)
    if _is_reduced(prediction, reduction):
        return value
    if reduction == "mean":
        return value / int(_counts(prediction, "tokens")[place])
    if reduction == "per-byte":
        return value / max(1, int(_counts(prediction, "bytes")[place]))
    if reduction == "prompt-mean":
        if priors:
            raise UsageError(
                "this run is calibrated: prompt-mean has no prior to take off; choose sum, mean or per-byte"
            )
        prompt = _counts(prediction, "prompt_logprobs")
        prompt = prompt[place] if isinstance(prompt[0], list) else prompt  # a prompt of its own for each candidate
        return float(sum(prompt) + total) / (len(prompt) + int(_counts(prediction, "tokens")[place]))
    return value


def _is_reduced(prediction: Prediction, reduction: str) -> bool:
    """Tell whether the values came as this reduction makes them; what was reduced otherwise cannot be undone."""
    done = prediction.detail.get("reduced")
    if done in (None, "sum", "none"):
        return prediction.detail.get("route") == INDEX_ONLY
    if done != reduction:
        raise UsageError(f"the model reduced its log-likelihoods by {done!r}: {reduction!r} cannot be had of them")
    return True


def _counts(prediction: Prediction, name: str) -> Sequence[Any]:
    found = prediction.detail.get(name)
    if not found:
        raise UsageError(
            f"this run holds no {name.replace('_', ' ')} of the candidates: choose the reduction sum, or run it again"
        )
    return list(found)


def _log_sum(values: Sequence[float]) -> float:
    return float(np.logaddexp.reduce(np.asarray(values, dtype=np.float64)))
