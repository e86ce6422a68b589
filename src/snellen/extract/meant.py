"""Options that a reply names to the one it means: what it only weighs, reports or goes through is left out."""

from __future__ import annotations

from collections.abc import Sequence

from .extraction import AMBIGUOUS, Extraction
from .mentions import label_mentions, text_mentions
from .numbers import find_measures, fitting_option
from .option_set import OptionSet, Reply
from .phrases import CORRECTION, GOES_THROUGH, OR_BEFORE, UNDECIDED, WITHDRAWN
from .polarity import Mention, agreed
from .word_lists import END, START, After, Before, LazyPattern, one_of

_TAIL = 160
"""The last sentence or two."""
_CLAUSE_LED = Before(
    one_of(
        rf"{START}(?:<conclusions.concedes>)(?![a-z])[^.;,:\n]{{0,60}}",  # although it has
        r"(?:<conclusions.concedes_glued>)[^，。,.]{0,16}",
        rf"(?:\A|[.;!\n]\s?)(?:<conclusions.circumstance>){END}[^.;,\n]{{0,60}}",  # . When the light is
    ),
    reach=90,
    finds="it rises, while the ",
    passes="it rises to the ",
)
"""Before an option that stands in a clause beside the point: what is conceded, compared, or the circumstance."""
_PREDICATE = Before(
    r"(?<!\w)(?<!there )(?:is|are|was|were|be)(?: \w{2,12}ly)?(?: \w{2,12}(?:ed|wn|en))?"
    r"(?: (?:as|by|in|to|an example of|typical (?:of|for)))?(?: an?| the)?\s[*_\"']*",
    reach=48,
    finds="this is recorded as a ",
    passes="there is a ",
)
_CONCLUDES = Before(
    one_of(
        r"(?:(?<!\w)(?:<conclusions.concludes>)(?!\w)|[→⇒]|<conclusions.concludes_glued>)[^.\n;。；]{0,30}",  # so it is
        r"[=≈][\s*$]{0,3}",
        r"(?<!\w)(?:<conclusions.must>)\s?(?:the |an? )?",  # must be the
    ),
    reach=40,
    finds="in total, that makes ",
    passes="i see ",
)
SUPERLATIVE = After(
    r"[)\]\"'*_`]*\s(?:is|was|has|had|shows|showed|reaches|yields|gives|must be)\s(?:clearly |by far )?the\s"
    r"(?:most|least|only|best|odd one|exception|\w{2,12}est)(?!\w)",
    finds=" has the highest bar",
    passes=" has a high bar",
)
_EXTREME = Before(
    r"(?<!\w)(?:maximum|minimum|peak|most|least|best|worst|(?!(?:rest|test|west|east|latest|interest|honest|forest|request|suggest)\b)[a-z]{2,10}est)(?!\w)"
    r"[^.\n;]{0,60}",
    finds="the best quarter was ",
    passes="the rest was ",
)
_DOING = After(r"[a-z]{2,12}ing\s", finds="reading a book", passes="red")
_NAMES_THING = After(
    r"[)\"'*_]*(?:\s?[:=]\s?[-+$€£]?\d|\swith\s\d|\s?[点點])", finds=": +3", passes=" captures the idea"
)
"""After a capital that names a thing and no option: its figure (`A: +3`, `B with 8`), or what it is."""
_LIKENED = LazyPattern(
    r"(?<!\w)(?:<conclusions.likened>)(?!\w)", finds="a dog, similar to a cat", passes="a dog and a cat"
)
_PAIR = 2
_IF = LazyPattern(r"(?<!\w)if (?!i (?:had|have|must))", finds="red if it is wet", passes="if i had to choose")
_EITHER = Before(
    rf"{START}(?:<conclusions.either>)\s(?:an? |the |eine? )?[*_\"'(]*",
    reach=32,
    finds="it could be either a ",
    passes="i think both ",
)


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
    return _EITHER.before(low, last[0].start) is not None


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
    return _CLAUSE_LED.before(low, mention.start) is not None


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
    return next((m for m in reversed(sound) if _CONCLUDES.before(low, m.start)), None)


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
    return SUPERLATIVE.match(low, only.end) is not None or _EXTREME.before(low, only.start, begin) is not None


