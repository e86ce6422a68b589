"""Turns a reply in sentences into its score against a short answer: `It is from Tesco.` for `Tesco`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from ...extract.extraction import AMBIGUOUS, REFUSED, TRUNCATED, UNPARSED
from ...extract.numbers import parse_number
from ...extract.other_kinds import extract_yesno
from ...extract.phrases import ANNOUNCES, CORRECTION, NEGATION, REFUSAL
from ...extract.structured import answer_field
from . import number_match
from .replies import is_joined
from .text_match import exact, fold, place_of, reply_text

METRIC = "accuracy"
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n|[。！？；]")
_MOST_WORDS = 30
"""A longer sentence says more than its answer."""
_LONGEST_ANSWER = 60
"""A longer answer is a text of its own, which nobody says in a sentence."""
_RIVAL_AFTER = re.compile(
    r"[\s,\"'”)]*(?:or|and/or|oder|ou|или|或|或者)\s|\?"
    r"|[\"'”)]*(?:,| and| und| et| y| и)\s(?:an? |the )?\w+(?:\s\w+)?\W*\Z"
)
_RIVAL_BEFORE = re.compile(r"(?:(?<!\w)(?:or|and|either|oder|und|ou|et|или|и|nor)\s|或者?)(?:an? |the )?[\"'“]?\Z")
"""Another thing of the same kind beside the answer: then nobody can tell which is meant."""
_LONGER_NAME = r"(?:(?<=[a-z,] )[A-Z][\w'-]+ {0}(?!\w)|(?<!\w){0},?\s(?!I\b)[A-Z][\w'-]+)"
"""The answer as part of a name (`Paris, Texas`), which is another thing."""
_HEDGED = re.compile(r"(?<!\w)(?:if|unless|whether|might|may|could|perhaps|maybe|possibly)(?!\w)")
_UNIT = re.compile(r"[\d.,\s]*[a-zµ°%/²³]{1,6}\Z")
_WHOLE = re.compile(r"0|[1-9]\d*")
"""A whole number; `007` is a code, which 7 is not."""
_YES_NO = frozenset({"yes", "no"})


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Scorer `short`: 1 if the reply is an answer, or says it in a sentence that names no rival; by which rule.

    A number is read as one, yes and no are read as such. What denies the answer is wrong; what holds it beside a rival,
    supposes it or says it in the midst of much else is unscored, and so is a refusal or a reply that was cut.
    """
    (found,) = exact(sample, request, prediction, options)
    if found.value != 0.0 or is_joined(sample.answers):
        return [Score(request.key, METRIC, found.value, found.answer, found.rule, found.reason)]
    text = reply_text(prediction) or ""
    if all(
        (parse_number(answer) and _UNIT.fullmatch(answer.lower())) or _WHOLE.fullmatch(answer.strip())
        for answer in sample.answers
    ):
        return number_match.score(sample, request, prediction, options)
    if all(answer.strip().lower() in _YES_NO for answer in sample.answers):
        said = extract_yesno(text, finish=prediction.finish)
        right = None if said.letter is None else float(any(said.letter == fold(answer) for answer in sample.answers))
        return [Score(request.key, METRIC, right, said.letter, said.rule, said.reason)]
    return [_in_sentences(sample, request, prediction, text, found.answer)]


def _in_sentences(sample: Sample, request: Request, prediction: Prediction, text: str, short: str | None) -> Score:
    """Look for an answer in the first and the last sentence, then anywhere."""
    announced = answer_field(text) is not None or ANNOUNCES.search(text) is not None
    # After an announcement what is said further on is no part of the answer.
    said = fold(_SENTENCE_END.split(short or "", maxsplit=1)[0] if announced else text)
    wanted = [form for answer in sample.answers if 0 < len(form := fold(answer)) <= _LONGEST_ANSWER]
    edges = _edges(said)
    for answer in wanted:
        for start, end in edges:
            at = place_of(answer, said[start:end])
            if at < 0:
                continue
            if re.search(_LONGER_NAME.format(f"(?i:{re.escape(answer)})"), text):
                return Score(request.key, METRIC, None, answer, "contained", AMBIGUOUS)
            return _judged(request, said, answer, start + at, (start, end))
    if any(place_of(answer, said) >= 0 for answer in wanted):
        return Score(request.key, METRIC, None, short, "contained", AMBIGUOUS)
    if prediction.finish == "length":
        return Score(request.key, METRIC, None, short, "cut_off", TRUNCATED)
    if REFUSAL.search(said):
        return Score(request.key, METRIC, None, short, "refusal", REFUSED)
    return (
        Score(request.key, METRIC, 0.0, short, "short")
        if said
        else Score(request.key, METRIC, None, None, None, UNPARSED)
    )


def _edges(said: str) -> list[tuple[int, int]]:
    """Return where the first and the last sentence of a folded reply stand."""
    stops = [0, *(stop.end() for stop in _SENTENCE_END.finditer(said)), len(said)]
    return [(stops[0], stops[1]), (stops[-2], stops[-1])] if len(stops) > 2 else [(0, len(said))]


def _judged(request: Request, said: str, answer: str, at: int, sentence: tuple[int, int]) -> Score:
    """Say what a sentence that holds the answer makes of it: right, denied, or nothing that can be told."""
    start, end = sentence
    after = at + len(answer)
    if NEGATION.search(said, start, at):
        return Score(request.key, METRIC, 0.0, said[start:end].strip(), "denied")
    rival = _RIVAL_AFTER.match(said, after, end) or _RIVAL_BEFORE.search(said, start, at)
    open_ = rival or _HEDGED.search(said, start, end) or CORRECTION.search(said, after)
    if open_ or len(said[start:end].split()) > _MOST_WORDS:
        return Score(request.key, METRIC, None, answer, "contained", AMBIGUOUS)
    return Score(request.key, METRIC, 1.0, answer, "contained")
