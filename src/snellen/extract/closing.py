"""The last sentence of a reply, where it concludes what working or other options led to, to the option it names."""

from __future__ import annotations

from collections.abc import Sequence

from .cue_words import NEGATION, UNDECIDED
from .extraction import AMBIGUOUS, Extraction
from .label_mentions import label_mentions, text_mentions
from .named_aside import is_aside, is_operand
from .option_set import OptionSet, Reply
from .polarity import Mention, agreed, called_together
from .settled_text import led_aside, only_named
from .word_lists import END, START, LazyPattern

_SHORTEST, _LONGEST = 60, 320
"""A shorter reply is its own point; a longer last sentence says too much."""
_TWO = 2
_STOP = LazyPattern(r"(?<!i\.e)(?<!e\.g)(?<!vs)(?<!fig)(?<!\n\w)(?<!\n\d\d)[.!?](?=[\s*_\"'])|\n|[。।]")
TAKES_BACK = LazyPattern(rf"{START}(?:<options.takes_back>|while|whereas|other|others){END}|n't|\?")
CLOSING_WORDS = LazyPattern(rf"{START}(?:<conclusions.closes>){END}|<conclusions.closes_glued>|[∴⇒]")


def closing(options: OptionSet, reply: Reply) -> Extraction | None:
    """The last sentence of a reply that is long enough to have come to something concludes with one option."""
    if len(reply.low) < _SHORTEST or reply.cut:
        return None
    start = closing_start(reply.low)
    if _two_in_the_end(options, reply, start):
        return Extraction(None, "closing", AMBIGUOUS)
    chosen = _only_one(options, reply, start)
    if chosen is None or _beside_the_point(reply, chosen, start):
        return None
    return options.pick(reply, chosen, "closing") if CLOSING_WORDS.search(reply.low, start, chosen.start) else None


def closing_start(low: str) -> int:
    """Return where the last sentence starts."""
    text = low.rstrip(" \n.!*_\"'。।")
    return max((stop.end() for stop in _STOP.finditer(text, max(0, len(text) - 2 * _LONGEST))), default=0)


def _two_in_the_end(options: OptionSet, reply: Reply, start: int) -> bool:
    """Whether the last sentence concludes with two labels together, and no text (`Therefore, both A and D remain`)."""
    labels = [label for label in label_mentions(options, reply) if label.start >= start and label.stands]
    if len({label.index for label in labels}) < _TWO or not called_together(reply.low, *labels[:_TWO]):
        return False
    if any(text.start >= start for text in text_mentions(options, reply)):
        return False
    return CLOSING_WORDS.search(reply.low, start, labels[0].start) is not None


def _only_one(options: OptionSet, reply: Reply, start: int) -> Mention | None:
    """Return the option that the last sentence names, if it names one and no label there or elsewhere contradicts."""
    if len(reply.low) - start > _LONGEST:
        return None
    chosen = agreed([mention for mention in text_mentions(options, reply) if mention.start >= start])
    if chosen is None or not chosen.alone or chosen.asked or chosen.tentative:
        return None
    return (
        None if any(label.start >= start or label.sure for label in _other_labels(options, reply, chosen)) else chosen
    )


def _other_labels(options: OptionSet, reply: Reply, chosen: Mention) -> list[Mention]:
    """Return the labels of other options that stand, and are not part of an option's text."""
    texts = reply.texts or ()
    return [
        label
        for label in label_mentions(options, reply)
        if label.stands and label.index != chosen.index and not _within_any(texts, label)
    ]


def _within_any(texts: Sequence[Mention], label: Mention) -> bool:
    return any(text.start <= label.start < text.end for text in texts)


def _beside_the_point(reply: Reply, chosen: Mention, start: int) -> bool:
    """Whether the sentence denies, supposes, compares or goes through, in its own words and not the option's."""
    low = reply.low
    if UNDECIDED.search(low, start) or is_aside(low, chosen) or is_operand(low, chosen) or led_aside(low, chosen):
        return True
    if only_named(low, chosen):
        return True
    return any(
        TAKES_BACK.search(low, *part) or NEGATION.search(low, *part)
        for part in ((start, chosen.start), (chosen.end, len(low)))
    )
