"""Replies without a cue to options: refusals, affirmed or lone labels, option texts, ordinals; else a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..cue_words import CORRECTION, GOES_THROUGH, REFUSAL, UNDECIDABLE, UNDECIDED
from ..extraction import AMBIGUOUS, NOT_OFFERED, REFUSED, TRUNCATED, UNPARSED, Extraction
from ..label_mentions import label_mentions, text_mentions
from ..option_set import OptionSet, Reply
from ..option_text import NONE_SAID
from ..polarity import DENIED_BEFORE, Mention, agreed, judge
from ..word_lists import START, LazyPattern, word_set

_TAIL = 160
"""The last sentence or two: what is affirmed there outweighs what was affirmed on the way."""
_EDGE = 320
"""A long reply declines at its edges; `cannot tell` in the midst of reasoning is no refusal."""
_MYSELF = LazyPattern(rf"{START}(?:<refusals.myself>)\s(?:\w{{1,10}}\s){{0,2}}\Z|我[^，。,.]{{0,6}}\Z")
_STILL = LazyPattern(rf"{START}(?:<refusals.still>)")
_CONCLUDES = LazyPattern(
    r"(?:(?<!\w)(?:<conclusions.concludes>)|[→⇒]|<conclusions.concludes_glued>)[^.\n;]{0,30}\Z|[=≈][\s*$]{0,3}\Z"
    r"|(?<!\w)(?:<conclusions.must>)\s?(?:the |an? )?\Z"
)
_CALLED = LazyPattern(r"[(,→:*]\s?\**(?:option|choice)\s[(*]*\Z")
_SUPERLATIVE = LazyPattern(
    r"[)\]\"'*_`]*\s(?:is|has|shows|reaches|must be)\s(?:clearly |by far )?the\s(?:most|least|only|\w{2,12}est)(?!\w)"
)
_EXTREME = LazyPattern(
    r"(?<!\w)(?:maximum|minimum|peak|most|least|(?!(?:rest|test|west|east|latest|interest|honest|forest|request|suggest)\b)[a-z]{2,10}est)(?!\w)"
    r"[^.\n;]{0,60}\Z"
)
_STATES = LazyPattern(
    rf"{START}(?:is|are|was|were)(?: (?:clearly|actually|indeed|located|found|situated|painted|made|called))?"
    r"(?: (?:by|in|at|as))?(?: an?| the)?\s[*_\"'(]*\Z"
)
_OR = LazyPattern(r"(?<!\w)(?:<conclusions.or>)\s(?:option |choice )?[(\[\"'*]*\Z")
_RIVAL = LazyPattern(r"(?<!\w)(?:is|are|seems?|be)\s(?:also|just as|equally)\s(?:<conclusions.as_good>)(?!\w)")
_LIKENED = LazyPattern(r"(?<!\w)(?:<conclusions.likened>)(?!\w)")
_EARLIER = LazyPattern(r"(?<!\w)(?:<conclusions.first_impression>)(?!\w)")
_IDENTIFIES = LazyPattern(
    r"(?<!\w)(?:<conclusions.identifies>)(?:'s| is| was| must be| shows| depicts)"
    r"(?: clearly| actually| definitely| indeed)? (?:an? |the )?\Z"
)
_CLAUSE = LazyPattern(r"[.;!](?=\s)|\n|。")
_HEADS = LazyPattern(r"(?:[.;!]\s|\n)[\s*_>-]*\Z")
_FULL_STOPS = frozenset(".!。")
_TICKS = frozenset("✓✔✅☑")
_TICKED = LazyPattern(r"(?:\A|(?<=\n))[^\n]{1,300}[✓✔✅☑][\s*_|]*(?=\n|\Z)")
_COUNTS = LazyPattern(r"(?<!\w)(?:there (?:are|is)|i (?:can )?(?:see|count))(?: exactly| only| a total of)? \Z")
_TURNED = LazyPattern(r"(?<!\w)(?:<doubt.contrast>|though)(?!\w)")
_YES = LazyPattern(
    r"\W*(?:(?:<yes_no.opening_adverb>)\W{1,3})?(<yes_no.opening_yes>|<yes_no.opening_no>)(?!\w)"
    r"(?!\s+(?:doubt|question|problem|and no|or no))"
)
_SAID_YES = LazyPattern(r"(?<!\w)(?:<yes_no.said>)\W{1,4}(yes|no)(?=\W*\Z|[.,;!\n])|[,;:—–]\s?(yes|no)\W*\Z")
_LACKS = LazyPattern(
    r"\W*there (?:(?:is|are|was|were) (?:no(?!\s(?:doubt|question|problem))|not)|isn't|aren't|wasn't)(?!\w)"
)


def refusal(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply declines to answer, and nothing after it chooses all the same."""
    match = _declines(reply.low)
    if match is None:
        return None
    if options.texts.undecidable is not None and _says_undecidable(options, reply):
        return options.pick_at(reply, options.texts.undecidable, "undecidable", match.start(), match.end())
    turn = _STILL.search(reply.low, match.end())
    if turn:
        at = turn.start()
        chosen = _affirmed(label_mentions(options, reply, at)) or _affirmed(text_mentions(options, reply, at))
        if chosen is not None:
            return options.pick(reply, chosen, "affirmed")
    return Extraction(None, "refusal", REFUSED, reply.span(match.start(), match.end()))


