"""Lists that tables hold as text: as JSON, as Python or as NumPy writes them; parsed, never run."""

from __future__ import annotations

import ast
import re
from typing import Any

import msgspec

LONGEST_LITERAL = 1_000_000
"""Characters of a list that only Python's own parser reads; a longer one is no list of options."""
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_ARRAY = re.compile(r"(?:np\.|numpy\.)?array\((\[.*\])(?:,\s*dtype=[^)]*)?\)", re.DOTALL)
_TOGETHER = re.compile(r"\0\s*\0")
_TEXTS = re.compile(r"\[\s*\0(?:\s+\0)*\s*\]")
_NUMBERS = re.compile(r"\[\s*-?\d[\d.e+-]*(?:\s+-?\d[\d.e+-]*)+\s*\]")


def is_written_list(text: str) -> bool:
    """Tell whether a text looks like a list that a program wrote: it begins and ends as one, and not with a word."""
    bare = text.strip()
    return bare.startswith(("['", '["', "array([", "np.array(["))


def parse_literal(text: str) -> Any:
    """Return the list or mapping a text spells as JSON, Python or NumPy would, or None; nothing is ever evaluated."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    if '"' not in text and "\\" not in text:  # a list of pictures in base64 is too long for Python's parser
        try:
            return msgspec.json.decode(text.replace("'", '"'))
        except (msgspec.DecodeError, RecursionError):
            pass
    return _parse_python(text) if len(text) <= LONGEST_LITERAL else None


def _parse_python(text: str) -> Any:
    array = _ARRAY.fullmatch(text)
    try:
        value = ast.literal_eval(_with_commas(array[1] if array else text))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)  # a set has another order in every process
    return list(value) if isinstance(value, tuple) else value


def _with_commas(text: str) -> str:
    """Return a list whose items have commas between them; Python would run two texts without one together."""
    bare = _TEXT.sub("\0", text)
    if _NUMBERS.fullmatch(bare):
        return f"[{','.join(text.strip('[]').split())}]"
    if not _TOGETHER.search(bare):
        return text
    return f"[{','.join(_TEXT.findall(text))}]" if _TEXTS.fullmatch(bare) else ""
