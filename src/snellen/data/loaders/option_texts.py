"""Options as texts: what tells two apart, the marks they begin with, and lists of them inside another text."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from ...core.config import read_config_file
from ...core.errors import DataError
from ...core.message_parts import holds_marker

_NAME = r"([^\W_]|\d{2}|[ivxIVX]{2,4})"
MARK = re.compile(
    rf"\s*(?:[(（\[【]\s?{_NAME}\s?[)）\]】]\.?|{_NAME}(?:[.:](?=\s)|[)）、．：])|([①-⑳Ⓐ-Ⓩ])|([^\W\d_a-zA-Z])(?=\s))\s*"
)
"""A letter or a number in brackets or before a stop; a ring; a letter of another script before a space."""
AROUND = "()[]（）【】.:：、． "
LONGEST = 6
"""Characters of an answer that may be a mark, with what stands around it."""
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
GAPS = 3
"""So many marks may be left out of a list."""


@cache
def alphabets() -> Mapping[str, str]:
    """Return what options are marked with, in order, by a name."""
    return read_config_file(str(files("snellen") / "catalog/answers/marks.toml"))


@cache
def alphabets_of(mark: str) -> tuple[str, ...]:
    """Return the alphabets in which a text may mark options of which one is called so: Latin letters, and its own."""
    latin, small, *others = alphabets().values()
    return (latin, small, *(alphabet for alphabet in others if mark and mark in alphabet))


@cache
def _sequences() -> tuple[tuple[str, ...], ...]:
    numbers = (tuple(map(str, range(1, 41))), tuple(map(str, range(40))), ROMAN)
    return (*(tuple(alphabet.upper()) for alphabet in alphabets().values()), *numbers)


def own_marks(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the mark that each option begins with, in capitals; none where they are not marked, as a list would be.

    `E. coli` and `S. aureus` bear no marks: those of a list are all different, and among the first of an alphabet.
    """
    if not options or MARK.match(options[0]) is None:
        return ()
    found = [match.group(match.lastindex or 0).upper() for option in options if (match := MARK.match(option))]
    marks, likely = frozenset(found), len(options) + GAPS
    if len(marks) < len(options):
        return ()
    listed = any(order[0] in marks and marks.issubset(order[:likely]) for order in _sequences())
    return tuple(found) if listed else ()


def without_mark(option: str) -> str:
    """Return an option without the mark it begins with."""
    match = MARK.match(option)
    return option[match.end() :].strip() if match else option


def by_mark(text: str, options: tuple[str, ...], marks: tuple[str, ...]) -> str | None:
    """Return the option that a text names by the mark it begins with, or by what stands after it."""
    bare = text.strip(AROUND).upper() if len(text) <= LONGEST else ""
    if bare in marks:
        return options[marks.index(bare)]
    said = text.strip().casefold()
    return next((option for option in options if without_mark(option).casefold() == said), None)


def are_letters(marks: tuple[str, ...]) -> bool:
    """Tell whether marks are letters as a prompt puts them before options."""
    return bool(marks) and set(marks) <= set(alphabets()["latin"])


def refuse_contrary(marks: tuple[str, ...], where: str) -> None:
    """Refuse options whose own letters contradict those that a prompt puts before them: `B. green`, `A. red`."""
    if are_letters(marks) and marks != tuple(alphabets()["latin"][: len(marks)]):
        fix = "-p dataset.strip_marks=true takes them off"
        raise DataError(f"{where}: its options begin with letters of their own, {', '.join(marks)}; {fix}")


NAN = "nan"
"""What pandas writes for an empty cell."""


class OptionFacts(Struct, frozen=True):
    """Options, and what was found out about them."""

    options: tuple[str, ...]
    folded: tuple[str, ...]
    twice: tuple[int, int] | None
    """The places of two that are the same but for case and space."""
    settled: bool
    """Whether there are no such two, no marker of a picture, also of another tool's, and no empty cell."""
    marks: tuple[str, ...]
    """The marks they begin with, where they have some of their own."""
    read_as: dict[tuple[str, str, str], tuple[str, ...]]
    """What answers were read as so far, by how they are read, the form they state and how they are written."""


