"""Option texts to places in a reply: whole words, number words and money by value, ordinals, none of the above."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache

from .numbers import (
    Measure,
    counts_from_freezing,
    is_below_zero,
    is_scaled,
    option_measures,
    parse_number,
    speaks_of_sign,
    word_values,
)
from .phrases import UNDECIDABLE, cue_kinds
from .polarity import Mention
from .reply_text import normalise
from .word_lists import WORD_AFTER, WORD_BEFORE, After, Gated, LazyPattern, one_of, word_set, words

_PASSED = frozenset(" \t\n\r*_`$\\{}()[],^'\"“”·⋅~&")
"""Characters that neither make nor break a text: space, decoration, grouping."""
_FOLDED = {
    **dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "01234567890123456789", strict=True)),
    **dict.fromkeys("−–⁻", "-"),
    "×": "x",
    "½": "1/2",
}
_COMMANDS = {
    **{"times": "x", "cdot": "", "pi": "π", "circ": "°", "degree": "°", "angle": "∠", "cap": "∩", "cup": "∪"},
    **{
        "omega": "ω",
        "mu": "µ",
        "sqrt": "√",
        "infty": "∞",
        "pm": "±",
        "emptyset": "∅",
        "left": "",
        "right": "",
        "frac": "",
        "dfrac": "",
        "tfrac": "",
    },
    **{"mathrm": "", "text": "", "approx": "≈", "geq": "≥", "leq": "≤", "ge": "≥", "le": "≤", "neq": "≠"},
}
_COMMAND = After(r"\\([a-z]{1,12})", finds="\\sqrt{2}", passes="\\)")
_FARTHEST = 4
"""A text is looked for in so many times its own length: room for LaTeX, and a bound on time."""


def _folded(low: str, at: int, stop: int) -> Iterator[tuple[str, int, int]]:
    """Yield the characters that count, folded to one way of writing them, each with its place and the one after it."""
    while at < stop:
        start = at
        command = _COMMAND.match(low, at) if low[at] == "\\" else None
        if command is not None and command.group(1) in _COMMANDS:
            at, signs = command.end(), _COMMANDS[command.group(1)]
        else:
            sign, at = low[at], at + 1
            signs = "" if sign in _PASSED else _FOLDED.get(sign, sign)
            # The two groups of a fraction.
            signs = "/" if sign == "}" and low[at : at + 1] == "{" else signs
        for sign in signs:
            yield sign, start, at


@lru_cache(maxsize=4096)
def key_of(text: str) -> str:
    """Return an option text folded as replies are: what must stand, in this order, for it to be there."""
    low = normalise(text).lower().strip(" .;:!?。")
    return "".join(sign for sign, _, _ in _folded(low, 0, len(low)))


def own_end(low: str, at: int, key: str) -> int:
    """Return where the text with this key ends if it stands at `at` as a whole, else -1."""
    folded = _folded(low, at, min(len(low), at + _FARTHEST * len(key) + 24))
    end = -1
    for wanted in key:
        sign, _, end = next(folded, ("", -1, -1))
        if sign != wanted:
            return -1
    return end if end > 0 and _ends(low, end) else -1


def find_folded(low: str, start: int, keys: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """Return where texts with these keys stand from `start` on, as (option, start, end): the longest at each place."""
    signs = list(_folded(low, start, len(low)))
    text = "".join(sign for sign, _, _ in signs)
    found: dict[int, tuple[int, int, int]] = {}
    for key, index in sorted(keys.items(), key=lambda pair: len(pair[0])):
        at = text.find(key) if len(key) > 1 else -1
        while at >= 0:
            first, last = signs[at][1], signs[at + len(key) - 1][2]
            if _begins(low, first) and _ends(low, last):
                found[first] = (index, first, last)
            at = text.find(key, at + len(key))
    return _apart(sorted(found.values(), key=lambda place: place[1]))


def _apart(places: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Leave out what stands inside a longer text."""
    return [
        place
        for place in places
        if not any(other is not place and other[1] <= place[1] and place[2] <= other[2] for other in places[:200])
    ][:200]


def _begins(low: str, start: int) -> bool:
    """Whether no word or number leads into it."""
    before = low[start - 1 : start] if start else ""
    if before in {".", "-", "−"}:
        return not low[start : start + 1].isdigit()
    return not before.isalnum() or not low[start].isalnum() or before >= "\u2e80"


