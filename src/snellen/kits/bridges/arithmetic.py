"""The value of a small expression, plain or LaTeX, without running anything: numbers, + - * / ^, brackets, roots, pi.

Other harnesses hand what a model wrote to Python's own interpreter. Here a parser of a few lines reads it: what it
does not know has no value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

LONGEST = 400
"""Characters; a longer text is no answer but an explanation."""
_DEEPEST = 40
_LARGEST_POWER = 64.0
_SAME = 1e-6
_LATEX = (
    (re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)"), r"((\1)/(\2))"),
    (re.compile(r"\\[dt]?frac"), " frac "),
    (re.compile(r"\\(?:left|right|,|;|!|quad|displaystyle)"), ""),
    (re.compile(r"\\(?:text|mathrm|mathbf|boxed)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\(?:cdot|times)|×|·"), "*"),
    (re.compile(r"\\div|÷|(?<=\d):(?=\d)"), "/"),
    (re.compile(r"\\pi|π"), " pi "),
    (re.compile(r"\\sqrt|√"), " sqrt "),
    (re.compile(r"\^\s*(?:\\circ|\{\\circ\})|°|\\degree"), ""),
    (re.compile(r"\\?%"), "/100"),
    (re.compile(r"[$\s]+"), " "),
    (re.compile(r"−"), "-"),
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|(pi|sqrt|frac)|(\*\*|[-+*/^(){}\[\]]))")


class _NoValue(Exception):
    """The text is no expression."""


def value_of(text: str) -> float | None:
    """Return what an expression is worth, or None for what is none."""
    if len(text) > LONGEST:
        return None
    try:
        parser = _Parser(list(_tokens(_plain(text))))
        value = parser.sum()
        if parser.left():
            return None
    except (_NoValue, ArithmeticError, RecursionError, ValueError):
        return None
    return value if math.isfinite(value) else None


def same_value(first: str, second: str) -> bool:
    """Tell whether two texts are worth the same, to one in a million."""
    one, other = value_of(first), value_of(second)
    return one is not None and other is not None and math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)


def _plain(text: str) -> str:
    text = _THOUSANDS.sub("", text.strip().rstrip("."))
    for pattern, plain in _LATEX:
        text = pattern.sub(plain, text)
    return text.strip()


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            if text[at:].strip():
                raise _NoValue
            return
        yield found[0].strip()
        at = found.end()


class _Parser:
    """Reads tokens from left to right: sums of products of powers."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def left(self) -> bool:
        """Tell whether something was not read."""
        return self._at < len(self._tokens)

    def _next(self) -> str:
        return self._tokens[self._at] if self.left() else ""

    def _take(self) -> str:
        token = self._next()
        self._at += 1
        return token

    def sum(self) -> float:
        """Return the value of a sum."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NoValue
        value = self._product()
        while self._next() in ("+", "-"):
            value = value + self._product() if self._take() == "+" else value - self._product()
        self._depth -= 1
        return value

    def _product(self) -> float:
        value = self._signed()
        while self._next() in ("*", "/", "(", "{", "pi", "sqrt", "frac"):
            if self._next() == "/":
                self._take()
                value /= self._signed()
            else:
                if self._next() == "*":
                    self._take()
                value *= self._signed()
        return value

    def _signed(self) -> float:
        if self._next() in ("-", "+"):
            return -self._signed() if self._take() == "-" else self._signed()
        return self._power()

    def _power(self) -> float:
        value = self._atom()
        if self._next() not in ("^", "**"):
            return value
        self._take()
        power = self._signed()
        if abs(power) > _LARGEST_POWER:
            raise _NoValue
        result = value**power
        if isinstance(result, complex):
            raise _NoValue
        return float(result)

    def _atom(self) -> float:
        token = self._take()
        if token in ("(", "{", "["):
            value = self.sum()
            if self._take() not in (")", "}", "]"):
                raise _NoValue
            return value
        if token.startswith("s"):
            return math.sqrt(self._atom())
        if token.startswith("f"):
            top = self._atom()
            return top / self._atom()
        if token.startswith("p"):
            return math.pi
        if not token or not (token[0].isdigit() or token[0] == "."):
            raise _NoValue
        return float(token)
