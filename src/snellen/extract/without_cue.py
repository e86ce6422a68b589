"""Replies without a cue to options: by labels, their texts or places; refusals and cuts; else to a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from .extraction import AMBIGUOUS, NOT_OFFERED, REFUSED, TRUNCATED, UNPARSED, Extraction
from .meant import after_turn, is_aside, is_left_behind, led_aside, only_named, picked_by_text
from .mentions import apposed_mark, label_and_text_mentions, label_mentions, text_mentions
from .option_set import OptionSet, Reply
from .option_text import NONE_SAID
from .phrases import (
    CLOSING_WORDS,
    CORRECTION,
    DENIED_BEFORE,
    GOES_THROUGH,
    ONLY_IF,
    OR_BEFORE,
    PREFERRED,
    REFUSAL,
    UNDECIDABLE,
    UNDECIDED,
)
from .polarity import Mention, agreed, called_together, judge
from .word_lists import START, After, Before, LazyPattern
from .yes_or_no import YesOrNo, opens_with_yes_or_no, read_yes_or_no

_LAST_WORD = 12
"""What ends so near to the end of the reply is its last word."""
_NUMBERED = Before(r"(?:\A|\n)\s?\d{1,2}[.)] \(?", reach=8, finds="so\n4. (", passes="tanto la opción ")
"""Before answers to several questions."""
_IN_ONE_BREATH = After(
    r"[)\]}\"'*_`$\\\s]*+(?:,?\s?(?:and|or|as well as|und|oder|et|ou|y|o|和|或|与|と|または)|[,/&、])[\s*_`(\[\"'$\\]*+"
    r"(?:also |option |choice )*+[*(]*\Z",
    finds="** and **",
    passes=". then ",
)


def labelled(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply commits itself to a label with its own text: as its last word, in bold, on a line, or affirmed."""
    found = [mention for mention in label_and_text_mentions(options, reply) if mention.stands and not mention.asked]
    if not found:
        return _contradicted(options, reply)
    last = found[-1]
    rivals = [mention for mention in found if mention.index != last.index]
    if _leaves_open(options, reply, found, rivals):
        return Extraction(None, "labelled", AMBIGUOUS, reply.span(last.start, last.end))
    if last.tentative or not _committed(reply, last, rivals):
        return None
    return options.pick(reply, last, "labelled")


def _contradicted(options: OptionSet, reply: Reply) -> Extraction | None:
    """Return that two options are said at once where a text stands with the mark of another (`red (B)` as A)."""
    for text in text_mentions(options, reply) if " (" in reply.low else ():
        mark = apposed_mark(reply.body, text.end).lower()
        index = options.by_mark.get(mark, text.index)
        if index != text.index and any(label.start == text.end + 2 for label in label_mentions(options, reply)):
            return Extraction(None, "labelled", AMBIGUOUS, reply.span(text.start, text.end + 4))
    return None


def _leaves_open(options: OptionSet, reply: Reply, found: list[Mention], rivals: list[Mention]) -> bool:
    """Whether all options are said again, none of those just named is chosen, or two are endorsed in one breath."""
    if _said_again(options, reply, found) or UNDECIDED.search(reply.low, max(0, found[-1].start - 160)):
        return True
    if bool(rivals) and all(_NUMBERED.before(reply.low, one.start) for one in (rivals[-1], found[-1])):
        return True
    return bool(rivals) and _in_one_breath(reply.low, rivals[-1], found[-1])


def _said_again(options: OptionSet, reply: Reply, found: list[Mention]) -> bool:
    """Whether the reply is all the options in a row, and nothing after them."""
    if len(found) != len(options.marks) or len({mention.index for mention in found}) < len(found) or len(found) < 3:
        return False
    near = all(second.start - first.end <= 3 for first, second in pairwise(found))
    return near and len(reply.low.rstrip()) - found[-1].end <= 1 and found[0].start <= 3


def _committed(reply: Reply, last: Mention, rivals: list[Mention]) -> bool:
    """Whether the reply stops at it, sets it off or affirms it; not where it only goes through the options."""
    if any(_stands_out(reply, rival) for rival in rivals):
        return False
    if GOES_THROUGH.before(reply.low, last.start):
        return last.affirmed
    if last.affirmed or _stands_out(reply, last):
        return True
    return len(reply.low.rstrip()) - last.end <= _LAST_WORD and not reply.cut and not rivals


