"""Rules for replies without a cue: refusals, affirmed or lone labels, elimination, option texts, ordinals; else abstain with a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .mentions import label_mentions, text_mentions
from .option_text import NONE_SAID
from .polarity import Mention, judge
from .reader import Reader, Reply
from .verdict import AMBIGUOUS, NOT_OFFERED, REFUSED, TRUNCATED, UNPARSED, Extraction
from .words import CORRECTION, REFUSAL, STILL, UNDECIDABLE

_CONCLUDES = re.compile(r"(?:(?<!\w)(?:so|hence|therefore|thus|total|totals|totaling|altogether|equals?|gives|in all|overall|makes?|conclude)|[=→⇒]|因此|所以)[^.\n;]{0,30}\Z")
_YES = re.compile(r"\W*(yes|no|yeah|yep|nope|是的?|不是|否|はい|いいえ|네|아니요|s[ií]|oui|non|ja|nein|да|нет)(?!\w)(?!\s+(?:doubt|question|problem|and no|or no))")
_SAID_YES = re.compile(r"(?<!\w)(?:say|says|be|is|answer|with|:)\W{1,4}(yes|no)(?=\W*\Z|[.,;!\n])")
_YES_WORDS = frozenset("yes yeah yep 是 是的 はい 네 si sí oui ja да".split())


def refusal(reader: Reader, reply: Reply) -> Extraction | None:
    """The reply declines to answer, and nothing after it chooses all the same."""
    match = REFUSAL.search(reply.low)
    if match is None:
        return None
    texts = reader.texts
    if texts.undecidable is not None and UNDECIDABLE.search(reply.low):
        return reader.found(reply, texts.undecidable, "undecidable", match.start(), match.end())
    turn = STILL.search(reply.low, match.end())
    if turn:
        chosen = _affirmed(label_mentions(reader, reply, turn.start())) or _affirmed(text_mentions(reader, reply, turn.start()))
        if chosen is not None:
            return reader.found(reply, chosen.index, "affirmed", chosen.start, chosen.end)
    return Extraction(None, "refusal", REFUSED, (match.start() + reply.offset, match.end() + reply.offset))


def cut_off(reader: Reader, reply: Reply) -> Extraction | None:
    """Generation hit the token limit before any clear answer: whatever follows would be a guess."""
    return Extraction(None, "cut_off", TRUNCATED) if reply.cut else None


def affirmed(reader: Reader, reply: Reply) -> Extraction | None:
    """The last label that the sentence around it affirms (`hence B`, `it's B`, `B fits best`, `only D remains`)."""
    chosen = _affirmed(label_mentions(reader, reply))
    if chosen is None or _spoken_against(reader, reply, chosen):
        return None
    return reader.found(reply, chosen.index, "affirmed", chosen.start, chosen.end)


def _affirmed(mentions: Sequence[Mention]) -> Mention | None:
    sure = [mention for mention in mentions if mention.stands and mention.affirmed and not mention.joined and not mention.asked and not mention.tentative]
    return sure[-1] if sure else None


def _spoken_against(reader: Reader, reply: Reply, chosen: Mention) -> bool:
    """Whether a later label stands that is neither denied, tentative nor the same, with a correction in between."""
    turn = CORRECTION.search(reply.low, chosen.end)
    return turn is not None and any(m.stands and m.index != chosen.index and not m.joined for m in label_mentions(reader, reply, turn.end()))


def yes_no(reader: Reader, reply: Reply) -> Extraction | None:
    """Options are yes and no, and the reply opens with one of them."""
    if not reader.texts.yesno:
        return None
    match = _YES.match(reply.low) or _SAID_YES.search(reply.low)
    if match is None:
        return None
    index = reader.texts.by_text.get("yes" if match.group(1) in _YES_WORDS else "no")
    return reader.found(reply, index, "yes_no", match.start(1), match.end(1)) if index is not None else None


def none_of_above(reader: Reader, reply: Reply) -> Extraction | None:
    """The reply says that no option fits: the option for that if there is one, else no valid answer."""
    match = NONE_SAID.search(reply.low)
    if match is None or reply.low.startswith(" other", match.end()):
        return None
    if reader.texts.none is not None:
        return reader.found(reply, reader.texts.none, "none_of_above", match.start(), match.end())
    if any(mention.stands and not mention.joined for mention in label_mentions(reader, reply)):
        return None
    return Extraction(None, "none_of_above", NOT_OFFERED, (match.start() + reply.offset, match.end() + reply.offset))


def lone_label(reader: Reader, reply: Reply) -> Extraction | None:
    """Exactly one label stands undenied, after the last self-correction if there is one, and no option text contradicts it."""
    mentions = label_mentions(reader, reply)
    for turn in reversed(list(CORRECTION.finditer(reply.low))[-4:]):
        later = [mention for mention in mentions if mention.start >= turn.end()]
        if any(mention.stands for mention in later):
            mentions = later
            break
    standing = [mention for mention in mentions if mention.stands]
    if len({mention.index for mention in standing}) != 1 or _tells_otherwise(reader, reply, standing[-1].index):
        return None
    return reader.found(reply, standing[-1].index, "lone_label", standing[-1].start, standing[-1].end)


def _tells_otherwise(reader: Reader, reply: Reply, index: int) -> bool:
    standing = {mention.index for mention in text_mentions(reader, reply) if mention.stands}
    return bool(standing) and index not in standing


def elimination(reader: Reader, reply: Reply) -> Extraction | None:
    """All options but one are denied, by label or by text."""
    for mentions in (label_mentions(reader, reply), text_mentions(reader, reply)):
        denied = {mention.index for mention in mentions if mention.denied}
        standing = {mention.index for mention in mentions if mention.stands} - denied
        left = set(range(len(reader.marks))) - denied
        if denied and len(left) == 1 and standing <= left:
            last = mentions[-1]
            return reader.found(reply, left.pop(), "elimination", last.start, last.end)
    return None


def option_text(reader: Reader, reply: Reply) -> Extraction | None:
    """Exactly one option text stands undenied in the reply, or the last one is a conclusion."""
    return _by_text(reader, reply, text_mentions(reader, reply), "option_text")


def by_value(reader: Reader, reply: Reply) -> Extraction | None:
    """Options are numbers, and the reply states one of them in other clothes (`$1,200` for `1200`)."""
    mentions = reader.texts.by_value(reply.low[-2000:]) if not text_mentions(reader, reply) else []
    judge(reply.low[-2000:], mentions)
    verdict = _by_text(reader, Reply(reply.body[-2000:], reply.offset + max(0, len(reply.low) - 2000)), mentions, "by_value")
    return verdict


def _by_text(reader: Reader, reply: Reply, mentions: list[Mention], rule: str) -> Extraction | None:
    standing = [mention for mention in mentions if mention.stands]
    if not standing or any(m.stands and m.index not in {s.index for s in standing} for m in reply.labels or ()):
        return None
    turns = [turn.end() for turn in CORRECTION.finditer(reply.low)]
    later = [mention for mention in standing if turns and mention.start >= turns[-1]]
    pool = later or standing
    if len({mention.index for mention in pool}) > 1:
        pool = [m for m in pool if not m.joined and not m.asked and _CONCLUDES.search(reply.low, max(0, m.start - 40), m.start)][-1:]
    if len({mention.index for mention in pool}) != 1:
        return None
    return reader.found(reply, pool[-1].index, rule, pool[-1].start, pool[-1].end)


def ordinal(reader: Reader, reply: Reply) -> Extraction | None:
    """Exactly one option is named by its place (`the second option`, `option 2`, `第二个选项`) and not denied."""
    mentions = list(reader.texts.ordinals(reply.low, len(reader.marks) - 1))[-40:]
    judge(reply.low, mentions)
    standing = [mention for mention in mentions if mention.stands]
    if len({mention.index for mention in standing}) != 1:
        return None
    return reader.found(reply, standing[-1].index, "ordinal", standing[-1].start, standing[-1].end)


def abstain(reader: Reader, reply: Reply) -> Extraction:
    """No rule decided: say whether there was nothing to read or too much."""
    labels = {mention.index for mention in label_mentions(reader, reply) if not mention.denied}
    texts = {mention.index for mention in text_mentions(reader, reply) if not mention.denied}
    return Extraction(None, "abstain", AMBIGUOUS if len(labels) > 1 or len(texts) > 1 or (labels and texts) else UNPARSED)
