"""Turns a reply in words into its score against reference texts: equal, contained, or by word errors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from rapidfuzz.distance import Levenshtein

from ...core.types import Prediction, Request, Sample, Score
from ...extract.extraction import EMPTY, TRUNCATED
from ...extract.other_kinds import extract_short
from ...extract.phrases import CORRECTION
from ...extract.reply_text import answer_start
from .replies import BOTH_WAYS, NO_REFERENCE, is_joined, is_met

_SPACES = re.compile(r"\s+")
_ANSWER_END = re.compile(r"[.!?;](?=\s)|[。！？；]|,?\s(?:because|since)\s|,\sas\s")
"""Where an answer ends and a reason, or another sentence, begins."""
_EDGES = " \t\n.,:;!?\"'`*_()[]{}。，：；！？“”‘’"
_BARE_POINT = re.compile(r"(?<![\w.])\.(?=\d)")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_MINUS = "-\u2212"
_WRITTEN = re.compile(rf"(?:(?<!\w)[{_MINUS}])?(?:(?<![\d.,])\d{{1,3}}(?:,\d{{3}})+(?![\d,])|\d+)?(?:\.\d+)?")
"""A number with its sign, thousands and decimals; `3-5` are two."""


def fold(text: str) -> str:
    """Return a text as it is compared: NFKC, case folded, runs of space as one, punctuation at the edges dropped.

    Numbers stay what they are: `.5` is 0.5 and not 5, `1,200` is 1200. A text of punctuation alone is compared as such.
    """
    plain = _SPACES.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
    whole = _GROUPED.sub(lambda found: found[0].replace(",", ""), _BARE_POINT.sub("0.", plain))
    return whole.strip(_EDGES) or whole


def reply_text(prediction: Prediction) -> str | None:
    """Return the reply after its thinking, or None if the thinking never ended."""
    text = prediction.text or ""
    start = answer_start(text)
    return None if start is None else text[start:].strip()


def exact(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Metric `exact_match`: 1.0 if the short answer equals any of `sample.answers`.

    An answer that joins texts (`a <AND> b`) is met where they stand in the reply.
    Compared after `fold`; `options["case_sensitive"]` compares as written. A cue such as `The answer is …` is stripped.
    """
    text = reply_text(prediction)
    unscored = _unscored(sample, request, prediction, text, "exact_match")
    if unscored or text is None:
        return unscored
    if is_joined(sample.answers):
        return [_joined(sample, request, text, "exact_match")]
    form = str.strip if options.get("case_sensitive") else fold
    answer = extract_short(text)
    wanted = {form(reference) for reference in sample.answers}
    if form(text) in wanted:
        return [Score(request.key, "exact_match", 1.0, answer, "whole")]
    # `The answer is Paris. It is the capital of France.`: what follows the first sentence is no part of the answer.
    first = _ANSWER_END.split(answer, maxsplit=1)[0]
    taken_back = CORRECTION.search(answer.lower(), len(first)) is not None
    short = first if form(answer) not in wanted and form(first) in wanted and not taken_back else answer
    return [_unless_cut(prediction, Score(request.key, "exact_match", float(form(short) in wanted), short, "short"))]


