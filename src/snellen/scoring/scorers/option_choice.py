"""Turns a reply to a question with options, or for yes or no, into its score: what was chosen, right or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import structs

from ...core.types import Prediction, Request, Sample, Score, TrialKey
from ...extract.choice import read
from ...extract.extraction import AMBIGUOUS, RULE_SET, UNPARSED, Extraction
from ...extract.option_set import compile_options, derive_marks
from ...extract.other_kinds import extract_yesno, read_mark_set
from ...extract.profiles import profile_named, reform_index
from . import option_likelihood
from .replies import NO_REFERENCE

METRIC, SHARED = "accuracy", "jaccard"
"""The second, of a question with several right options: the share of those named or right that are both."""
RIGHT, MARKS = "right", "marks"
"""What a prediction out of a file may keep: which option was right as shown, and that its marks cannot be told."""
_LONGEST_CLASS = 64
NO_YES_OR_NO = "the answer is neither yes nor no"


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score a choice: 1.0 if the option read is one of `sample.answers`, 0.0 if not, None if none was read.

    `options["profile"]` picks another harness's way of reading; `detail["rules"]` is the version of ours.
    Log-likelihoods go to `score.likelihood`.
    """
    if prediction.loglikelihoods is not None:
        return option_likelihood.score(sample, request, prediction, options)
    shown = request.shown or sample.options
    marks = request.marks or derive_marks(len(shown))
    if prediction.detail and prediction.detail.get(MARKS) == AMBIGUOUS:
        return [Score(request.key, METRIC, None, reason=AMBIGUOUS)]
    name = options.get("profile", "snellen") if options else "snellen"
    text = prediction.text or ""
    if name == "snellen":
        found = read(compile_options(marks, shown), text, prediction.finish)
        chosen = _chosen(found, marks, shown)
        return [_as_shown(prediction, marks, found, _scored(sample, request, found, chosen, {"rules": RULE_SET}))]
    profile = profile_named(name)
    found = profile.read(text, marks)
    detail = {"profile": name, "format_hit": profile.hit(text, marks)}
    verdict = _scored(sample, request, found, _chosen(found, marks, shown), detail)
    verdict = _as_shown(prediction, marks, found, verdict)
    if verdict.value is None and profile.unread_is_wrong and sample.answers:
        return [Score(request.key, METRIC, 0.0, None, found.rule, found.reason, verdict.detail)]
    return [verdict]


def _chosen(found: Extraction, marks: Sequence[str], shown: Sequence[str]) -> str | None:
    return None if found.letter is None else shown[marks.index(found.letter)]


def _scored(sample: Sample, request: Request, found: Extraction, answer: str | None, detail: dict[str, Any]) -> Score:
    if not sample.answers:
        return Score(request.key, METRIC, None, answer, found.rule, NO_REFERENCE, detail)
    if answer is None:
        return Score(request.key, METRIC, None, None, found.rule, found.reason, detail)
    if found.span is not None:
        detail["span"] = found.span
    return Score(request.key, METRIC, 1.0 if answer in sample.answers else 0.0, answer, found.rule, None, detail)


def _as_shown(prediction: Prediction, marks: Sequence[str], found: Extraction, verdict: Score) -> Score:
    """Return a verdict by which option was right as shown, where the prediction says so: texts may stand twice."""
    right = prediction.detail.get(RIGHT) if prediction.detail else None
    if right is None or verdict.value is None or found.letter is None:
        return verdict
    return structs.replace(verdict, value=float(marks.index(found.letter) == right))


def score_place(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Scorer `option_index`: the index of the chosen option, as ReForm-Eval reads it or as a likelihood file writes it.

    A reply that names no option is an answer of its own: instability counts it as one.
    """
    text, right = prediction.text or "", prediction.detail.get(RIGHT)
    if right is None:
        return [Score(request.key, METRIC, None, reason=NO_REFERENCE)]
    chosen = int(text) if options.get("infer_method") == "likelihood" else reform_index(text)
    verdict = score_index(request.key, chosen, right, request.shown)
    if verdict.answer is not None:
        return [verdict]
    # Long ones by their hash, so that each costs the same.
    own = text if len(text) <= _LONGEST_CLASS else blake2b(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return [structs.replace(verdict, answer=own)]


def score_index(key: TrialKey, chosen: int | None, right: int, shown: Sequence[str]) -> Score:
    """Score an option's index as ReForm-Eval does: none read is wrong, and it may lie beyond the options."""
    answer = shown[chosen] if chosen is not None and -len(shown) <= chosen < len(shown) else None
    return Score(key, METRIC, float(chosen == right), answer, "index", UNPARSED if chosen is None else None)


def score_yesno(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Score a yes/no question; `sample.answers` are yes, no, true, false … Options shown are read as a choice."""
    if prediction.loglikelihoods is not None or request.marks:
        return score(sample, request, prediction, options)
    found = extract_yesno(prediction.text or "", finish=prediction.finish)
    if not sample.answers:
        return [Score(request.key, METRIC, None, found.letter, found.rule, NO_REFERENCE)]
    wanted = {extract_yesno(answer).letter for answer in sample.answers} - {None}
    detail: dict[str, Any] = {"rules": RULE_SET} | ({"span": found.span} if found.span else {})
    if not wanted:
        return [Score(request.key, METRIC, None, found.letter, found.rule, NO_YES_OR_NO, detail)]
    value = None if found.letter is None else float(found.letter in wanted)
    return [Score(request.key, METRIC, value, found.letter, found.rule, found.reason, detail)]


def score_set(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score a multiple response: `accuracy` 1.0 for exactly the right options, `jaccard` for how far the sets agree."""
    shown = request.shown or sample.options
    marks = request.marks or derive_marks(len(shown))
    found = read_mark_set(prediction.text or "", marks, shown, prediction.finish)
    chosen = [text for mark, text in zip(marks, shown, strict=True) if mark in found.marks]
    reason = found.reason if sample.answers else NO_REFERENCE
    shares = dict.fromkeys((METRIC, SHARED)) if reason else _shares(set(chosen), set(sample.answers))
    detail: dict[str, Any] = {"span": found.span} if found.span else {}
    said = "; ".join(chosen) or None
    return [Score(request.key, metric, value, said, found.rule, reason, detail) for metric, value in shares.items()]


def _shares(chosen: set[str], right: set[str]) -> dict[str, float | None]:
    return {METRIC: float(chosen == right), SHARED: len(right & chosen) / len(right | chosen)}
