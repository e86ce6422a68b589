"""The first sentence of a reply, where it states the answer, or the last, where it concludes, to the option named."""

from __future__ import annotations

from collections.abc import Sequence

from .extraction import AMBIGUOUS, Extraction
from .in_words import told_in
from .meant import closing_start, is_aside, is_operand, led_aside, only_named
from .mentions import label_mentions, text_mentions
from .option_set import OptionSet, Reply
from .phrases import CLOSING_WORDS, CORRECTION, NEGATION, PREFERRED, TAKES_BACK, UNDECIDED
from .polarity import Mention, agreed, called_together
from .word_lists import END, START, After, Before, LazyPattern

_SHORTEST_FIRST, _SHORTEST_REPLY = 3, 60
"""A shorter first sentence is none; a shorter reply is its own point and has no conclusion."""
_LONGEST = 320
"""A longer first or last sentence says too much."""
_SENTENCE = LazyPattern(r"(?<!\w\.\w)[.!](?=\s)|\n|[。।]", finds="box b fits. box a does not", passes="3.5 m")
_NOT_YET = LazyPattern(
    rf"{START}(?:<conclusions.not_yet>){END}|\?", finds="let me look at the picture", passes="the picture shows a dog"
)
"""In a first sentence that plans, asks or supposes: it states nothing yet."""
_STATES = Before(
    rf"{START}(?:<conclusions.states>)(?: \w{{2,14}}(?:ing|ed|ly|wn|en))?(?: (?:<conclusions.states_at>))?"
    r"(?: an?| the| its| their)?\s[*_\"'(]*",
    reach=60,
    finds="the arrow is moving to the ",
    passes="based on the images, the ",
)
"""Before an option of which the sentence says that something is it."""
_EXPLAINS = After(
    rf"[\s*_]*(?:<conclusions.explains>){END}",
    finds=" this is because it barks",
    passes=" on the third of may it rained",
)
"""How the sentence after a stated answer begins."""


def opening(options: OptionSet, reply: Reply) -> Extraction | None:
    """The first sentence states one option, the rest explains it, and nothing after it turns to another."""
    low = reply.low
    stop = _SENTENCE.search(low, _SHORTEST_FIRST)
    if stop is None or stop.start() > _LONGEST or not low[stop.end() :].strip():
        return None
    # Working begins with what is given.
    if _NOT_YET.search(low, 0, stop.start()) or options.texts.measures:
        return None
    # Most first sentences name no option: the whole reply is looked at only where one does.
    if not options.texts.find(low[: stop.start()]):
        return _in_words(options, reply, stop.start(), stop.end())
    texts = text_mentions(options, reply)
    labels = [label for label in label_mentions(options, reply) if not _within(texts, label)]
    first = [mention for mention in (*texts, *labels) if mention.start < stop.start() and not mention.denied]
    chosen = agreed(first)
    if chosen is None or not _is_stated(low, min(first, key=_start), stop.start(), stop.end()):
        return None
    return None if _turns(low, chosen, [*texts, *labels]) else options.pick(reply, chosen, "opening")


def _in_words(options: OptionSet, reply: Reply, stop: int, after: int) -> Extraction | None:
    """Read a first sentence that names no option whole but says all the words of one, and is explained next."""
    low = reply.low
    if not _EXPLAINS.match(low, after) or NEGATION.search(low, 0, stop):
        return None
    if label_mentions(options, reply) or UNDECIDED.search(low) or CORRECTION.search(low, stop):
        return None
    chosen = told_in(options, 0, low[:stop])
    return options.pick(reply, chosen, "opening") if chosen else None


def _start(mention: Mention) -> int:
    return mention.start


def _is_stated(low: str, first: Mention, stop: int, after: int) -> bool:
    """Whether a sentence that neither plans, denies nor asks says the option, prefers it, or is explained next."""
    if not first.plain or only_named(low, first):
        return False
    if NEGATION.search(low, 0, first.start):
        return False
    if NEGATION.search(low, first.end, min(stop, first.end + 40)):
        return False
    if first.start <= _SHORTEST_FIRST and not low[first.end : stop].strip("*_\"' "):
        return True
    stated = _STATES.before(low, first.start) or PREFERRED.match(low, first.end, stop)
    return stated is not None or _EXPLAINS.match(low, after) is not None


def _turns(low: str, chosen: Mention, named: Sequence[Mention]) -> bool:
    """Whether the reply takes back what it stated, leaves it open, or concludes with another option."""
    if UNDECIDED.search(low) or CORRECTION.search(low, chosen.end):
        return True
    start = closing_start(low)
    others = [one for one in named if one.start >= start and one.index != chosen.index and one.stands]
    return bool(others) and CLOSING_WORDS.search(low, start) is not None


_TWO = 2


def closing(options: OptionSet, reply: Reply) -> Extraction | None:
    """The last sentence of a reply that is long enough to have come to something concludes with one option."""
    if len(reply.low) < _SHORTEST_REPLY or reply.cut:
        return None
    start = closing_start(reply.low)
    if _two_in_the_end(options, reply, start):
        return Extraction(None, "closing", AMBIGUOUS)
    chosen = _only_one(options, reply, start)
    if chosen is None or _beside_the_point(reply, chosen, start):
        return None
    return options.pick(reply, chosen, "closing") if CLOSING_WORDS.search(reply.low, start, chosen.start) else None


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
        if label.stands and label.index != chosen.index and not _within(texts, label)
    ]


def _within(texts: Sequence[Mention], label: Mention) -> bool:
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