def contains(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Metric `contains`: 1.0 if any of `sample.answers` stands in the reply as whole words.

    `options["boundary"] = false` also accepts it inside a longer word (then the metric is `contains_anywhere`);
    `options["case_sensitive"]` compares as written.
    """
    bounded = bool(options.get("boundary", True))
    metric = "contains" if bounded else "contains_anywhere"
    text = reply_text(prediction)
    unscored = _unscored(sample, request, prediction, text, metric)
    if unscored or text is None:
        return unscored
    if is_joined(sample.answers):
        return [_joined(sample, request, text, metric)]
    sensitive = bool(options.get("case_sensitive"))
    haystack = text if sensitive else fold(text)
    needles = [reference if sensitive else fold(reference) for reference in sample.answers]
    hit = next((needle for needle in needles if needle and _stands_in(needle, haystack, bounded=bounded)), None)
    return [_unless_cut(prediction, Score(request.key, metric, 0.0 if hit is None else 1.0, hit, metric))]


def _unless_cut(prediction: Prediction, score: Score) -> Score:
    """Return a score, unscored where a reply that was cut has not come to the answer: it may have been to follow."""
    cut = prediction.finish == "length" and score.value == 0.0
    return Score(score.key, score.metric, None, score.answer, "cut_off", TRUNCATED) if cut else score


def meets(text: str, answers: Sequence[str]) -> bool | None:
    """Tell whether a reply holds the texts that joined answers ask for, as whole words; None where nobody can tell."""
    said = fold(text)
    verdicts = {is_met(answer, lambda part: _stands_in(fold(part), said, bounded=True)) for answer in answers}
    return True if True in verdicts else None if None in verdicts else False


def _joined(sample: Sample, request: Request, text: str, metric: str) -> Score:
    met = meets(text, sample.answers)
    if met is None:
        return Score(request.key, metric, None, text, "joined", BOTH_WAYS)
    return Score(request.key, metric, float(met), text, "joined")


def _stands_in(needle: str, haystack: str, *, bounded: bool) -> bool:
    return (place_of(needle, haystack) if bounded else haystack.find(needle)) >= 0


def place_of(needle: str, haystack: str) -> int:
    """Return where a text stands in another as whole words and numbers, or -1."""
    at = haystack.find(needle)
    while at >= 0 and not (_begins(haystack, at) and _edge(haystack, at + len(needle))):
        at = haystack.find(needle, at + 1)
    return at


def _begins(text: str, at: int) -> bool:
    """Whether a word or number begins at position `at`; the -5 of 3-5 does not."""
    return _edge(text, at) and not (at > 0 and text[at] in _MINUS and text[at - 1].isalnum())


def _edge(text: str, at: int) -> bool:
    """Whether no word or number runs across position `at`; scripts without spaces have an edge everywhere."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before.isalnum() and after.isalnum():
        return before >= "\u2e80" or after >= "\u2e80"
    return not _in_number(text, at)


def _in_number(text: str, at: int) -> bool:
    """Whether a number goes on at position `at`: 5 is no part of 2.5, 200 none of 1,200, and 5 is not -5."""
    return any(found.start() < at < found.end() for found in _WRITTEN.finditer(text, max(0, at - 24), at + 24))


def word_error(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Metrics `wer` (word errors per reference word, 0 is best, may exceed 1) and `word_accuracy` (1 − min(1, wer)).

    The reference with the fewest errors counts; both texts go through `fold` unless `options["case_sensitive"]`.
    In scripts without spaces every character is a word: one wrong sign of twenty is no whole sentence.
    """
    from .word_accuracy import characters_apart

    text = reply_text(prediction)
    unscored = _unscored(sample, request, prediction, text, "wer", "word_accuracy")
    if unscored or text is None:
        return unscored
    form = str.strip if options.get("case_sensitive") else fold
    words = characters_apart(form(text)).split()
    rate, errors, length = min(
        _word_error_rate(words, characters_apart(form(reference)).split()) for reference in sample.answers
    )
    detail = {"errors": errors, "words": length}
    return [
        Score(request.key, "wer", rate, text, "levenshtein", None, detail),
        Score(request.key, "word_accuracy", 1.0 - min(1.0, rate), text, "levenshtein"),
    ]


def _word_error_rate(words: list[str], reference: list[str]) -> tuple[float, int, int]:
    errors = Levenshtein.distance(words, reference)
    return errors / max(1, len(reference)), errors, len(reference)


def _unscored(sample: Sample, request: Request, prediction: Prediction, text: str | None, *metrics: str) -> list[Score]:
    """Return unscored Scores, one a metric, with their reason where there is nothing to compare."""
    rule = None
    if not sample.answers:
        reason = NO_REFERENCE
    elif text is None:
        rule, reason = "thinking", TRUNCATED
    elif not text:
        reason = TRUNCATED if prediction.finish == "length" else EMPTY
    else:
        return []
    return [Score(request.key, metric, None, None, rule, reason) for metric in metrics]
