"""Option texts that a reply names to the one that is meant: the only one, or the one of several it settles on."""

from __future__ import annotations

from collections.abc import Sequence

from .cue_words import CORRECTION, GOES_THROUGH, UNDECIDED
from .extraction import Extraction
from .named_aside import is_aside, is_left_behind, is_operand, is_outweighed, is_passed_over, sentence_of
from .option_set import OptionSet, Reply
from .polarity import Mention, agreed
from .word_lists import END, START, LazyPattern

_TAIL = 160
"""The last sentence or two."""
_CLAUSE_LED = LazyPattern(
    rf"{START}(?:<conclusions.concedes>)(?![a-z])[^.;,:\n]{{0,60}}\Z|(?:<conclusions.concedes_glued>)[^，。,.]{{0,16}}\Z"
    rf"|(?:\A|[.;!\n]\s?)(?:<conclusions.circumstance>){END}[^.;,\n]{{0,60}}\Z"
)
"""Before an option that stands in a clause beside the point: what is conceded, compared, or the circumstance."""
_PREDICATE = LazyPattern(
    r"(?<!\w)(?<!there )(?:is|are|was|were|be)(?: \w{2,12}ly)?(?: \w{2,12}(?:ed|wn|en))?"
    r"(?: (?:as|by|in|to|an example of|typical (?:of|for)))?(?: an?| the)?\s[*_\"']*\Z"
)
_CONCLUDES = LazyPattern(
    r"(?:(?<!\w)(?:<conclusions.concludes>)(?!\w)|[→⇒]|<conclusions.concludes_glued>)[^.\n;。；]{0,30}\Z|[=≈][\s*$]{0,3}\Z"
    r"|(?<!\w)(?:<conclusions.must>)\s?(?:the |an? )?\Z"
)
SUPERLATIVE = LazyPattern(
    r"[)\]\"'*_`]*\s(?:is|was|has|had|shows|showed|reaches|yields|gives|must be)\s(?:clearly |by far )?the\s"
    r"(?:most|least|only|best|odd one|exception|\w{2,12}est)(?!\w)"
)
_EXTREME = LazyPattern(
    r"(?<!\w)(?:maximum|minimum|peak|most|least|best|worst|(?!(?:rest|test|west|east|latest|interest|honest|forest|request|suggest)\b)[a-z]{2,10}est)(?!\w)"
    r"[^.\n;]{0,60}\Z"
)
OR_BEFORE = LazyPattern(r"(?<!\w)(?:<conclusions.or>)\s(?:option |choice )?[(\[\"'*]*\Z")
_DOING = LazyPattern(r"[a-z]{2,12}ing\s")
_NAMES_THING = LazyPattern(r"[)\"'*_]*(?:\s?[:=]\s?[-+$€£]?\d|\swith\s\d|\s?[点點])")
"""After a capital that names a thing and no option: its figure (`A: +3`, `B with 8`), or what it is."""
_LIKENED = LazyPattern(r"(?<!\w)(?:<conclusions.likened>)(?!\w)")
PREFERRED = LazyPattern(rf"[)\"'*_]*,?(?:\s\w{{1,12}}){{0,8}}\s(?:<conclusions.chosen>){END}")
"""After an option that its sentence prefers."""
_PAIR = 2
_IF = LazyPattern(r"(?<!\w)if (?!i (?:had|have|must))")
_EITHER = LazyPattern(rf"{START}(?:<conclusions.either>)\s(?:an? |the |eine? )?[*_\"'(]*\Z")


def picked_by_text(options: OptionSet, reply: Reply, mentions: list[Mention], rule: str) -> Extraction | None:
    """Pick the option that the texts named in a reply mean, if they mean one."""
    standing = [mention for mention in mentions if mention.stands]
    if UNDECIDED.search(reply.low, max(0, len(reply.low) - _TAIL)) or _ends_open(reply.low, standing[-2:]):
        return None
    if _hangs_on(reply.low, standing[-2:]):
        return None
    chosen = meant_text(reply.low, after_turn(reply, standing), _labels_apart(reply, standing))
    if chosen is None or is_aside(reply.low, chosen) or is_left_behind(reply, chosen):
        return None
    if is_operand(reply.low, chosen) or is_outweighed(options, reply, chosen) or is_passed_over(reply.low, chosen):
        return None
    return options.pick(reply, chosen, rule)


def _ends_open(low: str, last: Sequence[Mention]) -> bool:
    """Whether the last two options named are those between which it is left (`It could be either red or blue`)."""
    if not last or not last[-1].joined or not last[0].joined or last[0].index == last[-1].index:
        return False
    return _EITHER.search(low, max(0, last[0].start - 32), last[0].start) is not None


def _hangs_on(low: str, last: Sequence[Mention]) -> bool:
    """Whether the last two options named are each right under a condition (`X if …. If not, Y is better.`)."""
    if len({mention.index for mention in last}) < len(last) or len(last) < _PAIR:
        return False
    return all(_IF.search(low, *sentence_of(low, mention)) for mention in last)


def _only_things(low: str, labels: Sequence[Mention]) -> bool:
    """Whether capitals of which nothing is said name things: these do not outweigh what is stated last."""
    if any(label.affirmed for label in labels):
        return False
    return len({label.index for label in labels}) > 1 or all(_NAMES_THING.match(low, label.end) for label in labels)


