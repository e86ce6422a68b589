"""The first sentence of a reply, where it states the answer and the rest explains it, to the option it names."""

from __future__ import annotations

from collections.abc import Sequence

from .closing import CLOSING_WORDS, closing_start
from .cue_words import CORRECTION, NEGATION, UNDECIDED
from .extraction import Extraction
from .in_words import told_in
from .label_mentions import label_mentions, text_mentions
from .option_set import OptionSet, Reply
from .polarity import Mention, agreed
from .settled_text import PREFERRED, only_named
from .word_lists import END, START, LazyPattern

_SHORTEST, _LONGEST = 3, 320
"""A longer first sentence says too much."""
_SENTENCE = LazyPattern(r"(?<!\w\.\w)[.!](?=\s)|\n|[。।]")
_NOT_YET = LazyPattern(rf"{START}(?:<conclusions.not_yet>){END}|\?")
"""In a first sentence that plans, asks or supposes: it states nothing yet."""
_STATES = LazyPattern(
    rf"{START}(?:<conclusions.states>)(?: \w{{2,14}}(?:ing|ed|ly|wn|en))?(?: (?:<conclusions.states_at>))?"
    r"(?: an?| the| its| their)?\s[*_\"'(]*\Z"
)
"""Before an option of which the sentence says that something is it."""
_EXPLAINS = LazyPattern(rf"[\s*_]*(?:<conclusions.explains>){END}")
"""How the sentence after a stated answer begins."""


def opening(options: OptionSet, reply: Reply) -> Extraction | None:
    """The first sentence states one option, the rest explains it, and nothing after it turns to another."""
    low = reply.low
    stop = _SENTENCE.search(low, _SHORTEST)
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


def _within(texts: Sequence[Mention], label: Mention) -> bool:
    return any(text.start <= label.start < text.end for text in texts)


def _is_stated(low: str, first: Mention, stop: int, after: int) -> bool:
    """Whether a sentence that neither plans, denies nor asks says the option, prefers it, or is explained next."""
    if not first.plain or only_named(low, first):
        return False
    if NEGATION.search(low, 0, first.start):
        return False
    if NEGATION.search(low, first.end, min(stop, first.end + 40)):
        return False
    if first.start <= _SHORTEST and not low[first.end : stop].strip("*_\"' "):
        return True
    stated = _STATES.search(low, max(0, first.start - 60), first.start) or PREFERRED.match(low, first.end, stop)
    return stated is not None or _EXPLAINS.match(low, after) is not None


def _turns(low: str, chosen: Mention, named: Sequence[Mention]) -> bool:
    """Whether the reply takes back what it stated, leaves it open, or concludes with another option."""
    if UNDECIDED.search(low) or CORRECTION.search(low, chosen.end):
        return True
    start = closing_start(low)
    others = [one for one in named if one.start >= start and one.index != chosen.index and one.stands]
    return bool(others) and CLOSING_WORDS.search(low, start) is not None
