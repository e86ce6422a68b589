"""CC-OCR's own rules (AlibabaResearch/AdvancedLiterateMachinery, Benchmarks/CC-OCR): pages, tables, formulas, words."""

from __future__ import annotations

import re
from collections import Counter

from rapidfuzz.distance import Levenshtein

from .teds import teds

_PREAMBLE = [
    re.compile(pattern)
    for pattern in (
        r"\\documentclass\{.*?\}",
        r"\\usepackage\[.*?\]\{.*?\}",
        r"\\usepackage\{.*?\}",
        r"\\geometry\{.*?\}",
        r"\\begin\{document\}",
        r"\\end\{document\}",
        r"\\noindent",
    )
]
BY_CHARACTER = frozenset({"Arabic", "Japanese", "Korean"})
"""Subsets (and those with `zh` in their name) whose texts are compared by characters."""
_TINY = 1e-9
_HALF_WIDTH = {0x3000: 0x20} | {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


def score_document(reply: str, gold: str) -> float:
    """Return 1 - edit distance without blanks, of what stands in the first ```latex fence where there is one."""
    for pattern in _PREAMBLE:
        reply = pattern.sub("", reply)
    return _similar(_joined(_in_fence(reply, "latex")), _joined(gold))


def score_table(reply: str, gold: str) -> float:
    """Return TEDS of the first tables, their cells without blanks and in half width.

    Raises ValueError where a span is not a number.
    """
    bare = [_half_width(_cleaned_tables(text)) for text in (_in_fence(reply, "html"), gold)]
    return teds(*(f"<html><body>{tables}</body></html>" for tables in bare)).teds


def _cleaned_tables(text: str) -> str:
    whole = text if "</table>" in text else text + "</table>"
    return "".join(_cleaned_table(table) for table in re.findall(r"<table.*?>.*?</table>", whole, re.DOTALL))


def _cleaned_table(table: str) -> str:
    bare = re.sub(r">\s+<", "><", re.sub(r"<table.*?>", "<table>", table))
    joined = re.sub(r">(.*?)<", lambda found: f">{_joined(found[1])}<", bare, flags=re.DOTALL)
    return joined.replace("\n", "").strip()


def _half_width(text: str) -> str:
    return text.translate(_HALF_WIDTH)


def _in_fence(text: str, language: str) -> str:
    closed = re.search(f"```{language}(.+?)```", text, re.DOTALL)
    if closed:
        return closed[1]
    parts = text.split(f"```{language}")
    return parts[1] if len(parts) > 1 else text


def score_formula(reply: str, gold: str) -> float:
    """Return 1 - edit distance without blanks and fences."""
    bare = reply.replace("\n", " ").replace("```latex", "").replace("```", "").replace("\t", " ").replace(" ", "")
    return _similar(bare, gold.replace(" ", ""))


def score_molecule(reply: str, gold: str) -> float:
    """Return 1 - edit distance of two SMILES strings, without blanks and tags."""
    bare = reply.replace("\n", "").replace(" ", "").replace("<smiles>", "").replace("</smiles>", "")
    return _similar(bare, gold.replace(" ", ""))


def score_words(reply: str, gold: str, subset: str = "", letters_only: bool = False) -> float:
    """Return F1 of the two bags of words, in lower case; of characters where the subset's script has no blanks."""
    by_character = subset in BY_CHARACTER or "zh" in subset
    found, wanted = (_tokens(text.strip(), by_character, letters_only) for text in (reply, gold))
    right = sum((Counter(found) & Counter(wanted)).values())
    recall, precision = right / (len(wanted) + _TINY), right / (len(found) + _TINY)
    return 2 * recall * precision / (recall + precision + _TINY)


def _tokens(text: str, by_character: bool, letters_only: bool) -> list[str]:
    flat = text.replace("\t", " ").replace("\n", " ").replace("###", "").replace("***", "")
    flat = re.sub(r"\s+", " ", flat)
    tokens = list(flat.replace(" ", "")) if by_character else flat.split(" ")
    lowered = [token.lower() for token in tokens]
    if letters_only and not by_character:
        lowered = [re.sub("[^A-Za-z0-9]+", "", token) for token in lowered]
    return [token for token in lowered if token]


def _joined(text: str) -> str:
    return text.replace(" ", "").replace("\n", "")


def _similar(reply: str, gold: str) -> float:
    if not reply and not gold:
        raise ValueError("neither the reply nor the gold answer has anything to compare")
    return 1 - Levenshtein.distance(reply, gold) / max(len(reply), len(gold))
