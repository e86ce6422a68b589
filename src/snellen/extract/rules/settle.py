"""Option texts that a reply names to the one that is meant: the only one, or the one of several it settles on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..cue_words import CORRECTION, GOES_THROUGH, UNDECIDED
from ..extraction import Extraction
from ..option_set import OptionSet, Reply
from ..polarity import Mention, agreed
from ..word_lists import END, START, LazyPattern
from .aside import is_aside, is_left_behind, is_operand, is_outweighed, is_passed_over, is_proof
from .opening import EARLIER, FULL_STOPS, HEADS, TURNED, alone_first, is_plain, stated_first

_TAIL = 160
"""The last sentence or two."""
_CLAUSE_LED = LazyPattern(
    rf"{START}(?:<conclusions.concedes>)(?![a-z])[^.;,:\n]{{0,60}}\Z|(?:<conclusions.concedes_glued>)[^，。,.]{{0,16}}\Z"
    rf"|(?:\A|[.;!\n]\s?)(?:<conclusions.circumstance>){END}[^.;,\n]{{0,60}}\Z"
)
"""Before an option that stands in a clause beside the point: what is conceded, compared, or the circumstance."""
_MOST_LIKELY = LazyPattern(
    r"[)\]\"'*_`]*\s?[:–—(,-]\s?(?:is |by far |the )*most (?:likely|probable|consistent|plausible)(?!\w)"
)
_PREDICATE = LazyPattern(
    r"(?<!\w)(?<!there )(?:is|are|was|were|be)(?: \w{2,12}ly)?(?: \w{2,12}(?:ed|wn|en))?"
    r"(?: (?:as|by|in|to|an example of|typical (?:of|for)))?(?: an?| the)?\s[*_\"']*\Z"
)
_MOST_AT = LazyPattern(
    r"(?<!\w)(?:most|least|best|worst|highest|lowest|largest|smallest) (?:in|on|at|for|by) (?:the )?\Z"
)
_PARTS = LazyPattern(r"\s(?:[\w'-]{1,16}\s){0,3}[\w'-]{1,16}\s?[:(–—]")
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
_MORE = LazyPattern(
    r"[)\]\"'*_`]*\s(?:is|was|are|has|had|costs|runs|moves|weighs|goes)\s(?:clearly |much |therefore |thus |the )*"
    r"(?:<conclusions.compares>)(?!\w)"
)
_ENDS_SO = LazyPattern(r"[)\]\"'*_`]*\s[a-z]+(?:\s[a-z]+){1,3}[*_]*[.!]?\s*\Z")
_SENTENCE_LED = LazyPattern(
    r"(?:\A|[.!?\n]\s?|(?<!\w)(?:so|hence|thus|therefore),?\s|,\s)[\s*_\"'“]*"
    r"(?:the |so |hence,? |thus,? |therefore,? )*[*_\"'“]*\Z"
)
_NAMES_THING = LazyPattern(r"[)\"'*_]*(?:\s?[:=]\s?[-+$€£]?\d|\swith\s\d|\s?[点點])")
"""After a capital that names a thing and no option: its figure (`A: +3`, `B with 8`), or what it is."""
_COMPARED_WITH = LazyPattern(r"(?<!\w)(?:<conclusions.compared_with>)\s(?:the |an? )?[*_\"'“]*\Z")
_THAN = LazyPattern(r"(?<!\w)(?:<conclusions.compares>)(?: \w{3,12})? than (?:the |an? |those of |that of )*\Z")
_ROW = LazyPattern(r"(?:\s?\([^()\n]{1,40}\))?\s?,?\s?(?:and |or )?(?:than )?(?:the |an? )?")
_TWO = 2
_CLAUSE_ENDS = LazyPattern(r"[.;!?](?=\s)|\n|(?<!\w)(?:but|however|not)(?!\w)")
_LIKENED = LazyPattern(r"(?<!\w)(?:<conclusions.likened>)(?!\w)")
_IDENTIFIES = LazyPattern(
    r"(?<!\w)(?:<conclusions.identifies>)(?:'s| is| was| must be| shows| depicts)"
    r"(?: clearly| actually| definitely| indeed)? (?:an? |the )?[*_\"'“]*\Z"
)
_TICKS = frozenset("✓✔✅☑")
_TICKED = LazyPattern(r"(?:\A|(?<=\n))[^\n]{1,300}[✓✔✅☑][\s*_|]*(?=\n|\Z)")
_EITHER = LazyPattern(rf"{START}(?:<conclusions.either>)\s(?:an? |the |eine? )?[*_\"'(]*\Z")
_COUNTS = LazyPattern(r"(?<!\w)(?:there (?:are|is)|i (?:can )?(?:see|count))(?: exactly| only| a total of)? \Z")


def picked_by_text(options: OptionSet, reply: Reply, mentions: list[Mention], rule: str) -> Extraction | None:
    """Pick the option that the texts named in a reply mean, if they mean one."""
    standing = _in_earnest(reply.low, [mention for mention in mentions if mention.stands])
    if UNDECIDED.search(reply.low, max(0, len(reply.low) - _TAIL)) or _ends_open(reply.low, standing[-2:]):
        return None
    chosen = meant_text(reply.low, after_turn(reply, standing), _labels_apart(reply, standing))
    if chosen is None or is_aside(reply.low, chosen) or is_left_behind(reply, chosen):
        return None
    if is_operand(reply.low, chosen) or is_outweighed(options, reply, chosen) or is_passed_over(reply.low, chosen):
        return None
    return options.pick(reply, chosen, rule)


def _in_earnest(low: str, standing: list[Mention]) -> list[Mention]:
    """Leave out what a result becomes in a check of it, if any other option is left."""
    if "check" not in low:
        return standing
    return [mention for mention in standing if not is_proof(low, mention)] or standing


def _ends_open(low: str, last: Sequence[Mention]) -> bool:
    """Whether the last two options named are those between which it is left (`It could be either red or blue`)."""
    if not last or not last[-1].joined or not last[0].joined or last[0].index == last[-1].index:
        return False
    return _EITHER.search(low, max(0, last[0].start - 32), last[0].start) is not None


def _only_things(low: str, labels: Sequence[Mention]) -> bool:
    """Whether capitals of which nothing is said name things: these do not outweigh what is stated last."""
    if any(label.affirmed for label in labels):
        return False
    return len({label.index for label in labels}) > 1 or all(_NAMES_THING.match(low, label.end) for label in labels)


def meant_text(low: str, pool: list[Mention], apart: Sequence[Mention]) -> Mention | None:
    """Return the option that all texts name, or the one of several that is settled on; labels `apart` contradict."""
    if apart:
        return _stated_last(low, pool) if _only_things(low, apart) else None
    chosen = agreed(pool) or agreed(_to_the_point(low, pool))
    if chosen:
        return chosen if _is_meant(low, chosen) else None
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
    sound = [mention for mention in pool if is_plain(mention)]
    return next((m for m in reversed(sound) if _CONCLUDES.search(low, max(0, m.start - 40), m.start)), None)


def _contrasted(low: str, pool: list[Mention]) -> Mention | None:
    """Of two texts set against each other, the one meant: the first of `a dog, like a cat`, the last after `but`."""
    if not pool or pool[0].joined:
        return None
    first, others = pool[0], [mention for mention in pool if mention.index != pool[0].index]
    if all(_LIKENED.search(low, first.end, mention.start) for mention in others):
        return first
    return pool[-1] if len(others) == 1 and _turned_to(low, first, pool[-1]) else None


def _turned_to(low: str, first: Mention, last: Mention) -> bool:
    """Whether a `but` leads from a first impression to what it is."""
    if last.asked or last.tentative or not TURNED.search(low, first.end, last.start):
        return False
    return last.affirmed or EARLIER.search(low, max(0, first.start - 40), first.start) is not None


def _identified(low: str, pool: list[Mention]) -> Mention | None:
    """Return the option of which alone it is said that this is it."""
    counted = [m for m in pool if m.alone and _COUNTS.search(low, max(0, m.start - 32), m.start)]
    if counted and agreed(counted) is pool[-1]:
        return pool[-1]
    return agreed(
        [m for m in pool if not m.asked and not m.joined and _IDENTIFIES.search(low, max(0, m.start - 40), m.start)]
    )


def _stated_last(low: str, pool: list[Mention]) -> Mention | None:
    """Return the only option of which the last sentence says that something is it (`… The city is Prague.`)."""
    end = max(low.rfind(stop, 0, len(low.rstrip()) - 1) for stop in (". ", "! ", "? ", "\n", "。"))
    last = [mention for mention in pool if mention.start > end]
    chosen = agreed([mention for mention in last if mention.affirmed])
    if chosen and chosen.sure and chosen is pool[-1]:
        return chosen
    only = agreed(last)
    return only if only is not None and is_plain(only) and _is_extreme(low, only, max(end, 0)) else None


def _is_extreme(low: str, only: Mention, begin: int) -> bool:
    """Whether its sentence calls it the largest, the least or the like."""
    return SUPERLATIVE.match(low, only.end) is not None or _EXTREME.search(low, begin, only.start) is not None


def _last_alone(low: str, pool: list[Mention]) -> Mention | None:
    """Return the option that is the whole last sentence, after others that are not (`… and sound. All of it.`)."""
    last = pool[-1] if pool else None
    if (
        last is None
        or not is_plain(last)
        or low[last.end :].strip(" .!*_\"'\n。")
        or low.rstrip(" *_\n")[-1:] not in FULL_STOPS
    ):
        return None
    before = low[: last.start].rstrip(" *_\"'")
    return last if before[-1:] in FULL_STOPS and not HEADS.search(low, 0, max(0, pool[-2].start)) else None


def _closes_reply(low: str, end: int) -> bool:
    """Whether nothing but a full stop follows."""
    rest = low[end:].strip(" *_\"'\n")
    return rest != "" and set(rest) <= FULL_STOPS


def _compared(low: str, pool: list[Mention]) -> Mention | None:
    """Return the only option that is called more or less, as the last thing said or against the others.

    `… Car B is faster.`, `Plan A has the higher price: 18 against 12 for plan B.`
    """
    said = [mention for mention in pool if _MORE.match(low, mention.end)]
    chosen = said[0] if len(said) == 1 and is_plain(said[0]) else None
    if chosen is None or not _SENTENCE_LED.search(low, max(0, chosen.start - 32), chosen.start):
        return None
    if chosen is pool[-1]:
        return chosen if _ENDS_SO.match(low, chosen.end) else None
    return chosen if chosen is pool[0] and all(_is_comparand(low, mention) for mention in pool[1:]) else None


def _is_comparand(low: str, mention: Mention) -> bool:
    return _COMPARED_WITH.search(low, max(0, mention.start - 24), mention.start) is not None


def _beats_all(low: str, pool: list[Mention]) -> Mention | None:
    """Return the first option if it is compared with others in a row (`X has six, more than Y (5) and Z (4)`)."""
    first, others = (pool[0], pool[1:]) if pool else (None, [])
    if first is None or len({mention.index for mention in others} - {first.index}) < _TWO:
        return None
    led = _THAN.search(low, first.end, others[0].start) and not _CLAUSE_ENDS.search(low, first.end, others[0].start)
    row = all(_ROW.fullmatch(low, one.end, other.start) for one, other in pairwise(others))
    return first if led and row else None


def _told_apart(low: str, pool: list[Mention]) -> Mention | None:
    """Return the count that a reply begins with and then tells apart (`There are 3 dogs: one here, two there`)."""
    first = pool[0] if pool else None
    if first is None or not first.alone or not _COUNTS.search(low, max(0, first.start - 32), first.start):
        return None
    return first if _PARTS.match(low, first.end) else None


def _superlative(low: str, pool: list[Mention]) -> Mention | None:
    """Return the only option that is called the largest, the least or the like, if it is the first or the last one."""
    chosen = agreed([m for m in pool if is_plain(m) and (SUPERLATIVE.match(low, m.end) or _most_at(low, m.start))])
    return chosen if chosen is not None and chosen in (pool[0], pool[-1]) else None


def _most_at(low: str, start: int) -> bool:
    """Whether the option is where something is most (`It rained most on Monday`)."""
    return _MOST_AT.search(low, max(0, start - 32), start) is not None


def _predicated(low: str, pool: list[Mention]) -> Mention | None:
    """Return the only option of which it is said that something is it (`is recorded as a liability`)."""
    if any(low.startswith((" if ", " when "), mention.end) for mention in pool):
        return None
    chosen = agreed([m for m in pool if is_plain(m) and _PREDICATE.search(low, max(0, m.start - 48), m.start)])
    # What is defined between two other options is gone through, not chosen.
    return chosen if chosen is not None and chosen.index in (pool[0].index, pool[-1].index) else None


def _most_likely(low: str, pool: list[Mention]) -> Mention | None:
    """Return the only option that is called the most likely one."""
    return agreed([mention for mention in pool if mention.alone and _MOST_LIKELY.match(low, mention.end)])


def _emphasised(low: str, pool: list[Mention]) -> Mention | None:
    """Return the only option that is set in bold."""
    bold = (
        [m for m in pool if low.startswith("**", max(0, m.start - 2)) and low.startswith("**", m.end)]
        if "**" in low
        else []
    )
    return agreed([mention for mention in bold if mention.alone and not mention.asked]) if bold else None


def _ticked(low: str, pool: list[Mention]) -> Mention | None:
    """Return the option of the only line that ends with a tick."""
    lines = [match.span() for match in _TICKED.finditer(low)] if not _TICKS.isdisjoint(low) else []
    if len(lines) != 1:
        return None
    return next((mention for mention in pool if lines[0][0] <= mention.start < lines[0][1]), None)


_SETTLES = (
    *(
        _ticked,
        _told_apart,
        alone_first,
        _most_likely,
        _last_alone,
        _stated_last,
        _emphasised,
        _concluded,
        _contrasted,
    ),
    *(_compared, _beats_all),
    *(_identified, stated_first, _superlative, _predicated),
)
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