def _predicated(low: str, pool: list[Mention]) -> Mention | None:
    """Return the only option of which it is said that something is it (`is recorded as a liability`)."""
    if any(low.startswith((" if ", " when "), mention.end) for mention in pool):
        return None
    chosen = agreed([m for m in pool if m.plain and _PREDICATE.before(low, m.start)])
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
    if OR_BEFORE.before(low, chosen.start) or low.startswith("either ", max(0, chosen.start - 7)):
        return True
    return len(low) - chosen.end > 8 and GOES_THROUGH.before(low, chosen.start) is not None


def after_turn(reply: Reply, standing: list[Mention]) -> list[Mention]:
    """Return those after the last self-correction that any follows, or all."""
    if not standing:
        return standing
    for turn in reversed(CORRECTION.matches(reply.low)[-4:]):
        later = [mention for mention in standing if mention.start >= turn.end()]
        if later:
            return later
    return standing


_SHORT = 120
"""So short a reply is its own point."""
_TAIL_BYTES = 25
"""A shorter last line without a full stop is a result, a longer one is a sentence that was cut."""
_STOP = LazyPattern(r"[.!?;](?<![\n(]\w.)(?<!\n\d\d.)\s|\n|。", finds="it is red. it", passes="(a. red")
"""The end of a sentence; the full stop of `3.` in a list is none. Every end begins with a sign: so it is found fast."""
_SUPPOSED = Before(
    r"(?<!\w)(?!(?:<conclusions.subject>)(?!\w))[\w’]+"
    r"(?:'d (?:get|have|obtain)| would (?:be|give|suggest|indicate|imply|mean|yield))(?!\w)[^;\n)]{0,40}",
    finds="stripes would be ",
    passes="i would be ",
)
_REPORTED = Before(
    r"(?<!\w)(?:<conclusions.reports>)\s[\"'“]?(?:the |a )?",
    finds="the third says that the ",
    passes="the third is the ",
)
_SUPPOSED_AFTER = After(
    r"[\"'”)*]*\s(?:would|could|might) (?:be|have)(?! (?:a |the )?(?:best|correct|right|most|answer|choice))(?!\w)",
    finds='" would be too large',
    passes=" would be the best",
)
_OTHER = Before(
    r"(?<!\w)(?:the|an)\s?other(?! (?:hand|words))(?: \w{1,16}){0,2} (?:is|are|was|has|shows|reads|equals|measures)"
    r"(?: at| about| only)? (?:an? |the )?",
    finds="the other bar is ",
    passes="on the other hand it is ",
)
"""What is said of the other bar, line or animal is not said of the one that is asked for."""
_COMPARED = Before(
    r"(?<!\w)(?:than|compared (?:to|with)|relative to|as opposed to)\s[^.,;:\n]{0,40}",
    finds="it is larger than ",
    passes="it is larger: ",
)
"""Before what something else is measured by."""
_TRAP = LazyPattern(r"(?<!\w)(?:<conclusions.trap>)(?!\w)", finds="a common mistake is 4", passes="the sum is 4")
_ITEM = After(r"\s*(?:[-*•>|#]|\(?\w{1,2}[.):]\s)", finds="- red", passes="red")
_OPERATORS = frozenset("/×·^+−")
_UNFINISHED = frozenset(",、，-–—+=×/(_")
_OPERATOR = Before(
    r"\\(?:cdot|times|frac|sqrt|left|div|pm|sum|int|approx|to)", reach=8, finds="f = m \\cdot", passes="f = m"
)
_BRIEF = 48
_CONCLUDED = LazyPattern(
    r"[\s*_]*(?:so|hence|thus|therefore),?\s(?:it's |it is |it must be )?(?:an? |the )?[*_\"']*"
    r"[a-z][\w-]*(?:\s\w+){0,2}[*_\"'.!]*",
    finds="hence nitrogen.",
    passes="wait, no: no",
)


