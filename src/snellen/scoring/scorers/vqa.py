"""Turns a short answer and its references into VQA soft accuracy, ANLS, relaxed numeric accuracy or exact match."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from rapidfuzz.distance import Levenshtein

from ...core.types import Prediction, Request, Sample, Score
from .replies import answer_text, score_text, text_scorer

ARTICLES = frozenset({"a", "an", "the"})

NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    )
} | {"none": "0"}

# Canonical forms. A word that lacks exactly one of the apostrophes is mended to the canonical form. This gives the
# table of the VQA evaluation (its entries with capitals never match: words are lower-cased first; they are left out).
_CONTRACTED = [
    "ain't", "aren't", "can't", "could've", "couldn't", "couldn't've", "didn't", "doesn't", "don't", "hadn't",
    "hadn't've", "hasn't", "haven't", "he'd", "he'd've", "he's", "how'd", "how'll", "how's", "isn't", "it'd",
    "it'd've", "it'll", "ma'am", "mightn't", "mightn't've", "might've", "mustn't", "must've", "needn't", "not've",
    "o'clock", "oughtn't", "'ow's'at", "shan't", "she'd've", "should've", "shouldn't", "shouldn't've",
    "somebody'd've", "somebody'll", "somebody's", "someone'd", "someone'd've", "someone'll", "someone's",
    "something'd", "something'd've", "something'll", "that's", "there'd", "there'd've", "there're", "there's",
    "they'd", "they'd've", "they'll", "they're", "they've", "'twas", "wasn't", "we'd've", "we've", "weren't",
    "what'll", "what're", "what's", "what've", "when's", "where'd", "where's", "where've", "who'd", "who'd've",
    "who'll", "who's", "who've", "why'll", "why're", "why's", "won't", "would've", "wouldn't", "wouldn't've",
    "y'all", "y'all'll", "y'all'd've", "you'd", "you'd've", "you'll", "you're", "you've",
]  # fmt: skip

CONTRACTIONS = {
    word[:position] + word[position + 1 :]: word
    for word in _CONTRACTED
    for position, character in enumerate(word)
    if character == "'"
} | {"somebody'd": "somebodyd"}
"""Misspelt -> canonical. The last entry is reversed in the original table and kept so, for equal numbers."""

PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_DIGIT_COMMA_DIGIT = re.compile(r"\d,\d")
_LOOSE_PERIOD = re.compile(r"\.(?!\d)")
_SHORT = 100
_OFFICIAL_PERIOD_LIMIT = 32
"""The original passes a flag where a count belongs, so at most this many periods are dropped."""


def normalise_vqa(text: str) -> str:
    """Return the form of the official VQA evaluation (which ReForm-Eval's KIE metric copies), quirks included."""
    # References are short and come back for every repeat: worth remembering. Long replies are neither.
    return _remembered(text) if len(text) <= _SHORT else _normalise(text)


def _normalise(text: str) -> str:
    spaced = text.replace("\n", " ").replace("\t", " ").strip()
    return " ".join(_mend_words(_drop_punctuation(spaced)))


_remembered = lru_cache(maxsize=4096)(_normalise)


def _drop_punctuation(text: str) -> str:
    has_number_comma = _DIGIT_COMMA_DIGIT.search(text) is not None
    result = text
    for mark in PUNCTUATION:
        touches_space = f"{mark} " in text or f" {mark}" in text
        result = result.replace(mark, "" if touches_space or has_number_comma else " ")
    return _LOOSE_PERIOD.sub("", result, count=_OFFICIAL_PERIOD_LIMIT)


def _mend_words(text: str) -> list[str]:
    numbered = (NUMBER_WORDS.get(word, word) for word in text.lower().split())
    return [CONTRACTIONS.get(word, word) for word in numbered if word not in ARTICLES]


def contains_word(text: str, word: str) -> bool:
    r"""Whether `word` stands in `text` between two word boundaries of regular expressions (`\b`), as in ReForm-Eval."""
    return re.search(rf"\b{re.escape(word)}\b", text) is not None


ANLS_THRESHOLD = 0.5
RELAXED_TOLERANCE = 0.05
VOTES_FOR_FULL_SCORE = 3
FEWEST_PEOPLE = VOTES_FOR_FULL_SCORE + 1
"""With fewer nobody can have a full score: three must agree besides the one who is left out."""
TOO_FEW = "the sample has no four answers of people: for alternatives use the scorer any_exact"

_NUMBER = re.compile(r"[-+]?(?:(?:\d+(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?%?")


def vqa_accuracy(prediction: str, answers: Sequence[str], *, skip_unanimous: bool = False) -> float:
    """Return the official soft accuracy in 0..1: mean over annotators of min(matches among the others / 3, 1).

    With fewer than two answers there are no others, and the answer counts as matched or not.
    `skip_unanimous` keeps the official quirk of comparing raw texts when all annotators agree.
    """
    if len(answers) < 2:
        return float(any(normalise_vqa(prediction) == normalise_vqa(answer) for answer in answers))
    matches = _count_matches(prediction, answers, skip_unanimous=skip_unanimous)
    # Leaving out an annotator who agrees leaves matches - 1 others; leaving out one who does not leaves all of them.
    agreeing = matches * min((matches - 1) / VOTES_FOR_FULL_SCORE, 1.0) if matches else 0.0
    others = (len(answers) - matches) * min(matches / VOTES_FOR_FULL_SCORE, 1.0)
    return (agreeing + others) / len(answers)


def vqa_accuracy_simple(prediction: str, answers: Sequence[str]) -> float:
    """Return min(matches / 3, 1), the short form of the metric; with fewer than three answers one match is enough."""
    matches = _count_matches(prediction, answers)
    return min(matches / min(VOTES_FOR_FULL_SCORE, max(len(answers), 1)), 1.0)


def _count_matches(prediction: str, answers: Sequence[str], *, skip_unanimous: bool = False) -> int:
    if skip_unanimous and len(set(answers)) == 1:
        return sum(answer == prediction.replace("\n", " ").replace("\t", " ").strip() for answer in answers)
    wanted = normalise_vqa(prediction)
    return sum(normalise_vqa(answer) == wanted for answer in answers)


def anls(prediction: str, answers: Sequence[str]) -> float:
    """Return the best 1 - normalised edit distance over the answers, 0 where it is half or more (Biten et al. 2019)."""
    return max((_similarity(_fold(prediction), _fold(answer)) for answer in answers), default=0.0)


def _similarity(prediction: str, answer: str) -> float:
    distance = Levenshtein.normalized_distance(prediction, answer)
    return 1.0 - distance if distance < ANLS_THRESHOLD else 0.0


def _fold(text: str) -> str:
    return " ".join(text.lower().split())


def relaxed_accuracy(prediction: str, answers: Sequence[str], *, tolerance: float = RELAXED_TOLERANCE) -> float:
    """Return 1 if any answer is met within `tolerance` (relative, for numbers) or is equal as folded text (ChartQA)."""
    return float(any(_relaxed_match(prediction, answer, tolerance) for answer in answers))


def _relaxed_match(prediction: str, answer: str, tolerance: float) -> bool:
    wanted, given = parse_number(answer), parse_number(prediction)
    if wanted is None or given is None:
        return _fold(prediction) == _fold(answer)
    return abs(given - wanted) <= tolerance * abs(wanted) + 1e-12


def parse_number(text: str) -> float | None:
    """Read a whole text as one number (thousands separators allowed, `50%` is 0.5), or return None."""
    trimmed = text.strip().rstrip(".").replace("\u2212", "-").removeprefix("$").replace(" %", "%")
    if not _NUMBER.fullmatch(trimmed):
        return None
    number = float(trimmed.rstrip("%").replace(",", ""))
    if not math.isfinite(number):
        return None
    return number / 100 if trimmed.endswith("%") else number


def any_exact(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the prediction equals any answer after VQA normalisation, else 0.

    Of what is nothing but articles and punctuation nothing is left by it: such texts are compared as they are.
    """
    wanted = normalise_vqa(prediction) or _fold(prediction)
    return float(any((normalise_vqa(answer) or _fold(answer)) == wanted for answer in answers))


def score_vqa(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Scorer `vqa`: official soft accuracy; `vqa_skip_unanimous = true` keeps the official quirk.

    Two or three answers are unscored: by the formula even what all of them said would earn a third or two.
    """
    if 1 < len(sample.answers) < FEWEST_PEOPLE:
        return [Score(prediction.key, "vqa_accuracy", None, answer_text(prediction), reason=TOO_FEW)]
    measure = partial(vqa_accuracy, skip_unanimous=bool(options.get("vqa_skip_unanimous", False)))
    return [score_text("vqa_accuracy", measure, sample, prediction)]


def score_relaxed(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Scorer `relaxed`: 5 % numeric tolerance; option `tolerance` changes it."""
    measure = partial(relaxed_accuracy, tolerance=float(options.get("tolerance", RELAXED_TOLERANCE)))
    return [score_text("relaxed_accuracy", measure, sample, prediction)]


score_vqa_simple = text_scorer("vqa_accuracy_simple", vqa_accuracy_simple)
score_anls = text_scorer("anls", anls)
score_any_exact = text_scorer("any_exact", any_exact)