def _ends(low: str, end: int) -> bool:
    """Whether no longer word or number goes on: `12` does not stand in `120`, `1.5` not in `1.52`."""
    after = low[end : end + 1]
    if after in {".", ","}:
        return not low[end + 1 : end + 2].isdigit()
    return not after.isalnum() or not low[end - 1].isalnum() or after >= "\u2e80"


_ARTICLE = After(r"(?:<options.article>)\s+(?=\S)|(?:it|they|he|she)\s+(?=\w{4,}\Z)", finds="the red one", passes="red")
_LETTER_A = re.compile(
    r"\s*A\s+(?:[A-Z]{1,5}\b|and\b|or\b|only\b|is\b|was\b|has\b|does\b|can\b|major\b|minor\b|sharp\b|flat\b|[^\w\s])"
)
_FIGURE = re.compile(r"[-+$€£]?\d[\d./]*(?=[^\W\d])")
_COUNTED = 11
"""The words of one language, from zero to ten."""
_DIGITS = frozenset("0123456789")
_FAHRENHEIT = re.compile(r"° ?f|fahrenheit")
_FORMULAS = 2000
"""So many characters at the end of a reply are searched for formulas sign by sign: a bound on time."""
_SPACES = re.compile(r"\s+")
_TIGHT_SPACE = re.compile(r"\s?([=<>+*/×°%])\s?|(?<=\d)\s(?=[a-z])")
"""Where spaces may be or not be: around signs, and before a unit."""
_REMARK = re.compile(r"([^\W\d_][\w' -]{3,40}) \([^()]{2,60}\)")
_CIRCLES = "[①-⑳]"
_CIRCLED = re.compile(f"({_CIRCLES})(?={_CIRCLES})")
_BETWEEN = re.compile(f"(?<={_CIRCLES})[、,，和与及\\s]+(?={_CIRCLES})")
"""Statements that are counted in circles, and what may stand between two of them."""
_GOES_ON = r"(?!(?<=\d)[ ]?(?:/[ ]?\d|\^|(?:[×*x·]|\\times)[ ]?\d))"
"""An announced number that goes on as a fraction, a power or a product is another number."""
_PERCENT = re.compile(r"\s?(?:%|percent|per cent)")
_SIGN_WORD = re.compile(r"(?<=\d[\s])(?:degrees?|percent|per cent)(?!\w)")
_SIGNS = {
    **{raised: rf"(?:{raised}|\^\{{?{plain}\}}?)" for raised, plain in zip("²³⁴⁵⁶⁷⁸⁹", "23456789", strict=True)},
    "×": r"(?:×|\*|\\times)",
    "π": r"(?:π|\\pi)",
    "°": r"(?:°|degrees?)",
    "%": r"(?:%|percent|per cent)",
}
_RAISED = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉")
"""Signs that replies write in other ways."""
_PIECE = re.compile(
    rf"(?P<sign>\s?[=<>+*/×°%]\s?)|(?P<unit>(?<=\d)\s?(?=[a-z]))|(?P<comma>,\s)|(?P<gap>\s|(?<=[a-z])-(?=[a-z]))"
    rf"|(?P<circled>{_CIRCLES}(?={_CIRCLES}))|(?P<other>.)",
    re.DOTALL,
)
_PIECES = {"unit": r"\s*", "comma": r",?\s+", "gap": r"(?:-|\s+)"}
"""Spaces around signs and before units may be or not be, hyphens may be spaces, commas may be left out."""
_PRIMES = frozenset("'’′")
_PRIME_SIGNS = _PRIMES | frozenset("\u0304\u0305")
_TERM = re.compile(r"[(\s]*[a-z][\w'′()]{0,3}(?:\s?[·⊕⊗∧∨+=×*/∩∪→−-]\s?[(]?[a-z\d][\w'′()]{0,3}){1,8}")
_OTHER_USE = {
    "may": r"(?!\s(?:also |well |not )?(?:be|have|seem|look|appear|indicate|suggest|mean)(?!\w))",
    "right": r"(?!\s(?:next|now|here|there|behind|above|below|beside|in|before|after|away|answer|choice|option)(?!\w))"
    r"(?<!that's right)(?<!that is right)(?<!you're right)(?<!you are right)",
}
"""Option words that are often something else."""
_NUMERIC = re.compile(
    r"[-+$€£¥₹₩\s\d.,'%/]*\d[-+$€£¥₹₩\s\d.,'%/]*(?:[a-zµ°]{1,12}(?:/[a-z]{1,4})?[²³]?(?:\s[a-z]{1,10})?)?|[a-z]+(?:[-\s][a-z]+)?"
)

