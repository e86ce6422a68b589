"""Rules that look at a reply as a whole or by its lines: error text, emptiness, bare answers, loops."""

from __future__ import annotations

import re

from .extraction import DEGENERATE, EMPTY, HARNESS_ERROR, NOT_OFFERED, TRUNCATED, Extraction
from .meant import corrected
from .mentions import find_labels, speaks_of_options, text_mentions
from .option_set import OptionSet, Reply
from .option_text import plain
from .phrases import CORRECTION
from .polarity import judge
from .word_lists import END, START, After, LazyPattern

_FAILED_CALL = After(r"\s*(?:<machine.error>)", finds="api error: 500", passes="the error bar is long")
_HEAD = After(r"\s*+([^.!;:\n—]{1,80})[.!;:—]", finds="true. the sign says so", passes="the sign says true, and")
_ALNUM = LazyPattern(r"[^\W_]", finds="… b", passes="…")
_NAME = After(r"[A-Z]\. [A-Z][a-z]+ [a-z]", finds="A. Smith v", passes="A. dog")
_REASON = After(r"[)*_\s]*\s(?:<verdicts.reason>)(?!\w)", finds=" because it barks", passes=" or b")
_REMARK = re.compile(r"[*_(\[]*([A-Z])[*_)\]]*\s?\(([^()\n]{3,60})\)[.*_]*")
_OPEN = LazyPattern(
    rf"{START}(?:<options.takes_back>|<polarity.bad>|maybe|possibly|perhaps){END}|n't|[?❌✗✘×]",
    finds="not sure, but maybe",
    passes="my guess",
)
_REPEATS = re.compile(r"[\s,]+")
_LOOPS = 8
_REASONED = 2
"""The first line, and at least one between it and the others."""
_ONE_LINE = 8000
"""A longer line is not looked through for other labels: a bound on time."""
_TICK = frozenset("✓✔✅☑")


def harness_error(options: OptionSet, reply: Reply) -> Extraction | None:
    """Text of a failed call, stored by some harness as if it were the reply."""
    return Extraction(None, "harness_error", HARNESS_ERROR) if _FAILED_CALL.match(reply.low) else None


def empty(options: OptionSet, reply: Reply) -> Extraction | None:
    """Nothing but space and punctuation (after thinking was removed)."""
    if reply.low[:1].isalnum() or _ALNUM.search(reply.low):
        return None
    return Extraction(None, "empty", TRUNCATED if reply.cut else EMPTY)


def whole(options: OptionSet, reply: Reply) -> Extraction | None:
    """The whole reply is a mark, a mark with its text, or an option text, however decorated; or such a line twice."""
    text = reply.body.strip()
    if len(text) > 300:
        return None
    index = options.bare(text)
    if index is None:
        index = _repeated(options, text)
    if index is None and ")" in text[-3:]:
        index = _with_remark(options, reply, text)
    if index is None:
        return _stranger(options, text)
    start = len(reply.body) - len(reply.body.lstrip())
    mark = options.label.search(reply.body) if options.texts.by_text.get(reply.low.strip()) != index else None
    named = mark and mark.group(1).lower() == options.marks[index].lower()
    span = mark.span(1) if mark and named else (start, start + len(text))
    return options.pick_at(reply, index, "whole", *span)


def _repeated(options: OptionSet, text: str) -> int | None:
    """Return the option of a reply that says the same thing again: `A A A`, or the same line twice."""
    if len(text) >= 16 and "\n" not in text:
        return None
    parts = set(_REPEATS.split(text) if len(text) < 16 else map(str.strip, filter(str.strip, text.split("\n"))))
    return options.bare(parts.pop()) if len(parts) == 1 else None


def _with_remark(options: OptionSet, reply: Reply, text: str) -> int | None:
    """Return the option of a mark and a remark in brackets that denies nothing and names no other (`C (my guess)`)."""
    match = _REMARK.fullmatch(text)
    index = options.by_mark.get(match.group(1).lower()) if match else None
    if match is None or index is None or _OPEN.search(match.group(2).lower()):
        return None
    remark = match.group(2)
    others = {mention.index for mention in text_mentions(options, reply)} - {index}
    return None if others or options.bare(remark) is not None or options.mention.search(remark) else index


def _stranger(options: OptionSet, text: str) -> Extraction | None:
    """A bare capital that was not offered is an answer, but no valid one."""
    core = text.strip(" .()[]*`\"'")
    foreign = len(core) == 1 and core.isalpha() and core.isupper() and core.isascii()
    if not foreign or core.lower() in options.by_mark:
        return None
    # `I` may be what an option is called by (`Quadrant I`).
    named = any(own.endswith(" " + core.lower()) for own in options.texts.plain)
    return None if named else Extraction(None, "whole", NOT_OFFERED)


