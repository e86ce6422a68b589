"""Rules for replies that point at their answer: `the answer is B`, `答案是B`, `I choose (c)`; the last one not denied wins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .cue_words import (
    BINDER,
    CORRECTION,
    CUES,
    CUES_ALL,
    CUES_ASCII,
    CUES_ENGLISH,
    DOUBT,
    DOUBT_CLAUSE,
    LINK,
    NEGATION,
    NOT_AFTER,
    VERB_DENIED,
    VERB_SUBJECT,
    WITHDRAWN,
)
from .extraction import AMBIGUOUS, NOT_OFFERED, TRUNCATED, Extraction
from .label_mentions import label_mentions, text_mentions
from .option_set import Reader, Reply
from .polarity import DENIED_AFTER, Mention, agreed
from .word_gate import places

_TAIL = 480
_MOST_CUES = 60
_SHORTEST_TURN = 5
"""No self-correction fits into fewer characters: `No, B`."""
_QUESTION = re.compile(r"[)\]}\"'*_`\s]*\?")
_ENDS = re.compile(
    r"[)\]}\"'*_`$\s]*(?:[.,;:!?)\]}\n。，、；）—–-]|\Z|because|since|as |given|due|perch[eé]|porque|parce|weil|denn|car |pois|omdat|"
    r"потому|ponieważ|karena|\(|and |but |which |is the|it is)|"
    r"[^\x00-\x7f]"
)
_VERB_AFTER = re.compile(
    r"[)\]}\"'*_`]*\s(?:is|was|are|does|has|would|can|cannot|could|shows|isn't|doesn't|looks|seems|had|were|will)(?!\w)"
)
_TEXT_JOIN = re.compile(r"\s?(?:,\s?)?(?:or|and|/|oder|ou|o|y|或|和)\s?")
_DENIES = re.compile(r"(?<!\w)(?:going to|not|cannot|never|neither|nor|no)(?!\w)|n't")
_FEW_WORDS = re.compile(r"[^\W\d_]{0,4}(?:\s[^\W\d_]{1,14}){0,3}?[:\s]\s?[(\[\"'*]{0,3}(?=[a-z](?![^\W_]))")
_OPENING = re.compile(
    r"(?:\A|[.!\n]\s?)\**(?:(?:therefore|so|thus|hence),? )?(?:the |my )?(?:correct |final |best )?\Z"
)
"""The cue opens its sentence: nothing before it can take its force."""
_OPEN_END = re.compile(r"[)\]\"'*_`]*,?\s(?:or|and)\W*\Z")
_STOP = re.compile(r"[.;!?\n。；！？]")
_STRANGER = re.compile(r"[A-Z](?=[)\]}\"'*_`$]*\s*(?:[.,;:!?\n]|\Z))")


class Cue(NamedTuple):
    """A word that points at an answer: where it stands, and whether it names the answer, an option or the act of choosing."""

    start: int
    end: int
    word: str
    kind: str


class Slot(NamedTuple):
    """The place where a cue's value stands, the label there if any, and whether a linking word leads to it."""

    at: int
    label: re.Match[str] | None
    bound: bool


def cue(reader: Reader, reply: Reply) -> Extraction | None:
    """Read the last cue that names an option: English words first, then other languages; the end of a long reply first."""
    low, size = reply.low, len(reply.low)
    split = size - _TAIL if size > 2 * _TAIL else 0
    for words in _vocabularies(low, split):
        verdict = _last_cue(reader, reply, words, split, size)
        if verdict is None and split:
            verdict = _last_cue(reader, reply, words, 0, split + 16)
        if verdict is not None:
            return verdict
    return None


def _vocabularies(low: str, split: int) -> tuple[tuple[str, ...], ...]:
    """Which words to look for, in turn: a long plain English reply is not searched for those of other languages."""
    if not low.isascii():
        return (CUES_ALL,)
    return (CUES_ENGLISH,) if split and " the " in low else (CUES_ENGLISH, CUES_ASCII)


def _last_cue(reader: Reader, reply: Reply, words: Sequence[str], begin: int, end: int) -> Extraction | None:
    asked: Extraction | None = None
    for start, word in reversed(places(reply.low, words, begin, end, _MOST_CUES)):
        verdict = _announced(reader, reply, Cue(start, start + len(word), word, CUES[word]))
        if verdict is None:
            continue
        if not _asked(reply, verdict):
            return (
                Extraction(None, "cue", AMBIGUOUS, verdict.span)
                if _enumerated(reply, verdict)
                else corrected(reader, reply, verdict)
            )
        asked = asked or verdict
    return asked if asked and not _others(reader, reply, asked) else None


