"""A list or table that goes through the options, a verdict at the end of each item, to the one that is called right."""

from __future__ import annotations

from collections.abc import Iterator

from ..extraction import Extraction
from ..label_mentions import label_mentions, text_mentions
from ..option_set import OptionSet, Reply
from ..word_lists import END, START, LazyPattern

_BULLET = LazyPattern(r"[\s|>#•*_+-]*(?:\d{1,2}[.)]\s)?[\s*_\"'“]*")
_LINE = LazyPattern(r"[^\n]+")
_PARTS = LazyPattern(r"[:;,，：；→|]|[.。](?=\s|[^\x00-\x7f])|(?<=\s)[–—-](?=\s)|[–—]|[\"”)](?=\s)")
"""What parts the verdict of an item from what was said before it."""
_ENDING = " \t.!*_`|)。；;，"
_LEAD = r"(?:(?:<verdicts.item_lead>)\s)*+"
_BAD = LazyPattern(rf"\s?{_LEAD}(?:(?:<verdicts.item_bad>){END}|<verdicts.item_bad_glued>|[✗✘❌×🚫])")
_GOOD = LazyPattern(rf"\s?{_LEAD}(?:(?:<verdicts.item_good>){END}|<verdicts.item_good_glued>|[✓✔✅☑])")
_BAD_END = LazyPattern(rf"(?:{START}(?:<verdicts.item_bad>)|(?:<verdicts.item_bad_glued>)|[✗✘❌×🚫])\Z")
_GOOD_END = LazyPattern(r"(?:<verdicts.item_good_glued>|[✓✔✅☑])\Z")
_LONGEST = 48
"""A last part of an item that is longer is no verdict but an explanation."""
_MOST_LINES = 200


def item_verdicts(options: OptionSet, reply: Reply) -> Extraction | None:
    """Each item of a list is about one option and ends with a verdict; exactly one is called right, others wrong."""
    # So many lines at least hold one item that is right and half of the others.
    if reply.low.count("\n") - reply.low.count("\n\n") < len(options.marks) // 2 or reply.cut:
        return None
    good: dict[int, tuple[int, int]] = {}
    bad: set[int] = set()
    end = 0
    for index, start, stop in _items(options, reply):
        end = stop
        verdict = _verdict(reply.low[start:stop].rstrip(_ENDING))
        if verdict:
            good.setdefault(index, (start, stop))
        elif verdict is False:
            bad.add(index)
    if len(good) != 1 or good.keys() & bad or len(bad) < max(1, len(options.marks) // 2):
        return None
    (index, place), *_ = good.items()
    return (
        None if _told_otherwise(options, reply, index, end) else options.pick_at(reply, index, "item_verdicts", *place)
    )


def _items(options: OptionSet, reply: Reply) -> Iterator[tuple[int, int, int]]:
    """Yield the lines that begin with an option, by mark or by text: which one, and where the line is."""
    for count, line in enumerate(_LINE.finditer(reply.low)):
        start = line.start()
        head = options.head.match(reply.body, start)
        if head and head.start(1) < line.end():
            yield options.by_mark[head.group(1).lower()], start, line.end()
        else:
            bullet = _BULLET.match(reply.low, start, line.end())
            text = options.texts.at(reply.low, bullet.end()) if bullet else None
            if text is not None:
                yield text.index, start, line.end()
        if count > _MOST_LINES:
            return


def _verdict(line: str) -> bool | None:
    """Return what the last part of an item says of it: right, wrong, or nothing."""
    cuts = [part.end() for part in _PARTS.finditer(line)]
    last = line[cuts[-1] if cuts else 0 :]
    if len(last) <= _LONGEST and cuts:
        if _BAD.match(last):
            return False
        if _GOOD.match(last):
            return True
    if _BAD_END.search(line):
        return False
    return True if _GOOD_END.search(line) else None


def _told_otherwise(options: OptionSet, reply: Reply, index: int, end: int) -> bool:
    """Whether what follows the list names another option."""
    later = [*label_mentions(options, reply), *text_mentions(options, reply)]
    return any(mention.start >= end and mention.stands and mention.index != index for mention in later)
