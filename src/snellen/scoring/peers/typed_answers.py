"""Answers of a stated type, as MathVista has them: whole numbers, numbers with so many decimals, lists."""

from __future__ import annotations

import math
import re
from typing import Any

from ...core.types import Sample
from ...extract.other_kinds import extract_number
from ...extract.rules.answer_number import LAST

_LIST = re.compile(r"\[[^\[\]]*\]")


def equals_typed(reply: str, sample: Sample) -> float | None:
    """MathVista's own: the reply as the answer's type, equal to it; None where no value of the type can be found.

    The benchmark lets a language model find the value in a long reply; here our reader of numbers does.
    """
    value = normal_form(_value_in(reply, _kind(sample)), _kind(sample), _precision(sample))
    return None if value is None else float(any(value == _gold(answer, sample) for answer in sample.answers))


def equals_typed_lmms(reply: str, sample: Sample) -> float | None:
    """lmms-eval's: decimals are rounded to a number of digits that is itself no whole number, so they never match."""
    return 0.0 if _kind(sample) == "float" else equals_typed(reply, sample)


def equals_typed_vlmevalkit(reply: str, sample: Sample) -> float | None:
    """VLMEvalKit's before its judge: the whole reply as a number equals the answer; lists are never right."""
    kind = _kind(sample)
    if kind == "list":
        return 0.0
    try:
        given: float = int(reply) if kind == "integer" else float(reply)
    except ValueError:
        return None  # the judge extracts
    return 1.0 if any(given == _number(answer) for answer in sample.answers) else None


def normal_form(value: Any, kind: str, precision: int | None) -> str | None:
    """Return a value as its type writes it, or None for what is no such value."""
    if value is None:
        return None
    text = str(value).strip()
    if kind not in ("integer", "float"):
        return text
    number = _number(text)
    if number is None:
        return None
    return str(int(number)) if kind == "integer" else str(round(number, precision if precision is not None else 1))


def _value_in(reply: str, kind: str) -> str | None:
    text = reply.strip()
    if kind == "list":
        found = _LIST.findall(text)
        return found[-1] if found else None
    if kind not in ("integer", "float"):
        return text
    if _number(text) is not None:
        return text
    number = extract_number(text)
    # One of several numbers, with nothing that says it is the answer, is nobody's value.
    return None if number.value is None or number.rule == LAST else str(number.value)


def _gold(answer: str, sample: Sample) -> str | None:
    return normal_form(answer, _kind(sample), _precision(sample)) or answer


def _kind(sample: Sample) -> str:
    return str(sample.tags.get("answer_type") or "text")


def _precision(sample: Sample) -> int | None:
    stated = _number(str(sample.tags.get("precision")))
    return None if stated is None else int(stated)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