def _announced(reader: Reader, reply: Reply, cue: Cue) -> Extraction | None:
    """Return what the cue announces, if it announces something and the words before it do not take that back."""
    if _discusses(reply.low, cue) or _inside_word(reply.low, cue):
        return None
    verdict = _value(reader, reply, cue)
    return None if verdict is None or _doubted(reply.low, cue) else verdict


def _enumerated(reply: Reply, verdict: Extraction) -> bool:
    """Whether the line before says the same of another label (`Answer: A`, then `Answer: B`)."""
    low, (start, end) = reply.low, verdict.span or (0, 0)
    start, end = start - reply.offset, end - reply.offset
    line = low.rfind("\n", 0, max(0, start)) + 1
    if verdict.letter is None or line == 0 or end - start != 1:
        return False
    before = low[low.rfind("\n", 0, line - 1) + 1 : line - 1]
    same = before[: start - line] == low[line:start] and len(before) <= end - line + 2
    return same and before[start - line : end - line] not in {"", low[start:end]}


def _discusses(low: str, cue: Cue) -> bool:
    """Whether the words are `option A would …`: that speaks of an option, it does not choose one."""
    return cue.kind == "option" and low[cue.end : cue.end + 1] == " " == low[cue.end + 2 : cue.end + 3]


def _asked(reply: Reply, verdict: Extraction) -> bool:
    """Whether a question mark follows: `Is the answer B?` only weighs B."""
    return bool(verdict.letter and verdict.span and _QUESTION.match(reply.low, verdict.span[1] - reply.offset))


def _others(reader: Reader, reply: Reply, asked: Extraction) -> bool:
    """Whether an option other than the one only asked about stands undenied."""
    return any(
        mention.stands and reader.marks[mention.index] != asked.letter for mention in label_mentions(reader, reply)
    )


def _inside_word(low: str, cue: Cue) -> bool:
    """Whether the cue is part of a longer Latin word (`incorrect`, `answering`)."""
    before, after = low[cue.start - 1 : cue.start], low[cue.end : cue.end + 1]
    if cue.word in "选選" and after in {"项", "項", "择", "擇", "択"}:
        return True
    return ("a" <= before <= "ɏ" and before.isalpha()) or (
        "a" <= after <= "ɏ" and after.isalpha() and cue.word[-1] <= "ɏ"
    )


def _doubted(low: str, cue: Cue) -> bool:
    """Whether the words around the cue deny it, make it a condition, or give it to somebody else."""
    start = cue.start
    window = max(0, start - 64)
    if cue.kind == "answer" and _OPENING.search(low, max(0, start - 28), start):
        return low.startswith(" would have been", cue.end)
    if (start and low[start - 1] in "不非没別别") or low.startswith(" would have been", cue.end):
        return True
    if (
        _unspoken(low, cue)
        if cue.kind == "verb" and cue.word.isascii()
        else DOUBT.search(low, max(0, start - 40), start)
    ):
        return True
    clause = window
    for stop in _STOP.finditer(low, window, start):
        clause = stop.end()
    return DOUBT_CLAUSE.search(low, clause, start) is not None


def _unspoken(low: str, cue: Cue) -> bool:
    """Whether `choose` and its like have another subject than the speaker, or are denied."""
    spoken = VERB_SUBJECT.search(low, max(0, cue.start - 24), cue.start)
    return spoken is None or VERB_DENIED.search(low, max(0, cue.start - 40), cue.start) is not None


def _value(reader: Reader, reply: Reply, cue: Cue) -> Extraction | None:
    """Read what stands after a cue and its linking words."""
    low = reply.low
    link = LINK.match(low, cue.end)
    at = link.end() if link else cue.end
    bound = _bound(low, cue, at)
    if not bound and (cue.kind == "option" or cue.word == "correct"):
        return None
    if at >= len(low):
        return _dangling(low, bound)
    if bound and low.startswith("also ", at):
        return Extraction(None, "cue", AMBIGUOUS)
    label = reader.label.match(reply.body, at)
    if label and not _wordy(reply, label):
        return _label_value(reader, reply, label, bound)
    return _worded_value(reader, reply, cue, Slot(at, label, bound))


