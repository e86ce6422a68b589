"""The scorer `peer`: each reply read by the reader, and judged by the rule, that the card's protocol names.

A card says which in `score_options`: `reader` for options (a name of `CHOICE_READERS` or `FITTING`), `open` for texts
and numbers (of `OPEN_RULES`), `yesno` (of `YESNO_READERS`), `reply` for what is taken off a reply first (of `REPLIES`),
and the name of the metric.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct, structs

from ...core.errors import ConfigError, not_among
from ...core.types import OFFERED, Form, Prediction, Request, Sample, Score, TrialKey
from ...extract.choice import extract_choice
from ...extract.extraction import AMBIGUOUS, EMPTY, NOT_OFFERED, TRUNCATED, UNPARSED
from ...scoring.judges.judge_card import offered_options
from ...scoring.protocols.peer_scores import DRAWN_FROM, OWN_READER, TOOL_COUNTS
from ...scoring.scorers.option_choice import score as score_own_choice
from ...scoring.scorers.option_choice import score_yesno as score_own_yesno
from ...scoring.scorers.replies import NO_REFERENCE, answer_text
from .math_answers import read_boxed_choice, read_maths_choice
from .open_rules import DRAWS, EMPTY_FITS, OPEN_RULES
from .peer_readers import PEER_READERS, ReadLetter
from .toolkit_rules import (
    lmms_yes_no,
    lmms_yes_no_equal,
    lmms_yes_no_of_mme,
    read_mmmu,
    read_mmmu_official,
    vlmevalkit_yes_no,
)
from .video_rules import FITTING


def read_mmmu_pro(reply: str, options: Mapping[str, str]) -> str | None:
    """MMMU-Pro's own: the one letter that occurs after the last `Answer:`; else MMMU's reader on the whole reply."""
    if "Answer:" in reply:
        tail = reply.rpartition("Answer:")[2].strip()
        named = [mark for mark in options if mark in tail]
        if len(named) == 1:
            return named[0]
    return read_mmmu(reply, options)


def read_blink(reply: str, options: Mapping[str, str]) -> str | None:
    """BLINK's own: the reply is a letter or `(X)`, else the only word that is `(X)`, in the last paragraph first."""
    whole = [mark for mark in options if reply in (mark, f"({mark})")]
    if whole:
        return whole[0]
    in_all, in_last = (_words_in_brackets(part, options) for part in (reply, reply.rsplit("\n\n", maxsplit=1)[-1]))
    return in_last[0] if len(in_last) == 1 else in_all[0] if len(in_all) == 1 else None


def _words_in_brackets(text: str, options: Mapping[str, str]) -> list[str]:
    words = text.split()
    return [mark for mark in options if f"({mark})" in words]


_MMSTAR_STARTS = ("", "(", "option ", "the answer is ")


def read_mmstar(reply: str, options: Mapping[str, str]) -> str | None:
    """MMStar's own: in lower case, the letter the reply begins with, at once or after `(`, `option` or a phrase."""
    text = reply.lower().strip().replace("\n", " ")
    said = [text[len(start) : len(start) + 1].upper() for start in _MMSTAR_STARTS if text.startswith(start)]
    return next((letter for letter in said if letter in options), None)


_UNPUNCTUATED = str.maketrans("", "", ",.!?;:'\"")
_LETTER_FIRST = re.compile(r"[A-Z]\.")


def read_visualwebbench(reply: str, options: Mapping[str, str]) -> str | None:
    """VisualWebBench's own: one character, `X.` at the start, else the last `(X)`, else the last letter on its own."""
    if len(reply) == 1 or _LETTER_FIRST.match(reply):
        return reply[0].upper()
    text = f" {reply.translate(_UNPUNCTUATED)} "
    for shape in ("({})", " {} "):
        places = {mark: place for mark in options if (place := text.rfind(shape.format(mark))) >= 0}
        if places:
            return max(places, key=lambda mark: places[mark])
    return None


def read_option_text(reply: str, options: Mapping[str, str]) -> str | None:
    """MathVista's before it asks a model: the reply is an option's text as it stands."""
    return next((mark for mark, text in options.items() if reply == text), None)


def read_stated_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """MathVista: the reply is an option's text; else what our reader finds, in the place of its language model."""
    same = next((mark for mark, text in options.items() if reply.strip() == text), None)
    return same or extract_choice(reply, dict(options)).letter


CHOICE_READERS: Mapping[str, ReadLetter] = MappingProxyType(
    {name: reader.read for name, reader in PEER_READERS.items()}
    | {
        "mmmu": read_mmmu,
        "mmmu-official": read_mmmu_official,
        "mmmu-pro": read_mmmu_pro,
        "blink": read_blink,
        "mmstar": read_mmstar,
        "mathvision": read_maths_choice,
        "vlmevalkit-boxed": read_boxed_choice,
        "option-text": read_option_text,
        "visualwebbench": read_visualwebbench,
        "mathvista": read_stated_choice,
    }
)
"""By the name that cards use (`score_options.reader`)."""


def read_pope(reply: str) -> str | None:
    """POPE's own: No where No, no or not is a word before the first full stop, and Yes for everything else."""
    words = reply.partition(".")[0].replace(",", "").split(" ")
    return "No" if {"No", "no", "not"} & set(words) else "Yes"


YESNO_READERS: Mapping[str, Callable[[str], str | None]] = {
    "vlmevalkit": vlmevalkit_yes_no,
    "lmms-whole": lmms_yes_no,
    "lmms-equal": lmms_yes_no_equal,
    "lmms-first-four": lmms_yes_no_of_mme,
    "pope": read_pope,
}