def _says_undecidable(options: OptionSet, reply: Reply) -> bool:
    """Whether the question is called undecidable; that the speaker cannot tell is a refusal, unless it names that."""
    low, index = reply.low, options.texts.undecidable
    if any(not _MYSELF.search(low, max(0, match.start() - 24), match.start()) for match in UNDECIDABLE.finditer(low)):
        return True
    return any(mention.index == index and mention.stands for mention in text_mentions(options, reply))


def _declines(low: str) -> re.Match[str] | None:
    if len(low) <= 2 * _EDGE:
        return REFUSAL.search(low)
    return REFUSAL.search(low, len(low) - _EDGE) or REFUSAL.search(low, 0, _EDGE)


def cut_off(options: OptionSet, reply: Reply) -> Extraction | None:
    """Generation hit the token limit before any clear answer: whatever follows would be a guess."""
    return Extraction(None, "cut_off", TRUNCATED) if reply.cut else None


def affirmed(options: OptionSet, reply: Reply) -> Extraction | None:
    """The last label that the sentence around it affirms (`hence B`, `it's B`, `B fits best`, `only D remains`)."""
    tail = len(reply.low) - _TAIL
    chosen = _affirmed(label_mentions(options, reply, tail)) if tail > 0 else None
    if chosen is None:
        mentions = label_mentions(options, reply)
        chosen = _affirmed(mentions) or _singled_out(reply.low, mentions) or _called_last(reply, mentions)
    if chosen is None or _spoken_against(options, reply, chosen):
        return None
    if _RIVAL.search(reply.low, chosen.start):
        return Extraction(None, "affirmed", AMBIGUOUS)
    return options.pick(reply, chosen, "affirmed")


def _singled_out(low: str, mentions: Sequence[Mention]) -> Mention | None:
    """Return the last label if it alone is called the largest, the least or the like."""
    standing = [mention for mention in mentions if mention.alone and not mention.asked and not mention.tentative]
    chosen = agreed([mention for mention in standing if _SUPERLATIVE.match(low, mention.end)])
    return chosen if standing and chosen is standing[-1] else None


def _called_last(reply: Reply, mentions: Sequence[Mention]) -> Mention | None:
    """Return the label with which the reply ends, if it is called an option there (`… (option D).`)."""
    last = mentions[-1] if mentions else None
    if last is None or not last.alone or last.asked or last.tentative or reply.cut:
        return None
    ends = len(reply.low.rstrip(" .)*_\n]")) == last.end
    return last if ends and _CALLED.search(reply.low, max(0, last.start - 16), last.start) else None


def _affirmed(mentions: Sequence[Mention]) -> Mention | None:
    return next((mention for mention in reversed(mentions) if mention.sure), None)


def _spoken_against(options: OptionSet, reply: Reply, chosen: Mention) -> bool:
    """Whether, after a self-correction, another label stands."""
    turn = CORRECTION.search(reply.low, chosen.end)
    later = label_mentions(options, reply, turn.end()) if turn else []
    return any(mention.alone and mention.index != chosen.index for mention in later)


def yes_no(options: OptionSet, reply: Reply) -> Extraction | None:
    """Options are yes and no, and the reply opens with one of them."""
    if not options.texts.yesno:
        return None
    match = _YES.match(reply.low) or _SAID_YES.search(reply.low) or _LACKS.match(reply.low)
    if match is None:
        return None
    index = options.texts.by_text.get("yes" if match[match.lastindex or 0] in word_set("yes_no.opening_yes") else "no")
    return options.pick_at(reply, index, "yes_no", *match.span(match.lastindex or 0)) if index is not None else None