def meant_text(low: str, pool: list[Mention], apart: Sequence[Mention]) -> Mention | None:
    """Return the option that all texts name, or the one of several that is settled on; labels `apart` contradict."""
    if apart:
        return _stated_last(low, pool) if _only_things(low, apart) else None
    for named in (pool, _to_the_point(low, pool)):
        if agreed(named):
            # Said twice, it may be meant where it is said first (`Point D matches. … image 1 and point D …`).
            return next((mention for mention in reversed(named) if _is_meant(low, mention)), None)
    if pool and all(led_aside(low, mention) for mention in pool):
        return None
    return next(filter(None, (find(low, pool) for find in _SETTLES)), None)


def _is_meant(low: str, chosen: Mention) -> bool:
    """Whether an option is neither one of several nor only gone through."""
    return not chosen.joined and not only_named(low, chosen)


def _to_the_point(low: str, pool: list[Mention]) -> list[Mention]:
    """Leave out options that are named in brackets, or in a clause that concedes, compares or tells a circumstance."""
    return [m for m in pool if not _in_brackets(low, m, m is pool[-1]) and not led_aside(low, m)]


def led_aside(low: str, mention: Mention) -> bool:
    """Whether an option stands in a clause that concedes, compares or tells a circumstance."""
    return _CLAUSE_LED.search(low, max(0, mention.start - 90), mention.start) is not None


def _in_brackets(low: str, mention: Mention, last: bool) -> bool:
    """Whether it stands within brackets; the last one only if they hold more than it, for `(red)` may be the answer."""
    opened = low.rfind("(", max(0, mention.start - 120), mention.start)
    closed = low.find(")", mention.end, mention.end + 200)
    if opened < 0 or closed < 0 or low.find(")", opened, mention.start) >= 0:
        return False
    return not last or len(low[opened + 1 : closed].split()) > len(low[mention.start : mention.end].split()) + 1


def _labels_apart(reply: Reply, standing: Sequence[Mention]) -> list[Mention]:
    """Return labels that stand for an option whose text is not named, and are not part of a text (`5 °C`)."""
    if not reply.labels:
        return []
    named = {mention.index for mention in standing}
    apart = [label for label in reply.labels if label.stands and label.index not in named and not _together(label)]
    return [label for label in apart if not any(text.start <= label.start < text.end for text in standing)]


def _together(label: Mention) -> bool:
    """Whether it is one of several of which nothing is said (`P(A and B)`): such a pair contradicts no text."""
    return label.joined and not label.affirmed


def _concluded(low: str, pool: list[Mention]) -> Mention | None:
    """Return the last mention that is a conclusion (`so four`, `= 4`)."""
    sound = [mention for mention in pool if mention.plain]
    return next((m for m in reversed(sound) if _CONCLUDES.search(low, max(0, m.start - 40), m.start)), None)


def _contrasted(low: str, pool: list[Mention]) -> Mention | None:
    """Return the first of several texts where all others are what it is likened to (`a dog, like a cat`)."""
    if not pool or pool[0].joined:
        return None
    others = [mention for mention in pool if mention.index != pool[0].index]
    return pool[0] if all(_LIKENED.search(low, pool[0].end, mention.start) for mention in others) else None


def _stated_last(low: str, pool: list[Mention]) -> Mention | None:
    """Return the only option of which the last sentence says that something is it (`… The city is Prague.`)."""
    end = max(low.rfind(stop, 0, len(low.rstrip()) - 1) for stop in (". ", "! ", "? ", "\n", "。"))
    last = [mention for mention in pool if mention.start > end]
    chosen = agreed([mention for mention in last if mention.affirmed])
    if chosen and chosen.sure and chosen is pool[-1]:
        return chosen
    only = agreed(last)
    return only if only is not None and only.plain and _is_extreme(low, only, max(end, 0)) else None


def _is_extreme(low: str, only: Mention, begin: int) -> bool:
    """Whether its sentence calls it the largest, the least or the like."""
    return SUPERLATIVE.match(low, only.end) is not None or _EXTREME.search(low, begin, only.start) is not None


def _predicated(low: str, pool: list[Mention]) -> Mention | None:
    """Return the only option of which it is said that something is it (`is recorded as a liability`)."""
    if any(low.startswith((" if ", " when "), mention.end) for mention in pool):
        return None
    chosen = agreed([m for m in pool if m.plain and _PREDICATE.search(low, max(0, m.start - 48), m.start)])
    # What is defined between two other options is gone through, not chosen.
    return chosen if chosen is not None and chosen.index in (pool[0].index, pool[-1].index) else None


_SETTLES = (_stated_last, _concluded, _contrasted, _predicated)
"""Ways to tell which of several option texts is meant, in turn."""


def only_named(low: str, chosen: Mention) -> bool:
    """Whether it is one of several (`or B`), or the first option that the reply goes through (`Each option. A: …`).

    What somebody does beside something else is not: `is sitting there and reading a book`.
    """
    if low.endswith("and ", 0, chosen.start) and _DOING.match(low, chosen.start, chosen.end):
        return False
    if OR_BEFORE.search(low, max(0, chosen.start - 12), chosen.start) or low.startswith(
        "either ", max(0, chosen.start - 7)
    ):
        return True
    return len(low) - chosen.end > 8 and GOES_THROUGH.search(low, max(0, chosen.start - 100), chosen.start) is not None


def after_turn(reply: Reply, standing: list[Mention]) -> list[Mention]:
    """Return those after the last self-correction that any follows, or all."""
    if not standing:
        return standing
    for turn in reversed(CORRECTION.matches(reply.low)[-4:]):
        later = [mention for mention in standing if mention.start >= turn.end()]
        if later:
            return later
    return standing
