"""Answers of MATH-V: what a long reply answers with, equal to the letter, the option's value or the number.

Facts: MATH-V evaluation/evaluate.py and utils.py, which lmms-eval 75571cf has too. Both evaluate what a model wrote
with a LaTeX parser and Python's interpreter; here a small parser of expressions stands in the place of the two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from ...core.types import Sample
from .toolkit_rules import can_infer

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
        parser = _Parser(list(_tokens(_plain_term(text))))
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


def _plain_term(text: str) -> str:
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


_BOX = "oxed{"
_BOXED = re.compile(r"oxed\{(.*)\}", re.DOTALL)
_FIRST_BOX = re.compile(r"\\boxed\{(\\frac\{[^}]*\}\{[^}]*\}|[^}]*)\}")
_CUT = re.compile(r"\\text\{[\d.]*")
_FLAGS = ("the final answer is", "the answer is", "the correct answer is", "the answer should be")
_DROPPED = (
    " ", "\\,", "\n", "\\text", "\\mbox", "\\left", "\\right", "^{\\circ}", "^\\circ", "{m}^3", "m^3", "{units}",
    "units", "{km}", "km", "\\!", "\\$", "$", "\\%",
)  # fmt: skip
"""What is taken out of an answer, one after the other."""
_FRACTION = re.compile(r"(-?\d+)/(-?\d+)")
_BARE_ROOT = re.compile(r"\\sqrt([^{\[])")
_BARE_FRACTION = re.compile(r"\\frac([^{])([^{])")
_BRACKETED = (re.compile(r"\(([a-e])\)"), re.compile(r"\{([a-e])\}"))


def equals_in_maths(reply: str, sample: Sample) -> float:
    """Tell whether what the reply answers with is one of the answers: the same text, or worth the same."""
    given = stated_answer(reply)
    return float(any(same_answer(answer, given) for answer in sample.answers))


def equals_first_box(reply: str, sample: Sample) -> float | None:
    """VLMEvalKit's before its judge extracts: its first box, or the whole reply, is the answer or worth the same.

    A box ends at its first closing brace, unless a fraction fills it; a number marked as text is read all the same.
    """
    given = first_box(reply).lower().strip()
    if _CUT.fullmatch(given):
        given += "}"
    for answer in sample.answers:
        wanted = answer.lower().strip()
        if wanted == given or same_value(wanted, given):
            return 1.0
    return None


def first_box(reply: str) -> str:
    """Return what stands in the first box of a reply, as VLMEvalKit cuts it; without a box the reply."""
    found = _FIRST_BOX.search(reply)
    return found[1] if found else reply


def read_boxed_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """VLMEvalKit: its rule for options, of the first box if there is one."""
    return can_infer(first_box(reply), options)


def read_maths_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the option whose letter or value the reply answers with; the letter comes first."""
    given = stated_answer(reply)
    by_letter = next((mark for mark in options if given == mark.lower()), None)
    return by_letter or next((mark for mark, text in options.items() if same_answer(text, given)), None)


def same_answer(wanted: str, given: str) -> bool:
    """Tell whether two answers are the same text in lower case, or worth the same to two decimals."""
    wanted, given = wanted.lower().strip(), given.lower().strip()
    if not wanted or not given:
        return False
    if wanted == given or _valued(wanted) == _valued(given):
        return True
    worth = _worth(wanted)
    return worth is not None and worth == _worth(given)


def _valued(text: str) -> str:
    """Return a tuple or list with its members to two decimals; what is none, or cannot be evaluated, stays."""
    members = text[1:-1].split(",")
    if text[0] + text[-1] not in ("()", "[]") or len(members) < 2:
        return text
    values = [one if "infty" in one or one in ("a", "-a") else _worth(one) for one in members]
    return text if None in values else f"{text[0]}{','.join(map(str, values))}{text[-1]}"


def _worth(text: str) -> float | None:
    """Return the value to two decimals; a text in braces is none to the parser."""
    value = None if text.startswith("{") else value_of(text)
    return None if value is None else round(value, 2)


def stated_answer(reply: str) -> str:
    """Return what a reply answers with: a letter at its edge, the last box, or what follows a phrase or an equals."""
    text = reply.strip()
    for letter in "ABCDE":
        starts = (f"{letter}\n", f"({letter})\n", f"({letter}) {letter}\n")
        if text.endswith((f" {letter}.", f" ({letter}).")) or text.startswith(starts):
            text = letter
    after_is = text.rpartition("is ")[2].rstrip(".")
    if is_number(after_is):
        text = after_is
    if _BOX not in text:
        text = _announced(text)
    elif text.count(_BOX) > 1:
        text = _BOX + text.rpartition(_BOX)[2]
    plain = _plain(text)
    for bracketed in _BRACKETED:
        plain = bracketed.sub(r"\1", plain)
    return plain.rstrip(".").lstrip(":").strip()


def is_number(text: str) -> bool:
    """Tell whether a text is a number as Python reads one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _announced(text: str) -> str:
    for flag in _FLAGS:
        for said in (flag, flag.replace("the", "The", 1)):
            if said in text:
                text = text.rpartition(said)[2].strip().split("\n")[0].split(". ")[0]
    return text.strip()


def _plain(text: str) -> str:
    """Return the content of the box, or the text, as it is compared: lower case, without words, units and spaces."""
    text = text.lower().replace("{}", "")
    boxed = _BOXED.findall(text)
    text = boxed[-1] if boxed else text
    closed = text.find("}")
    if closed >= 0 and "{" not in text[:closed]:
        text = text[:closed]
    text = text.rpartition("=")[2].rpartition("\\approx")[2].replace("∞", "\\infty").replace("+\\infty", "\\infty")
    text = text.replace("\\\\", "\\").replace("bmatrix", "pmatrix")
    for dropped in _DROPPED:
        text = text.replace(dropped, "")
    text = text.replace("tfrac", "frac").replace("dfrac", "frac").replace("{.", "{0.")
    if "sqrt" in text:
        text = _BARE_FRACTION.sub(r"\\frac{\1}{\2}", _BARE_ROOT.sub(r"\\sqrt{\1}", text))
    text = f"0{text}" if text.startswith(".") else text
    if text == "0.5":
        return r"\frac{1}{2}"
    fraction = _FRACTION.fullmatch(text)
    return rf"\frac{{{fraction[1]}}}{{{fraction[2]}}}" if fraction else text
