"""Mentions of options in a reply to what the reply says of each: affirmed, denied, asked, one of several."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .word_lists import END, START, LazyPattern

_OPENING = r"[(\[{\"'*_`「『【《“<\\$\s]*+"
_CLOSING = r"[)\]}\"'*_`.」』】》”> \t]*+"
_DETERMINERS = r"(?:(?:<polarity.determiner>) |<polarity.determiner_glued>)*+"
_ASIDE = r"(?:\([^()\n]{0,60}\)[ \t]*)?"
_SAYS = r"(?:(?:<polarity.says>)\s+)*+"

ONLY_IF = (
    r"(?:(?:would|could|can only|may only|might) (?:only )?(?:be|apply|fit|hold|work)[^.;\n]{0,24}"
    r"|(?:(?:is|holds|applies|works) (?:correct |right |true )?)?only) if(?!\w)"
)
"""What is right under a condition is not said to be right."""

# Each phrase below looks at one side of a mention, up to it or from it on: what is said of an option is judged by both
# sides, and the nearer word wins. They are tried for every mention, so all of them are anchored at the mention.
DENIED_BEFORE = LazyPattern(
    rf"(?:{START}(?:<polarity.denies>)"
    r"|(?<!\w)(?:first (?:thought|guess|read)|initially|at first|originally)(?:(?!but )[^,.;:\n]){0,30}"
    r"|n't|≠|!=|☐|\[ \]|(?:\A|\n)[\s*>•-]*[❌✗✘]"
    rf"|<polarity.denies_glued>)[\s*_(\[\"']*{_DETERMINERS}{_OPENING}\Z"
)
SPARED_BEFORE = LazyPattern(
    r"(?:everything|nothing|(?:all|every|none|no)(?: of)?(?: the)?(?: other)?(?: options?| choices?| answers?| ones?)?)"
    rf" (?:but|except|other than|besides|apart from)(?: for)?\s{_DETERMINERS}{_OPENING}\Z"
)
"""`All but B`: the denial of the others spares this one. Tried first, since `but` and `except` would deny it."""
AFFIRMED_BEFORE = LazyPattern(
    rf"(?:{START}(?:<polarity.affirms>)"
    r"|=>|→|⇒|->|(?<!\b[a-z]\s)=|☑|☒|\[x\]|(?:\A|\n)[\s*>•-]*[✅✔✓]|<polarity.affirms_glued>)[,:]?\s*"
    rf"(?:(?:<polarity.affirms_filler>) |<polarity.affirms_filler_glued>)*+{_OPENING}\Z"
)
TENTATIVE_BEFORE = LazyPattern(
    rf"(?:<polarity.weighs_glued>)是?{_OPENING}\Z|(?:\A|[.;!?\n]\s?)if [^.;!?\n]{{1,48}}\Z"
    rf"|{START}(?:<polarity.weighs>)(?: also| well| still| equally)?"
    rf"(?: be| it's| it is| it| were| was)?\s*{_DETERMINERS}{_OPENING}\Z"
)
DENIED_AFTER = LazyPattern(
    rf"[)\]\"'*_`]*\s{ONLY_IF}"
    r"|[)\]\"'*_`]*,?\s(?:but|however,?) (?:the|this) question|"
    r"[)\]\"'*_`]*\s(?:[a-z]{4,14}\s)?(?:<polarity.supposes>)(?!\w)|\s?\((?:no|wrong|incorrect|✗|❌)[),]|"
    rf"{_CLOSING}{_ASIDE}(?:[,:–—-]?[ \t]*{_SAYS}(?:(?:<polarity.bad>|<polarity.weak>){END}"
    rf"|(?:<polarity.denied_verb>)n't(?! (?:<polarity.bad>){END})|can't|❌|✗|✘|×|🚫)"
    r"|[:–—?-]\s?(?:no|nope)(?=[\s]*(?:[.,;:\n–—-]|\Z))|\?\s?也?不"
    rf"|(?<!\.\s){_SAYS}(?:(?<=\s)(?:not(?! (?:been )?(?:<polarity.bad>){END})|<polarity.never>){END})(?<!, not)"
    r"|(?:选项|項|项|は|が|이|가|은|는|是)?\s?(?:都|均|全|也|明显|显然|肯定)*+是?(?:<polarity.bad_glued>)|\s?(?:<polarity.bad_spaced>))"
)
AFFIRMED_AFTER = LazyPattern(
    rf"{_CLOSING}{_ASIDE}[,:–—-]?\s*{_SAYS}(?:(?:<polarity.good>|not (?:been )?(?:<polarity.bad>)){END}"
    r"|✓|✔|✅|☑|(?<=[:–—-] )yes|(?<=\bit )is(?=\s*(?:[.!,;\n]|\Z))"
    r"|(?:选项|項|项|は|が|이|가|은|는|是|를|을|才是|才)?\s?(?:的)?(?:<polarity.good_glued>))"
)
REFUTED = LazyPattern(
    rf"[)\]}}\"'”*_`$\\ ]*\s{ONLY_IF}|[)\]}}\"'*_`$\\ ]*[:,–—-]?\s?(?:(?:is|are|was|would be|can be|seems|looks)\s)?"
    r"(?:clearly |also |therefore |thus )?"
    rf"(?:(?:<polarity.bad>){END}|isn't|is not|are not|doesn't|does not|cannot be|can't be|❌|✗|✘|×)"
)
"""Said after an option's text: only what judges the option, since the text itself may deny (`B. No, it is not`)."""
_QUESTION = LazyPattern(r"[)\]}\"'*_`\s]*+\?")
_JOIN = LazyPattern(
    r"[)\]}\"'*_`\s]*+(?:\([^()\n]{1,40}\)\s?)?(?:\.?\s*(?:,\s*)?(?:<polarity.joins>|[,/&|、+>→⇒]|->|=>))?\s*"
    r"(?:even |maybe |possibly |perhaps |also )?(?:(?=[^\W\d_][\s\w])(?:<polarity.join_filler>)\s)*+[(\[{\"'*_`\s]*"
)
_PAIR_LEAD = LazyPattern(rf"(?:{START}|(?<=[\u2e80-\uffff]))(?:<polarity.pair_lead>)\s?[^.;,\n]{{0,16}}\Z")
_PAIR_JOIN = LazyPattern(
    r"[)\]}\"'*_`\s]*+(?:\([^()\n]{1,40}\)\s?)?,?\s?(?:<polarity.pair_join>)\s?"
    r"(?:(?:option|choice|answer|la|el|le|les|die|der|das|il|lo|de|opción|respuesta|réponse|antwort|вариант|选项|the|an?)\s?)*+"
    r"(?:[a-z][.:)]?\s?(?=[(\[\"']))?[(\[{\"'*_`\s]*"
)
_PAIR_ON = LazyPattern(r"[)\]\"'*_`]*,?\s(?:<polarity.pair_join>)\s(?:option |antwort |la |el )?[(\[\"'*]*[a-z](?!\w)")
"""Two options that are endorsed together: `tanto B como C`, `sowohl B als auch C`."""
_PUT = LazyPattern(r"\s?\?\s*(?:(?P<yes>yes|yep|indeed)|(?P<no>no|nope|not))?(?!\w)")
"""A question put and answered by the speaker: `Is B right? No.`"""
_ARROW = LazyPattern("[>→⇒]")
_OPPOSED = LazyPattern(
    r"[)\]}\"'*_`\s]*+,?\s?(?:<polarity.opposes>)(?: rather| it's| it is)?\s?"
    r"(?:option |an? |the |el |la |le |il |der |die |das |ein |eine |una? |une )*+[(\[{\"'*_`\s]*"
)
_LIKEWISE = LazyPattern(
    r"(?<!\w)(?:so|as|neither|nor) (?:is|are|does|do|can|was)\s(?:option |choice |the |an? )?[(\[\"'*]*\Z"
)
_EXCEPT = LazyPattern(
    r"(?<!\w)(?:except(?: for)?|apart from|other than|besides|aside from)\s(?:option |choice )?[(\[\"'*]*\Z"
)
_ALL_OTHERS = LazyPattern(r"[)\]\"'*]*,?\s(?:all|every|the (?:other|rest)|none|no )")
_PLURAL = LazyPattern(r"[)\]}\"'*_`.\s]*+(?:<polarity.plural>)")
_WINDOW = 56
"""So many characters before a mention are looked at: a clause, and a bound on time."""


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
    elif _LIKEWISE.search(low, max(previous.end, mention.start - 24), mention.start):
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
    return _PAIR_LEAD.search(low, max(0, first.start - 32), first.start) is not None


