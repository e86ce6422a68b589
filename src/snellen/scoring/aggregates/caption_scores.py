"""Turns captions into BLEU-1..4, METEOR, ROUGE-L and CIDEr: corpus estimates, and a scorer for single replies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.errors import UsageError
from ...core.types import Estimate, Prediction, Request, Sample, Score
from ...stats.bootstrap import percentile_interval, resample
from ...stats.intervals import estimate_mean
from ..scorers.caption_metrics import CIDER_SCALE, MAX_ORDER, BleuCounts, Caption, bleu, bleu_counts, cider, rouge_l
from ..scorers.meteor import meteor, missing_reason, tokenise_ptb
from ..scorers.replies import answer_text, is_as_written, why_no_text
from ..scorers.word_accuracy import characters_apart
from .means import in_unit

TOKENISERS = ("whitespace", "ptb")
_DRAWS = 1000
_TEXT_METRIC = "rouge_l"
"""The one of the scorer's metrics whose scores lend their texts to the corpus metrics."""
_LINE_BREAK = re.compile(r"\s*[\r\n]\s*")


def caption(text: str, references: Sequence[str]) -> Caption:
    """Make a caption of raw texts; line breaks, with the white space around them, become one space."""
    return Caption(_one_line(text), tuple(_one_line(reference) for reference in references))


def own_caption(text: str, references: Sequence[str]) -> Caption:
    """Make a caption of a run: where a script has no spaces, every character is a token, else a sentence is one."""
    return caption(characters_apart(text), [characters_apart(reference) for reference in references])


def _one_line(text: str) -> str:
    return _LINE_BREAK.sub(" ", text).strip() if "\n" in text or "\r" in text else text


def tokenise(captions: Sequence[Caption], tokeniser: str) -> list[Caption]:
    """Prepare captions: `whitespace` leaves them, `ptb` lower-cases, splits and drops punctuation (needs Java)."""
    if tokeniser not in TOKENISERS:
        raise UsageError(f"unknown tokeniser {tokeniser!r}; known: {', '.join(TOKENISERS)}")
    if tokeniser == "whitespace":
        return list(captions)
    flat = iter(tokenise_ptb([text for item in captions for text in (item.text, *item.references)]))
    return [Caption(next(flat), tuple(next(flat) for _ in item.references)) for item in captions]


def corpus_estimates(
    captions: Sequence[Caption], clusters: NDArray[Any] | None = None, *, tokeniser: str = "whitespace"
) -> tuple[dict[str, Estimate], dict[str, str]]:
    """Return the corpus metrics (fractions; CIDEr up to 10) and, for those that cannot be had, the reason.

    With `ptb` every name ends in `_ptb`. Intervals are clustered by `clusters` (the sample of each caption).
    """
    prepared = tokenise(captions, tokeniser)
    groups = np.arange(len(prepared)) if clusters is None else clusters
    metrics = _bleu_estimates([bleu_counts(item) for item in prepared], groups)
    reason = missing_reason()
    metrics["meteor"] = Estimate(None, unscored=len(prepared)) if reason else _meteor_estimate(prepared, groups)
    metrics["rouge_l"] = estimate_mean(np.array([rouge_l(item) for item in prepared]), groups)
    metrics["cider"] = _cider_estimate(cider(prepared), groups)
    metrics["cider_plain"] = _cider_estimate(cider(prepared, plain=True), groups)
    suffix = "_ptb" if tokeniser == "ptb" else ""
    metrics = in_unit("trials", metrics)
    return {name + suffix: value for name, value in metrics.items()}, {f"meteor{suffix}": reason} if reason else {}


