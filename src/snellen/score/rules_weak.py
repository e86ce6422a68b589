"""Rules for replies without a cue: refusals, affirmed or lone labels, elimination, option texts, ordinals; else abstain with a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .mentions import label_mentions, text_mentions
from .option_text import NONE_SAID
from .polarity import Mention, agreed, judge
from .reader import Reader, Reply
from .verdict import AMBIGUOUS, NOT_OFFERED, REFUSED, TRUNCATED, UNPARSED, Extraction
from .words import CORRECTION, REFUSAL, STILL, UNDECIDABLE

_TAIL = 160
_EDGE = 320
"""A long reply declines at its edges; `cannot tell` in the midst of reasoning is no refusal."""
_CONCLUDES = re.compile(
    r"(?:(?<!\w)(?:so|hence|therefore|thus|total|totals|totaling|altogether|equals?|gives|in all|overall|makes?|"
    r"conclude)|[=→⇒]|因此|所以)[^.\n;]{0,30}\Z"
)
_LIKENED = re.compile(
    r"(?<!\w)(?:although|though|like|unlike|resembl\w{1,4}|similar|mistak\w{1,4}|confus\w{1,4}|take it for|opposed|compared)(?!\w)"
)
_TURNED = re.compile(r"(?<!\w)(?:but|however|yet|though)(?!\w)")
_YES = re.compile(
    r"\W*(yes|no|yeah|yep|nope|是的?|不是|否|はい|いいえ|네|아니요|s[ií]|oui|non|ja|nein|да|нет)(?!\w)(?!\s+(?:doubt|question|"
    r"problem|and no|or no))"
)
_SAID_YES = re.compile(r"(?<!\w)(?:say|says|be|is|answer|with|:)\W{1,4}(yes|no)(?=\W*\Z|[.,;!\n])")
_YES_WORDS = frozenset(["yes", "yeah", "yep", "是", "是的", "はい", "네", "si", "sí", "oui", "ja", "да"])


def refusal(reader: Reader, reply: Reply) -> Extraction | None:
    """The reply declines to answer, and nothing after it chooses all the same."""
    match = _declines(reply.low)
    if match is None:
        return None
    if reader.texts.undecidable is not None and UNDECIDABLE.search(reply.low):
        return reader.found(reply, reader.texts.undecidable, "undecidable", match.start(), match.end())
    turn = STILL.search(reply.low, match.end())
    if turn:
        chosen = _affirmed(label_mentions(reader, reply, turn.start())) or _affirmed(text_mentions(reader, reply, turn.start()))
        if chosen is not None:
            return reader.found(reply, chosen.index, "affirmed", chosen.start, chosen.end)
    return Extraction(None, "refusal", REFUSED, (match.start() + reply.offset, match.end() + reply.offset))


def _declines(low: str) -> re.Match[str] | None:
    if len(low) <= 2 * _EDGE:
        return REFUSAL.search(low)
    return REFUSAL.search(low, len(low) - _EDGE) or REFUSAL.search(low, 0, _EDGE)


def cut_off(reader: Reader, reply: Reply) -> Extraction | None:
    """Generation hit the token limit before any clear answer: whatever follows would be a guess."""
    return Extraction(None, "cut_off", TRUNCATED) if reply.cut else None


def affirmed(reader: Reader, reply: Reply) -> Extraction | None:
    """The last label that the sentence around it affirms (`hence B`, `it's B`, `B fits best`, `only D remains`)."""
    tail = len(reply.low) - _TAIL
    chosen = (_affirmed(label_mentions(reader, reply, tail)) if tail > 0 else None) or _affirmed(label_mentions(reader, reply))
    if chosen is None or _spoken_against(reader, reply, chosen):
        return None
    return reader.found(reply, chosen.index, "affirmed", chosen.start, chosen.end)


def _affirmed(mentions: Sequence[Mention]) -> Mention | None:
    return next((mention for mention in reversed(mentions) if mention.sure), None)


def _spoken_against(reader: Reader, reply: Reply, chosen: Mention) -> bool:
    """Whether, after a self-correction, another label stands."""
    turn = CORRECTION.search(reply.low, chosen.end)
    return turn is not None and any(m.alone and m.index != chosen.index for m in label_mentions(reader, reply, turn.end()))


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
    chosen = agreed(_after_turn(reply, [mention for mention in label_mentions(reader, reply) if mention.stands]))
    if chosen is None or _tells_otherwise(reader, reply, chosen.index):
        return None
    return reader.found(reply, chosen.index, "lone_label", chosen.start, chosen.end)


def _after_turn(reply: Reply, standing: list[Mention]) -> list[Mention]:
    """Return those after the last self-correction that any follows, or all."""
    for turn in reversed(CORRECTION.matches(reply.low)[-4:]):
        later = [mention for mention in standing if mention.start >= turn.end()]
        if later:
            return later
    return standing


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
    if not reader.texts.values or text_mentions(reader, reply):
        return None
    cut = max(0, len(reply.low) - 2000)
    tail = Reply(reply.body[cut:], reply.offset + cut) if cut else reply
    mentions = reader.texts.by_value(tail.low)
    judge(tail.low, mentions)
    return _by_text(reader, tail, mentions, "by_value")


def _by_text(reader: Reader, reply: Reply, mentions: list[Mention], rule: str) -> Extraction | None:
    standing = [mention for mention in mentions if mention.stands]
    if _labels_differ(reply, {mention.index for mention in standing}):
        return None
    pool = _after_turn(reply, standing)
    chosen = agreed(pool) or _concluded(reply.low, pool) or _contrasted(reply.low, pool)
    return reader.found(reply, chosen.index, rule, chosen.start, chosen.end) if chosen else None


def _labels_differ(reply: Reply, named: set[int]) -> bool:
    """Whether a label stands for an option whose text is not named."""
    return any(label.stands and label.index not in named for label in reply.labels or ())


def _concluded(low: str, pool: list[Mention]) -> Mention | None:
    """Return the last mention that is a conclusion (`so four`, `= 4`)."""
    sound = [mention for mention in pool if mention.alone and not mention.asked]
    return next((m for m in reversed(sound) if _CONCLUDES.search(low, max(0, m.start - 40), m.start)), None)


def _contrasted(low: str, pool: list[Mention]) -> Mention | None:
    """Of two texts set against each other, the one meant: the first in `a dog that looks like a cat`, the last after `but it is`."""
    if not pool or pool[0].joined:
        return None
    first, last = pool[0], pool[-1]
    others = [mention for mention in pool if mention.index != first.index]
    if all(_LIKENED.search(low, first.end, mention.start) for mention in others):
        return first
    return last if last.sure and _TURNED.search(low, first.end, last.start) and len(others) == 1 else None


def ordinal(reader: Reader, reply: Reply) -> Extraction | None:
    """Exactly one option is named by its place (`the second option`, `option 2`, `第二个选项`) and not denied."""
    mentions = list(reader.texts.ordinals(reply.low, len(reader.marks) - 1))[-40:]
    judge(reply.low, mentions)
    chosen = agreed([mention for mention in mentions if mention.stands])
    return reader.found(reply, chosen.index, "ordinal", chosen.start, chosen.end) if chosen else None


def abstain(reader: Reader, reply: Reply) -> Extraction:
    """No rule decided: say whether there was nothing to read or too much."""
    labels = {mention.index for mention in label_mentions(reader, reply) if not mention.denied}
    texts = {mention.index for mention in text_mentions(reader, reply) if not mention.denied}
    return Extraction(None, "abstain", AMBIGUOUS if len(labels) > 1 or len(texts) > 1 or (labels and texts) else UNPARSED)
