"""An answer to what it is: its kind, the kind a question asks for, the number it says, and its plain form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from ..core.config import read_config_file

YES_NO_KIND, NUMBER, YEAR, COLOUR, TIME = "yes/no", "number", "year", "colour", "time"
FIRST_YEAR, LAST_YEAR = 1000, 2100
_CLOCK = re.compile(r"\d{1,2}[:.]\d{2}( ?[ap]\.?m\.?)?|\d{1,2} ?([ap]\.?m\.?|o'?clock)", re.IGNORECASE)
_NUMBER = re.compile(r"\W*\d[\d,.]*\W*")
_ASKS = re.compile(r"\b(?:what|which|name the|name of the|name of this) ")
_SORT = re.compile(r"\b(?:kinds?|types?|sorts?|styles?) of (?:a |an )?")
_QUALITY = re.compile(r"\bwhat (?:is|are|was|were) (?:the |its |his |her )?(\w+)")
_ENDS_PHRASE = re.compile(
    r"\b(?:of|is|are|was|were|did|does|do|has|have|had|in|on|at|the|this|that|these|those|can|could|to|by|with|for"
    r"|from|will|would)\b"
)
QUALITIES = frozenset(
    ("colour", "title", "year", "date", "time", "number", "material", "shape", "weather", "language", "group")
)
"""Kinds that "what is the …" asks for: "what is the man doing" asks for no person."""


@lru_cache(maxsize=1)
def word_lists() -> Mapping[str, Any]:
    """Return the lists of the catalog."""
    return read_config_file(str(files("snellen") / "catalog/answers/kinds.toml"))


def answer_kind(question: str, answer: str) -> str:
    """Return the kind of an answer, by what it is and else by what is asked; `thing` or `name` where nothing tells."""
    return plain_kind(question, answer) or asked_kind(question)[0] or ("name" if _is_name(answer) else "thing")


def plain_kind(question: str, answer: str) -> str:
    """Return the kind that the answer itself shows: yes/no, number, year, time or colour; else nothing."""
    text = answer.strip().casefold().rstrip(".")
    if text in ("yes", "no"):
        return YES_NO_KIND
    if _CLOCK.fullmatch(text):
        return TIME
    if is_year(question, text):
        return YEAR
    if _NUMBER.fullmatch(text) or text in number_words():
        return NUMBER
    return COLOUR if _is_colour(text) else ""


def is_year(question: str, answer: str) -> bool:
    """Tell whether an answer is a year: four digits of our era, where the question is about time."""
    text = answer.strip()
    plain = len(text) == 4 and text.isdigit() and FIRST_YEAR <= int(text) <= LAST_YEAR
    return plain and re.search(r"\b(year|when|date|decade|born|built|since)\b", question.casefold()) is not None


@lru_cache(maxsize=1 << 14)
def asked_kind(question: str) -> tuple[str, str]:
    """Return the kind a question asks for and the noun that says so (`title`, `film`), or empty texts."""
    text = _SORT.sub("", " ".join(re.findall(r"\w+(?='s\b)|(?<!')\w+", question.casefold())))
    nouns = [noun for match in _ASKS.finditer(text) for noun in reversed(_phrase(text[match.end() :]))]
    known = _kind_of_noun()
    for noun in nouns:
        if noun in known:
            return known[noun], noun
    quality = _QUALITY.search(text)
    if quality and known.get(quality[1]) in QUALITIES:
        return known[quality[1]], quality[1]
    return _kind_of_opening(f"{text} "), ""


def _kind_of_opening(text: str) -> str:
    begins = word_lists()["begins"]
    for kind, beginnings in begins.items():
        if text.startswith(tuple(beginnings)):
            return str(kind)
    return "person" if any(f" {word}" in text for word in begins["person"]) else ""


def _phrase(text: str) -> list[str]:
    """Return the words of a noun phrase: all before the verb or preposition that ends it."""
    return _ENDS_PHRASE.split(text, maxsplit=1)[0].split()


@lru_cache(maxsize=1)
def _kind_of_noun() -> dict[str, str]:
    return {noun: kind for kind, nouns in reversed(word_lists()["asked_for"].items()) for noun in nouns}


def answer_kinds(question: str, answer: str, own: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the kinds of an answer from narrow to wide; `own` are the dataset's."""
    kind, noun = answer_kind(question, answer), asked_kind(question)[1]
    narrow = [f"{name}: {kind}" for name in own if name]
    if noun:
        narrow.append(f"{kind} ({noun})")
    shape = () if plain_kind(question, answer) else ("name" if _is_name(answer) else "thing",)
    return tuple(dict.fromkeys((*narrow, kind, *shape)))