NONE_TEXT = LazyPattern(r"<options.none_text>", finds="none of these", passes="3")
NONE_SAID = Gated(
    r"<options.none_said>", "options.none_said_stems", finds="none of the options fits", passes="the options fit"
)
_PLACE = LazyPattern(r"(?:<options.ordinal>)(?!\w)", finds="second image", passes="image")
_ORDINAL = Gated(
    one_of(
        r"(?<!\w)(?P<word><options.ordinal>|last|final(?=\s(?:option|one))|\d{1,2}(?:st|nd|rd|th))"  # the 2nd option
        r"\s(?:answer\s)?(?:<options.ordinal_noun>)(?!\w)",
        r"(?<!\w)(?:<options.numbered_noun>)\s(?:no\.?\s|number\s)?#?"  # option no. 2
        r"(?P<number>\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)(?![\w.]\d|\w)",
        r"\A\W*(?:the )?(?P<alone>first|second|third|fourth|fifth|last)\W*\Z",
        r"第(?P<han><options.ordinal_glued>|\d)(?:个|個|项|項|つ|番)?(?:选项|選項|选|の選択肢|个选项)?",
    ),
    "options.ordinal_stems",
    finds="it is the second option",
    passes="for a second time",
)


@cache
def _numerals() -> dict[str, str]:
    """Return number words and numerals, each to the other."""
    by_word = {word: str(value) for word, value in word_values().items()}
    foreign = {word: str(i % _COUNTED) for i, word in enumerate(words("numbers.counted"))}
    return foreign | by_word | {numeral: word for word, numeral in by_word.items()}


def plain(text: str) -> str:
    """Return an option text as it is searched for: lower case, one space, no leading article, no end mark."""
    text = " ".join(text.lower().split()).replace("−", "-").strip(" .,:;!?\"'`*。，")
    article = _ARTICLE.match(text)
    return text[article.end() :] if article else text


def _searched(text: str) -> str:
    """Return `plain` of an option text, but whole where it begins with the letter A: that is no article."""
    low = " ".join(text.lower().split())
    return low if _LETTER_A.match(text) or (low[-1:] in _PRIMES and _is_term(low)) else plain(text)


def _is_formula(text: str) -> bool:
    return "\\" in text or text.count("$") > 1 or "^" in text or not _RAISED.isdisjoint(text)


def _has_figure_at_edge(text: str) -> bool:
    return text[-1:].isdigit() or text[:1] in _DIGITS


def is_primed(text: str) -> bool:
    """Tell whether a short text ends with a prime or a bar."""
    return text.strip(" \n.$*`")[-1:] in _PRIME_SIGNS