def _in_one_breath(low: str, first: Mention, second: Mention) -> bool:
    """Whether two options are endorsed in one breath: then none is chosen."""
    if not first.end < second.start <= first.end + 32:
        return False
    return _IN_ONE_BREATH.match(low, first.end, second.start) is not None or called_together(low, first, second)


def _stands_out(reply: Reply, mention: Mention) -> bool:
    """Whether it is set in bold or has a line of its own."""
    low, start, end = reply.low, mention.start, mention.end
    before, after = low[max(0, start - 12) : start].rstrip(" (\\"), low[end : end + 12].lstrip(" ).\\")
    opens = before.endswith(("**", "__", "\n", "$", "[")) or before.rstrip("-•> #*(\\[").endswith("\n") or not start
    return opens and (after.startswith(("**", "__", "\n", "$", "]")) or not after)


_TAIL = 160
"""The last sentence or two: what is affirmed there outweighs what was affirmed on the way."""
_EDGE = 320
"""A long reply declines at its edges; `cannot tell` in the midst of reasoning is no refusal."""
_MYSELF = Before(
    rf"{START}(?:<refusals.myself>)\s(?:\w{{1,10}}\s){{0,2}}|我[^，。,.]{{0,6}}",
    reach=24,
    finds="so i ",
    passes="so it ",
)
_RIGHT_ONLY_IF = After(rf"[)\]\"'”*_`]*\s{ONLY_IF}", finds='" can only be right if it rains', passes=" is right")
_IF_SO = Before(
    r"(?:\A|[.;!?\n]\s?)if (?!i\s)[^.;!?\n]{1,48},[^.;!?\n]{0,24}",
    finds="if the light is on, ",
    passes="if i had to choose, ",
)
"""Before a label that is right under a condition only; `If I had to choose, B` chooses."""
_COUNTED_THING = LazyPattern(
    r"(?<!\w)(?:<options.ordinal>)\s(?!(?:<options.ordinal_noun>|<options.numbered_noun>)(?!\w))([a-z]{3,16})(?!\w)",
    finds="the second equation is",
    passes="the second option is",
)
_STILL = LazyPattern(rf"{START}(?:<refusals.still>)", finds="i cannot tell, but b", passes="i cannot tell")
_RIVAL = LazyPattern(
    r"(?<!\w)(?:is|are|seems?|be)\s(?:also|just as|equally)\s(?:<conclusions.as_good>)(?!\w)"
    r"|(?<!\w)(?:is (?:<conclusions.as_good>)|holds|applies|fits)\s(?:too|as well)(?!\w)",
    finds="and c is just as likely",
    passes="and c is wrong",
)
_LACKS = After(
    r"\W*there (?:(?:is|are|was|were) (?:no(?!\s(?:doubt|question|problem))|not)|isn't|aren't|wasn't)(?!\w)",
    finds="there is no dog",
    passes="there is no doubt",
)


