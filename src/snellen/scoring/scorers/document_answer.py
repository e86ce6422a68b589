"""Typed answers about documents (Int, Float, Str, List, None) to a score: the rule of MMLongBench-Doc's evaluation.

Written from what its `eval/eval_score.py` does; texts that must be exact (addresses, files, dates) are told apart by
their look, other texts are compared by ANLS, of which only more than half counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rapidfuzz.distance import Levenshtein

from ...core.types import Prediction, Request, Sample, Score
from ...data.files.records import parse_literal
from ...extract.other_kinds import extract_short
from .replies import answer_text, nothing_to_compare

METRIC = "document_answer"
FORMAT_TAG = "answer_format"
"""Where a sample says of which type its answer is."""
NEAR = 0.01
"""Relative difference up to which two decimal numbers are one."""
NOT_ANSWERABLE = "not answerable"
_PARENTHESES = re.compile(r"\s*\([^)]*\)")
_EXACT_KINDS = (
    re.compile(r"https?://", re.IGNORECASE),
    re.compile(r"\.(?:py|ipynb)$", re.IGNORECASE),
    re.compile(r"^page\b", re.IGNORECASE),
    re.compile(r"^\+?\d+(?:[-.\s()]\d+)*$"),
    re.compile(r"\b[ap]\.?m\.?(?:\W|$)", re.IGNORECASE),
    re.compile(r"^\d{4}[-\s]\d{1,2}(?:[-\s]\d{1,2})?$"),
    re.compile(r"^[\w.+-]+@[\w-]+\.[\w.-]+$"),
)
"""Web addresses, scripts, page names, numbers and telephones, times of day, dates, e-mail addresses."""


def score_document_answer(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Metric `document_answer`: the short answer of a reply against the answer, as its tag `answer_format` says."""
    missing = nothing_to_compare(METRIC, sample, prediction)
    if missing:
        return missing
    text = answer_text(prediction) or ""
    kind = str(sample.tags.get(FORMAT_TAG) or "Str")
    short = extract_short(text)
    value = max(document_answer(answer, said, kind) for answer in sample.answers for said in (text, short))
    return [Score(request.key, METRIC, value, short, kind)]


def document_answer(gold: str, reply: str, kind: str) -> float:
    """Return 0 to 1 for a short reply to a question whose answer is of a kind: Int, Float, Str, None or List."""
    if kind == "Int":
        return float(_same_whole(gold, reply))
    if kind == "Float":
        return float(_same_decimal(gold, reply))
    if kind == "List":
        return _same_list(_as_list(gold), _as_list(reply))
    return text_likeness(clean(gold), clean(reply))


def _same_whole(gold: str, reply: str) -> bool:
    wanted, given = _number(gold), _number(reply)
    return wanted is not None and given is not None and int(wanted) == int(given)


def _same_decimal(gold: str, reply: str) -> bool:
    wanted, given = _number(clean(gold)), _number(clean(reply))
    if wanted is None or given is None:
        return False
    digits = max(2, min(_decimals(clean(gold)), _decimals(clean(reply))))
    meant = (wanted, wanted / 100.0, wanted * 100.0)  # percent may be written either way
    return any(math.isclose(one, given, rel_tol=NEAR) or round(one, digits) == round(given, digits) for one in meant)


def _number(text: str) -> float | None:
    try:
        value = float(text.strip().replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _decimals(text: str) -> int:
    return len(text.strip().rpartition(".")[2]) if "." in text else 0


def _as_list(text: str) -> list[str]:
    parsed = parse_literal(text.strip()) if text.strip().startswith("[") else None
    if isinstance(parsed, list):
        return [clean(str(one)) for one in parsed]
    return [clean(text)]


def _same_list(wanted: list[str], given: list[str]) -> float:
    if len(wanted) != len(given) or not wanted:
        return 0.0
    wanted, given = sorted(wanted), sorted(given)
    if _number(wanted[0]) is not None or must_be_exact(wanted[0]):
        return float("-".join(wanted) == "-".join(given))
    return min(text_likeness(one, other) for one, other in zip(wanted, given, strict=True))


def clean(text: str) -> str:
    """Return a text as it is compared: lower case, without parentheses, outer quotes, a leading $ or trailing %."""
    bare = _PARENTHESES.sub("", text.lower().strip()).strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"":
        bare = bare[1:-1]
    return bare.strip().removeprefix("$").removesuffix("%").strip()


def must_be_exact(text: str) -> bool:
    """Tell whether a text is of a kind that is either right or wrong: an address, a date, a number."""
    return any(kind.search(text) for kind in _EXACT_KINDS)


def text_likeness(gold: str, reply: str) -> float:
    """Return 1 or 0 where texts must be exact, else ANLS where it is more than half."""
    if must_be_exact(gold):
        return float(gold == reply)
    likeness = 1.0 - Levenshtein.normalized_distance(gold, reply)
    return likeness if likeness > 0.5 else 0.0
