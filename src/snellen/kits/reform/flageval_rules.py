"""Turns one inference of an annotated question into right or wrong: by FlagEvalMM's rules or by our own."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ...core.types import Prediction, Request, Sample, Score
from ...data.files.records import Record
from ...extract.choice import extract_choice
from ...extract.extraction import UNPARSED
from ...extract.profiles import parse_flageval
from ...scoring.scorers.mmmu_open import judge_open
from ...scoring.scorers.vqa import any_exact, relaxed_accuracy

SIMILARITY_THRESHOLD = 0.7
REJECTION_STARTS = ("Error code", "Can not answer because of", "Input data may contain inappropriate content")
"""A reply that starts so is an error of the harness that wrote the file, not an answer."""

_WRONG_SIGNS = ("\\times", "不对", "不正确", "×")
_LATEX_OF_BLANK = re.compile(r"\\text\s*\{(.*?)\}")
_SYNONYMS = {
    "√": "正确", "：": ":", "$": "", "（": "(", "）": ")", "，": ",", "。": ".", "变小": "减小", "变大": "增大",
    "路程": "距离", "\\pi": "π", "＞": ">", "＜": "<", "；": ";",
}  # fmt: skip
_CIRCLED = {chr(ord("①") + offset): str(offset + 1) for offset in range(10)}
_WHOLE_ANSWERS = {"错": "错误", "对": "正确", "“T”": "T", "“F”": "F"}
_WHOLE_ANSWERS |= {f"({answer})": answer for answer in ("F", "T", "正确", "错误")}
_CUES_OF_BLANK = (
    "Answer:", "Answer is", "answer is", "Answer", "answer", "答案为", "答案是", "解是", "解为", "答案", "结果", "为",
    "因此", " = ",
)  # fmt: skip
_WITH_UNIT = re.compile(r"(\d+)(?:cm|m|km|mm|s|h|kg|g|l|ml|mol|厘米|米|千米|°|毫米|月|秒|小时|克|千克|升|毫升|摩尔)\n?")


def is_rejected(answer: Any) -> bool:
    """Whether the reply is an error text, which FlagEvalMM takes out of numerator and denominator."""
    return isinstance(answer, str) and answer.startswith(REJECTION_STARTS)


def normalise_blank(text: str) -> str:
    """Return the form in which fill-in answers are compared."""
    if "$" not in text:
        for sign in _WRONG_SIGNS:
            text = text.replace(sign, "错误")
    text = _LATEX_OF_BLANK.sub(r"\1", text)
    for old, new in (_SYNONYMS | _CIRCLED).items():
        text = text.replace(old, new)
    text = _WHOLE_ANSWERS.get(text, text)
    cue = next((cue for cue in _CUES_OF_BLANK if cue in text), None)
    text = (text.rsplit(cue, 1)[-1] if cue else text).strip().removeprefix(":")
    text = text[:-1] if text.endswith((".", ",", ":", ";")) else text
    unit = _WITH_UNIT.fullmatch(text)
    return (unit[1] if unit else text).strip()


def judge_blank(reply: str, answer: str) -> tuple[bool, str]:
    """Return whether any line of the reply is more than 0.7 similar to the answer, and that line (else all lines)."""
    visible = reply.split("</think>")[1] if "</think>" in reply else reply
    wanted = normalise_blank(answer)
    lines = [line for line in map(normalise_blank, visible.split("\n")) if line]
    for line in lines:
        matcher = difflib.SequenceMatcher(None, line, wanted)
        # The upper bound by length spares the quadratic comparison of long lines.
        if matcher.real_quick_ratio() > SIMILARITY_THRESHOLD and matcher.ratio() > SIMILARITY_THRESHOLD:
            return True, line
    return False, "\n".join(lines)


INTEGER_TOLERANCE = 1e-3
FLOAT_TOLERANCE = 0.1
"""Relative, for one number."""
LIST_TOLERANCE = 0.08
"""Relative, for the fractions in a list of numbers."""

_BOX = "\\boxed{"
_LOOKAHEAD = 200
_DECIMAL = r"[+-]?\d+(?:\.\d+)?"
_TIMES_TEN = r"(?:\\times|[x×])\s*10\s*\^"
_NESTED = re.compile(rf"\d[eE][+-]?\d|{_TIMES_TEN}|\\text")
_LATEX_TEXT = re.compile(r"\\text\s*\{([^}]*)\}")
_FRACTION = re.compile(r"([+-]?)\\frac" + rf"\s*\{{\s*({_DECIMAL})\s*\}}" * 2)
_CUES = ("Answer:", "Answer", "答案：", "答案:", "答案")
_GAP = re.compile(r"[,\s]")
_THOUSANDS = re.compile(rf"(?<!\d)[+-]?\d{{1,3}}(?:{_GAP.pattern}\d{{3}})+(?:\.\d+)?(?!\d)")
_POWER = rf"(?P<factor>{_DECIMAL})\s*{_TIMES_TEN}\s*(?:\{{\s*)?(?P<power>[+-]?\d+)"
_NUMBER = re.compile(rf"{_POWER}|(?P<plain>{_DECIMAL}(?:[eE][+-]?\d+)?)")
_PLAIN_FORMS = {
    "′": "'", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "‐": "-", "−": "-", "–": "-", "⋅": "·", "\\sim": "~",
    "\\circ": "°", "\\theta": "θ", "\\sin": "sin", "\\cos": "cos", "\\tan": "tan", "\\log": "log", "\\ln": "ln",
}  # fmt: skip


def extract_open(reply: str) -> str:
    """Return the content of the last `\\boxed{}`, else what follows the last of the first cue found, else the reply."""
    boxed = _boxed(reply)
    if boxed is not None:
        return boxed
    cue = next((cue for cue in _CUES if cue in reply), None)
    return reply.rpartition(cue)[2].strip() if cue else reply


def extract_numbers(text: str) -> list[float]:
    """Return the numbers in order: thousands apart by comma or space, `1.5e3`, `2 \\times 10^3`; a fraction is two."""
    text = _THOUSANDS.sub(lambda match: _GAP.sub("", match[0]), text)
    return [_value(match) for match in _NUMBER.finditer(text)]


def judge_typed(reply: str, answer_type: str, answer: Any) -> tuple[bool, str]:
    """Return whether the reply is right, and what was read of it.

    Raises KeyError for an unknown type; ValueError, TypeError or OverflowError for an answer that is not of its type.
    """
    text = extract_open(reply)
    for old, new in _PLAIN_FORMS.items():
        text = text.replace(old, new)
    return ANSWER_TYPES[answer_type](text, answer), text


def _boxed(reply: str) -> str | None:
    box = reply.rfind(_BOX)
    if box < 0:
        return None
    start = box + len(_BOX)
    end = _box_end(reply, start)
    return _clean_box(reply[start:end]) if end > start else None


def _box_end(reply: str, start: int) -> int:
    """Return where the box ends, or -1: a brace that ends a line; else the last if it looks nested, else the first."""
    line_end, first = reply.find("}\n", start), reply.find("}", start)
    if line_end >= 0 or first < 0:
        return line_end
    nested = "{" in reply[start:first] or _NESTED.search(reply, start, first + _LOOKAHEAD)
    return reply.rfind("}") if nested else first


def _clean_box(content: str) -> str:
    # After the last brace no `\text{` can close; leaving that part out keeps the search linear.
    head, brace, tail = content.rpartition("}")
    content = " ".join((_LATEX_TEXT.sub(r"\1", head + brace) + tail).split())
    fraction = _FRACTION.fullmatch(content)
    if not fraction or float(fraction[3]) == 0:
        return content
    value = float(fraction[2]) / float(fraction[3])
    return str(-value if fraction[1] == "-" else value)


def _value(match: re.Match[str]) -> float:
    if match["power"] is None:
        return float(match["plain"])
    return float(match["factor"]) * float(f"1e{match['power']}")


def _is_integer(text: str, answer: Any) -> bool:
    if isinstance(answer, list):
        return _are_numbers(text, [int(value) for value in answer])
    return _last_is_near(text, int(answer), INTEGER_TOLERANCE)


def _is_float(text: str, answer: Any) -> bool:
    if isinstance(answer, list):
        return _are_numbers(text, [float(value) for value in answer])
    return _last_is_near(text, float(answer), abs(float(answer)) * FLOAT_TOLERANCE)


def _last_is_near(text: str, wanted: float, tolerance: float) -> bool:
    numbers = extract_numbers(text)
    return bool(numbers) and abs(numbers[-1] - wanted) < tolerance


def _are_numbers(text: str, wanted: Sequence[float]) -> bool:
    """Whether the text holds just these numbers, in this order; no number is never right."""
    numbers = extract_numbers(text)
    if not numbers or len(numbers) != len(wanted):
        return False
    return all(abs(number - value) < _list_tolerance(value) for number, value in zip(numbers, wanted, strict=True))


def _list_tolerance(value: float) -> float:
    return INTEGER_TOLERANCE if float(value).is_integer() else abs(value) * LIST_TOLERANCE


def _are_truths(text: str, answer: Any) -> bool:
    wanted = [str(value).strip().lower() for value in answer]
    return set(wanted) <= {"true", "false"} and re.findall(r"\b(true|false)\b", text.lower()) == wanted


def _contains_any(text: str, answer: Any) -> bool:
    candidates = answer if isinstance(answer, list) else [answer]
    return any(str(candidate).lower() in text.lower() for candidate in candidates)


ANSWER_TYPES: Final[Mapping[str, Callable[[str, Any], bool]]] = {
    "integer": _is_integer,
    "float": _is_float,
    "true_false": _are_truths,
    "text match": _contains_any,
}
"""How each type of answer is compared; FlagEvalMM's `open_ended` needs a judge."""


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
