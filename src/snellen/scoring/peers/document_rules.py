"""How MMLongBench-Doc's own script and lmms-eval compare an answer of a stated type with the right one.

Facts: MMLongBench-Doc eval/eval_score.py (VLMEvalKit e8e78f0 has a copy), lmms-eval 75571cf mmlongbench_doc/utils.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from rapidfuzz.distance import Levenshtein

from ...core.types import Sample
from ...data.files.written_lists import parse_literal
from ...extract.other_kinds import extract_short
from ..typed.document_answer import FORMAT_TAG, NEAR, NOT_ANSWERABLE

_PARENTHESES = re.compile(r"\s*\([^)]*\)")
_OUTER_QUOTES = re.compile(r"^['\"]|['\"]$")
_EXACT = re.compile(r"\d+(?:[-\s]\d+)?|\d{4}[-\s]\d{2}(?:[-\s]\d{2})?|[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}")
_FIRST_NUMBER = re.compile(r"[-+]?\d*\.?\d+")
_UNITS = (" miles", " mile", " million")
_FEWEST_DIGITS, _DIGITS_OF_NONE = 2, 3
_BARE = " \t\n.!?,;:\"'"


def official_document(reply: str, sample: Sample) -> float:
    """The benchmark's rule, of the reply; of a sentence, of the short answer our reader finds, where GPT-4o would."""
    short = extract_short(reply)
    said = reply if short.strip(_BARE).lower() == reply.strip(_BARE).lower() else short
    return _best(_official, said, sample)


def lmms_document(reply: str, sample: Sample) -> float:
    """lmms-eval's own: the first number of the reply, and nothing but `not answerable` where there is no answer."""
    return _best(_lmms, reply.strip(), sample)


def _best(rule: Callable[[str, str, str], float], reply: str, sample: Sample) -> float:
    kind = str(sample.tags.get(FORMAT_TAG) or "Str")
    return max(rule(answer, reply, kind) for answer in sample.answers)


def _official(gold: str, reply: str, kind: str) -> float:
    if kind == "Int":
        wanted, given = _float(gold), _float(reply)
        return float(wanted is not None and given is not None and int(wanted) == int(given))
    if kind == "Float":
        return float(_near(_float(_clean(gold)), _float(_clean(reply))))
    if kind == "Str":
        return _likeness(_clean(gold), _clean(reply))
    return _same_members(_members(gold), _members(reply), lambda first: _float(first) is not None)


def _lmms(gold: str, reply: str, kind: str) -> float:
    kind = kind.strip().lower()
    if kind in ("int", "integer"):
        wanted, given = _first_number(gold), _first_number(reply)
        return float(wanted is not None and given is not None and int(wanted) == int(given))
    if kind == "float":
        return float(_near(_first_number(gold), _first_number(reply)))
    if kind == "list":
        wanted_members, given_members = ([_clean_lmms(one) for one in _listed(text)] for text in (gold, reply))
        return _same_members(wanted_members, given_members, lambda first: _first_number(first) is not None)
    if kind == "none":
        return float(_clean_lmms(reply) == NOT_ANSWERABLE)
    return _likeness(_clean_lmms(gold), _clean_lmms(reply))


def _clean(text: str) -> str:
    bare = _PARENTHESES.sub("", text.lower().strip()).strip()
    return _OUTER_QUOTES.sub("", bare).strip().lstrip("$").strip().rstrip("%").strip()


def _clean_lmms(text: str) -> str:
    bare = _clean(text)
    for unit in _UNITS:
        bare = bare.removesuffix(unit).strip()
    return " ".join(bare.split())


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _first_number(text: str) -> float | None:
    found = _FIRST_NUMBER.search(text.replace(",", ""))
    return float(found[0]) if found else None


def _near(wanted: float | None, given: float | None) -> bool:
    """Tell whether two numbers are one within a hundredth, or to the digits both have; either may be per cent."""
    if wanted is None or given is None:
        return False
    for meant in (wanted / 100, wanted, wanted * 100):
        digits = max(min(_decimals(given), _decimals(meant)), _FEWEST_DIGITS)
        if math.isclose(meant, given, rel_tol=NEAR) or round(given, digits) == round(meant, digits):
            return True
    return False


def _decimals(number: float) -> int:
    text = str(number)
    return len(text.rpartition(".")[2]) if "." in text else _DIGITS_OF_NONE


def _listed(text: str) -> list[str]:
    parsed = parse_literal(text.strip()) if text.startswith("[") else None
    return [str(one) for one in parsed] if isinstance(parsed, list) else [text]


def _members(text: str) -> list[str]:
    return [_clean(one) for one in _listed(text)]


def _same_members(wanted: list[str], given: list[str], is_exact: Callable[[str], bool]) -> float:
    if len(wanted) != len(given):
        return 0.0
    wanted, given = sorted(wanted), sorted(given)
    if wanted and (is_exact(wanted[0]) or _must_be_exact(wanted[0])):
        return float(wanted == given)
    return min((_anls(one, other) for one, other in zip(wanted, given, strict=True)), default=1.0)


def _likeness(wanted: str, given: str) -> float:
    return float(wanted == given) if _must_be_exact(wanted) else _anls(wanted, given)


def _must_be_exact(text: str) -> bool:
    kinds = "https://" in text or "a.m." in text or "p.m." in text
    return kinds or text.endswith((".py", "ipynb")) or text.startswith("page") or bool(_EXACT.fullmatch(text))


def _anls(wanted: str, given: str) -> float:
    longest = max(len(wanted), len(given))
    likeness = 1.0 - Levenshtein.distance(wanted, given) / longest if longest else 1.0
    return likeness if likeness > 0.5 else 0.0
