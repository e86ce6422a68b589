"""lmms-eval's readers of multiple choice and yes or no, as of 75571cf (August 2026), their misreadings included."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

"""What it writes into the reply of a call that failed: in full `… via API.`, of local models `…: TYPE MESSAGE`."""
DECLINED: Final = "Z"
"""The letter it uses for a reply that chooses nothing: never right."""
REFUSALS: Final = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
LAST_WORDS = 4
"""A letter counts only if it first stands among so many words at the end."""
_MARKS = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_ANSWER_IS = re.compile(r"answer\s+is\s+\**([ABCD])", re.IGNORECASE)
_VQA_MARKS = str.maketrans(dict.fromkeys(';/[]"{}()=+\\_-><@`,?!.:', " "))


def infer_letter(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the letter its first rule takes: one alone among the words and near the end, else after `answer is`."""
    if "Failed to obtain answer via API" in reply:
        return None
    if any(refusal in reply for refusal in REFUSALS):
        return DECLINED
    words = reply.translate(_MARKS).split()
    named = [letter for letter in options if letter in words]
    if len(named) == 1 and words.index(named[0]) >= len(words) - LAST_WORDS:
        return named[0]
    return DECLINED if not named and DECLINED in words else _announced(reply, options)


def _announced(reply: str, options: Mapping[str, str]) -> str | None:
    announced = _ANSWER_IS.search(reply)
    letter = announced[1].upper() if announced else ""
    return letter if letter in options else None


def infer_from_text(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the only option whose text the reply contains; a reply over twice as long as all options is not read."""
    lowered = reply.lower()
    if len(lowered) > 2 * sum(map(len, options.values())):
        return None
    named = [letter for letter, text in options.items() if text.lower() in lowered]
    return named[0] if len(named) == 1 else None


def can_infer(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the letter VLMEvalKit reads without a judge; None where it would ask one (or count the reply as wrong)."""
    return infer_letter(reply, options) or infer_from_text(reply, options)


def can_infer_after_answer(reply: str, options: Mapping[str, str]) -> str | None:
    """MMMU-Pro with a chain of thought: of the only line that begins with `Answer:` what follows, by `can_infer`.

    A line without another capital is A, for the one of `Answer`; without such a line, or with several, all is read.
    """
    lines = [line.strip() for line in reply.split("\n") if line.strip().startswith("Answer:")]
    if len(lines) != 1:
        return can_infer(reply, options)
    capitals = {character for character in lines[0] if character in string.ascii_uppercase}
    return can_infer(capitals.pop() if len(capitals) == 1 else lines[0].removeprefix("Answer:"), options)


def vlmevalkit_yes_no(reply: str) -> str | None:
    """Return `Yes` or `No` if just one of the words occurs, else None: `Unknown`, which is wrong without a judge."""
    words = reply.lower().translate(_VQA_MARKS).split()
    said = {word for word in words if word in ("yes", "no")}
    return said.pop().capitalize() if len(said) == 1 else None


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
    """Return the letter by lmms-eval's reader for MMMU, and MMMU-Pro's own; None where they draw a random letter.

    `(X)` before `X ` (also at the end of a word: `ETA `) before `X.` before an option's text; of several the last.
    """
    return _by_shapes(reply, options, (("({})", "({})"), ("{} ", " {} "), ("{}.", " {} ")))


def read_mmmu_official(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the letter by MMMU's own reader: a bare letter has a space on both sides, and `X.` is nothing to it."""
    return _by_shapes(reply, options, (("({})", "({})"), (" {} ", " {} ")))


def _by_shapes(reply: str, options: Mapping[str, str], shapes: Sequence[tuple[str, str]]) -> str | None:
    """Return the letter of the first shape that occurs, of several the last by the second of the pair, else by text."""
    text = _padded(reply, _MMMU_MARKS)
    for shape, last in shapes:
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


_VSTAR = (
    re.compile(r"([A-D])"),
    re.compile(r".*?(?:ANSWER|CHOICE|OPTION)(?:\s+IS)?[\s:]+([A-D])", re.DOTALL),
    re.compile(r".*?\(([A-D])\)", re.DOTALL),
    re.compile(r".*?([A-D])\s*[.)\]]", re.DOTALL),
    re.compile(r"(?:.*?\s)?([A-D])(?:\s|$)", re.DOTALL),
)
"""At the start, after a word that announces it, in brackets, before a mark, between spaces: the first that fits."""


def read_vstar(reply: str, options: Mapping[str, str]) -> str | None:
    """V*: in capitals, the letter by the first of five shapes (`Based on …` is B), else the only A to D there is."""
    text = reply.strip().upper()
    for shape in _VSTAR:
        found = shape.match(text)
        if found:
            return found[1]
    letters = [character for character in text if character in "ABCD"]
    return letters[0] if len(letters) == 1 else None


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


_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def read_letter_unpunctuated(reply: str, options: Mapping[str, str]) -> str | None:
    """AI2D: the reply begins with `X.`, or is nothing but the letter once its punctuation is gone, in either case."""
    match = _DOTTED.match(reply)
    said = (match[1] if match else reply).translate(_NO_PUNCTUATION).upper()
    return said if said in options else None


_STATIC_LETTERS = "ABCDE"
_STATIC_SHAPES = ("{}.", "{},", "{}:", "{})", "{}).", "({})", "({}).", ":{}", ":{},", ":{}.", ":{})", ":{}).")


def read_mmbench_static(reply: str, options: Mapping[str, str]) -> str | None:
    """MMBench static: a word that is one letter or one in a shape, else the one option's text, else the ranked reader.

    A bare letter does not count beside an `A` among more than three words, which may be an article.
    """
    words = reply.split()
    for shape in ("{}", *_STATIC_SHAPES):
        named = [letter for letter in _STATIC_LETTERS if shape.format(letter) in words]
        if len(named) == 1 and not (shape == "{}" and "A" in words and len(words) > 3):
            return named[0]
    texts = [letter for letter, text in options.items() if text.lower() in reply.lower()]
    return texts[0] if len(texts) == 1 else read_mcq(reply, options)


_ALONE = re.compile(r"\b([A-D])\b")


def read_alone(reply: str, options: Mapping[str, str]) -> str | None:
    """Perception Test: the first capital A to D that stands alone."""
    found = _ALONE.search(reply)
    return found[1] if found else None


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


def lmms_yes_no_equal(reply: str) -> str | None:
    """RealWorldQA: the whole reply in lower case, without full stops at its end, must be the word."""
    whole = reply.lower().strip().rstrip(".")
    return whole.capitalize() if whole in ("yes", "no") else None
