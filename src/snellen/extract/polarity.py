"""Mentions of options in a reply to what the reply says of each: affirmed, denied, asked, one of several."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .phrases import AFFIRMED_AFTER, AFFIRMED_BEFORE, DENIED_AFTER, DENIED_BEFORE, SPARED_BEFORE, TENTATIVE_BEFORE
from .word_lists import START, After, Before, LazyPattern

_QUESTION = After(r"[)\]}\"'*_`\s]*+\?", finds=")?", passes=".")
_JOIN = LazyPattern(
    r"[)\]}\"'*_`\s]*+(?:\([^()\n]{1,40}\)\s?)?(?:\.?\s*(?:,\s*)?(?:<polarity.joins>|[,/&|、+>→⇒]|->|=>))?\s*"
    r"(?:even |maybe |possibly |perhaps |also )?(?:(?=[^\W\d_][\s\w])(?:<polarity.join_filler>)\s)*+[(\[{\"'*_`\s]*",
    finds=" and the ",
)
_PAIR_LEAD = Before(
    rf"(?:{START}|(?<=[\u2e80-\uffff]))(?:<polarity.pair_lead>)\s?[^.;,\n]{{0,16}}",
    reach=32,
    finds="sowohl ",
    passes="not ",
)
_PAIR_JOIN = LazyPattern(
    r"[)\]}\"'*_`\s]*+(?:\([^()\n]{1,40}\)\s?)?,?\s?(?:<polarity.pair_join>)\s?"
    r"(?:(?:option|choice|answer|la|el|le|les|die|der|das|il|lo|de|opción|respuesta|réponse|antwort|вариант|选项|the|an?)\s?)*+"
    r"(?:[a-z][.:)]?\s?(?=[(\[\"']))?[(\[{\"'*_`\s]*",
    finds=" als auch ",
    passes=".",
)
_PAIR_ON = After(
    r"[)\]\"'*_`]*,?\s(?:<polarity.pair_join>)\s(?:option |antwort |la |el )?[(\[\"'*]*[a-z](?!\w)",
    finds=" and d are",
    passes=" and it is",
)
"""Two options that are endorsed together: `tanto B como C`, `sowohl B als auch C`."""
_PUT = After(r"\s?\?\s*(?:(?P<yes>yes|yep|indeed)|(?P<no>no|nope|not))?(?!\w)", finds="? no.", passes=".")
"""A question put and answered by the speaker: `Is B right? No.`"""
_ARROW = LazyPattern("[>→⇒]", finds=" → ", passes=" or ")
_OPPOSED = LazyPattern(
    r"[)\]}\"'*_`\s]*+,?\s?(?:<polarity.opposes>)(?: rather| it's| it is)?\s?"
    r"(?:option |an? |the |el |la |le |il |der |die |das |ein |eine |una? |une )*+[(\[{\"'*_`\s]*",
    finds=", but a ",
    passes=" and ",
)
_LIKEWISE = Before(
    r"(?<!\w)(?:so|as|neither|nor) (?:is|are|does|do|can|was)\s(?:option |choice |the |an? )?[(\[\"'*]*",
    reach=24,
    finds="a is wrong, so is ",
    passes="a is wrong, it is ",
)
_EXCEPT = Before(
    r"(?<!\w)(?:except(?: for)?|apart from|other than|besides|aside from)\s(?:option |choice )?[(\[\"'*]*",
    reach=56,
    finds="except for option ",
    passes="it is ",
)
_ALL_OTHERS = After(
    r"[)\]\"'*]*,?\s(?:all|every|the (?:other|rest)|none|no )", finds=", all others are wrong", passes=" is right"
)
_PLURAL = After(r"[)\]}\"'*_`.\s]*+(?:<polarity.plural>)", finds=" are wrong", passes=" is wrong")


class Mention:
    """One place where an option is named: which one, where, and what is said of it."""

    __slots__ = ("affirmed", "asked", "denied", "end", "index", "joined", "listed", "start", "tentative")

    def __init__(self, index: int, start: int, end: int, *, listed: bool = False) -> None:
        self.index, self.start, self.end, self.listed = index, start, end, listed
        self.affirmed = self.denied = self.asked = self.joined = self.tentative = False

    @property
    def stands(self) -> bool:
        """Whether it may count as an answer at all."""
        return not self.denied and not self.listed

    @property
    def alone(self) -> bool:
        """Whether it stands and is not one of several joined ones."""
        return self.stands and not self.joined

    @property
    def plain(self) -> bool:
        """Whether it stands alone, neither asked for nor weighed."""
        return self.alone and not self.asked and not self.tentative

    @property
    def sure(self) -> bool:
        """Whether it is plainly named, and affirmed."""
        return self.affirmed and self.plain


def agreed(mentions: Sequence[Mention]) -> Mention | None:
    """Return the last mention if all name the same option, else None."""
    return mentions[-1] if mentions and all(mention.index == mentions[-1].index for mention in mentions) else None


def judge(low: str, mentions: Sequence[Mention]) -> None:
    """Fill in what `low` (lower-cased text) says of each mention, reading a list such as `A, B or C` as one."""
    run: list[Mention] = []
    previous: Mention | None = None
    for mention in mentions:
        if run and not _linked(low, run[-1], mention):
            _close(low, run)
            run = []
        # `not A or B` denies B as well, `not A → B` does not.
        inherited = bool(run) and run[-1].denied and not _ARROW.search(low, run[-1].end, mention.start)
        _judge_one(low, mention, inherited=inherited)
        if previous and not mention.denied:
            _compare(low, previous, mention)
        run.append(mention)
        previous = mention
    _close(low, run)


def _compare(low: str, previous: Mention, mention: Mention) -> None:
    """Read what is said of a mention by way of the one before: `not A but B`, `A is wrong, so is B`."""
    if previous.denied and _OPPOSED.fullmatch(low, previous.end, mention.start):
        mention.affirmed = True
    elif _LIKEWISE.before(low, mention.start, previous.end):
        mention.denied, mention.affirmed = previous.denied, previous.affirmed


def _linked(low: str, first: Mention, second: Mention) -> bool:
    """Whether two mentions stand in one list, with nothing but a conjunction between them."""
    if second.start - first.end > 68:
        return False
    return _JOIN.fullmatch(low, first.end, second.start) is not None or called_together(low, first, second)


def called_together(low: str, first: Mention, second: Mention) -> bool:
    """Tell whether both are called together in words that come in pairs (`tanto … como`, `既是 … 也是`)."""
    if _PAIR_JOIN.fullmatch(low, first.end, second.start) is None:
        return False
    return _PAIR_LEAD.before(low, first.start) is not None


def leads_pair(low: str, start: int, end: int) -> bool:
    """Tell whether a capital is the first of two labels that are endorsed together (`sowohl A als auch B`)."""
    return _PAIR_ON.match(low, end) is not None and _PAIR_LEAD.before(low, start) is not None


def ends_pair(low: str, last: int, start: int) -> bool:
    """Tell whether a capital is the second of such two, the first of which ends at `last`."""
    if _PAIR_JOIN.fullmatch(low, last, start) is None:
        return False
    return _PAIR_LEAD.before(low, last - 1) is not None


def _judge_one(low: str, mention: Mention, *, inherited: bool) -> None:
    start, end = mention.start, mention.end
    mention.asked = _QUESTION.match(low, end) is not None
    mention.tentative = TENTATIVE_BEFORE.before(low, start) is not None
    if SPARED_BEFORE.before(low, start) or _excepted(low, mention):
        mention.affirmed = True
        return
    denied = DENIED_AFTER.after(low, end) is not None
    praised = None if denied else AFFIRMED_AFTER.after(low, end)
    mention.denied = denied or DENIED_BEFORE.before(low, start) is not None or (inherited and not _praises(praised))
    affirmed = praised is not None or AFFIRMED_BEFORE.before(low, start) is not None
    mention.affirmed = affirmed and not mention.denied
    if praised is not None:
        _answer_question(low, mention, praised.end())


def _praises(match: re.Match[str] | None) -> bool:
    """Whether what follows a mention praises it; in `rule out A and B because …` a reason is no praise."""
    return match is not None and not match.group().endswith(("because", "since"))


def _answer_question(low: str, mention: Mention, end: int) -> None:
    """Where the praise was a question (`Is B right? No.`), let the speaker's own answer count."""
    question = _PUT.match(low, end)
    if question:
        mention.affirmed, mention.denied = question.group("yes") is not None, question.group("no") is not None


def _excepted(low: str, mention: Mention) -> bool:
    """Whether it reads `except for C, all others …`: what is excepted is what remains."""
    after = _ALL_OTHERS.match(low, mention.end)
    return after is not None and _EXCEPT.before(low, mention.start) is not None


def _close(low: str, run: list[Mention]) -> None:
    """Settle one list of mentions: `A, B and D are wrong` denies all; several undenied ones are joined."""
    if len(run) < 2:
        return
    shared = run[-1].denied and _PLURAL.match(low, run[-1].end) is not None
    praised = run[-1].affirmed and _PLURAL.match(low, run[-1].end) is not None
    for mention in run:
        mention.denied |= shared and not (mention.affirmed and low.startswith(",", mention.end))
        mention.affirmed |= praised and not mention.denied
    joined = len({mention.index for mention in run if not mention.denied}) > 1
    for mention in run:
        mention.joined = joined
