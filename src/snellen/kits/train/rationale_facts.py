"""A rationale to its points: does it reason at all, does it state the chain's facts in order, is its answer right.

Facts are found as words, not as meanings: cheap, the same every time, and fit for a reward. A judge sees more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from ...extract.choice import read
from ...extract.option_set import compile_options, derive_marks
from ...scoring.scorers.replies import answer_text

METRIC = "rationale_facts"
NO_FACTS = "the sample names no facts of its chain"
WORD = re.compile(r"\w+")
SENTENCES = re.compile(r"[.!?。！？](?:\s|$)|[。！？]|\n")
FEWEST_WORDS, FEWEST_SIGNS = 3, 8
"""What a sentence has at least: `Answer: B.` is none, nor is the text of an option after it alone a rationale."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, small letters, without punctuation."""
    return WORD.findall(text.casefold())


def facts_stated(reply: str, facts: Sequence[str]) -> float:
    """Return the share of facts whose words stand in the reply, each after the one before."""
    if not facts:
        return 0.0
    words, place, found = words_of(reply), 0, 0
    for fact in facts:
        wanted = words_of(fact)
        at = _find(words, wanted, place)
        if wanted and at is not None:
            place, found = at + len(wanted), found + 1
    return found / len(facts)


def _find(words: Sequence[str], wanted: Sequence[str], start: int) -> int | None:
    size = len(wanted)
    places = range(start, len(words) - size + 1)
    return next((place for place in places if words[place : place + size] == wanted), None)


def is_reasoned(reply: str) -> bool:
    """Tell whether something stands before the answer: at least two sentences or lines of some words."""
    return sum(1 for part in SENTENCES.split(reply) if _is_sentence(part)) >= 2


def _is_sentence(text: str) -> bool:
    """Tell whether a piece says something; scripts without blanks between words are counted by their signs."""
    words = words_of(text)
    return len(words) >= FEWEST_WORDS or (not text.isascii() and sum(map(len, words)) >= FEWEST_SIGNS)


def chosen_option(reply: str, options: Sequence[str], marks: Sequence[str] = ()) -> str | None:
    """Return the option a reply chooses, by the one reader of options, or None."""
    letters = tuple(marks) or derive_marks(len(options))
    found = read(compile_options(tuple(letters), tuple(options)), reply, None)
    return None if found.letter is None else options[letters.index(found.letter)]


def rationale_reward(reply: str, facts: Sequence[str], options: Sequence[str], answers: Sequence[str]) -> float:
    """Return the reward of one rationale: 1 for a right answer, up to 1 for its facts, and none without a rationale."""
    right = float(chosen_option(reply, options) in answers) if options and answers else 0.0
    if not facts:
        return right
    return (right + facts_stated(reply, facts)) if is_reasoned(reply) else 0.0


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score the share of the chain's facts that a rationale states; unscored where the sample names none."""
    facts = sample.meta.get("facts")
    text = answer_text(prediction)
    if text is None:
        return [Score(request.key, METRIC, None, reason="no text reply")]
    if not facts:
        return [Score(request.key, METRIC, None, reason=NO_FACTS)]
    detail = {"reasoned": is_reasoned(text)}
    return [Score(request.key, METRIC, facts_stated(text, facts), rule="words in order", detail=detail)]