def leads_pair(low: str, start: int, end: int) -> bool:
    """Tell whether a capital is the first of two labels that are endorsed together (`sowohl A als auch B`)."""
    return _PAIR_ON.match(low, end) is not None and _PAIR_LEAD.search(low, max(0, start - 32), start) is not None


def ends_pair(low: str, last: int, start: int) -> bool:
    """Tell whether a capital is the second of such two, the first of which ends at `last`."""
    if _PAIR_JOIN.fullmatch(low, last, start) is None:
        return False
    return _PAIR_LEAD.search(low, max(0, last - 33), last - 1) is not None


def _judge_one(low: str, mention: Mention, *, inherited: bool) -> None:
    begin, start, end = max(0, mention.start - _WINDOW), mention.start, mention.end
    mention.asked = _QUESTION.match(low, end) is not None
    mention.tentative = TENTATIVE_BEFORE.search(low, begin, start) is not None
    if SPARED_BEFORE.search(low, begin, start) or _excepted(low, begin, mention):
        mention.affirmed = True
        return
    denied = DENIED_AFTER.match(low, end, end + 120) is not None
    praised = None if denied else AFFIRMED_AFTER.match(low, end, end + 120)
    mention.denied = (
        denied or DENIED_BEFORE.search(low, begin, start) is not None or (inherited and not _praises(praised))
    )
    affirmed = praised is not None or AFFIRMED_BEFORE.search(low, begin, start) is not None
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


def _excepted(low: str, begin: int, mention: Mention) -> bool:
    """Whether it reads `except for C, all others …`: what is excepted is what remains."""
    after = _ALL_OTHERS.match(low, mention.end)
    return after is not None and _EXCEPT.search(low, begin, mention.start) is not None


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
