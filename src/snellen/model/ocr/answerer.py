"""A question and the lines that were read -> an answer, by looking words up; nothing here knows the right one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from rapidfuzz import fuzz

ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth",
)  # fmt: skip
TRANSCRIBE = re.compile(
    r"transcri|\bread (?:it|the|this|all|aloud)\b|what you read|\btext in the (?:picture|image)|copy the text"
    r"|\bwhat (?:is|does) .*\b(?:text|written|say|read)\b",
    re.IGNORECASE,
)
LINE_NUMBER = re.compile(r"\bline (?:number )?(\d{1,3})\b|\b(\d{1,3})(?:st|nd|rd|th) line\b", re.IGNORECASE)
LINE_NAME = re.compile(rf"\b({'|'.join(ORDINALS)}|last) line\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
LINK = re.compile(r"\b(?:is|are|was|were|equals|reads|called|named)\b|[:=]", re.IGNORECASE)
_SMALL_WORDS = (
    "a an and are as at be by did do does for from has have how i in into is it its many much name of on or shown "
    "that the their there this to was were what when where which who whose why with you your"
)
STOP_WORDS = frozenset(_SMALL_WORDS.split())
NUMBER = re.compile(r"\d[\d.,:/\-]*\d|\d")


def answer(question: str, lines: Sequence[str], options: Sequence[str] = ()) -> str:
    """Answer from the lines: an option, one line, yes or no, the whole text, or the value by the question's key."""
    asked = line_asked(question, len(lines))
    if asked is not None:
        lines = lines[asked : asked + 1]
    if options:
        return best_option(question, lines, options)
    if asked is not None:
        return "".join(lines)
    head = question.partition("?")[0]
    if re.search(r"\byes or no\b", question, re.IGNORECASE):
        return "yes" if supports(head, lines) else "no"
    if TRANSCRIBE.search(question):
        return "\n".join(lines)
    return look_up(head, lines)


def line_asked(question: str, count: int) -> int | None:
    """Return the index of the line a question names ("line 3", "the last line"), or None if it names none."""
    number, name = LINE_NUMBER.search(question), LINE_NAME.search(question)
    if number:
        index = int(number.group(1) or number.group(2)) - 1
    elif name:
        index = count - 1 if name.group(1).lower() == "last" else ORDINALS.index(name.group(1).lower())
    else:
        return None
    return max(0, index)


def best_option(question: str, lines: Sequence[str], options: Sequence[str]) -> str:
    """Return the option the text supports best: by the sentence about the question, then by all; else the first."""
    near = _squeeze(best_sentence(question.partition("?")[0], lines))
    everything = _squeeze(" ".join(lines))

    def _support(option: str) -> tuple[float, float]:
        wanted = _squeeze(option)
        return _closeness(wanted, near) + 0.5 * _closeness(wanted, everything), len(wanted)

    return max(options, key=_support)


def _closeness(wanted: str, text: str) -> float:
    return fuzz.partial_ratio(wanted, text) if len(text) > len(wanted) else fuzz.ratio(wanted, text)


def _squeeze(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def supports(statement: str, lines: Sequence[str]) -> bool:
    """Say whether most of a statement's telling words stand on the page."""
    wanted = telling_words(statement)
    seen = set(telling_words(" ".join(lines)))
    return bool(wanted) and sum(word in seen for word in wanted) >= 0.7 * len(wanted)


def look_up(question: str, lines: Sequence[str]) -> str:
    """Return the value in the sentence that shares most with the question, or that sentence."""
    sentence = best_sentence(question, lines)
    return extract_value(question, sentence) or sentence


def sentences_of(lines: Sequence[str]) -> list[str]:
    """Join lines (words broken by a hyphen too) and cut into sentences."""
    text = re.sub(r"(\w)- (?=[a-z])", r"\1", " ".join(lines))
    return [part for part in SENTENCE_END.split(text) if part.strip()]


def telling_words(text: str) -> list[str]:
    """Return the words that say what a text is about, in lower case."""
    return [word for word in re.findall(r"\w+", text.casefold()) if word not in STOP_WORDS]


def best_sentence(question: str, lines: Sequence[str]) -> str:
    """Return the sentence that shares the rarest words with the question; a line where sentences are long."""
    candidates = [*sentences_of(lines), *lines]
    if not candidates:
        return ""
    bags = [set(telling_words(candidate)) for candidate in candidates]
    frequency = Counter(word for bag in bags for word in bag)
    wanted = set(telling_words(question))

    def _weight(index: int) -> float:
        shared = wanted & bags[index]
        return sum(math.log(1 + len(bags) / frequency[word]) for word in shared) - 0.01 * len(bags[index])

    return candidates[max(range(len(candidates)), key=_weight)]


def extract_value(question: str, sentence: str) -> str:
    """Return what follows the link (is, was, :) after the question's words; a number where a number is asked for."""
    wanted = set(telling_words(question))
    if re.search(r"\bhow many\b|\bhow much\b|\bnumber\b|\bcode\b|\byear\b|\bwhen\b", question, re.IGNORECASE):
        numbers = [match for match in NUMBER.findall(sentence) if match not in question]
        if numbers:
            return str(numbers[-1])
    for link in LINK.finditer(sentence):
        before, after = sentence[: link.start()], sentence[link.end() :]
        if wanted & set(telling_words(before)) and telling_words(after):
            return _trim(after)
    return ""


def _trim(text: str) -> str:
    return text.strip().strip("\"'“”‘’").rstrip(".!。！").strip("\"'“”‘’ ")