def is_aside(low: str, mention: Mention) -> bool:
    """Tell whether an option is named as what would be, as what somebody says, or as a mistake to make."""
    start, end = sentence_of(low, mention)
    if end < len(low.rstrip()) and (
        _SUPPOSED.before(low, mention.start, start) or _SUPPOSED_AFTER.match(low, mention.end)
    ):
        return True
    if _REPORTED.before(low, mention.start, start) or _OTHER.before(low, mention.start, start):
        return True
    if _COMPARED.before(low, mention.start, start):
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
    return _OPERATOR.before(end, len(end)) is not None


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


_LAST_STOP = LazyPattern(
    r"(?<!i\.e)(?<!e\.g)(?<!vs)(?<!fig)(?<!\n\w)(?<!\n\d\d)[.!?](?=[\s*_\"'])|\n|[。।]",
    finds="it is red. it",
    passes="e.g. red",
)
_LAST_SENTENCES = 640
"""So many characters at the end of a reply are looked through for the end of a sentence: a bound on time."""


def closing_start(low: str) -> int:
    """Return where the last sentence starts."""
    text = low.rstrip(" \n.!*_\"'。।")
    return max((stop.end() for stop in _LAST_STOP.finditer(text, max(0, len(text) - _LAST_SENTENCES))), default=0)


_SHORTEST_TURN = 5
"""No self-correction fits into fewer characters: `No, B`."""


def corrected(options: OptionSet, reply: Reply, verdict: Extraction) -> Extraction:
    """Let a self-correction after the cue overrule it."""
    end = verdict.span[1] - reply.offset if verdict.span else len(reply.low)
    if len(reply.low) - end <= _SHORTEST_TURN:
        return verdict
    turn = CORRECTION.search(reply.low, end)
    if turn is None:
        return _settled(options, reply, verdict, end)
    later = _named_after(options, reply, turn.end())
    sure = [mention for mention in later if mention.affirmed]
    chosen = agreed(sure or later) or _last_said(options, reply, sure, turn.end())
    if chosen is not None:
        return options.pick(reply, chosen, "self_correction")
    if later:
        others = {options.marks[mention.index] for mention in sure}
        withdrawn = len(others) > 1 and verdict.letter not in others
    else:
        withdrawn = WITHDRAWN.search(reply.low, turn.start()) is not None
    return Extraction(None, "self_correction", AMBIGUOUS) if withdrawn else verdict


def _last_said(options: OptionSet, reply: Reply, sure: list[Mention], start: int) -> Mention | None:
    """Of several options that are affirmed after a turn, return the one of the last label (`… So it is A, not D.`)."""
    chosen = agreed([label for label in label_mentions(options, reply, start) if label.sure]) if sure else None
    return chosen if chosen is not None and chosen.start >= max(mention.start for mention in sure) else None


def _named_after(options: OptionSet, reply: Reply, start: int) -> list[Mention]:
    """Return what a self-correction may turn to: labels that stand alone, and option texts that are affirmed."""
    labels = [mention for mention in label_mentions(options, reply, start) if mention.alone and not mention.asked]
    texts = [mention for mention in text_mentions(options, reply, start) if mention.alone]
    return labels + [mention for mention in texts if mention.affirmed or mention.start - start <= 6]


def _settled(options: OptionSet, reply: Reply, verdict: Extraction, start: int) -> Extraction:
    """After `A or D`, take a later, affirmed `so D`."""
    if verdict.reason != AMBIGUOUS:
        return verdict
    later = agreed(
        [mention for mention in label_mentions(options, reply, start) if mention.sure and mention.start > start + 8]
    )
    return options.pick(reply, later, "affirmed") if later else verdict
