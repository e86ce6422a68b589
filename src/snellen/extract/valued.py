"""Replies that end with a quantity to the option that equals it, in whatever notation, unit or scale."""

from __future__ import annotations

from .extraction import Extraction
from .meant import closing_start, picked_by_text
from .mentions import label_mentions, text_mentions
from .numbers import Measure, find_measures, fitting_option
from .option_set import OptionSet, Reply
from .phrases import CLOSING_WORDS, CONTRAST, CORRECTION, NEGATION, TAKES_BACK, UNDECIDED
from .polarity import Mention, judge
from .word_lists import END, START, After, Before, LazyPattern

_END = 200
"""A value with which a reply ends stands in so many characters at its end."""
_FARTHEST = 2000
_COMMENT = 120
_FOUND = Before(
    r"(?:[=≈→⇒]|(?<!\w)(?:<conclusions.open_cue>)\s?:)[\s*_$\\({]*(?:(?:about|approximately)\s)?[$€£¥]?",
    reach=24,
    finds="so f = ",
    passes="there are ",
)
_OTHERWISE_SAID = LazyPattern(
    r"(?<=[\w)%°],)\sor\s(?=(?:about |roughly |approximately |equivalently )?[-$€£]?\d)",
    finds="120 kpa, or 120,000 pa",
    passes="120 kpa or less",
)
_LEADS_TO = Before(
    rf"{START}(?:<cues.copula>|<conclusions.reads_as>|about|roughly|approximately){END}[\s*_$]*",
    finds="the length is about ",
    passes="i count ",
)
_GIVEN = After(r"\W*(?:given|since|as|if|because)(?!\w)", finds="given 120 kpa", passes="the pressure is 120 kpa")
_STOPS = LazyPattern(r"[.!\n。]\s", finds="120 kpa. it", passes="120.5 kpa")


def final_value(options: OptionSet, reply: Reply) -> Extraction | None:
    """The last quantity is the result of the working (`… = 0.072`) or its conclusion, and equals one option."""
    if not options.texts.measures or reply.cut or options.texts.on_another_scale(reply.low):
        return None
    begin = _line_at(reply.body, max(0, len(reply.body) - _END))
    found = find_measures(reply.body[begin:])
    index = fitting_option(found[-1], options.texts.measures) if found else None
    if index is None:
        return None
    result = Mention(index, begin + found[-1].start, begin + found[-1].end)
    found_so = _FOUND.before(reply.low, result.start)
    stated = found_so or _concluded(options, reply, result) or _said_again(options, reply, result)
    if not stated or _goes_on(options, reply, result):
        return None
    return options.pick(reply, result, "final_value")


def _concluded(options: OptionSet, reply: Reply, result: Mention) -> bool:
    """Whether the last sentence is a conclusion that states this quantity alone (`So about 3600 W are needed`)."""
    low, start = reply.low, closing_start(reply.low)
    closing_words = list(CLOSING_WORDS.finditer(low, start, result.start)) if result.start >= start else []
    if not closing_words:
        return False
    begin = closing_words[-1].end()
    said = {fitting_option(one, options.texts.measures) for one in find_measures(reply.body[begin:])}
    # `120 kPa, or 120,000 Pa` says one thing twice.
    low = low[:begin] + _OTHERWISE_SAID.sub(lambda match: " " * len(match.group()), low[begin:])
    return said == {result.index} and not TAKES_BACK.search(low, start) and not NEGATION.search(low, start)


def _said_again(options: OptionSet, reply: Reply, result: Mention) -> bool:
    """Whether the last sentence states, as its only quantity, what the working before it came to (`… = 1.5 km`)."""
    low, start = reply.low, closing_start(reply.low)
    if result.start < start or not _LEADS_TO.before(low, result.start, start):
        return False
    if TAKES_BACK.search(low, start) or NEGATION.search(low, start) or len(find_measures(reply.body[start:])) != 1:
        return False
    begin = max(0, start - _END)
    found = [one for one in find_measures(reply.body[begin:start]) if _FOUND.search(low, begin, begin + one.start)]
    return bool(found) and fitting_option(found[-1], options.texts.measures) == result.index


def _line_at(body: str, at: int) -> int:
    """Return a place from `at` on at which no number is cut in two."""
    if at == 0:
        return 0
    return next((i for i in range(at, len(body)) if body[i].isspace()), at)


def _goes_on(options: OptionSet, reply: Reply, result: Mention) -> bool:
    """Whether something after the result, or a label elsewhere, speaks for another option."""
    if (_STOPS.search(reply.low, result.end) and not _only_comments(reply.low, result.end)) or UNDECIDED.search(
        reply.low
    ):
        return True
    if any(text.start >= result.end for text in text_mentions(options, reply)):
        return True
    return any(label.sure and label.index != result.index for label in label_mentions(options, reply))


def _only_comments(low: str, end: int) -> bool:
    """Whether no more than a sentence follows the result, that neither turns nor asks (`It points up.`)."""
    rest = low[end:].strip()
    if len(rest) > _COMMENT or "?" in rest or rest[-1:] not in {".", ")", "。"}:
        return False
    return not (CONTRAST.search(rest) or CORRECTION.search(rest) or NEGATION.search(rest))


def by_measure(options: OptionSet, reply: Reply) -> Extraction | None:
    """No option text stands, all options are quantities, and the reply states one of them in other units or signs."""
    offered = options.texts.measures
    texts = text_mentions(options, reply) if offered else []
    if not offered or any(mention.stands for mention in texts):
        return None
    if options.texts.on_another_scale(reply.low):
        return None
    cut = _line_at(reply.body, max(0, len(reply.low) - _FARTHEST))
    tail = Reply(reply.body[cut:], reply.offset + cut) if cut else reply
    # What is only listed as a text is not said as a quantity either.
    named = {text.start - cut for text in texts if text.listed}
    found = [said for said in find_measures(tail.body) if said.start not in named]
    mentions = [mention for said in found if (mention := _mention(said, offered))]
    # What is worked out stands behind what is given.
    if mentions and found[-1].start > mentions[-1].start and _GIVEN.match(tail.low):
        return None
    judge(tail.low, mentions)
    return picked_by_text(options, tail, mentions, "by_measure")


def _mention(said: Measure, offered: list[Measure]) -> Mention | None:
    index = fitting_option(said, offered)
    return None if index is None else Mention(index, said.start, said.end)