class OptionTexts:
    """The texts of one set of options, ready to be found in replies."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.plain = [_searched(text) for text in texts]
        self.written = texts
        self.circled = any(map(_CIRCLED.search, texts))
        self.terms = any(map(_is_term, self.plain))
        self.counted = any(map(_has_figure_at_edge, self.plain))
        self.formulas = any(map(_is_formula, texts))
        self.fahrenheit = any(map(_FAHRENHEIT.search, self.plain))
        self.by_text = {text: i for i, text in enumerate(self.plain) if text and self.plain.count(text) == 1}
        self.by_text |= _without_brackets(self.plain)
        self.by_key = {key: i for text, i in self.by_text.items() if (key := key_of(text))}
        self.by_loose = {_loose(text): i for text, i in self.by_text.items()}
        self.longest = max(map(len, self.plain), default=0) + 8
        self.none = _only_one(self.plain, NONE_TEXT.match)
        self.both = _only_one(self.plain, lambda text: text.startswith("both "))
        self.undecidable = _only_one(self.plain, UNDECIDABLE.search)
        rest = {text for i, text in enumerate(self.plain) if i != self.undecidable}
        self.yesno = "yes" in rest and rest <= {"yes", "no", "maybe", "unsure"}

    def primed(self, text: str) -> int | None:
        """Return the option that a short text with a prime or a bar at its end is: `A·B'` is not `A·B`."""
        core = text.strip(" \n.$*`").lower()
        quoted = core[:1] in _PRIMES
        return self.by_loose.get(_loose(core.strip("'’") if quoted else core))

    def key(self, index: int) -> str:
        """Return the text of an option in the form in which `own_text` compares."""
        return self._keys[index]

    @cached_property
    def cues(self) -> frozenset[str]:
        """The words of the texts that announce answers elsewhere."""
        return frozenset(word for word in cue_kinds() if any(word in text for text in self.plain))

    @cached_property
    def figures(self) -> list[str]:
        """The number with which each text begins, without its unit."""
        return [match.group() if (match := _FIGURE.match(key)) else "" for key in self._keys]

    @cached_property
    def _keys(self) -> list[str]:
        return [key_of(text) for text in self.written]

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """The texts that can be told apart in running text."""
        return self._pattern(
            [text for text in self.by_text if _tellable(text) and text not in word_set("options.stop_text")]
        )

    @cached_property
    def after_cue(self) -> re.Pattern[str] | None:
        """The texts that count where an answer is announced: also `no` and its like."""
        return self._pattern([text for text in self.by_text if _tellable(text)], _GOES_ON)

    def _pattern(self, usable: list[str], not_before: str = "") -> re.Pattern[str] | None:
        """One alternation, longest first."""
        if not usable:
            return None
        body = "|".join(_spelling(text) for text in sorted(usable, key=len, reverse=True))
        apart = (f"(?<!{_CIRCLES})(?<!{_CIRCLES}[、,，])", f"(?![、,，]?{_CIRCLES})") if self.circled else ("", "")
        return re.compile(
            f"{WORD_BEFORE}{apart[0]}(?<!\\d[.,])(?:{body})"
            f"(?![,.]\\d)(?!(?<=\\d)\\s\\d{{3}}(?!\\d)){WORD_AFTER}{apart[1]}{not_before}"
        )

    @cached_property
    def values(self) -> dict[float, int]:
        """Numeric options by value; empty unless every option is one number, all different."""
        parsed = [parse_number(text) if _NUMERIC.fullmatch(text) else None for text in self.plain]
        if not parsed or any(number is None for number in parsed):
            return {}
        values = {number.value: i for i, number in enumerate(parsed) if number is not None}
        return values if len(values) == len(parsed) else {}

    @cached_property
    def measures(self) -> list[Measure]:
        """The quantities that the options are; empty unless every option is one, all different."""
        return option_measures(self.written)

    def on_another_scale(self, low: str) -> bool:
        """Tell whether a reply counts from freezing where the options count in Fahrenheit: its numbers are others."""
        return self.fahrenheit and counts_from_freezing(low)

    def find(self, low: str, start: int = 0) -> list[Mention]:
        """Return where option texts stand in `low` as whole words."""
        if self.pattern is None:
            return []
        found = self._as_said(low, self._as_written(low, start))
        if not self.formulas and (found or ("\\" not in low and _RAISED.isdisjoint(low))):
            return found
        # Formulas are written in many ways, often two in one reply; in LaTeX they are compared sign by sign.
        tail = max(start, len(low) - _FORMULAS)
        folded = [Mention(*place) for place in find_folded(low, tail, self.by_key)]
        return folded if len(folded) >= len(found) else found

    def _as_written(self, low: str, start: int) -> list[Mention]:
        if self.pattern is None:
            return []
        found = ((self.index_of(match.group()), match) for match in self.pattern.finditer(low, start))
        return [Mention(index, *match.span()) for index, match in found if index is not None]

    def _as_said(self, low: str, found: list[Mention]) -> list[Mention]:
        """Leave out numbers that words make other numbers (`50%` for 50, `8 °C below zero` for 8 °C)."""
        if found and ("%" in low or "percent" in low):
            found = [mention for mention in found if not self._is_share(low, mention)]
        if found and self.counted:
            found = [mention for mention in found if not is_scaled(low, mention.end)]
        if found and self.counted and speaks_of_sign(low):
            found = [mention for mention in found if not is_below_zero(low, mention.start, mention.end)]
        return found

    def _is_share(self, low: str, mention: Mention) -> bool:
        """Whether a number is said as a percentage (`50%`) where another option is that share (0.5)."""
        if not _PERCENT.match(low, mention.end) or self.plain[mention.index].endswith("%"):
            return False
        number = parse_number(self.plain[mention.index])
        return number is not None and number.value / 100 in self.values

    def at(self, low: str, position: int) -> Mention | None:
        """Return the option text standing at `position`, an article skipped."""
        article = _ARTICLE.match(low, position)
        begin = article.end() if article else position
        if self.after_cue is None:
            return None
        match = self.after_cue.match(low, begin) or self.after_cue.match(low, position)
        if match is None or (self.counted and is_below_zero(low, match.start(), match.end())):
            return None
        index = self.index_of(match.group())
        return None if index is None else Mention(index, match.start(), match.end())

    def index_of(self, spelt: str) -> int | None:
        """Return the option whose text is spelt so, a number word standing for its digits."""
        if not self.circled and spelt in self.by_text:
            return self.by_text[spelt]
        text = _BETWEEN.sub("", _SPACES.sub(" ", spelt)) if self.circled else _SPACES.sub(" ", spelt)
        if text in self.by_text:
            return self.by_text[text]
        if (loose := _loose(text)) in self.by_loose:
            return self.by_loose[loose]
        if text in _numerals() and _numerals()[text] in self.by_text:
            return self.by_text[_numerals()[text]]
        counted = next((i for own, i in self.by_text.items() if _numerals().get(own) == text), None)
        return self.by_key.get(key_of(text)) if counted is None else counted

    def ordinals(self, low: str, last: int) -> Iterator[Mention]:
        """Yield ordinals (`the second option`, `option 2`) as mentions; `last` is the highest index."""
        # Where the options are called by places themselves (`the second image`), `the second one` is a text.
        placed = any(map(_PLACE.match, self.plain))
        for match in _ORDINAL.matches(low):
            if placed and match.group("word") in word_set("options.ordinal"):
                continue
            index = _ordinal_index(match, last)
            if 0 <= index <= last and not (match.group("number") and self.values):
                yield Mention(index, match.start(), match.end())


def _ordinal_index(match: re.Match[str], last: int) -> int:
    word, number, han = match.group("word") or match.group("alone"), match.group("number"), match.group("han")
    if word:
        if word in {"last", "final"}:
            return last
        order = words("options.ordinal")
        return order.index(word) if word in order else int(re.sub(r"\D", "", word)) - 1
    if number:
        return (int(number) if number.isdigit() else word_values()[number]) - 1
    order = words("options.ordinal_glued")
    return order.index(han) if han in order else int(han) - 1


def _tellable(text: str) -> bool:
    """Whether a text can be told from ordinary prose: longer than a letter, a digit, or one ideograph."""
    return len(text) > 1 or text.isdigit() or text >= "\u2e80"


def _spelling(text: str) -> str:
    """The ways to write one option text: runs of spaces, hyphens as spaces, without commas, small numbers as words."""
    spelt = "".join(map(_piece, _PIECE.finditer(text))).removeprefix(r"\s*").removesuffix(r"\s*")
    spelt += _OTHER_USE.get(text, "")
    if _is_term(text):
        return rf"(?:(?<=['‘]){spelt}(?=['’])|{spelt}(?!['’′\u0304\u0305]))"
    other = _numerals().get(text)
    if other is None:
        return spelt
    # `-5` and `five million` do not state the option 5.
    return rf"(?<![-−])(?<!minus )(?<!negative )(?:{spelt}|{other})(?!\s(?:hundred|thousand|million|billion))"


def _piece(match: re.Match[str]) -> str:
    """One piece of a text as a pattern of the ways to write it."""
    kind, piece = match.lastgroup, match.group()
    if kind == "sign":
        sign = piece.strip()
        return rf"\s*{_SIGNS.get(sign) or re.escape(sign)}\s*"
    if kind == "circled":
        return piece + r"[、,，和与及\s]{0,2}"
    return _PIECES.get(kind or "") or _SIGNS.get(piece) or re.escape(piece)


def _is_term(text: str) -> bool:
    """Whether a text is a term of letters (`A·B`, `x + y`): with a prime or a bar after it, it is another one."""
    return _TERM.fullmatch(text) is not None


def _loose(text: str) -> str:
    """The form in which spellings of one text are equal."""
    return _TIGHT_SPACE.sub(r"\1", _SIGN_WORD.sub(_sign_of, text.replace(", ", " ").replace("-", " ")))


def _sign_of(match: re.Match[str]) -> str:
    return "°" if match.group().startswith("d") else "%"


def _without_brackets(texts: Sequence[str]) -> dict[str, int]:
    """Return texts without a remark in brackets at their end (`ethos (character)`), where no other text holds them."""
    heads = {match.group(1): i for i, text in enumerate(texts) if (match := _REMARK.fullmatch(text))}
    return {
        head: i for head, i in heads.items() if not any(head in text for other, text in enumerate(texts) if other != i)
    }


def _only_one(texts: Sequence[str], fits: Callable[[str], object]) -> int | None:
    """Return the index of the text that fits, if there is exactly one."""
    fitting = [i for i, text in enumerate(texts) if fits(text)]
    return fitting[0] if len(fitting) == 1 else None
