"""Turns the reply to an open question into right or wrong by its `answer_type`, as FlagEvalMM's OpenEvaluator does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

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