def none_of_above(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply says that no option fits: the option for that if there is one, else no valid answer."""
    match = NONE_SAID.search(reply.low)
    if match is None or _not_meant(reply.low, match):
        return None
    if options.texts.none is not None:
        return options.pick_at(reply, options.texts.none, "none_of_above", match.start(), match.end())
    if any(mention.stands and not mention.joined for mention in label_mentions(options, reply)):
        return None
    return Extraction(None, "none_of_above", NOT_OFFERED, reply.span(match.start(), match.end()))


def _not_meant(low: str, match: re.Match[str]) -> bool:
    """Whether it reads `none of the other …`, `not none of the above` or `… or none of the above`."""
    start, end = match.span()
    if _OR.search(low, max(0, start - 12), start):
        return True
    return low.startswith(" other", end) or DENIED_BEFORE.search(low, max(0, start - 24), start) is not None


def lone_label(options: OptionSet, reply: Reply) -> Extraction | None:
    """Exactly one label stands undenied (after the last self-correction, if any), and no option text contradicts it."""
    standing = _after_turn(reply, [mention for mention in label_mentions(options, reply) if mention.stands])
    chosen = agreed([mention for mention in standing if mention.joined or not mention.asked] or standing)
    if chosen is None or _only_named(reply.low, chosen) or _tells_otherwise(options, reply, chosen.index):
        return None
    return options.pick(reply, chosen, "lone_label")


def _only_named(low: str, chosen: Mention) -> bool:
    """Whether it is one of several (`or B`), or the first option that the reply goes through (`Each option. A: …`)."""
    if _OR.search(low, max(0, chosen.start - 12), chosen.start) or low.startswith("either ", max(0, chosen.start - 7)):
        return True
    return len(low) - chosen.end > 8 and GOES_THROUGH.search(low, max(0, chosen.start - 100), chosen.start) is not None


def _after_turn(reply: Reply, standing: list[Mention]) -> list[Mention]:
    """Return those after the last self-correction that any follows, or all."""
    for turn in reversed(CORRECTION.matches(reply.low)[-4:]):
        later = [mention for mention in standing if mention.start >= turn.end()]
        if later:
            return later
    return standing


def _tells_otherwise(options: OptionSet, reply: Reply, index: int) -> bool:
    standing = {mention.index for mention in text_mentions(options, reply) if mention.stands}
    return bool(standing) and index not in standing


def elimination(options: OptionSet, reply: Reply) -> Extraction | None:
    """All options but one are denied, by label or by text."""
    for mentions in (label_mentions(options, reply), text_mentions(options, reply)):
        denied = {mention.index for mention in mentions if mention.denied}
        standing = {mention.index for mention in mentions if mention.stands} - denied
        left = set(range(len(options.marks))) - denied
        if denied and len(left) == 1 and standing <= left:
            last = mentions[-1]
            return options.pick_at(reply, left.pop(), "elimination", last.start, last.end)
    return None


def option_text(options: OptionSet, reply: Reply) -> Extraction | None:
    """Exactly one option text stands undenied in the reply, or the last one is a conclusion."""
    return _by_text(options, reply, text_mentions(options, reply), "option_text")


def by_value(options: OptionSet, reply: Reply) -> Extraction | None:
    """Options are numbers, and the reply states one of them in other clothes (`$1,200` for `1200`)."""
    if not options.texts.values or text_mentions(options, reply):
        return None
    cut = max(0, len(reply.low) - 2000)
    tail = Reply(reply.body[cut:], reply.offset + cut) if cut else reply
    mentions = options.texts.by_value(tail.low)
    judge(tail.low, mentions)
    return _by_text(options, tail, mentions, "by_value")


def _by_text(options: OptionSet, reply: Reply, mentions: list[Mention], rule: str) -> Extraction | None:
    standing = [mention for mention in mentions if mention.stands]
    if UNDECIDED.search(reply.low, max(0, len(reply.low) - _TAIL)):
        return None
    chosen = _meant(reply.low, _after_turn(reply, standing), _labels_apart(reply, standing))
    return options.pick(reply, chosen, rule) if chosen else None


def _only_things(labels: Sequence[Mention]) -> bool:
    """Whether several capitals of which nothing is said name things: these do not outweigh what is stated last."""
    return len({label.index for label in labels}) > 1 and not any(label.affirmed for label in labels)


def _meant(low: str, pool: list[Mention], apart: Sequence[Mention]) -> Mention | None:
    """Return the option that all texts name, or the one of several that is settled on; labels `apart` contradict."""
    if apart:
        return _stated_last(low, pool) if _only_things(apart) else None
    chosen = agreed(pool)
    if chosen:
        return None if _only_named(low, chosen) else chosen
    return next(filter(None, (find(low, pool) for find in _SETTLES)), None)


def _labels_apart(reply: Reply, standing: Sequence[Mention]) -> list[Mention]:
    """Return labels that stand for an option whose text is not named, and are not part of a text (`5 °C`)."""
    named = {mention.index for mention in standing}
    apart = [
        label for label in reply.labels or () if label.stands and label.index not in named and not _together(label)
    ]
    return [label for label in apart if not any(text.start <= label.start < text.end for text in standing)]


def _together(label: Mention) -> bool:
    """Whether it is one of several of which nothing is said (`P(A and B)`): such a pair contradicts no text."""
    return label.joined and not label.affirmed


def _concluded(low: str, pool: list[Mention]) -> Mention | None:
    """Return the last mention that is a conclusion (`so four`, `= 4`)."""
    sound = [mention for mention in pool if mention.alone and not mention.asked]
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
    if last.asked or last.tentative or not _TURNED.search(low, first.end, last.start):
        return False
    return last.affirmed or _EARLIER.search(low, max(0, first.start - 40), first.start) is not None


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
    if only is None or not _is_plain(only):
        return None
    return only if _SUPERLATIVE.match(low, only.end) or _EXTREME.search(low, max(end, 0), only.start) else None


def _is_plain(mention: Mention) -> bool:
    """Whether an option stands alone, and is neither asked for nor tried."""
    return mention.alone and not mention.asked and not mention.tentative


def _stated_first(low: str, pool: list[Mention]) -> Mention | None:
    """Return the option that the first clause states, if what follows takes nothing back and states no other."""
    first = pool[0] if pool else None
    if first is None or not _is_plain(first):
        return None
    others = [mention for mention in pool if mention.index != first.index]
    if not others or not _fills_first_clause(low, first, others) or _taken_back(low):
        return None
    return first if _STATES.search(low, 0, first.start) or _is_bare(low, first, others) else None


def _fills_first_clause(low: str, first: Mention, others: list[Mention]) -> bool:
    """Whether an option stands in the first clause, no other one with it, and no other one is affirmed later."""
    stop = _CLAUSE.search(low, first.end)
    if stop is None or _CLAUSE.search(low, 0, first.start):
        return False
    return not any(mention.start < stop.start() or mention.affirmed for mention in others)


def _taken_back(low: str) -> bool:
    return any(pattern.search(low) for pattern in (_TURNED, _EARLIER, CORRECTION))


def _is_bare(low: str, first: Mention, others: list[Mention]) -> bool:
    """Whether the first sentence is the option alone.

    `Blue. The red part …` says blue; `Solar: 20. Wind: 35.` goes through all of them.
    """
    if low[first.end :].lstrip("*_\"'")[:1] not in _FULL_STOPS or low[: first.start].strip(" *_\"'"):
        return False
    return not any(_HEADS.search(low, max(0, other.start - 6), other.start) for other in others)


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


_SETTLES = (_ticked, _stated_last, _emphasised, _concluded, _contrasted, _identified, _stated_first)
"""Ways to tell which of several option texts is meant, in turn."""


def ordinal(options: OptionSet, reply: Reply) -> Extraction | None:
    """Exactly one option is named by its place (`the second option`, `option 2`, `第二个选项`) and not denied."""
    mentions = list(options.texts.ordinals(reply.low, len(options.marks) - 1))[-40:]
    judge(reply.low, mentions)
    chosen = agreed([mention for mention in mentions if mention.stands])
    return options.pick(reply, chosen, "ordinal") if chosen else None


def abstain(options: OptionSet, reply: Reply) -> Extraction:
    """No rule decided: say whether there was nothing to read or too much."""
    labels = {mention.index for mention in label_mentions(options, reply) if not mention.denied}
    texts = {mention.index for mention in text_mentions(options, reply) if not mention.denied}
    several = len(labels) > 1 or len(texts) > 1 or (labels and texts)
    return Extraction(None, "abstain", AMBIGUOUS if several else UNPARSED)
