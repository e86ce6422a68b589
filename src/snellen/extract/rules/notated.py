"""A last sentence in another notation than the options (`4, 2, 1, 3` for `4-2-1-3`, `√12` for `2√3`) to the option."""

from __future__ import annotations

from ..cue_words import NEGATION, UNDECIDED
from ..extraction import Extraction
from ..label_mentions import label_mentions, text_mentions
from ..notations import Written
from ..option_set import OptionSet, Reply
from ..polarity import Mention, agreed
from ..word_lists import END, START, LazyPattern
from .closing import CLOSING_WORDS, TAKES_BACK, closing_start

_LONGEST = 320
_LEADS_TO = LazyPattern(
    rf"(?:[:=→⇒]|(?:(?<=it)|(?<=that))'s|{START}(?:<cues.copula>|<conclusions.reads_as>){END}|<cues.copula_glued>)[\s*_$\\(\"'“]*"
    r"(?:(?:about|exactly|just|simply|a|the) )*[*_$]*\Z"
)


def notated(options: OptionSet, reply: Reply) -> Extraction | None:
    """All options are orders, times, intervals or roots, and the last sentence states one, written in another way."""
    written = options.texts.notation
    if written is None or reply.cut:
        return None
    start = closing_start(reply.low)
    chosen = _said_last(written, reply.low, start)
    if chosen is None or not _stated(reply.low, start, chosen) or _contradicted(options, reply, chosen, start):
        return None
    return options.pick(reply, chosen, "notated")


def _said_last(written: Written, low: str, start: int) -> Mention | None:
    """Return the only option that the last sentence writes, if it neither denies nor takes anything back."""
    sentence = low[start:]
    if len(sentence) > _LONGEST or TAKES_BACK.search(sentence) or NEGATION.search(sentence):
        return None
    places = {key: index for index, key in enumerate(written.keys)}
    said = [(places.get(key, -1), at, end) for key, at, end in written.notation.in_reply(sentence)]
    chosen = agreed([Mention(index, start + at, start + end) for index, at, end in said])
    return chosen if chosen is not None and chosen.index >= 0 else None


def _stated(low: str, start: int, chosen: Mention) -> bool:
    """Whether the sentence concludes, or says right before it that something is it."""
    if CLOSING_WORDS.search(low, start, chosen.start):
        return True
    return _LEADS_TO.search(low, max(start, chosen.start - 40), chosen.start) is not None


def _contradicted(options: OptionSet, reply: Reply, chosen: Mention, start: int) -> bool:
    """Whether a label that is affirmed, or a text in the same sentence, is another option."""
    labels = [label for label in label_mentions(options, reply) if label.sure and label.start < start]
    texts = [text for text in text_mentions(options, reply) if text.start >= start]
    return UNDECIDED.search(reply.low) is not None or any(one.index != chosen.index for one in (*labels, *texts))
