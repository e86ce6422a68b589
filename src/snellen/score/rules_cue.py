"""Rules for replies that point at their answer: `the answer is B`, `答案是B`, `I choose (c)`; the last one not denied wins."""

from __future__ import annotations

import re

from .mentions import label_mentions, text_mentions
from .polarity import DENIED_AFTER, Mention
from .reader import Reader, Reply
from .verdict import AMBIGUOUS, NOT_OFFERED, TRUNCATED, Extraction
from .words import BINDER, CORRECTION, CUE, CUE_ASCII, DOUBT, DOUBT_CLAUSE, LINK, NOT_AFTER, VERB_DENIED, VERB_SUBJECT, WITHDRAWN

_TAIL = 480
_MOST_CUES = 60
_QUESTION = re.compile(r"[)\]}\"'*_`\s]*\?")
_ENDS = re.compile(r"[)\]}\"'*_`$\s]*(?:[.,;:!?)\]}\n。，、；）—–-]|\Z|because|since|as |given|due|\(|and |but |which |is the|it is)|[^\x00-\x7f]")
_VERB_AFTER = re.compile(r"[)\]}\"'*_`]*\s(?:is|was|are|does|has|would|can|cannot|could|shows|isn't|doesn't|looks|seems|had|were|will)(?!\w)")
_STOP = re.compile(r"[.;!?\n。；！？]")
_STRANGER = re.compile(r"[A-Z](?=[)\]}\"'*_`$]*\s*(?:[.,;:!?\n]|\Z))")


def cue(reader: Reader, reply: Reply) -> Extraction | None:
    """Read the last cue that names an option; the end of a long reply is read first."""
    size = len(reply.low)
    if size > 2 * _TAIL:
        begin = size - _TAIL
        verdict = _last_cue(reader, reply, begin)
        if verdict is not None:
            return verdict
    return _last_cue(reader, reply, 0)


def _last_cue(reader: Reader, reply: Reply, begin: int) -> Extraction | None:
    low = reply.low
    cues = list((CUE_ASCII if low.isascii() else CUE).finditer(low, begin))
    asked: Extraction | None = None
    for match in reversed(cues[-_MOST_CUES:]):
        if _inside_word(low, match) or _doubted(low, match):
            continue
        verdict = _value(reader, reply, match)
        if verdict is None:
            continue
        if verdict.span and verdict.letter and _QUESTION.match(low, verdict.span[1] - reply.offset):
            asked = asked or verdict
            continue
        return _corrected(reader, reply, verdict)
    return asked if asked and not _others(reader, reply, asked) else None


def _others(reader: Reader, reply: Reply, asked: Extraction) -> bool:
    """Whether an option other than the one only asked about stands undenied."""
    return any(mention.stands and reader.marks[mention.index] != asked.letter for mention in label_mentions(reader, reply))


def _inside_word(low: str, match: re.Match[str]) -> bool:
    """Whether the cue is part of a longer Latin word (`incorrect`, `answering`)."""
    start, end = match.span()
    before, after = low[start - 1 : start], low[end : end + 1]
    return ("a" <= before <= "ɏ" and before.isalpha()) or ("a" <= after <= "ɏ" and after.isalpha() and match.group()[-1] <= "ɏ")


def _doubted(low: str, match: re.Match[str]) -> bool:
    """Whether the words before the cue deny it, make it a condition, or give it to somebody else."""
    start = match.start()
    window = max(0, start - 64)
    if start and low[start - 1] in "不非没別别":
        return True
    if match.lastgroup == "verb" and match.group().isascii():
        return VERB_SUBJECT.search(low, max(0, start - 24), start) is None or VERB_DENIED.search(low, max(0, start - 40), start) is not None
    if DOUBT.search(low, max(0, start - 40), start):
        return True
    clause = window
    for stop in _STOP.finditer(low, window, start):
        clause = stop.end()
    return DOUBT_CLAUSE.search(low, clause, start) is not None


