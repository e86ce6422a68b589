"""Options that a reply names beside its point: supposed, reported, called a trap, part of a term, before a cut."""

from __future__ import annotations

from .numbers import find_measures, fitting_option
from .option_set import OptionSet, Reply
from .polarity import Mention
from .word_lists import LazyPattern

_SHORT = 120
"""So short a reply is its own point."""
_TAIL_BYTES = 25
"""A shorter last line without a full stop is a result, a longer one is a sentence that was cut."""
_STOP = LazyPattern(r"[.!?;](?<![\n(]\w.)(?<!\n\d\d.)\s|\n|。")
"""The end of a sentence; the full stop of `3.` in a list is none. Every end begins with a sign: so it is found fast."""
_SUPPOSED = LazyPattern(
    r"(?<!\w)(?!(?:<conclusions.subject>)(?!\w))[\w’]+"
    r"(?:'d (?:get|have|obtain)| would (?:be|give|suggest|indicate|imply|mean|yield))(?!\w)[^;\n)]{0,40}\Z"
)
_REPORTED = LazyPattern(r"(?<!\w)(?:<conclusions.reports>)\s[\"'“]?(?:the |a )?\Z")
_SUPPOSED_AFTER = LazyPattern(
    r"[\"'”)*]*\s(?:would|could|might) (?:be|have)(?! (?:a |the )?(?:best|correct|right|most|answer|choice))(?!\w)"
)
_OTHER = LazyPattern(
    r"(?<!\w)(?:the|an)\s?other(?! (?:hand|words))(?: \w{1,16}){0,2} (?:is|are|was|has|shows|reads|equals|measures)"
    r"(?: at| about| only)? (?:an? |the )?\Z"
)
"""What is said of the other bar, line or animal is not said of the one that is asked for."""
_COMPARED = LazyPattern(r"(?<!\w)(?:than|compared (?:to|with)|relative to|as opposed to)\s[^.,;:\n]{0,40}\Z")
"""Before what something else is measured by."""
_TRAP = LazyPattern(r"(?<!\w)(?:<conclusions.trap>)(?!\w)")
_ITEM = LazyPattern(r"\s*(?:[-*•>|#]|\(?\w{1,2}[.):]\s)")
_OPERATORS = frozenset("/×·^+−")
_UNFINISHED = frozenset(",、，-–—+=×/(_")
_OPERATOR = LazyPattern(r"\\(?:cdot|times|frac|sqrt|left|div|pm|sum|int|approx|to)\Z")
_BRIEF = 48
_CONCLUDED = LazyPattern(
    r"[\s*_]*(?:so|hence|thus|therefore),?\s(?:it's |it is |it must be )?(?:an? |the )?[*_\"']*"
    r"[a-z][\w-]*(?:\s\w+){0,2}[*_\"'.!]*"
)


def is_aside(low: str, mention: Mention) -> bool:
    """Tell whether an option is named as what would be, as what somebody says, or as a mistake to make."""
    start, end = sentence_of(low, mention)
    if end < len(low.rstrip()) and (
        _SUPPOSED.search(low, start, mention.start) or _SUPPOSED_AFTER.match(low, mention.end)
    ):
        return True
    if _REPORTED.search(low, start, mention.start) or _OTHER.search(low, start, mention.start):
        return True
    if _COMPARED.search(low, start, mention.start):
        return True
    return _TRAP.search(low, start, min(end, mention.end + 60)) is not None


def is_operand(low: str, mention: Mention) -> bool:
    """Tell whether the text of an option is only a part of a term (`mg / cos θ`, `3 × 4`)."""
    beside = (
        low[max(0, mention.start - 2) : mention.start].rstrip()[-1:],
        low[mention.end : mention.end + 2].lstrip()[:1],
    )
    return not _OPERATORS.isdisjoint(beside) or ("\\" in low and _in_fraction(low, mention))


def _in_fraction(low: str, mention: Mention) -> bool:
    """Whether it is the whole upper or lower part of a fraction in LaTeX (`\\frac{ML^2}{12}`)."""
    if "}" in low[mention.start : mention.end]:
        return False
    before = low[max(0, mention.start - 8) : mention.start].rstrip(" $({")
    return before.endswith(("frac", "}")) and low[mention.end : mention.end + 3].lstrip(" $)")[:1] == "}"


def is_left_behind(reply: Reply, mention: Mention) -> bool:
    """Tell whether a long reply ends in the midst of a sentence behind the option: what it came to is not known."""
    end = reply.low.rstrip()
    if len(end) < _SHORT or len(end) - mention.end < 6:
        return False
    if _breaks_off(end, mention):
        return True
    at = _tail(end)
    tail = end[at:]
    if end[-1:].isalpha() and tail.isalpha() and "=" in end[mention.end : at]:
        # The working goes on behind the option and ends with a word: what it came to is not known.
        return True
    return end[-1:].isalnum() and len(tail.encode()) >= _TAIL_BYTES and ":" not in tail and not _ITEM.match(tail)


def _breaks_off(end: str, mention: Mention) -> bool:
    """Whether a text ends at a sign or an operator, or in a formula opened behind the option and not closed."""
    if end[-1:] in _UNFINISHED:
        return True
    opened = end.rfind("$$") if end.count("$$") % 2 else end.rfind("\\[")
    if opened > mention.end and "\\]" not in end[opened:]:
        return True
    return _OPERATOR.search(end, len(end) - 8) is not None


def is_passed_over(low: str, mention: Mention) -> bool:
    """Tell whether the reply ends with a short conclusion that is not the option named before (`… Hence nitrogen.`)."""
    brief = low[-_BRIEF:]
    # One after the other, since this is asked of most replies that name an option by its text.
    if "so" not in brief and "hence" not in brief and "thus" not in brief and "therefore" not in brief:
        return False
    end = low.rstrip()
    at = _tail(end)
    return mention.end <= at and _CONCLUDED.fullmatch(end, at) is not None


def is_outweighed(options: OptionSet, reply: Reply, mention: Mention) -> bool:
    """Tell whether the last sentence states another quantity, one that is no option: then nothing was chosen."""
    if not options.texts.measures or mention.end > _tail(reply.low.rstrip()):
        return False
    said = [one for one in find_measures(reply.body) if one.start >= _tail(reply.low.rstrip())]
    return bool(said) and all(fitting_option(one, options.texts.measures) is None for one in said)


def sentence_of(low: str, mention: Mention) -> tuple[int, int]:
    """Return where the sentence around a mention starts and ends."""
    stop = _STOP.search(low, mention.end)
    return _last_stop(low, mention.start), stop.start() if stop else len(low)


def _tail(end: str) -> int:
    """Return where the last sentence of a text without space at its end starts."""
    return _last_stop(end, len(end) - 1)


def _last_stop(low: str, before: int) -> int:
    return max((stop.end() for stop in _STOP.finditer(low, max(0, before - 400), before)), default=0)