UNSEEN = dict.fromkeys(
    (0xAD, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x206A), 0xFEFF)
)
"""Characters that nobody sees; joiners (U+200C, U+200D) are none: they change how their neighbours look."""


def fold(text: str) -> str:
    """Return a text without what does not tell options apart: case, how much space, how an accent is stored."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(UNSEEN)
    return " ".join(text.casefold().split())


def find_option_facts(options: tuple[str, ...]) -> OptionFacts:
    """Return what is to be known of options."""
    folded = tuple([fold(option) for option in options])
    marks = own_marks(options)
    if len(set(folded)) == len(folded):
        settled = not _may_show("\n".join(options)) and NAN not in folded
        return OptionFacts(options, folded, None, settled, marks, {})
    second = next(place for place, text in enumerate(folded) if text in folded[:place])
    return OptionFacts(options, folded, (folded.index(folded[second]), second), False, marks, {})


def _may_show(text: str) -> bool:
    """Tell whether a text says where a picture stands, also as other tools do."""
    return "<img" in text or "![" in text or holds_marker(text)


option_facts: Callable[[tuple[str, ...]], OptionFacts] = lru_cache(maxsize=64)(find_option_facts)
"""Return the same, kept for a while: a row is read twice, and many rows offer the same."""


class ListedOptions(NamedTuple):
    """What was read out of a question's text."""

    question: str
    """The text without the options."""
    options: tuple[str, ...]
    pattern: str
    """How the first two were marked: `(A) (B)`."""
    keyed: Mapping[str, str] = {}
    """The options by their marks, where these are no Latin letters."""


OPTION_MARK = re.compile(r"\s*\(?([A-Ja-j])(?:[.:)]|\)\.?)\s+")
"""The letter that an option begins with: `A. `, `(b) `."""
_LINE = r"(?m)^[ \t]*(?:[-*•][ \t]+)?\**{0}\**[ \t]*"
_INLINE = r"(?:(?<=[\s:：?？])|^)\**{0}\**[ \t]*"
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_WIDE = {ord("Ａ") + place: letter for place, letter in enumerate(string.ascii_uppercase)}
"""Full-width letters, as letters."""
_MARKS = {
    "(A) (B)": (r"\(({letter})\)", "({first})"),
    "[A] [B]": (r"\[({letter})\]", "[{first}]"),
    "A. B.": (r"({letter})[.．]", "{first}.", "{first}．"),
    "A) B)": (r"({letter})[)）]", "{first})", "{first}）"),
    "A: B:": (r"({letter})[:：]", "{first}:", "{first}："),
    "A、B、": (r"({letter})、", "{first}、"),
    "A - B -": (r"({letter})[ \t]+[-–—](?=\s)", "{first} -", "{first} –", "{first} —"),
}
"""How options are marked, and what the first mark looks like: a text without it need not be searched."""
_AS_IN_CODE = ("A: B:", "A - B -")
"""What lines of code have after small letters that mark nothing."""
_RING, _RINGED = "①②", (r"({letter})", "{first}")
_BARE, _BEFORE_SPACE = "A B", (r"({letter})(?=[ \t　])", "{first}")
"""A ring needs nothing after it; letters of other scripts a space, on lines of their own."""


class Marking(NamedTuple):
    """A way to mark options in one alphabet."""

    name: str
    openings: tuple[str, ...]
    pattern: re.Pattern[str]
    alphabet: str


@cache
def markings(alphabet: str) -> tuple[Marking, ...]:
    """Return the ways to mark options in one alphabet: on lines of their own first, then in one line."""
    if alphabet[0] in "①Ⓐ":
        places = ((f"{_RING} on lines", _LINE), (_RING, r"{0}[ \t]*"))
        return tuple(_marking(name, place, _RINGED, alphabet) for name, place in places)
    bare = () if alphabet.isascii() else (_marking(f"{_BARE} on lines", _LINE, _BEFORE_SPACE, alphabet),)
    ways = {name: mark for name, mark in _MARKS.items() if not (alphabet.islower() and name in _AS_IN_CODE)}
    lines = (_marking(f"{name} on lines", _LINE, mark, alphabet) for name, mark in ways.items())
    return (*lines, *(_marking(name, _INLINE, mark, alphabet) for name, mark in ways.items()), *bare)