def refusal(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply declines to answer, and nothing after it chooses all the same."""
    match = _declines(reply.low)
    # `No, …` answers, whatever else cannot be told.
    if match is None or (options.texts.yesno and opens_with_yes_or_no(reply.low)):
        return None
    if options.texts.undecidable is not None and _says_undecidable(options, reply):
        return options.pick_at(reply, options.texts.undecidable, "undecidable", match.start(), match.end())
    turn = _STILL.search(reply.low, match.end())
    if turn:
        at = turn.start()
        texts = text_mentions(options, reply, at)
        chosen = _affirmed(label_mentions(options, reply, at)) or _affirmed(texts)
        chosen = chosen or agreed([one for one in texts if one.alone and PREFERRED.after(reply.low, one.end)])
        if chosen is not None:
            return options.pick(reply, chosen, "affirmed")
    return Extraction(None, "refusal", REFUSED, reply.span(match.start(), match.end()))


def _says_undecidable(options: OptionSet, reply: Reply) -> bool:
    """Whether the question is called undecidable; that the speaker cannot tell is a refusal, unless it names that."""
    low, index = reply.low, options.texts.undecidable
    if any(not _MYSELF.before(low, match.start()) for match in UNDECIDABLE.finditer(low)):
        return True
    return any(mention.index == index and mention.stands for mention in text_mentions(options, reply))


def _declines(low: str) -> re.Match[str] | None:
    if len(low) <= 2 * _EDGE:
        return REFUSAL.search(low)
    return REFUSAL.search(low, len(low) - _EDGE) or REFUSAL.search(low, 0, _EDGE)


def cut_off(options: OptionSet, reply: Reply) -> Extraction | None:
    """Generation hit the token limit before any clear answer: whatever follows would be a guess."""
    if not reply.cut or (reply.finish != "length" and _concluded_before(options, reply)):
        return None
    return Extraction(None, "cut_off", TRUNCATED)


def _concluded_before(options: OptionSet, reply: Reply) -> bool:
    """Whether a whole sentence before the cut concludes with a label in brackets (`Therefore, the point is (C).`)."""
    last = _affirmed(label_mentions(options, reply))
    if last is None or not reply.low.startswith(").", last.end):
        return False
    return CLOSING_WORDS.search(reply.low, max(0, last.start - 120), last.start) is not None


def affirmed(options: OptionSet, reply: Reply) -> Extraction | None:
    """The last label that the sentence around it affirms (`hence B`, `it's B`, `B fits best`, `only D remains`)."""
    chosen = _affirmed_label(options, reply)
    # What stands in brackets is called an option: `would be (C)` supposes nothing.
    wrapped = chosen is not None and reply.low[chosen.start - 1 : chosen.start] == "("
    if chosen is None or (not wrapped and is_aside(reply.low, chosen)) or _spoken_against(options, reply, chosen):
        return None
    if options.named_letters and _is_part_of_text(options, reply, chosen):
        return None
    if _RIVAL.search(reply.low, chosen.start):
        return Extraction(None, "affirmed", AMBIGUOUS)
    return options.pick(reply, chosen, "affirmed")


def _is_part_of_text(options: OptionSet, reply: Reply, chosen: Mention) -> bool:
    """Whether a label stands within the text of another option (`hence all A are B`): that is what is said."""
    return any(
        text.start <= chosen.start < text.end and text.index != chosen.index for text in text_mentions(options, reply)
    )


def _affirmed_label(options: OptionSet, reply: Reply) -> Mention | None:
    """Return the last label that is affirmed, singled out or called an option: at the end before anywhere else."""
    tail = len(reply.low) - _TAIL
    chosen = _affirmed(label_mentions(options, reply, tail)) if tail > 0 else None
    mentions = () if chosen else label_mentions(options, reply)
    if not mentions:
        return chosen
    return _affirmed(mentions)


def _outdone_by_text(options: OptionSet, reply: Reply, chosen: Mention) -> bool:
    """Whether the reply affirms the text of another option at its end (`So the firm should pick Alternative B.`)."""
    tail = len(reply.low) - _TAIL
    if chosen.end >= tail:
        return False
    texts = [text for text in text_mentions(options, reply) if text.start >= tail]
    return bool(texts) and texts[-1].sure and texts[-1].index != chosen.index


def _affirmed(mentions: Sequence[Mention]) -> Mention | None:
    return next((mention for mention in reversed(mentions) if mention.sure), None)


def _spoken_against(options: OptionSet, reply: Reply, chosen: Mention) -> bool:
    """Whether another label stands after a self-correction, or the text of another option is affirmed at the end."""
    if _outdone_by_text(options, reply, chosen):
        return True
    turn = CORRECTION.search(reply.low, chosen.end)
    later = label_mentions(options, reply, turn.end()) if turn else []
    return any(mention.alone and mention.index != chosen.index for mention in later)


_BOTH_LISTED = After(
    r"\s*[(\[]?[a-z][)\].:]\s*(?:yes|no)\b\W{0,6}[(\[]?[a-z][)\].:]\s*(?:yes|no)\W*\Z",
    finds="(c) yes (d) no",
    passes="yes and no",
)
"""A reply that only goes on with the list of options: `(C) yes (D) no`."""


def yes_no(options: OptionSet, reply: Reply) -> Extraction | None:
    """Options are yes and no, and the reply says one of them, or that there is none."""
    if not options.texts.yesno:
        return None
    if _BOTH_LISTED.match(reply.low):
        return Extraction(None, "yes_no", AMBIGUOUS)
    said = read_yes_or_no(reply.low)[0] or _lacking(reply.low)
    index = options.texts.by_text.get("yes" if said.yes else "no") if said else None
    return options.pick_at(reply, index, "yes_no", said.start, said.end) if said and index is not None else None


def _lacking(low: str) -> YesOrNo | None:
    """Return the no of a reply that opens with saying that there is none."""
    match = _LACKS.match(low)
    return YesOrNo(False, *match.span()) if match else None


def none_of_above(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply says that no option fits: the option for that if there is one, else no valid answer."""
    match = NONE_SAID.search(reply.low)
    if match is None or _not_meant(reply.low, match):
        return None
    if options.texts.none is not None:
        return options.pick_at(reply, options.texts.none, "none_of_above", match.start(), match.end())
    if any(
        mention.sure if mention.start < match.start() else mention.alone for mention in label_mentions(options, reply)
    ):
        return None
    return Extraction(None, "none_of_above", NOT_OFFERED, reply.span(match.start(), match.end()))


def _not_meant(low: str, match: re.Match[str]) -> bool:
    """Whether it reads `none of the other …`, `… or none of the above`, or is right only under a condition."""
    start, end = match.span()
    if _RIGHT_ONLY_IF.match(low, end):
        return True
    if OR_BEFORE.before(low, start):
        return True
    return low.startswith(" other", end) or DENIED_BEFORE.before(low, start, start - 24) is not None


def lone_label(options: OptionSet, reply: Reply) -> Extraction | None:
    """Exactly one label stands undenied (after the last self-correction, if any), and no option text contradicts it."""
    standing = after_turn(reply, [mention for mention in label_mentions(options, reply) if mention.stands])
    if not standing:
        return None
    standing = [mention for mention in standing if mention.joined or not mention.asked] or standing
    chosen = agreed(standing) or agreed([mention for mention in standing if not led_aside(reply.low, mention)])
    return None if chosen is None or _falls_short(options, reply, chosen) else options.pick(reply, chosen, "lone_label")


def _falls_short(options: OptionSet, reply: Reply, chosen: Mention) -> bool:
    """Whether a label is only named, contradicted by a text, beside the point, or left behind by a cut reply."""
    if only_named(reply.low, chosen) or _tells_otherwise(options, reply, chosen.index):
        return True
    if _outdone_by_text(options, reply, chosen) or (chosen.tentative and _IF_SO.before(reply.low, chosen.start)):
        return True
    return is_aside(reply.low, chosen) or is_left_behind(reply, chosen)


def _tells_otherwise(options: OptionSet, reply: Reply, index: int) -> bool:
    """Whether texts of other options stand, or the own one is called right only under a condition."""
    if any(text.index == index and _RIGHT_ONLY_IF.match(reply.low, text.end) for text in text_mentions(options, reply)):
        return True
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
    return picked_by_text(options, reply, text_mentions(options, reply), "option_text")


def ordinal(options: OptionSet, reply: Reply) -> Extraction | None:
    """Exactly one option is named by its place (`the second option`, `option 2`, `第二个选项`) and not denied."""
    mentions = list(options.texts.ordinals(reply.low, len(options.marks) - 1))[-40:]
    mentions = [mention for mention in mentions if not _counts_things(reply.low, mention)]
    judge(reply.low, mentions)
    chosen = agreed([mention for mention in mentions if mention.stands])
    return options.pick(reply, chosen, "ordinal") if chosen and not is_left_behind(reply, chosen) else None


def _counts_things(low: str, mention: Mention) -> bool:
    """Whether `the first one` is one of other things that are counted (`The second line is twice the first one`)."""
    if not low.endswith(" one", mention.start, mention.end):
        return False
    return any(match.group(1) != "one" for match in _COUNTED_THING.finditer(low, 0, mention.start))


def abstain(options: OptionSet, reply: Reply) -> Extraction:
    """No rule decided: say whether there was nothing to read or too much."""
    labels = {mention.index for mention in label_mentions(options, reply) if not mention.denied}
    texts = {mention.index for mention in text_mentions(options, reply) if not mention.denied}
    several = len(labels) > 1 or len(texts) > 1 or (labels and texts)
    return Extraction(None, "abstain", AMBIGUOUS if several else UNPARSED)
