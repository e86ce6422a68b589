"""Turns one inference of an annotated question into right or wrong: by FlagEvalMM's rules or by our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...core.types import Prediction, Request, Sample, Score
from ...data.files.records import Record
from ...extract.choice import extract_choice
from ...extract.extraction import UNPARSED
from ...extract.profiles import parse_flageval
from ..scorers.mmmu_open import judge_open
from ..scorers.vqa import any_exact, relaxed_accuracy
from .blanks import judge_blank
from .typed_answers import ANSWER_TYPES, judge_typed

ANNOTATION, NULL = "annotation", "null"
"""Where a sample keeps its annotation, and how a prediction says that the file has null in the place of the reply."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Verdict(Struct, frozen=True):
    """What one reply was taken to say, and whether that is right; None where it could not be read."""

    correct: bool | None
    answer: str | None


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Scorer `annotated`: a reply by the annotation of its question (type, options, answer) and the profile."""
    annotation = Record("annotations", 1, sample.meta.get(ANNOTATION) or {})
    reply = None if prediction.detail.get(NULL) else prediction.text
    verdict = judge_inference(annotation, reply, str(options.get("profile", "snellen")))
    value, reason = (None, UNPARSED) if verdict.correct is None else (float(verdict.correct), None)
    return [Score(request.key, "accuracy", value, verdict.answer, "annotated", reason)]


def judge_inference(annotation: Record, reply: str | None, profile: str) -> Verdict:
    """Compare a reply with its annotation (`question_type`, `answer`, `options`); unknown types are an error."""
    kind = question_type(annotation)
    if profile == "flageval":
        return _judge_flageval(annotation, kind, reply)
    return _judge_ours(annotation, kind, reply or "", profile)


def question_type(annotation: Record) -> str:
    """Return the type of a question; without one it is a choice if it has options, else open."""
    usual = "multiple-choice" if annotation.fields.get("options") else "open"
    return str(annotation.fields.get("question_type") or usual)


def _judge_flageval(annotation: Record, kind: str, reply: str | None) -> Verdict:
    if kind == "multiple-choice":
        letter = _flageval_letter(reply) if reply is not None else None
        return Verdict(letter == annotation.text("answer").upper(), letter)
    if kind != "fill-blank":
        return _judge_flageval_open(annotation, kind, reply or "")
    right, line = judge_blank(reply or "", annotation.text("answer"))
    return Verdict(right, line)


def _judge_flageval_open(annotation: Record, kind: str, reply: str) -> Verdict:
    """Judge by `answer_type` as its OpenEvaluator does; without one, type `open` as its MmmuEvaluator does."""
    answer_type = annotation.text("answer_type") if "answer_type" in annotation.fields else None
    if answer_type is not None and kind != "llm-judge" and answer_type in ANSWER_TYPES:
        try:
            return Verdict(*judge_typed(reply, answer_type, annotation.get("answer")))
        except (TypeError, ValueError, OverflowError):
            annotation.fail(f"'answer' {annotation.get('answer')!r:.60} is not of answer_type {answer_type!r}")
    if kind != "open" or answer_type is not None:
        known = f"it knows multiple-choice, fill-blank, open, and answer_type {', '.join(ANSWER_TYPES)}"
        asked = f"question_type {kind!r} with answer_type {answer_type!r}"
        annotation.fail(f"profile 'flageval' has no rule for {asked}; {known}")
    return Verdict(judge_open(reply, annotation.text_or_texts("answer")), reply)


def _flageval_letter(reply: str) -> str:
    capital = parse_flageval(reply)
    return capital[0] if capital else ""


def _judge_ours(annotation: Record, kind: str, reply: str, profile: str) -> Verdict:
    if kind == "llm-judge":
        fix = "run it as a task with a judge, or score it by --profile flageval"
        annotation.fail(f"question_type 'llm-judge' needs a judge: {fix}")
    if kind in {"multiple-choice", "yes-no"} or annotation.fields.get("options"):
        return _judge_choice(annotation, reply, profile, _options(annotation, kind))
    answers = annotation.text_or_texts("answer")
    references = [answers] if isinstance(answers, str) else answers
    correct = any_exact(reply, references) or relaxed_accuracy(reply, references, tolerance=0.0)
    return Verdict(bool(correct), reply.strip())


def _options(annotation: Record, kind: str) -> Mapping[str, str]:
    texts: Any = annotation.fields.get("options") or (["yes", "no"] if kind == "yes-no" else None)
    if not isinstance(texts, list) or not 2 <= len(texts) <= len(LETTERS):
        annotation.fail(f"'options' must be a list of 2 to {len(LETTERS)} texts")
    return {letter: str(text) for letter, text in zip(LETTERS, texts, strict=False)}


def _judge_choice(annotation: Record, reply: str, profile: str, options: Mapping[str, str]) -> Verdict:
    letter = extract_choice(reply, options, profile=profile).letter
    right = _right_letter(annotation, options)
    unread = letter is None and profile == "snellen"
    return Verdict(None if unread else letter == right, letter)


def _right_letter(annotation: Record, options: Mapping[str, str]) -> str:
    wanted = annotation.text("answer").strip()
    if wanted.upper() in options:
        return wanted.upper()
    named = [letter for letter, text in options.items() if text == wanted]
    if len(named) != 1:
        annotation.fail(f"'answer' {wanted!r:.60} is neither the letter nor the text of one option")
    return named[0]