def _value(reader: Reader, reply: Reply, match: re.Match[str]) -> Extraction | None:
    """Read what stands after a cue."""
    low, kind = reply.low, match.lastgroup
    link = LINK.match(low, match.end())
    at = link.end() if link else match.end()
    bound = BINDER.search(low, match.end(), at) is not None or kind == "verb"
    if kind == "option" and not bound or match.group() == "correct" and not bound:
        return None
    if at >= len(low):
        return Extraction(None, "cue", TRUNCATED) if bound and low.rstrip()[-1:] not in {".", "*", ")", "!"} else None
    label = reader.label.match(reply.body, at)
    text = reader.texts.at(low, at) if kind != "option" or _adjective(low, match.start()) else None
    if NOT_AFTER.match(low, at) and (text is None or not _ENDS.match(low, text.end)):
        return None
    if label and (text is None or text.index == reader.by_mark[label.group(1).lower()] or not _wordy(reply, label)):
        return _label_value(reader, reply, label, bound)
    if text is not None and bound:
        return _text_value(reader, reply, text)
    if _STRANGER.match(reply.body, at) and bound and reader.letters:
        return Extraction(None, "cue", NOT_OFFERED, (at + reply.offset, at + 1 + reply.offset))
    return _far_value(reader, reply, at) if kind == "answer" else None


def _adjective(low: str, start: int) -> bool:
    """Whether an option noun is praised (`the correct option`), so that even a text after it is the answer."""
    return low[max(0, start - 9) : start].rstrip().endswith(("correct", "right", "best", "final", "only", "remaining"))


def _wordy(reply: Reply, label: re.Match[str]) -> bool:
    """Whether the label may be an article: a lone A, or any lower-case letter, followed by a word."""
    mark = label.group(1)
    return (mark in {"A", "I"} or mark.islower()) and reply.low[label.end() : label.end() + 1].isspace()


def _label_value(reader: Reader, reply: Reply, label: re.Match[str], bound: bool) -> Extraction | None:
    index, end, low = reader.by_mark[label.group(1).lower()], label.end(), reply.low
    wordy = _wordy(reply, label)
    if (wordy or not bound) and not _ENDS.match(low, end) and not _VERB_AFTER.match(low, end) and not _own_text(reader, low, index, end):
        return None
    if not bound and _VERB_AFTER.match(low, end):
        return None
    if DENIED_AFTER.match(low, end, end + 120) or _heads_list(reader, reply, label):
        return None
    if _coordinated(reader, reply, index, end):
        return Extraction(None, "cue", AMBIGUOUS, (label.start() + reply.offset, end + reply.offset))
    return reader.found(reply, index, "cue", label.start(1), label.end(1))


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
    join = re.compile(r"\s?(?:,\s?)?(?:or|and|/|oder|ou|o|y|或|和)\s?").match(low, text.end)
    other = reader.texts.at(low, join.end()) if join else None
    if other is not None and other.index != text.index:
        return Extraction(None, "cue_text", AMBIGUOUS)
    return reader.found(reply, text.index, "cue_text", text.start, text.end)


def _far_value(reader: Reader, reply: Reply, at: int) -> Extraction | None:
    """Look for `… is B` further on in the sentence of the cue."""
    stop = _STOP.search(reply.body, at, at + 140)
    match = reader.far.search(reply.body, at, stop.start() if stop else at + 140)
    if match is None or not reader.letters:
        return None
    label = reader.label.match(reply.body, match.start(1))
    return _label_value(reader, reply, label, True) if label else None


def _corrected(reader: Reader, reply: Reply, verdict: Extraction) -> Extraction:
    """Let a self-correction after the cue overrule it."""
    end = verdict.span[1] - reply.offset if verdict.span else len(reply.low)
    turn = CORRECTION.search(reply.low, end)
    if turn is None:
        return verdict if verdict.reason != AMBIGUOUS else _settled(reader, reply, end) or verdict
    later = [mention for mention in label_mentions(reader, reply, turn.end()) if mention.stands and not mention.joined and not mention.asked]
    later += [mention for mention in text_mentions(reader, reply, turn.end()) if mention.stands and mention.affirmed and not mention.joined]
    chosen = [mention for mention in later if mention.affirmed] or later
    if len({mention.index for mention in chosen}) == 1:
        return reader.found(reply, chosen[-1].index, "self_correction", chosen[-1].start, chosen[-1].end)
    return Extraction(None, "self_correction", AMBIGUOUS) if WITHDRAWN.search(reply.low, turn.end()) and not later else verdict


def _settled(reader: Reader, reply: Reply, start: int) -> Extraction | None:
    """After `A or D`, take a later, affirmed `so D`."""
    later = [m for m in label_mentions(reader, reply, start) if m.stands and m.affirmed and not m.joined and not m.tentative and m.start > start + 8]
    return reader.found(reply, later[-1].index, "affirmed", later[-1].start, later[-1].end) if len({m.index for m in later}) == 1 else None