def degenerate(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply ends in a loop: the same piece of text eight times or more."""
    text = reply.low.strip()
    if len(text) < _LOOPS:
        return None
    length = len(text)
    size = 32 if length >= 32 * (_LOOPS + 1) else length // (_LOOPS + 1) or 1
    again = text.rfind(text[-size:], length - 1200 if length > 1200 else 0, length - 1)
    period = length - size - again
    if again < 0 or period * _LOOPS > length + 2:
        return None
    region = text[-(period * _LOOPS - 2) :]
    looping = region[period:] == region[:-period] and any(char.isalpha() for char in region[-period:])
    return Extraction(None, "degenerate", DEGENERATE) if looping else None


def last_line(options: OptionSet, reply: Reply) -> Extraction | None:
    """The last line alone is an answer, and it is not the last item of a list."""
    body = reply.body.rstrip()
    at = body.rfind("\n") + 1
    if at == 0 or len(body) - at > 80:
        return None
    index = options.bare(body[at:])
    if index is None:
        return None
    lines = [text for text in body.split("\n") if text.strip()]
    if _introduced(lines, options) or _enumerated(lines, options, index):
        return None
    return options.pick_at(reply, index, "last_line", at, len(body))


def first_line(options: OptionSet, reply: Reply) -> Extraction | None:
    """The first line alone is an answer and no list of options follows, or a single line opens with one."""
    if "\n" not in reply.low:
        return _leading(options, reply)
    lines = [text for text in reply.body.split("\n") if text.strip()]
    if not lines:
        return None
    first, last = options.bare(lines[0]), options.bare(lines[-1])
    if first is None:
        return None
    heads = [options.by_mark[match.group(1).lower()] for text in lines[1:40] if (match := options.head.match(text))]
    if not _others_told(lines, first, heads) if heads else last not in {None, first}:
        return None
    start = reply.body.index(lines[0])
    return corrected(options, reply, options.pick_at(reply, first, "first_line", start, start + len(lines[0])))


def _others_told(lines: list[str], first: int, heads: list[int]) -> bool:
    """Whether a list after the first line goes through the others alone, and does not begin with that line.

    `D. …`, some reason, then `A. …`, `B. …`, `C. …`: a list that went through all of them would begin with A.
    """
    if first in heads or len(set(heads)) < len(heads) or min(heads) > first or len(lines) < len(heads) + _REASONED:
        return False
    return heads == sorted(heads) and _TICK.isdisjoint("".join(lines[1:]))


def _enumerated(lines: list[str], options: OptionSet, index: int) -> bool:
    """Whether the line before names another option in the same way: `A`, then `B`."""
    if len(lines) < 2 or options.bare(lines[-2]) in {None, index}:
        return False
    return len(lines) < 3 or (options.head.match(lines[-2]) is None) == (options.head.match(lines[-1]) is None)


def _introduced(lines: list[str], options: OptionSet) -> bool:
    """Whether the last line is an item of a list, the first of one that was cut off, or a box that is not ticked."""
    if "[ ]" in lines[-1] or "☐" in lines[-1]:
        return True
    if len(lines) < 2:
        return False
    before = lines[-2].lower()
    headed = options.head.match(lines[-1]) is not None
    return headed and (options.head.match(lines[-2]) is not None or speaks_of_options(before))


def _leading(options: OptionSet, reply: Reply) -> Extraction | None:
    """One line that opens with a mark and a sign, as in `B. a dog, because …` or `B: The board rejected it`."""
    match = options.head.match(reply.body) if len(reply.body) <= _ONE_LINE else None
    if match is None:
        return _leading_text(options, reply)
    if match.group(1).islower() and not reply.body.lstrip().startswith("("):
        return None
    index = options.by_mark[match.group(1).lower()]
    said = _HEAD.match(reply.low + ".", match.end())
    other = options.texts.by_text.get(plain(said.group(1))) if said else None
    if said is not None and other is not None and other != index:
        # `A: False`: the letter of `answer`, not of the option. Any other letter beside another's text says two things.
        answers = match.group(1) == "A" and reply.body[match.end(1)] == ":"
        return options.pick_at(reply, other, "leading", *said.span(1)) if answers else None
    if (
        _others_stand(options, reply, index, match)
        or reply.body[match.end() : match.end() + 1].isalpha()
        or options.says_again(reply.body[match.end() :])
    ):
        return None
    return options.pick_at(reply, index, "leading", match.start(1), match.end(1))


def _others_stand(options: OptionSet, reply: Reply, index: int, head: re.Match[str]) -> bool:
    """Whether after a leading mark another label stands; after a reason (`B. Because …`) denied ones do not count."""
    as_head = head.group(1).isupper()
    others = [
        label
        for label in find_labels(options, reply, head.end())
        if label.index != index
        and not _NAME.match(reply.body, label.start)
        and (not as_head or reply.body[label.start].isupper())
    ]
    if not others:
        return False
    judge(reply.low, others)
    if options.later.search(reply.body, head.end()) or CORRECTION.search(reply.low, head.end()):
        return True
    return not _REASON.match(reply.low, head.end()) or any(not label.denied for label in others)


def _leading_text(options: OptionSet, reply: Reply) -> Extraction | None:
    """The first sentence is one option text and nothing else, as in `True. The sign says so.`"""
    head = _HEAD.match(reply.low)
    index = options.texts.by_text.get(plain(head.group(1))) if head else None
    if head is None or index is None or options.label_set.intersection(reply.body.split()):
        return None
    verdict = corrected(options, reply, options.pick_at(reply, index, "leading", head.start(1), head.end(1)))
    others = any(mention.stands and mention.index != index for mention in text_mentions(options, reply))
    return None if others and verdict.rule == "leading" else verdict
