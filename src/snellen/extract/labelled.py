"""A label with its own option's text (`**F. 112 hp**`, `Aの東京`) to the option: the reply commits itself there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .cue_words import GOES_THROUGH, UNDECIDED
from .extraction import AMBIGUOUS, Extraction
from .label_mentions import apposed_mark, label_mentions, list_items, text_mentions
from .option_set import OptionSet, Reply
from .option_text import own_end
from .polarity import (
    AFFIRMED_AFTER,
    AFFIRMED_BEFORE,
    DENIED_BEFORE,
    REFUTED,
    TENTATIVE_BEFORE,
    Mention,
    called_together,
)
from .word_lists import LazyPattern

_FARTHEST = 4000
"""So many characters at the end of a reply are searched: a bound on time."""
_MOST = 80
_TAIL = 12
"""What ends so near to the end of the reply is its last word."""
_NUMBERED = LazyPattern(r"(?:\A|\n)\s?\d{1,2}[.)] \(?\Z")
"""Before answers to several questions."""
_JOINED = LazyPattern(
    r"[)\]}\"'*_`$\\\s]*+(?:,?\s?(?:and|or|as well as|und|oder|et|ou|y|o|和|或|与|と|または)|[,/&、])[\s*_`(\[\"'$\\]*+"
    r"(?:also |option |choice )*+[*(]*\Z"
)


def labelled(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply commits itself to a label with its own text: as its last word, in bold, on a line, or affirmed."""
    found = [mention for mention in _mentions(options, reply) if mention.stands and not mention.asked]
    if not found:
        return _contradicted(options, reply)
    last = found[-1]
    rivals = [mention for mention in found if mention.index != last.index]
    if _leaves_open(options, reply, found, rivals):
        return Extraction(None, "labelled", AMBIGUOUS, reply.span(last.start, last.end))
    if last.tentative or not _committed(reply, last, rivals):
        return None
    return options.pick(reply, last, "labelled")


def _contradicted(options: OptionSet, reply: Reply) -> Extraction | None:
    """Return that two options are said at once where a text stands with the mark of another (`red (B)` as A)."""
    for text in text_mentions(options, reply) if " (" in reply.low else ():
        mark = apposed_mark(reply.body, text.end).lower()
        index = options.by_mark.get(mark, text.index)
        if index != text.index and any(label.start == text.end + 2 for label in label_mentions(options, reply)):
            return Extraction(None, "labelled", AMBIGUOUS, reply.span(text.start, text.end + 4))
    return None


def _leaves_open(options: OptionSet, reply: Reply, found: list[Mention], rivals: list[Mention]) -> bool:
    """Whether all options are said again, none of those just named is chosen, or two are endorsed in one breath."""
    if _said_again(options, reply, found) or UNDECIDED.search(reply.low, max(0, found[-1].start - 160)):
        return True
    if bool(rivals) and all(
        _NUMBERED.search(reply.low, max(0, one.start - 8), one.start) for one in (rivals[-1], found[-1])
    ):
        return True
    return bool(rivals) and _joined(reply.low, rivals[-1], found[-1])


def _said_again(options: OptionSet, reply: Reply, found: list[Mention]) -> bool:
    """Whether the reply is all the options in a row, and nothing after them."""
    if len(found) != len(options.marks) or len({mention.index for mention in found}) < len(found) or len(found) < 3:
        return False
    near = all(second.start - first.end <= 3 for first, second in pairwise(found))
    return near and len(reply.low.rstrip()) - found[-1].end <= 1 and found[0].start <= 3


def _committed(reply: Reply, last: Mention, rivals: list[Mention]) -> bool:
    """Whether the reply stops at it, sets it off or affirms it; not where it only goes through the options."""
    if any(_stands_out(reply, rival) for rival in rivals):
        return False
    if GOES_THROUGH.search(reply.low, max(0, last.start - 100), last.start):
        return last.affirmed
    if last.affirmed or _stands_out(reply, last):
        return True
    return len(reply.low.rstrip()) - last.end <= _TAIL and not reply.cut and not rivals


def _mentions(options: OptionSet, reply: Reply) -> list[Mention]:
    low, start = reply.low, max(0, len(reply.low) - _FARTHEST)
    found = list(labelled_mentions(options, reply, start))[-_MOST:]
    listed = list_items(options, reply) if found else set()
    for mention in found:
        begin = max(0, mention.start - 56)
        mention.listed = mention.start in listed
        mention.denied = bool(
            REFUTED.match(low, mention.end, mention.end + 80) or DENIED_BEFORE.search(low, begin, mention.start)
        )
        mention.tentative = TENTATIVE_BEFORE.search(low, begin, mention.start) is not None
        mention.asked = low.startswith("?", mention.end)
        mention.affirmed = (
            AFFIRMED_BEFORE.search(low, begin, mention.start) is not None
            or AFFIRMED_AFTER.match(low, mention.end, mention.end + 80) is not None
        )
    return found


def labelled_mentions(options: OptionSet, reply: Reply, start: int = 0) -> Iterator[Mention]:
    """Yield where a mark is followed by a sign and its own option's text, whole: label and text as one mention."""
    end = 0
    for match in options.labelled.finditer(reply.body, start):
        index = options.by_mark[match.group(1).lower()]
        if match.start(1) < end:
            continue
        end = own_text_end(options, reply, match, index)
        if end > 0:
            yield Mention(index, match.start(1), end)


def own_text_end(options: OptionSet, reply: Reply, match: re.Match[str], index: int) -> int:
    """Return where the own text of a mark ends: behind the sign that parts them, or with that sign (`A-5` for −5)."""
    key = options.texts.key(index)
    if not key:
        return -1
    figure = options.texts.figures[index]
    tries = [own_end(reply.low, match.end(), key), own_end(reply.low, match.end(1), key)]
    # `F. 112` for 112 hp: a unit may be left out, but `I = 1.975` states a quantity.
    bare = figure and "=" not in match.group()
    return max(*tries, own_end(reply.low, match.end(), figure) if bare else -1)


def _joined(low: str, first: Mention, second: Mention) -> bool:
    """Whether two options are endorsed in one breath: then none is chosen."""
    if not first.end < second.start <= first.end + 32:
        return False
    return _JOINED.match(low, first.end, second.start) is not None or called_together(low, first, second)


def _stands_out(reply: Reply, mention: Mention) -> bool:
    """Whether it is set in bold or has a line of its own."""
    low, start, end = reply.low, mention.start, mention.end
    before, after = low[max(0, start - 12) : start].rstrip(" (\\"), low[end : end + 12].lstrip(" ).\\")
    opens = before.endswith(("**", "__", "\n", "$", "[")) or before.rstrip("-•> #*(\\[").endswith("\n") or not start
    return opens and (after.startswith(("**", "__", "\n", "$", "]")) or not after)
