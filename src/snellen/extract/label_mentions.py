"""A reply to the places where a mark is used as a label: articles, pronouns, names and variables are left out."""

from __future__ import annotations

import re

from .cue_words import INTRODUCES
from .option_set import Reader, Reply
from .polarity import AFFIRMED_AFTER, AFFIRMED_BEFORE, DENIED_AFTER, Mention, judge

_MOST_MENTIONS = 80
_FARTHEST = 8000
"""Without a cue, only so many characters at the end of a reply are weighed: a bound on time, and on patience."""

_AFTER_ARTICLE = re.compile(
    r"\s+(?:is|was|are|because|since|and|or|but|seems|fits|matches|would|does|cannot|can't|remains|looks|appears|"
    r"has|shows|isn't|doesn't|nor|as|over|the|wins|it|can be|could|should|must|contradicts|no|yes|maybe|perhaps|possibly|probably|"
    r"perché|porque|parce|weil|denn|pois|omdat|est|ist|es)(?!\w)|\s*(?:[^\w\s]|\Z|\n)|[^\x00-\x7f]|"
    r"\s+[\u0370-\u0dff\u2e80-\uffff]"
)
_AFTER_LABEL = re.compile(
    r"\s+(?:is|was|are|were|because|since|and|or|but|seems|fits|matches|would|does|cannot|can't|can|could|should|"
    r"must|will|remains|looks|appears|has|have|shows|isn't|doesn't|nor|as|over|the|that|"
    r"this|which|it|here|given|based|due|with|if|for|from|by|then|not|instead|rather|best|only|in|on|at|to|works|"
    r"no|yes|maybe|perhaps|possibly|probably|wins|holds|applies|means|describes|contains|says|states|correctly|makes|most|also|too|though|however|"
    r"est|ist|es|parce|porque|weil|da|car|perché|потому|stimmt|है|look|seem|fit|match|show|appear)(?!\w)|\s+[\u0370-\u0dff]|\s*(?:[^\w\s]|\Z|\n)|[\u2e80-\uffff]|"
    r"\s+[\u2e80-\uffff]|\s+\d{1,2}[.):]|"
    r"\s+[a-z]{3,14}[^s\W]s\s(?:as|the|an?|all|to|this|it|with|in|on|for|how|what|why|both|no|only|up|out|its|their|from)(?!\w)"
)
_WORD_BEFORE = re.compile(r"([a-z\u00c0-\u024f\u0400-\u052f']+)\.?\s+[(\[\"'*_`]*\Z")
_BEFORE_LABEL_TEXT = (
    "is|be|are|was|were|been|that|go|recommends|recommend|option|options|choice|choices|answer|answers|letter|letters|say|says|said|think|thought|"
    "believe|guess|so|thus|hence|therefore|then|choose|pick|select|with|for|or|and|not|nor|neither|either|just|"
    "definitely|clearly|probably|mostly|mainly|primarily|maybe|likely|actually|only|leaving|leaves|remains|to|as|that's|it's|i'd|than|but|"
    "both|between|label|labelled|labeled|marked|tick|circle|mean|means|meant|would|rather|instead|of|out|except|eliminate|"
    "reject|exclude|excluding|conclude|correct|right|best|final|unlike|discard|suggest|suggests|get|got|indicates|"
    "indicate|gives|give|yields|yield|see|favour|favours|favor|supports|support|prefer|reads|towards|toward|statement|"
    "statements|caption|sentence|indeed|namely|i'm|versus|vs|isn't|simply|perhaps|possibly|surely|certainly|obviously|"
    "must|this|if|because|since|while|whereas|matches|confirms|la|le|el|es|est|ist|die|das|der|los|ou|o|y|et|und|oder|opción|lettre|"
    "letra|buchstabe|c'est|donc|dass|sondern|sino|bensì|mas|maar|utan|è|а|но|also|não|é|sera|dirais|diría|diria|direi|pense|creo|penso|acho|glaube|denke|que|pas|nicht|не|ответ|вариант|это|или|и"
)
_BEFORE_LABEL = frozenset(_BEFORE_LABEL_TEXT.split("|"))
_ABBREVIATED = (
    "mr.",
    "mrs.",
    "ms.",
    "dr.",
    "prof.",
    "st.",
    "fig.",
    "vol.",
    "sec.",
    "ch.",
    "eq.",
    "tab.",
    "app.",
    "pt.",
)
_JOINS_LABELS = frozenset(
    [
        "and",
        "or",
        "nor",
        "option",
        "options",
        "choice",
        "choices",
        "except",
        "excluding",
        "eliminate",
        "reject",
        "either",
        "neither",
    ]
)
"""After these a capital is a label even before an unknown word: `A and B look alike` names two."""
_NOUNS = frozenset(["option", "choice"])
_INITIAL = re.compile(r"(?<![A-Za-z])[A-Z]\.\s?\Z")
_OPENS = frozenset("\"'*_`“「【《")
_CLOSES = frozenset("\"'*_`”」】》.:)")
_PRONOUN = re.compile(r"\s+(?:is|because|since|seems|fits|matches|remains)(?!\w)|\s*(?:[^\w\s]|\Z|\n)|[^\x00-\x7f]")
_EXAMINED = re.compile(
    r"(?<!\w)(?:examin(?:e|ing)|consider(?:ing)?|analy[sz](?:e|ing)|evaluat(?:e|ing)|check(?:ing)?|think(?:ing)? about|discuss(?:ing)?|"
    r"turn(?:ing)? to|focus(?:ing)? on|look(?:ing)? at|start(?:ing)? with|begin with|compar(?:e|ing)|regarding|as for|closer at|"
    r"(?:suppose|whether)(?: it's| it is| that)?|(?:students|people|news|experts|critics|everyone|someone|readers|others|some|many|most|"
    r"users|models|they|he|"
    r"she)\s(?:\w{1,9}\s){0,2}"
    r"(?:choose|chose|pick|select|answer|say|think|guess)(?: it's| it is| that)?)\s(?:the )?(?:option |choice |answer )?[(\[\"'*]*\Z"
)
"""The label is looked into, or chosen by somebody else, which says nothing of the verdict."""
_TICK = re.compile(r"[✓✔✅☑]|[(\[:|→–—-]\s?(?:correct|right|yes|true)(?:\s(?:answer|option|choice))?[)\].!|*_\s]*\Z")