def _dangling(low: str, bound: bool) -> Extraction | None:
    """`The answer is` and then nothing: the reply was cut off."""
    return Extraction(None, "cue", TRUNCATED) if bound and low.rstrip()[-1:] not in {".", "*", ")", "!"} else None


def _bound(low: str, cue: Cue, at: int) -> bool:
    """Whether the cue is tied to what stands at `at`: by a copula, colon or arrow, or as verbs and cues of other languages are."""
    if cue.kind == "verb" or low[cue.end : at] in {":", "="} or (at > cue.end + 1 and BINDER.search(low, cue.end, at)):
        return True
    return cue.kind == "answer" and cue.word not in CUES_ENGLISH and at > cue.end


def _worded_value(reader: Reader, reply: Reply, cue: Cue, slot: Slot) -> Extraction | None:
    """Read a value that is an option text, or a label that might be an article."""
    low = reply.low
    text = reader.texts.at(low, slot.at) if _takes_text(low, cue) else None
    if _denied(low, slot.at, text):
        return None
    if slot.label and (text is None or text.index == reader.by_mark[slot.label.group(1).lower()]):
        return _label_value(reader, reply, slot.label, slot.bound)
    if text is not None and slot.bound:
        return _text_value(reader, reply, text)
    return _strange_value(reader, reply, slot) or (
        _distant_value(reader, reply, cue, slot.at) if cue.kind == "answer" else None
    )


def _distant_value(reader: Reader, reply: Reply, cue: Cue, at: int) -> Extraction | None:
    far = _far_value(reader, reply, at)
    return far if far or cue.word in CUES_ENGLISH else _foreign_value(reader, reply, cue.end)


def _strange_value(reader: Reader, reply: Reply, slot: Slot) -> Extraction | None:
    """A capital that was not offered is an answer, but no valid one."""
    if not (slot.bound and reader.letters and _STRANGER.match(reply.body, slot.at)):
        return None
    return Extraction(None, "cue", NOT_OFFERED, (slot.at + reply.offset, slot.at + 1 + reply.offset))


def _denied(low: str, at: int, text: Mention | None) -> bool:
    """Whether `not` or its like follows the link, and is not itself the option `no`."""
    return NOT_AFTER.match(low, at) is not None and (text is None or not _ENDS.match(low, text.end))


def _takes_text(low: str, cue: Cue) -> bool:
    """Whether even an option text after the cue is the answer: always, but for option nouns only when praised (`the correct option`)."""
    praised = (
        low[max(0, cue.start - 9) : cue.start]
        .rstrip()
        .endswith(("correct", "right", "best", "final", "only", "remaining"))
    )
    return praised or cue.kind != "option"


def _wordy(reply: Reply, label: re.Match[str]) -> bool:
    """Whether the label may be an article: a lone A, or any lower-case letter, followed by a word."""
    mark = label.group(1)
    return (mark in {"A", "I"} or mark.islower()) and reply.low[label.end() : label.end() + 1].isspace()


def _label_value(reader: Reader, reply: Reply, label: re.Match[str], bound: bool) -> Extraction | None:
    index, end, low = reader.by_mark[label.group(1).lower()], label.end(), reply.low
    if (
        not _fits(reader, reply, label, bound)
        or DENIED_AFTER.match(low, end, end + 120)
        or _heads_list(reader, reply, label)
    ):
        return None
    found = reader.found(reply, index, "cue", label.start(1), label.end(1))
    if _OPEN_END.match(low, end):
        return Extraction(None, "cue", TRUNCATED, found.span)
    return Extraction(None, "cue", AMBIGUOUS, found.span) if _coordinated(reader, reply, index, end) else found


def _fits(reader: Reader, reply: Reply, label: re.Match[str], bound: bool) -> bool:
    """Whether what follows the label lets it be one: `answer B would …` without a link, or an article, does not."""
    low, end = reply.low, label.end()
    if bound and not _wordy(reply, label):
        return True
    if _VERB_AFTER.match(low, end):
        return bound
    return _ENDS.match(low, end) is not None or _own_text(reader, low, reader.by_mark[label.group(1).lower()], end)


