"""lmms-eval's readers of multiple choice and yes or no, as of 75571cf (August 2026), their misreadings included."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

FAILED_REQUEST: Final = "[LMMS_EVAL_REQUEST_FAILED"
"""How the reply of a call that failed begins."""
LONG_WORDS = 5
"""Option texts are looked for only in replies with more words than this."""
_PHRASES = (
    "the answer is", "answer is", "the correct answer is", "correct answer is", "the best answer is", "best answer is",
    "the correct option is", "correct option is", "the best option is", "best option is", "the choice is", "choice is",
    "the correct choice is", "correct choice is", "i choose", "i select", "i pick", "my answer is", "my choice is",
    "옵션", "정답은", "답은", "답:", "答案是", "答案为", "选", "答えは",
)  # fmt: skip
_FORMATS = ((6, "({})"), (5, "{}."), (4, "{}:"), (3, "{})"), (2, "{} "))
"""Weight and shape of a letter; the heaviest wins, among equals the last."""
_START, _END, _PHRASE = 10, 9, 7
_MMMU_MARKS = ",.!?;:'"
_MCQ_MARKS = _MMMU_MARKS + '"'


class _Candidate(NamedTuple):
    weight: int
    place: int
    letter: str


def read_mmmu(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the letter by the reader of MMMU (the official one too); None where both then draw a random letter.

    `(X)` before `X ` (also at the end of a word: `ETA `) before `X.` before an option's text; of several the last.
    """
    text = _padded(reply, _MMMU_MARKS)
    for shape, last in (("({})", "({})"), ("{} ", " {} "), ("{}.", " {} ")):
        named = [letter for letter in options if shape.format(letter) in text]
        if named:
            return max(named, key=lambda letter: text.rfind(last.format(letter)))
    if len(text.split()) <= LONG_WORDS:
        return None
    lowered = text.lower()
    places = {letter: lowered.rfind(option.lower()) for letter, option in options.items()}
    found = [letter for letter, place in places.items() if place >= 0]
    return max(found, key=places.__getitem__) if found else None


def read_mcq(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the letter by the newer reader (MMStar, RealWorldQA, MMBench static): the last of the best shape."""
    if not reply.strip():
        return None
    text = _padded(reply.strip(), _MCQ_MARKS)
    candidates = [*_shaped(text, options), *_after_phrases(text, options), *_at_the_ends(text, options)]
    candidates = candidates or [_Candidate(0, text.rfind(letter), letter) for letter in options if letter in text]
    return max(candidates, key=lambda candidate: candidate[:2]).letter if candidates else None


def _padded(text: str, marks: str) -> str:
    """Strip one mark after the other, each once (a mark that another uncovers may stay), and put a space around."""
    for mark in marks:
        text = text.strip(mark)
    return f" {text} "


def _shaped(text: str, letters: Iterable[str]) -> Iterable[_Candidate]:
    for weight, shape in _FORMATS:
        for letter in letters:
            place = text.rfind(shape.format(letter))
            if place >= 0:
                yield _Candidate(weight, place, letter)


def _after_phrases(text: str, letters: Iterable[str]) -> Iterable[_Candidate]:
    lowered = text.lower()
    for phrase in _PHRASES:
        start = lowered.find(phrase)
        if start >= 0:
            found = ((text.find(letter, start + len(phrase)), letter) for letter in letters)
            yield from (_Candidate(_PHRASE, place, letter) for place, letter in found if place >= 0)


def _at_the_ends(text: str, letters: Iterable[str]) -> Iterable[_Candidate]:
    bare = text.strip()
    for letter in letters:
        if bare.startswith(letter) and not bare[1:2].isalpha():
            yield _Candidate(_START, 0, letter)
        if bare.endswith(letter) and not bare[-2:-1].isalpha():
            yield _Candidate(_END, len(text) - 1, letter)


_FIRST_LETTER = re.compile(r"[(\s]*([A-Z])", re.IGNORECASE)


def read_first_letter(reply: str, options: Mapping[str, str]) -> str | None:
    """BLINK, CV-Bench: the letter the reply begins with, whatever word it opens (`The answer is B` is T)."""
    match = _FIRST_LETTER.match(reply)
    return match[1].upper() if match else None


def read_first_of_four(reply: str, options: Mapping[str, str]) -> str | None:
    """V*: the first character of the reply in capitals if it is A to D (`Based on …` is B)."""
    first = reply.strip()[:1].upper()
    return first if first and first in "ABCD" else None


def read_first_character(reply: str, options: Mapping[str, str]) -> str | None:
    """SEED-Bench: the first character, in capitals."""
    return reply.strip()[:1].upper() or None


_DOTTED = re.compile(r"\s*([A-Z])\.")


def read_letter_or_dotted(reply: str, options: Mapping[str, str]) -> str | None:
    """AI2D, MUIRBench, ScienceQA: the reply begins with `X.`, or is nothing but the letter; any sentence is wrong."""
    match = _DOTTED.match(reply)
    whole = reply.strip()
    if match:
        return match[1]
    return whole.upper() if whole.upper() in options else None


def read_raw_letter(reply: str, options: Mapping[str, str]) -> str | None:
    """MMMU-Pro vision: the reply, as it is, must be the letter; `B.` and `(B)` are wrong."""
    return reply if reply in options else None


def lmms_yes_no(reply: str) -> str | None:
    """POPE: the whole reply in lower case must be yes or no; `Yes.` is neither."""
    whole = reply.strip().lower()
    return whole.capitalize() if whole in ("yes", "no") else None


def lmms_yes_no_of_mme(reply: str) -> str | None:
    """MME: yes or no within the first four characters, full stops left out."""
    start = reply.lower().strip().replace(".", "")[:4]
    return next((word.capitalize() for word in ("yes", "no") if word in start), None)


LMMS_READERS: Final[Mapping[str, Callable[[str, Mapping[str, str]], str | None]]] = {
    "mmmu": read_mmmu,
    "mcq": read_mcq,
    "first-letter": read_first_letter,
    "first-of-four": read_first_of_four,
    "first-character": read_first_character,
    "letter-or-dotted": read_letter_or_dotted,
}
