"""Short answers where a benchmark says how they are given: in braces, in a JSON field, as words to overlap."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.text import json_objects
from ...core.types import Prediction, Request, Sample, Score
from ...extract.other_kinds import extract_labels, extract_short
from .number_match import NO_NUMBER
from .replies import answer_text, nothing_to_compare, score_text, text_scorer
from .text_match import fold
from .vqa import parse_number

METRIC = "accuracy"
NEAR = 0.001
"""Difference up to which DynaMath takes two numbers for one."""
JSON_FIELD, KIND_TAG = "short answer", "answer_type"
_BRACES = re.compile(r"\{([^{}]*)\}")
_LETTER = re.compile(r"(?<![A-Za-z])([A-E])(?![A-Za-z])")
_GLUED_LABELS = re.compile(r"[A-H]{1,8}|[1-9]")
_BETWEEN_LABELS = re.compile(r"[\s,;()]+|and")
_PI = re.compile(r"\s*(-?\d*\.?\d*)\s*(?:π|\\?pi)\s*", re.IGNORECASE)


def braced_accuracy(reply: str, answers: Sequence[str]) -> float:
    """Return 1 if an answer stands in the last curly braces of a reply, or in all of them in order (`{3} {4}` is 3,4).

    A reply without braces counts by its short answer.
    """
    said = [inside.strip() for inside in _BRACES.findall(reply)]
    given = [said[-1], ",".join(said)] if said else [reply, extract_short(reply)]
    return float(any(_same(one, answer) for one in given for answer in answers))


def _same(one: str, other: str) -> bool:
    left, right = parse_number(one), parse_number(other)
    if left is not None and right is not None:
        return math.isclose(left, right, rel_tol=1e-9)
    return fold(one).replace(" ", "") == fold(other).replace(" ", "")


score_braced = text_scorer(METRIC, braced_accuracy)


def word_f1(reply: str, answers: Sequence[str]) -> float:
    """Return the best F1 of the words of a reply and an answer, as SlideVQA counts them: without multiplicity."""
    return max((_f1(reply.lower().split(), answer.lower().split()) for answer in answers), default=0.0)


def _f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    shared = sum(word in wanted for word in given)
    if not shared:
        return 0.0
    precision, recall = shared / len(given), min(1.0, shared / len(wanted))
    return 2 * precision * recall / (precision + recall)


def score_word_f1(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Scorer `word_f1`: the overlap of words with the best answer."""
    return [score_text("word_f1", word_f1, sample, prediction)]


def score_json_answer(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Scorer `json_answer` (DynaMath): the field `short answer` of a JSON reply, by the tag `answer_type`.

    A number within 0.001, one letter, else a text that stands in the answer; a reply without the field is read by its
    short answer, and is unscored where no value of the type is in it.
    """
    missing = nothing_to_compare(METRIC, sample, prediction)
    if missing:
        return missing
    text = answer_text(prediction) or ""
    field = _json_field(text)
    said = extract_short(text) if field is None else field
    kind = str(sample.tags.get(KIND_TAG) or "")
    value = _typed_match(said, sample.answers, kind)
    rule = "short" if field is None else "json"
    if value is None:
        known = kind != "float" or any(_value(answer) is not None for answer in sample.answers)
        return [Score(request.key, METRIC, None, said, rule, "unparsed" if known else NO_NUMBER)]
    return [Score(request.key, METRIC, value, said, rule)]


def score_label_set(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Scorer `label_set` (LogicVista): exactly the labels of the answer, in any order: `A, C`, `CA`, `B) Germany`, `2`.

    A reply that names no labels, or several and nothing that says which, is unscored: a judge may extract them.
    """
    missing = nothing_to_compare(METRIC, sample, prediction)
    if missing:
        return missing
    text = answer_text(prediction) or ""
    digit = text.strip().strip(".")
    found = extract_labels(text, finish=prediction.finish)
    said = digit if len(digit) == 1 and digit.isdigit() else "".join(sorted(found.letters))
    if not said:
        return [Score(request.key, METRIC, None, None, found.rule, found.reason)]
    known = [labels for answer in sample.answers if (labels := labels_in(answer))]
    if not known:
        return [Score(request.key, METRIC, None, said, found.rule, "the answer names no labels")]
    return [Score(request.key, METRIC, float(said in known), said, found.rule)]


def labels_in(text: str) -> str | None:
    """Return labels in a fixed order where a text is nothing but labels, else None."""
    bare = text.strip().strip(".")
    labels = [bare] if _GLUED_LABELS.fullmatch(bare) else [part for part in _BETWEEN_LABELS.split(bare) if part]
    if len(labels) == 1 and _GLUED_LABELS.fullmatch(labels[0]):
        labels = list(labels[0])
    single = bool(labels) and all(len(label) == 1 and label.isalnum() for label in labels)
    return "".join(sorted(label.upper() for label in labels)) if single else None


def _json_field(text: str) -> str | None:
    found = [value[JSON_FIELD] for value in json_objects(text) if isinstance(value, dict) and JSON_FIELD in value]
    return str(found[-1]).strip() if found else None


def _typed_match(said: str, answers: Sequence[str], kind: str) -> float | None:
    if kind == "float":
        number = _value(said)
        known = [wanted for answer in answers if (wanted := _value(answer)) is not None]
        return (
            None
            if number is None or not known
            else float(any(abs(number - wanted) <= NEAR + 1e-12 for wanted in known))
        )
    if kind == "multiple choice":
        letters = set(_LETTER.findall(said.upper() if len(said) == 1 else said))
        return float(letters.pop() in answers) if len(letters) == 1 else None
    return float(bool(said) and any(said.lower() in answer.lower() for answer in answers))


def _value(text: str) -> float | None:
    found = _PI.fullmatch(text)
    if found:
        share = found[1]
        return math.pi * (float(share) if share not in ("", "-", ".") else -1.0 if share == "-" else 1.0)
    return parse_number(text.partition(" ")[0] if text else text)