THINKING_TAGS = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
"""What lmms-eval takes off by default (`--reasoning_tags`)."""


class PeerOptions(Struct, frozen=True):
    """What `score_options` may say to this scorer."""

    reader: str = OWN_READER
    open: str = "exact"
    yesno: str = OWN_READER
    reply: str = ""
    metric: str = "accuracy"


def without_tags(prediction: Prediction) -> str | None:
    """Return a reply as lmms-eval hands it on: closed thinking in its two tags and outer white space taken off."""
    text = prediction.text
    if text is None:
        return None
    for opening, closing in THINKING_TAGS:
        while (start := text.find(opening)) >= 0 and (end := text.find(closing, start)) >= 0:
            text = text[:start] + text[end + len(closing) :]
    return text.strip()


REPLIES: Mapping[str, Callable[[Prediction], str | None]] = {
    "": answer_text,
    "as-written": lambda prediction: prediction.text,
    "without-tags": without_tags,
}
"""What a tool takes off a reply before it reads it; the first is ours, for readers of ours."""


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Return one score: None where the protocol's reader finds nothing, whatever its tool then does."""
    told = PeerOptions(**{name: options[name] for name in PeerOptions.__struct_fields__ if name in options})
    if not sample.answers:
        return [Score(request.key, told.metric, None, reason=NO_REFERENCE)]
    if told.reply not in REPLIES:
        raise ConfigError(f"score_options.reply {not_among(told.reply, REPLIES, ' is unknown')}")
    text = REPLIES[told.reply](prediction)
    if text is None:
        return [Score(request.key, told.metric, None, rule="thinking", reason=TRUNCATED)]
    if sample.form in OFFERED:
        return [_chosen(sample, request, prediction, text, told)]
    if sample.form is Form.YESNO:
        return [_yes_or_no(sample, request, prediction, text, told)]
    return [_judged(sample, request, prediction, text, told)]


def _chosen(sample: Sample, request: Request, prediction: Prediction, text: str, told: PeerOptions) -> Score:
    if told.reader == OWN_READER:
        return _renamed(score_own_choice(sample, request, prediction, {}), told)
    offered = offered_options(sample, request)
    if told.reader in FITTING:
        fits = [offered[mark] for mark in FITTING[told.reader](text, offered)]
        return _fitting(sample, request.key, fits, _why(text, prediction, _unchosen(fits)), told)
    if told.reader not in CHOICE_READERS:
        known = [OWN_READER, *CHOICE_READERS, *FITTING]
        raise ConfigError(f"score_options.reader {not_among(told.reader, known, ' is unknown')}")
    mark = CHOICE_READERS[told.reader](text, offered) if text else None
    if mark is None:
        return Score(request.key, told.metric, None, rule=told.reader, reason=_why(text, prediction, UNPARSED))
    if mark not in offered:  # it read something, and that is wrong: a refusal, the first letter of a word
        return Score(request.key, told.metric, 0.0, None, told.reader, NOT_OFFERED, {"read": mark})
    right = offered[mark] in sample.answers
    return Score(request.key, told.metric, float(right), offered[mark], told.reader)


def _unchosen(fits: Sequence[str]) -> str:
    return AMBIGUOUS if fits else UNPARSED


def _fitting(sample: Sample, key: TrialKey, fits: Sequence[str], why: str, told: PeerOptions) -> Score:
    """Score a reply that fits one option; one that fits several chose none, whatever the tool makes of it."""
    if len(fits) == 1 and why != EMPTY:
        return Score(key, told.metric, float(fits[0] in sample.answers), fits[0], told.reader)
    counted = {TOOL_COUNTS: float(any(option in sample.answers for option in fits))}
    return Score(key, told.metric, None, None, told.reader, why, counted)


def _yes_or_no(sample: Sample, request: Request, prediction: Prediction, text: str, told: PeerOptions) -> Score:
    if told.yesno == OWN_READER:
        return _renamed(score_own_yesno(sample, request, prediction, {}), told)
    if told.yesno not in YESNO_READERS:
        raise ConfigError(f"score_options.yesno {not_among(told.yesno, [OWN_READER, *YESNO_READERS], ' is unknown')}")
    word = YESNO_READERS[told.yesno](text)
    if word is None:
        return Score(request.key, told.metric, None, rule=told.yesno, reason=_why(text, prediction, UNPARSED))
    word = word.lower()
    right = word in {answer.strip().lower() for answer in sample.answers}
    return Score(request.key, told.metric, float(right), word, told.yesno)


def _judged(sample: Sample, request: Request, prediction: Prediction, text: str, told: PeerOptions) -> Score:
    if told.open not in OPEN_RULES:
        raise ConfigError(f"score_options.open {not_among(told.open, sorted(OPEN_RULES), ' is unknown')}")
    value = OPEN_RULES[told.open](text, sample) if text else None
    if value is None:
        counted: dict[str, Any] = {TOOL_COUNTS: 1.0} if not text and told.open in EMPTY_FITS else {}
        if told.open in DRAWS:
            counted = {DRAWN_FROM: DRAWS[told.open](sample)}
        return Score(request.key, told.metric, None, None, told.open, _why(text, prediction, UNPARSED), counted)
    return Score(request.key, told.metric, float(value), text, told.open)


def _why(text: str, prediction: Prediction, otherwise: str) -> str:
    if prediction.finish == "length":
        return TRUNCATED
    return otherwise if text.strip() else EMPTY


def _renamed(scores: Sequence[Score], told: PeerOptions) -> Score:
    return structs.replace(scores[0], metric=told.metric)
