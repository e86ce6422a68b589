"""Rules that look at a reply as a whole or by its lines: error text, emptiness, bare answers, loops."""

from __future__ import annotations

import re

from .option_text import plain
from .reader import Reader, Reply
from .verdict import DEGENERATE, EMPTY, HARNESS_ERROR, NOT_OFFERED, TRUNCATED, Extraction
from .words import HARNESS

_HEAD = re.compile(r"\s*([^.!;:\n—]{1,80})[.!;:—]")
_LOOPS = 8
_INTRODUCES = ("option", "choice", "each", "analy", "consider", "let me", "let's", "following", "选项", "分析")


def harness_error(reader: Reader, reply: Reply) -> Extraction | None:
    """Text of a failed call, stored by some harness as if it were the reply."""
    return Extraction(None, "harness_error", HARNESS_ERROR) if HARNESS.match(reply.low) else None


def empty(reader: Reader, reply: Reply) -> Extraction | None:
    """Nothing but space and punctuation (after thinking was removed)."""
    if any(char.isalnum() for char in reply.low[:64]) or any(char.isalnum() for char in reply.low):
        return None
    return Extraction(None, "empty", TRUNCATED if reply.cut else EMPTY)


def whole(reader: Reader, reply: Reply) -> Extraction | None:
    """The whole reply is one mark, a mark with its text, or one option text, however decorated; also the same line again."""
    text = reply.body.strip()
    if len(text) > 300:
        return None
    index = reader.bare(text)
    if index is None and "\n" in text:
        lines = {line.strip() for line in text.split("\n") if line.strip()}
        index = reader.bare(next(iter(lines))) if len(lines) == 1 else None
    if index is None:
        return _stranger(reader, text)
    start = len(reply.body) - len(reply.body.lstrip())
    mark = reader.label.search(reply.body) if reader.texts.by_text.get(reply.low.strip()) != index else None
    span = (mark.start(1), mark.end(1)) if mark and mark.group(1).lower() == reader.marks[index].lower() else (start, start + len(text))
    return reader.found(reply, index, "whole", *span)


def _stranger(reader: Reader, text: str) -> Extraction | None:
    """A bare capital that was not offered is an answer, but no valid one."""
    core = text.strip(" .()[]*`\"'")
    foreign = len(core) == 1 and core.isalpha() and core.isupper() and core.isascii()
    return Extraction(None, "whole", NOT_OFFERED) if foreign and core.lower() not in reader.by_mark else None


def degenerate(reader: Reader, reply: Reply) -> Extraction | None:
    """The reply ends in a loop: the same piece of text eight times or more."""
    text = reply.low.strip()
    if len(text) < _LOOPS:
        return None
    size = max(1, min(32, len(text) // (_LOOPS + 1)))
    tail = text[-size:]
    again = text.rfind(tail, max(0, len(text) - 1200), len(text) - 1)
    period = len(text) - size - again
    if again < 0 or period * _LOOPS > len(text) + 2:
        return None
    region = text[-(period * _LOOPS - 2) :]
    looping = region[period:] == region[:-period] and any(char.isalpha() for char in region[-period:])
    return Extraction(None, "degenerate", DEGENERATE) if looping else None


def line(reader: Reader, reply: Reply) -> Extraction | None:
    """The first or the last line alone is an answer, and they do not contradict each other."""
    if "\n" not in reply.low:
        return _leading(reader, reply)
    lines = [text for text in reply.body.split("\n") if text.strip()]
    first, last = reader.bare(lines[0]), reader.bare(lines[-1])
    if last is not None and not _introduced(lines, reader):
        start = reply.body.rindex(lines[-1])
        return None if first not in {None, last} and len(lines) < 3 else reader.found(reply, last, "line", start, start + len(lines[-1]))
    if first is not None and sum(reader.item.match("\n" + text) is not None for text in lines) < 2:
        start = reply.body.index(lines[0])
        return reader.found(reply, first, "line", start, start + len(lines[0]))
    return None


def _introduced(lines: list[str], reader: Reader) -> bool:
    """Whether the last line is the last item of a list, or the first of one that was cut off."""
    if len(lines) < 2:
        return False
    before = lines[-2].lower()
    headed = reader.item.match("\n" + lines[-1]) is not None
    return headed and (reader.item.match("\n" + lines[-2]) is not None or any(word in before for word in _INTRODUCES))


def _leading(reader: Reader, reply: Reply) -> Extraction | None:
    """One line that opens with a mark and a sign, as in `B. a dog, because …` or `B: The board rejected it`."""
    match = reader.item.match(reply.body)
    if match is None:
        return _leading_text(reader, reply)
    if match.group(1).islower() and not reply.body.lstrip().startswith("("):
        return None
    others = {found.group(1).lower() for found in reader.mention.finditer(reply.body, match.end())} - {match.group(1).lower()}
    if others or reply.body[match.end() : match.end() + 1].isalpha():
        return None
    return reader.found(reply, reader.by_mark[match.group(1).lower()], "leading", match.start(1), match.end(1))


def _leading_text(reader: Reader, reply: Reply) -> Extraction | None:
    """The first sentence is one option text and nothing else, as in `True. The sign says so.`"""
    head = _HEAD.match(reply.low)
    index = reader.texts.by_text.get(plain(head.group(1))) if head else None
    if head is None or index is None or reader.label_set.intersection(reply.body.split()):
        return None
    return reader.found(reply, index, "leading", head.start(1), head.end(1))