@lru_cache(maxsize=1)
def number_words() -> tuple[str, ...]:
    """Return the words for 0 to 99, in their order."""
    table = read_config_file(str(files("snellen") / "catalog/words/numbers.toml"))
    ones, tens = table["ones"]["en"], table["tens"]["en"]
    higher = [ten if unit == 0 else f"{ten}-{ones[unit]}" for ten in tens for unit in range(10)]
    return (*ones, *higher)


def _is_colour(text: str) -> bool:
    table = word_lists()["colours"]
    words = re.findall(r"[\w&]+", text)
    plain = [word for word in words if word not in table["with"]]
    return bool(plain) and all(word in table["words"] for word in plain)


def _is_name(text: str) -> bool:
    return text[:1].isupper()


_COUNTING = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_COUNTING.split())} | {"none": "0"}
ARTICLES = frozenset(("a", "an", "the"))
_NOT_WORD = re.compile(r"[^\w\s.%-]|(?<!\d)\.|\.(?!\d)|(?<=\w)-|-(?!\d)")


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """Return the form in which two options count as the same: case, articles, number words, punctuation gone."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _NOT_WORD.sub(" ", folded).split()
    kept = [NUMBER_WORDS.get(word, word) for word in words if word not in ARTICLES]
    return " ".join(kept) or folded.strip()


_WRITTEN = re.compile(
    r"(?P<before>[^\w\s]*)(?P<digits>\d{1,3}(?:,\d{3})+|\d{1,9})(?:\.(?P<after>\d{1,3}))?(?P<unit>.{0,16})"
)
_NO_UNIT = re.compile(r"[\s%°'\"]*")


class Written(Struct, frozen=True):
    """A number as a text has it: its value in units of the last decimal, and all that is not its digits."""

    value: int
    before: str = ""
    unit: str = ""
    decimals: int = 0
    grouped: bool = False
    in_words: bool = False

    def write(self, value: int) -> str:
        """Return another value written in the same way."""
        if self.in_words:
            return number_words()[value]
        whole, part = divmod(value, 10**self.decimals)
        digits = f"{whole:,}" if self.grouped else str(whole)
        tail = f".{part:0{self.decimals}}" if self.decimals else ""
        return f"{self.before}{digits}{tail}{self.unit}"

    @property
    def highest(self) -> int | None:
        """Return the largest value that can be written so."""
        return len(number_words()) - 1 if self.in_words else None

    @property
    def step(self) -> int:
        """Return the coarseness: 1500 stands among hundreds and 40 among tens, or it could be told by its roundness."""
        value = abs(self.value)
        if value < 20 or self.in_words:
            return 1
        step = 1
        while value % (step * 10) == 0:
            step *= 10
        return step


def read_written(text: str, question: str = "") -> Written | None:
    """Return a text as a number, or None. A unit in letters counts only where the question asks how much."""
    plain = text.strip()
    if plain.casefold() in number_words():
        return Written(number_words().index(plain.casefold()), in_words=True)
    match = _WRITTEN.fullmatch(plain)
    if match is None or not (_NO_UNIT.fullmatch(match["unit"]) or question.strip().casefold().startswith("how ")):
        return None
    digits, decimals = match["digits"].replace(",", "") + (match["after"] or ""), len(match["after"] or "")
    if len(digits) > 9 or any(sign.isdigit() for sign in match["unit"]):
        return None
    return Written(int(digits), match["before"], match["unit"], decimals, "," in match["digits"])