def _own_text(reader: Reader, low: str, index: int, end: int) -> bool:
    own = reader.texts.plain[index]
    return bool(own) and own in low[end : end + len(own) + 8]


def _heads_list(reader: Reader, reply: Reply, label: re.Match[str]) -> bool:
    """Whether the label heads a list of options (`Choices:\\nA. …\\nB. …`)."""
    at = reply.body.rfind("\n", 0, label.start())
    if at < 0 or not reader.item.match(reply.body, at):
        return False
    following = reader.item.search(reply.body, label.end(), label.end() + 400)
    return following is not None and following.group(1).lower() != label.group(1).lower()


def _coordinated(reader: Reader, reply: Reply, index: int, end: int) -> bool:
    """Whether another option is joined on (`B or C`), so that none is chosen."""
    match = reader.joined.match(reply.body, end)
    if match is None:
        return False
    other = reader.by_mark[(match.group("second") or match.group("wrapped")).lower()]
    if other == index or DENIED_AFTER.match(reply.low, match.end(), match.end() + 80):
        return False
    either = match.group("join") not in {",", "and", "&", "、"}
    return either or not _VERB_AFTER.match(reply.low, match.end())


def _text_value(reader: Reader, reply: Reply, text: Mention) -> Extraction | None:
    low = reply.low
    if DENIED_AFTER.match(low, text.end, text.end + 120):
        return None
    join = _TEXT_JOIN.match(low, text.end)
    other = reader.texts.at(low, join.end()) if join else None
    if other is not None and other.index != text.index:
        return Extraction(None, "cue_text", AMBIGUOUS)
    return reader.found(reply, text.index, "cue_text", text.start, text.end)


def _far_value(reader: Reader, reply: Reply, at: int) -> Extraction | None:
    """Look for `… is B` further on in the sentence of the cue."""
    stop = _STOP.search(reply.body, at, at + 140)
    match = reader.far.search(reply.body, at, stop.start() if stop else at + 140)
    if match is None or not reader.letters or _DENIES.search(reply.low, at, match.start(1)):
        return None
    label = reader.label.match(reply.body, match.start(1))
    return _label_value(reader, reply, label, True) if label else None


def _foreign_value(reader: Reader, reply: Reply, at: int) -> Extraction | None:
    """Look past a few words of a language whose copulas are not known, none of them a negation, for a capital that ends the clause."""
    match = _FEW_WORDS.match(reply.low, at)
    label = (
        reader.label.match(reply.body, match.end())
        if match and not NEGATION.search(reply.low, at, match.end())
        else None
    )
    return (
        _label_value(reader, reply, label, True)
        if label and label.group(1).isupper() and _ENDS.match(reply.low, label.end())
        else None
    )


def corrected(reader: Reader, reply: Reply, verdict: Extraction) -> Extraction:
    """Let a self-correction after the cue overrule it."""
    end = verdict.span[1] - reply.offset if verdict.span else len(reply.low)
    if len(reply.low) - end <= _SHORTEST_TURN:
        return verdict
    turn = CORRECTION.search(reply.low, end)
    if turn is None:
        return _settled(reader, reply, verdict, end)
    later = _named_after(reader, reply, turn.end())
    chosen = agreed([mention for mention in later if mention.affirmed] or later)
    if chosen is not None:
        return reader.found(reply, chosen.index, "self_correction", chosen.start, chosen.end)
    return (
        Extraction(None, "self_correction", AMBIGUOUS)
        if not later and WITHDRAWN.search(reply.low, turn.start())
        else verdict
    )


def _named_after(reader: Reader, reply: Reply, start: int) -> list[Mention]:
    """Return what a self-correction may turn to: labels that stand alone, and option texts that are affirmed."""
    labels = [mention for mention in label_mentions(reader, reply, start) if mention.alone and not mention.asked]
    texts = [mention for mention in text_mentions(reader, reply, start) if mention.alone]
    return labels + [mention for mention in texts if mention.affirmed or mention.start - start <= 6]


def _settled(reader: Reader, reply: Reply, verdict: Extraction, start: int) -> Extraction:
    """After `A or D`, take a later, affirmed `so D`."""
    if verdict.reason != AMBIGUOUS:
        return verdict
    later = agreed(
        [mention for mention in label_mentions(reader, reply, start) if mention.sure and mention.start > start + 8]
    )
    return reader.found(reply, later.index, "affirmed", later.start, later.end) if later else verdict
