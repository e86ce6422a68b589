"""Other harnesses' ways of reading a choice, reproduced for comparable numbers, faults included."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from ..core.errors import UsageError, did_you_mean
from .extraction import NOT_OFFERED, UNPARSED, Extraction

Parsed = tuple[str, tuple[int, int] | None]
"""The mark a reply names (not yet checked against what was offered) and where it stood."""
Parse = Callable[[str], Parsed | None]
THINK_END: Final = "</think>"


class Profile(Struct, frozen=True):
    """One harness's reading: its parser, and whether it counts what it cannot read as wrong (all of them do)."""

    name: str
    parse: Parse
    by_place: bool = False
    """Whether `(A)`, `(a)` and `(1)` all mean the first option, whatever marks were shown."""
    unread_is_wrong: bool = True

    def read(self, response: str, marks: Sequence[str]) -> Extraction:
        """Return the mark the harness would have taken, or None where it takes none that was offered."""
        parsed = self.parse(response)
        if parsed is None:
            return Extraction(None, self.name, UNPARSED)
        mark = self._offered(parsed[0], marks)
        return Extraction(mark, self.name, None if mark is not None else NOT_OFFERED, parsed[1])

    def hit(self, response: str, marks: Sequence[str]) -> bool:
        """Whether the reply has the format the harness looks for (a mark not offered counts, as in ReForm-Eval)."""
        return self.parse(response) is not None

    def _offered(self, mark: str, marks: Sequence[str]) -> str | None:
        if self.by_place:
            index = place_of(mark)
            return marks[index] if index < len(marks) else None
        return next((offered for offered in marks if offered.upper() == mark.upper()), None)


def _first(rules: Sequence[re.Pattern[str]], text: str, start: int = 0) -> Parsed | None:
    """Return what the first rule that matches captures."""
    match = next(filter(None, (rule.search(text, start) for rule in rules)), None)
    return (match.group(1), match.span(1)) if match else None


def place_of(mark: str) -> int:
    """Return the index a mark stands for: A, a and 1 are 0."""
    return int(mark) - 1 if mark.isdigit() else ord(mark.upper()) - ord("A")


_REFORM = {
    alphabet: re.compile(rf"\(([{marks}])\)")
    for alphabet, marks in (("all", "1-9A-Za-z"), ("upper", "A-Z"), ("lower", "a-z"), ("number", "1-9"))
}


def parse_reform(response: str, alphabet: str = "all") -> Parsed | None:
    """ReForm-Eval: the first single letter or digit in round brackets; `alphabet` is all, upper, lower or number."""
    return _first([_REFORM[alphabet]], response)


def reform_index(prediction: str, alphabet: str = "all", options: Sequence[str] | None = None) -> int | None:
    """Return ReForm-Eval's option index, which may lie beyond the options; with `options`, an exact text counts too."""
    parsed = parse_reform(prediction, alphabet)
    if parsed is not None:
        return place_of(parsed[0])
    return list(options).index(prediction) if options and prediction in options else None


_VQA_RULES = (
    re.compile(r"\b([A-D])\b"),
    re.compile(r"[(（]([A-D])[)）]"),
    re.compile(r"(?:ANSWER|CHOICE|OPTION)[:\s]*([A-D])"),
    re.compile(r"\A([A-D])"),
)


def parse_vqa_scripts(response: str) -> Parsed | None:
    """The VQA scripts: all up to the first `</think>` dropped, the rest in capitals, so that an article is an A.

    Then the first standalone letter, brackets, after a keyword, first character; in this order.
    """
    answer = response.partition(THINK_END)[2] if THINK_END in response else response
    start = len(response) - len(answer.lstrip())
    text = answer.strip().upper()
    parsed = _first(_VQA_RULES, text)
    if parsed is None or parsed[1] is None or len(text) != len(answer.strip()):  # as capitals, ß is two letters
        return parsed and (parsed[0], None)
    return parsed[0], (parsed[1][0] + start, parsed[1][1] + start)


_LONGBENCH = (re.compile(r"The correct answer is \(([A-D])\)"), re.compile(r"The correct answer is ([A-D])"))


def parse_longbench(response: str) -> Parsed | None:
    """LongBench v2: only the sentence `The correct answer is (X)`, asterisks removed, brackets optional."""
    text = response.replace("*", "")
    parsed = _first(_LONGBENCH, text)
    return parsed if text == response else parsed and (parsed[0], None)


_FLAGEVAL_CUES = (
    "boxed", "Answer:", "Answer is", "answer is", "option is", "Correct option", "correct option", "Answer", "answer",
    "故选", "选择", "正确选项为", "答案选", "答案为", "答案是", "因此", "答案",
)  # fmt: skip
_FLAGEVAL_LOST = re.compile(r"The|If|[INST/]")


def parse_flageval(response: str) -> Parsed | None:
    """FlagEvalMM: after dropping all of I N S T, the first capital left after the last of its first keyword."""
    if len(response) == 1:
        return response.upper(), (0, 1)
    letters = flageval_capitals(response)
    return (letters[0], None) if letters else None


def flageval_capitals(response: str) -> str:
    """Return the capitals FlagEvalMM's cleaning leaves of a reply."""
    text = _FLAGEVAL_LOST.sub("", response).strip()
    leading = re.match(r"([A-Z])\.", text)
    if leading:
        return leading.group(1)
    for keyword in _FLAGEVAL_CUES:
        if keyword in text:
            text = text.rpartition(keyword)[2]
            break
    return re.sub(r"[^A-Z]", "", text)


_AISBENCH = (
    re.compile(r"(?i:ANSWER)\s*[:：]\s*\(?([A-Z])\b"),
    re.compile(
        r"(?i:the (?:correct |final |right |best )?(?:answer|option|choice) (?:is|would be))[:：]?\s*[*(]*([A-Z])\b"
    ),
    re.compile(r"(?:答案是?|选项?|故选)\s*[:：]?\s*[（(]?([A-Z])(?![A-Za-z])"),
    re.compile(r"^\s*[(（]?([A-Z])[)）.:,\s]"),
    re.compile(r"\(([A-Z])\)"),
    re.compile(r"(?<![A-Za-z])([A-Z])(?![A-Za-z'])"),
    re.compile(r"([A-Z])"),
)


def parse_aisbench(response: str) -> Parsed | None:
    """AISBench's first-option reading: reasoning up to `</think>` dropped, answer phrases, then the first capital."""
    start = response.rfind(THINK_END) + len(THINK_END) if THINK_END in response else 0
    return _first(_AISBENCH, response, start)


PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile("reform", parse_reform, by_place=True),
        Profile("vqa-scripts", parse_vqa_scripts),
        Profile("longbench-official", parse_longbench),
        Profile("flageval", parse_flageval),
        Profile("aisbench", parse_aisbench),
    )
}


def profile_named(name: str) -> Profile:
    """Return a profile, or say which there are."""
    if name not in PROFILES:
        known = ["snellen", *PROFILES]
        raise UsageError(f"unknown profile {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}")
    return PROFILES[name]
