"""A reply to the places where a mark is used as a label: articles, pronouns, names and variables are left out."""

from __future__ import annotations

import re

from .polarity import Mention, judge
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
    "discard indeed namely i'm versus vs was isn't simply perhaps possibly surely certainly obviously must this if because since while whereas "
    "la le el es est ist die das der los ou o y et und oder opción lettre letra buchstabe c'est donc also não não é sera pas nicht не ответ вариант это или и".split()
)
_ARTICLES = frozenset("AI")


def label_mentions(reader: Reader, reply: Reply, start: int = 0) -> list[Mention]:
    """Return judged mentions of marks from `start` on (at most the last 80), plain articles and names left out."""
    if start == 0 and reply.labels is not None:
        return reply.labels
    mentions = find_labels(reader, reply, start)[-_MOST_MENTIONS:]
    judge(reply.low, mentions)
    if start == 0:
        reply.labels = mentions
    return mentions


def text_mentions(reader: Reader, reply: Reply, start: int = 0) -> list[Mention]:
    """Return judged mentions of option texts from `start` on (at most the last 80)."""
    if start == 0 and reply.texts is not None:
        return reply.texts
    mentions = reader.texts.find(reply.low, start)[-_MOST_MENTIONS:]
    judge(reply.low, mentions)
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
    items = _items(reader, reply, start)
    mentions = [Mention(reader.by_mark[match.group(1).lower()], at, match.end(1), listed=at in items) for at, match in sorted(found.items())]
    return mentions


def _items(reader: Reader, reply: Reply, start: int) -> set[int]:
    """Return where marks head the lines of a list (`A. …` then `B. …`): such a list names options, it does not choose."""
    heads = {match.start(1): match.group(1).lower() for match in reader.item.finditer(reply.body, start)}
    return set(heads) if len(set(heads.values())) > 1 else set()


def _plausible(reply: Reply, start: int, end: int) -> bool:
    body, low = reply.body, reply.low
    quoted = start > 0 and body[start - 1] in "\"'*_`“「【《" and end < len(body) and body[end] in "\"'*_`”」】》.:)"
    if quoted:
        return True
    after = _AFTER_ARTICLE if body[start:end] in _ARTICLES else _AFTER_LABEL
    if after.match(low, end) is None:
        return False
    before = _WORD_BEFORE.search(low, max(0, start - 24), start)
    if before is None or before.group(1) in _BEFORE_LABEL:
        return True
    return _sentence_start(low, start)


def _sentence_start(low: str, start: int) -> bool:
    """Whether only space and decoration stand between the last sentence end and `start`."""
    gap = low[max(0, start - 6) : start].rstrip(" *_`(\"'")
    return not gap or gap[-1] in ".!?:;\n—–"
