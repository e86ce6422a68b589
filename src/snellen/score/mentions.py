"""A reply to the places where a mark is used as a label: articles, pronouns, names and variables are left out."""

from __future__ import annotations

import re

from .polarity import AFFIRMED_AFTER, AFFIRMED_BEFORE, DENIED_AFTER, Mention, judge
from .reader import Reader, Reply

_MOST_MENTIONS = 80

_AFTER_ARTICLE = re.compile(r"\s+(?:is|was|are|because|since|and|or|but|seems|fits|matches|would|does|cannot|can't|remains|looks|appears|has|shows|isn't|doesn't|nor|as|over|the|wins|it|est|ist|es)(?!\w)|\s*(?:[^\w\s]|\Z|\n)|[^\x00-\x7f]|\s+[\u2e80-\uffff]")
_AFTER_LABEL = re.compile(
    r"\s+(?:is|was|are|were|because|since|and|or|but|seems|fits|matches|would|does|cannot|can't|can|could|should|must|will|remains|looks|appears|has|have|shows|isn't|doesn't|nor|as|over|the|that|"
    r"this|which|it|here|given|based|due|with|if|for|from|by|then|not|instead|rather|best|only|in|on|at|to|works|wins|means|describes|contains|says|states|correctly|makes|most|also|too|though|however|"
    r"est|ist|es|parce|porque|weil|da|car|perché|потому|है)(?!\w)|\s*(?:[^\w\s]|\Z|\n)|[\u2e80-\uffff]|\s+[\u2e80-\uffff]"
)
_WORD_BEFORE = re.compile(r"([a-z\u00c0-\u024f\u0400-\u052f']+)\.?\s+[(\[\"'*_`]*\Z")
_BEFORE_LABEL = frozenset(
    "is be are was were been option options choice choices answer answers letter letters say says said think thought believe guess so thus hence therefore then choose pick "
    "select with for or and not nor neither either just definitely clearly probably maybe likely actually only leaving leaves remains to as that's it's i'd than but both between "
    "label labelled labeled marked tick circle mean means would rather instead of out except eliminate reject exclude excluding conclude correct right best final unlike "
    "discard suggest suggests get got indicates indicate gives give yields yield see favour favours favor supports support prefer reads towards toward statement statements caption sentence indeed namely i'm versus vs was isn't simply perhaps possibly surely certainly obviously must this if because since while whereas "
    "la le el es est ist die das der los ou o y et und oder opción lettre letra buchstabe c'est donc also não não é sera pas nicht не ответ вариант это или и".split()
)
_PRONOUN = re.compile(r"\s+(?:is|because|since|seems|fits|matches|remains)(?!\w)|\s*(?:[^\w\s]|\Z|\n)|[^\x00-\x7f]")
_TICK = re.compile(r"[✓✔✅☑]|[(\[:–—-]\s?(?:correct|right|yes|true)(?:\s(?:answer|option|choice))?[)\].!]*\s*\Z")
_INTRODUCES = ("option", "choice", "each", "analy", "consider", "let me", "let's", "following", "选项", "分析")

_AFTER_BY_MARK = {"A": _AFTER_ARTICLE, "I": _PRONOUN}


def label_mentions(reader: Reader, reply: Reply, start: int = 0) -> list[Mention]:
    """Return judged mentions of marks from `start` on (at most the last 80), plain articles and names left out."""
    if start == 0 and reply.labels is not None:
        return reply.labels
    mentions = find_labels(reader, reply, start)[-_MOST_MENTIONS:]
    judge(reply.low, mentions)
    _ticked(reply.low, [mention for mention in mentions if mention.listed])
    if start == 0:
        reply.labels = mentions
    return mentions


def text_mentions(reader: Reader, reply: Reply, start: int = 0) -> list[Mention]:
    """Return judged mentions of option texts from `start` on (at most the last 80)."""
    if start == 0 and reply.texts is not None:
        return reply.texts
    mentions = reader.texts.find(reply.low, start)[-_MOST_MENTIONS:]
    judge(reply.low, mentions)
    if mentions and "\n" in reply.low:
        items = _items(reader, reply, start)
        for mention in mentions:
            mention.listed = any(at in items for at in range(mention.start - 7, mention.start))
    if start == 0:
        reply.texts = mentions
    return mentions


def find_labels(reader: Reader, reply: Reply, start: int) -> list[Mention]:
    """Return mentions of marks in order, each one plausible as a label; numbers count only when wrapped."""
    wrapped = {match.start(1): match for match in reader.wrapped.finditer(reply.body, start)}
    found = dict(wrapped)
    if reader.letters:
        for match in reader.mention.finditer(reply.body, start):
            if match.start(1) not in found and _plausible(reply, match.start(1), match.end(1)):
                found[match.start(1)] = match
    if not found and len(reply.body) <= 80:
        found = {match.start(1): match for match in reader.lower.finditer(reply.low, start) if AFFIRMED_BEFORE.search(reply.low, 0, match.start(1))}
    items = _items(reader, reply, start)
    return [Mention(reader.by_mark[match.group(1).lower()], at, match.end(1), listed=at in items) for at, match in sorted(found.items())]


def _items(reader: Reader, reply: Reply, start: int) -> set[int]:
    """Return where marks head the lines of a list (`A. …` then `B. …`): such a list names options, it does not choose."""
    heads = {match.start(1): match.group(1).lower() for match in reader.item.finditer(reply.body, start)}
    if len(set(heads.values())) > 1 or any(_introduced(reply.low, at) for at in heads):
        return set(heads)
    return set()


def _ticked(low: str, items: list[Mention]) -> None:
    """Take the one item of a list that its line marks as correct out of the list."""
    ticked = [item for item in items if _TICK.search(low, item.end, _line_end(low, item.end))]
    if len(ticked) == 1:
        ticked[0].listed, ticked[0].affirmed, ticked[0].denied = False, True, False


def _line_end(low: str, start: int) -> int:
    end = low.find("\n", start, start + 200)
    return end if end >= 0 else min(len(low), start + 200)


def _introduced(low: str, at: int) -> bool:
    """Whether the line before speaks of the options: then a single item is the start of a list that was cut off."""
    end = low.rfind("\n", 0, at)
    before = low[low.rfind("\n", 0, end) + 1 : end] if end > 0 else ""
    return len(before) < 200 and any(word in before for word in _INTRODUCES)


def _plausible(reply: Reply, start: int, end: int) -> bool:
    body, low = reply.body, reply.low
    quoted = start > 0 and body[start - 1] in "\"'*_`“「【《" and end < len(body) and body[end] in "\"'*_`”」】》.:)"
    if quoted:
        return True
    after = _AFTER_BY_MARK.get(body[start:end], _AFTER_LABEL)
    if after.match(low, end) is None:
        return False
    before = _WORD_BEFORE.search(low, max(0, start - 24), start)
    if before is None or before.group(1) in _BEFORE_LABEL:
        return True
    if before.group(1) == "in":
        return AFFIRMED_AFTER.match(low, end, end + 80) is not None or DENIED_AFTER.match(low, end, end + 80) is not None
    return _sentence_start(low, start)


def _sentence_start(low: str, start: int) -> bool:
    """Whether only space and decoration stand between the last sentence end and `start`."""
    gap = low[max(0, start - 6) : start].rstrip(" *_`(\"'")
    return not gap or gap[-1] in ".!?:;\n—–"
