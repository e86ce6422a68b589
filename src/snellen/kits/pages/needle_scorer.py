"""Turns a reply to a needle question into a ladder of scores: exact, whole words, contains, ANLS, errors, abstained."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any

from rapidfuzz.distance import Levenshtein

from ...core.types import Prediction, Request, Sample, Score
from ...extract.extraction import EMPTY, TRUNCATED
from ...scoring.scorers.replies import NO_REFERENCE, visible

METRIC, SHOWN = "accuracy", "needle_shown"
"""Word-boundary containment: the headline. For several answers all must be there. Other rungs are in the detail.

The second is of a needle in a video: whether what answers was in the frames that were shown at all (the policy's part).
"""
TOLERANCE_S = 1e-6
ABSTENTIONS = re.compile(
    r"not found|not (?:mentioned|stated|specified|provided|given|available|in the document)"
    r"|no (?:information|mention|answer)"
    r"|(?:does not|doesn't|do not|don't) (?:say|mention|state|specify|contain)"
    r"|(?:cannot|can't|could not|couldn't) (?:find|determine|be found)|unanswerable"
)
_SEPARATED = re.compile(r"(?<=\d)[,\u2009\u202f' ](?=\d{3}(?!\d))")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NOISE = re.compile(r"[^\w\s]|_")


def score(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any], *, sensitive: bool = False
) -> Sequence[Score]:
    """Score one reply on every rung; one without a word is unscored, as by every metric."""
    text = visible(prediction.text or "")
    match = str(sample.meta.get("match", "any"))
    if not text or not (sample.answers or match == "abstain"):
        reason = NO_REFERENCE if text else TRUNCATED if prediction.finish == "length" else EMPTY
        return [Score(request.key, METRIC, None, None, None, reason)]
    abstained, listed = is_abstention(text), _listed(text, sample)
    found = [word_contains(text, answer, sensitive=sensitive) for answer in sample.answers]
    ladder = {
        "contains": float(_contains(text, sample.answers, match, sensitive)),
        "exact": float(max(map(partial(_exact, text), sample.answers), default=0.0)),
        "anls": max(map(partial(anls, text), sample.answers), default=0.0),
        "cer": min(map(partial(error_rate, text), sample.answers), default=1.0),
        "recall": float(abstained) if match == "abstain" else sum(found) / max(1, len(found)),
        "listing": float(len(listed) >= (1 if match == "abstain" else 2)),
        "abstained": float(abstained),
    }
    rule = "abstention" if match == "abstain" else "word boundary"
    answer = next(compress(sample.answers, found), None)
    value = float(_accurate(match, found, abstained=abstained and not listed))
    return [Score(request.key, METRIC, value, answer, rule, None, {"ladder": ladder})]


def _accurate(match: str, found: Sequence[bool], *, abstained: bool) -> bool:
    if match == "abstain":
        return abstained
    return all(found) if match == "all" else any(found)


def score_case(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score minding upper and lower case, as the scripts' --case_sensitive does."""
    return score(sample, request, prediction, options, sensitive=True)


def normalise(text: str, *, sensitive: bool = False) -> str:
    """Bring a text to NFKC, lower case unless `sensitive`, no thousands separators, no punctuation, single spaces."""
    plain = _SEPARATED.sub("", unicodedata.normalize("NFKC", text))
    plain = re.sub(r"(?<=\w)[\u2010-\u2015-](?=\w)", " ", plain)
    words = _NOISE.sub(" ", plain).split()
    return " ".join(words if sensitive else map(str.casefold, words))


def word_contains(text: str, answer: str, *, sensitive: bool = False) -> bool:
    """Tell whether the answer stands in the text as whole words: 42 is not in 1042, iron not in environment."""
    wanted = normalise(answer, sensitive=sensitive)
    if wanted.isdecimal():  # 42 is not in 42.7 either, which would fall into 42 and 7
        plain = _SEPARATED.sub("", unicodedata.normalize("NFKC", text))
        return re.search(rf"(?<![^\W_])(?<!\d\.){wanted}(?![^\W_]|\.\d)", plain) is not None
    return (
        bool(wanted)
        and re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", normalise(text, sensitive=sensitive)) is not None
    )


def is_abstention(text: str) -> bool:
    """Tell whether a reply says that the document holds no answer."""
    return ABSTENTIONS.search(" ".join(text.casefold().replace("’", "'").split())) is not None


def anls(text: str, answer: str) -> float:
    """Return 1 - normalised edit distance, or 0 where half or more is wrong (Biten et al. 2019)."""
    first, second = normalise(text), normalise(answer)
    distance = Levenshtein.normalized_distance(first, second)
    return 1.0 - distance if distance < 0.5 else 0.0


def error_rate(text: str, answer: str) -> float:
    """Return the character error rate of the best stretch of the reply as long as the answer, at most 1."""
    reply, wanted = normalise(text).replace(" ", ""), normalise(answer).replace(" ", "")
    if not wanted or not reply:
        return float(bool(wanted))
    width = len(wanted)
    windows = (reply[start : start + width] for start in range(max(1, len(reply) - width + 1)))
    return min(1.0, min(Levenshtein.distance(wanted, window) for window in windows) / width)


def _contains(text: str, answers: Sequence[str], match: str, sensitive: bool) -> bool:
    hits = [answer in text if sensitive else answer.casefold() in text.casefold() for answer in answers]
    return all(hits) if match == "all" else any(hits)


def _exact(text: str, answer: str) -> float:
    return float(_ARTICLES.sub("", normalise(text)).split() == _ARTICLES.sub("", normalise(answer)).split())


def _listed(text: str, sample: Sample) -> list[str]:
    """Return the planted values that the reply names though they do not answer this question."""
    answers = {normalise(answer) for answer in sample.answers}
    return [
        value
        for value in sample.meta.get("planted", ())
        if normalise(value) not in answers and word_contains(text, value)
    ]


def score_shown(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Score 1 where a shown frame lies in the needle's time; unscored where nobody knows which frames were seen."""
    span = sample.meta.get("needle_seconds")
    records = prediction.detail.get("videos") or []
    if not span:
        return [Score(request.key, SHOWN, None, reason="when the answer is shown is not known")]
    if not records or any("seconds" not in record for record in records):
        return [Score(request.key, SHOWN, None, reason="which frames were seen is not known")]
    start, end = float(span[0]) - TOLERANCE_S, float(span[1]) - TOLERANCE_S
    shown = [second for record in records for second in record["seconds"] if start <= second < end]
    return [Score(request.key, SHOWN, float(bool(shown)), rule="frames", detail={"frames": len(shown)})]