_AFTER_BY_MARK = {"A": _AFTER_ARTICLE, "I": _PRONOUN}


def label_mentions(reader: Reader, reply: Reply, start: int = 0) -> list[Mention]:
    """Return judged mentions of marks from `start` on (at most the last 80), plain articles and names left out."""
    if start == 0 and reply.labels is not None:
        return reply.labels
    mentions = find_labels(reader, reply, max(start, len(reply.low) - _FARTHEST))[-_MOST_MENTIONS:]
    judge(reply.low, mentions)
    for mention in mentions:
        mention.listed |= _EXAMINED.search(reply.low, max(0, mention.start - 56), mention.start) is not None
    _ticked(reply.low, [mention for mention in mentions if mention.listed])
    if start == 0:
        reply.labels = mentions
    return mentions


def text_mentions(reader: Reader, reply: Reply, start: int = 0) -> list[Mention]:
    """Return judged mentions of option texts from `start` on (at most the last 80)."""
    if start == 0 and reply.texts is not None:
        return reply.texts
    mentions = reader.texts.find(reply.low, max(start, len(reply.low) - _FARTHEST))[-_MOST_MENTIONS:]
    judge(reply.low, mentions)
    if mentions and "\n" in reply.low:
        items = _items(reader, reply)
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
        found = {match.start(1): match for match in reader.lower.finditer(reply.low, start) if _named(reply.low, match)}
    items = _items(reader, reply)
    return [
        Mention(reader.by_mark[match.group(1).lower()], at, match.end(1), listed=at in items)
        for at, match in sorted(found.items())
    ]


def _named(low: str, match: re.Match[str]) -> bool:
    """Whether it reads `so d` or `option d is correct`: even a small letter is a label where it is affirmed or called one."""
    if AFFIRMED_BEFORE.search(low, 0, match.start(1)):
        return True
    before = low[: match.start(1)].strip()
    called = before.endswith(("option", "choice", "answer", "letter"))
    return (called and match.end() == len(low)) or (
        (called or not before) and AFFIRMED_AFTER.match(low, match.end(1)) is not None
    )


def _items(reader: Reader, reply: Reply) -> set[int]:
    """Return where marks head the lines of a list (`A. …` then `B. …`): such a list names options, it does not choose."""
    if "\n" not in reply.low:
        return set()
    heads = {
        match.start(1): match.group(1).lower()
        for match in reader.item.finditer(reply.body, max(0, len(reply.low) - _FARTHEST))
    }
    first = reader.item.match("\n" + reply.body[:16])
    if first:
        heads[first.start(1) - 1] = first.group(1).lower()
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
    before = (
        low[max(0, low.rfind("\n", 0, at)) : at] and low[max(0, at - 240) : max(0, low.rfind("\n", 0, at))].rstrip()
    )
    before = before[before.rfind("\n") + 1 :]
    return len(before) < 200 and any(word in before for word in INTRODUCES)


def _plausible(reply: Reply, start: int, end: int) -> bool:
    """Whether a capital at this place is a label: quoted, or with fitting words on both sides."""
    body, low = reply.body, reply.low
    if body[start - 1 : start] in _OPENS and body[end : end + 1] in _CLOSES:
        return True
    if body[end : end + 1] == "." and _INITIAL.search(body, max(0, start - 3), start):
        return False
    word = _word_before(low, start)
    after = _AFTER_BY_MARK.get(body[start:end], _AFTER_LABEL)
    if after.match(low, end) is None:
        return word in (_JOINS_LABELS if after is _AFTER_LABEL else _NOUNS)
    return not word or word in _BEFORE_LABEL or _said_of(low, word, end) or _sentence_start(low, start)


def _word_before(low: str, start: int) -> str:
    before = _WORD_BEFORE.search(low, max(0, start - 24), start)
    return before.group(1) if before else ""


def _said_of(low: str, word: str, end: int) -> bool:
    """Whether it reads `in B is true`: after `in`, a label is one only if something is said of it."""
    if word != "in":
        return False
    return AFFIRMED_AFTER.match(low, end, end + 80) is not None or DENIED_AFTER.match(low, end, end + 80) is not None


def _sentence_start(low: str, start: int) -> bool:
    """Whether only space and decoration stand between the last sentence end and `start`."""
    gap = low[max(0, start - 6) : start].rstrip(" *_`(\"'")
    if gap.endswith(_ABBREVIATED):
        return False
    return not gap or gap[-1] in ".!?:;\n—–"