def _bleu_estimates(counts: Sequence[BleuCounts], clusters: NDArray[Any]) -> dict[str, Estimate]:
    rows = np.array(
        [[*item.matched, *item.guessed, item.length, item.reference_length] for item in counts], dtype=float
    )
    _, codes = np.unique(clusters, return_inverse=True)
    totals = np.zeros((int(codes.max()) + 1, rows.shape[1]))
    np.add.at(totals, codes, rows)
    values = bleu(_counts_of(rows.sum(axis=0)))
    drawn = np.array([bleu(_counts_of(row)) for row in resample(totals, _DRAWS, "bleu")])
    intervals = [percentile_interval(drawn[:, order], len(totals), (0.0, 1.0)) for order in range(MAX_ORDER)]
    return {
        f"bleu_{order + 1}": Estimate(value, ci95=interval, n=len(counts))
        for order, (value, interval) in enumerate(zip(values, intervals, strict=True))
    }


def _counts_of(row: NDArray[np.float64]) -> BleuCounts:
    whole = [int(value) for value in row]
    return BleuCounts(tuple(whole[:MAX_ORDER]), tuple(whole[MAX_ORDER : 2 * MAX_ORDER]), whole[-2], whole[-1])


def _cider_estimate(values: Sequence[float], clusters: NDArray[Any]) -> Estimate:
    estimate = estimate_mean(np.array(values), clusters)
    if estimate.ci95 is None:
        return estimate
    low, high = estimate.ci95
    return structs.replace(estimate, ci95=(max(0.0, low), min(CIDER_SCALE, high)))


def _meteor_estimate(captions: Sequence[Caption], clusters: NDArray[Any]) -> Estimate:
    """The corpus value is no mean, but its spread is that of the single values: they lend it their interval's width."""
    value, single = meteor(captions)
    spread = estimate_mean(np.array(single), clusters)
    if spread.ci95 is None or spread.value is None:
        return Estimate(value, n=len(captions))
    low, high = (max(0.0, min(1.0, value + side - spread.value)) for side in spread.ci95)
    return Estimate(value, spread.stderr, (low, high), len(captions))


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Scorer `caption`: ROUGE-L and BLEU-1..4 of one reply. Corpus BLEU is not their mean: see `corpus_estimates`."""
    written = is_as_written(options)
    text = prediction.text if written else answer_text(prediction)
    names = (_TEXT_METRIC, *(f"bleu_{order}_sentence" for order in range(1, MAX_ORDER + 1)))
    if not sample.answers or not (text or (written and text is not None)):
        reason = "the sample has no reference caption" if text else why_no_text(prediction)
        return [Score(key=prediction.key, metric=name, value=None, reason=reason) for name in names]
    item = caption(text or "", sample.answers) if written else own_caption(text or "", sample.answers)
    values = (rouge_l(item), *bleu(bleu_counts(item)))
    return [
        Score(key=prediction.key, metric=name, value=value, answer=text)
        for name, value in zip(names, values, strict=True)
    ]


def aggregate(scored: Any, options: Mapping[str, Any]) -> Mapping[str, Estimate]:
    """Aggregate `caption`: the corpus metrics of a task scored by scorer `caption`; option `tokenizer` as above."""
    pairs = [
        (sample, score)
        for sample, score in scored.scores()
        if score.metric == _TEXT_METRIC and score.answer is not None
    ]
    if not pairs:
        return {}
    made = caption if is_as_written(options) else own_caption
    captions = [made(score.answer, sample.answers) for sample, score in pairs]
    _, clusters = np.unique([sample.group or sample.id for sample, _ in pairs], return_inverse=True)
    estimates, _ = corpus_estimates(captions, clusters, tokeniser=str(options.get("tokenizer", "whitespace")))
    if len({sample.id for sample, _ in pairs}) == 1:
        estimates |= _without_cider(estimates, len(pairs))
    # The mean of the single ROUGE-L values is in the table already.
    return {name: estimate for name, estimate in estimates.items() if name != _TEXT_METRIC}


def _without_cider(estimates: Mapping[str, Estimate], captions: int) -> dict[str, Estimate]:
    """Of one sample no word is rarer than another: CIDEr is 0 whatever was said, which is no measurement."""
    unknown = Estimate(None, unscored=captions, unit="trials")
    return {name: unknown for name in estimates if name.startswith("cider")}