def _marking(name: str, place: str, mark: Sequence[str], alphabet: str) -> Marking:
    pattern, *openings = mark
    called = name if name.startswith(_RING) else name.translate({ord("A"): alphabet[0], ord("B"): alphabet[1]})
    first = tuple(opening.format(first=alphabet[0]) for opening in openings)
    return Marking(called, first, re.compile(place.format(pattern.format(letter=f"[{alphabet}]"))), alphabet)


def options_in_text(text: str, alphabets: Sequence[str] = (string.ascii_uppercase,)) -> ListedOptions | None:
    """Return the options that stand marked A, B, C … without a gap in a question's text, or None.

    They may be marked in other alphabets too, where these are given.
    """
    text = _BREAK.sub("\n", text) if "<" in text else text
    searched = text if text.isascii() else text.translate(_WIDE)
    for marking in chain.from_iterable(map(markings, alphabets)):
        if not any(opening in searched for opening in marking.openings):
            continue
        marks = _last_run(list(marking.pattern.finditer(searched)), marking.alphabet)
        if len(marks) < 2:
            continue
        ends = _option_ends(text, marks, on_lines=marking.name.endswith("lines"))
        texts = tuple(text[mark.end() : end].strip().rstrip(";,") for mark, end in zip(marks, ends, strict=True))
        # On lines of their own they are options even if one stands there twice: such a row is refused or kept by name.
        if all(texts) and (marking.name.endswith("lines") or option_facts(texts).twice is None):
            question = "\n".join(filter(None, (text[: marks[0].start()].rstrip(), text[ends[-1] :].strip())))
            keyed = {} if marking.alphabet.isascii() else dict(zip(marking.alphabet, texts, strict=False))
            return ListedOptions(question, texts, marking.name, keyed)
    return None


FIRST_ON_LINE = re.compile(r"\n\W{0,4}[AaＡ]\W")
"""The mark of a first option on a line of its own."""


def split_listed(question: str, options: tuple[str, ...]) -> ListedOptions | None:
    """Return a question without the list of its own options, and that list as it stands there; None without one."""
    if "(A)" not in question and not ("\n" in question and FIRST_ON_LINE.search(question)):
        return None
    found = options_in_text(question, alphabets_of(""))
    if found is None or sorted(map(fold, found.options)) != sorted(map(fold, options)):
        return None
    return found


def refuse_other_order(found: ListedOptions, options: tuple[str, ...], where: str) -> None:
    """Refuse a question that lists the options of its row in another order: their letters would contradict."""
    if list(map(fold, found.options)) != list(map(fold, options)):
        fix = "take them out of one of both"
        raise DataError(f"{where}: the question lists the options in another order than their column; {fix}")


def _option_ends(text: str, marks: list[re.Match[str]], *, on_lines: bool) -> list[int]:
    """Return where each marked option ends: at the next mark, the last one with its line or with the text."""
    # What follows the line of the last option is the question's again.
    newline = text.find("\n", marks[-1].end()) if on_lines else -1
    return [*(mark.start() for mark in marks[1:]), newline if newline >= 0 else len(text)]


def _last_run(marks: list[re.Match[str]], alphabet: str) -> list[re.Match[str]]:
    """Return the last run of marks that goes A, B, C … to the last mark of all, or nothing."""
    starts = [place for place, mark in enumerate(marks) if mark[1] == alphabet[0]]
    if not starts:
        return []
    run = marks[starts[-1] :]
    letters = "".join(mark[1] for mark in run)
    return run if alphabet.startswith(letters) else []


def marked_answer(answer: str, options: tuple[str, ...]) -> str | None:
    """Return the option that an answer with its letter (`C. a cow`) names by its text, if that is its letter."""
    match = OPTION_MARK.match(answer) if answer not in options else None
    text = answer[match.end() :].strip() if match else ""
    own = match is not None and text in options and options.index(text) == ord(match[1].upper()) - ord("A")
    return text if own else None
