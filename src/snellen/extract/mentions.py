"""A reply to the places where it names options, by mark or by text, each judged by what is said of it.

Articles, pronouns, names, variables and units are no marks: `A dog`, `I think`, `Vitamin C`, `H(s)`, `5 A`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from .option_set import OptionSet, Reply
from .option_text import own_end
from .phrases import AFFIRMED_AFTER, AFFIRMED_BEFORE, DENIED_AFTER, DENIED_BEFORE, REFUTED, TENTATIVE_BEFORE
from .polarity import Mention, ends_pair, judge, leads_pair
from .word_lists import END, START, After, Before, LazyPattern, one_of, word_set, words

_MOST_MENTIONS = 80
_FARTHEST = 8000
"""Without a cue, only so many characters at the end of a reply are weighed: a bound on time, and on patience."""
# A capital is taken for a label by the words around it, never by itself: `A dog`, `I think`, `Vitamin C`, `Plan B`.
_AFTER_ARTICLE = After(
    r"\s+(?:<labels.after>|<labels.after_article>)(?!\w)|\s*(?:[^\w\s]|\Z|\n)|[^\x00-\x7f]|\s+[\u0370-\u0dff\u2e80-\uffff]",
    finds=" is right",
    passes=" dog is seen",
)
_AFTER_LABEL = After(
    one_of(
        r"\s+(?:<labels.after>|<labels.after_capital>)(?!\w)",  # B is, B fits
        r"\s+[\u0370-\u0dff]",  # a word of another script
        r"\s*(?:[^\w\s]|\Z|\n)",
        r"[\u2e80-\uffff]|\s+[\u2e80-\uffff]",
        r"\s+\d{1,2}[.):]",
        r"\s+[a-z]{3,14}[^s\W]s\s(?:<labels.after_verb>)(?!\w)",  # B reaches the
    ),
    finds=" fits best",
    passes=" major",
)
_AFTER_PRONOUN = After(
    r"\s+(?:is|because|since|seems|fits|matches|remains)(?!\w)|\s*(?:[^\w\s]|\Z|\n)|[^\x00-\x7f]",
    finds=" is right",
    passes=" cannot say",
)
_AFTER_BY_MARK = {"A": _AFTER_ARTICLE, "I": _AFTER_PRONOUN}
_WORD_BEFORE = Before(
    r"([a-z\u00c0-\u024f\u0400-\u052f']+)\.?\s+[(\[\"'*_`]*", reach=24, finds="the point ", passes="based on it, "
)
_NOUNS = ("option", "choice")
_INITIAL = Before(r"(?<![A-Za-z])[A-Z]\.\s?", reach=3, finds="J. ", passes="It's ")
_OPENS = frozenset("\"'*_`“「【《")
_CLOSES = frozenset("\"'*_`”」】》.:)")
_EXAMINED = Before(
    r"(?<!\w)(?:<labels.examined>"
    r"|(?:<labels.others>)\s(?:\w{1,9}\s){0,2}(?:<labels.others_choose>)(?: it's| it is| that)?)"
    r"\s(?:the )?(?:option |choice |answer )?[(\[\"'*]*",
    reach=56,
    finds="many students pick ",
    passes="i pick ",
)
_APPOSED = Before(
    r"(?<!\w)(\w{4,})[\"'*_]*\s\((?:option |choice )?", reach=48, finds="not accurate (option ", passes="not "
)
_DASHES = frozenset("-–—~～")
_RANGE_ON = After(
    r"[)\]\"'*_`]*(?P<sign>[-–—~～]|\s(?:[-–—]|<labels.range>)\s|<labels.range>)[(\[\"'*_`]*([a-z])"
    rf"{END}",
    reach=20,
    finds=" – d are wrong",
    passes=") is right",
)
_RANGE_BACK = Before(
    rf"{START}([a-z])"
    r"[)\]\"'*_`]*(?P<sign>[-–—~～]|\s(?:[-–—]|<labels.range>)\s|<labels.range>)[(\[\"'*_`]*",
    reach=20,
    finds="options a to ",
    passes="options ",
)
"""The other end of a range of labels, after one of them and before it."""
_LETTERED = ("letter ", "label ", 'letter "', "letter '", "letter **", "letter (")
_POINTS = After(
    r"[)\"'*_]*\s(?:in (?:the|this) |on (?:the|this) )?(?:<labels.figure>)(?!\w)",
    finds=" in the diagram",
    passes=" is right",
)
_CALLED = Before(r"(?<!\w)(?:option|choice) [*_(\"']*", reach=12, finds="it is option (", passes="it is ")
_APPOSED_MARK = LazyPattern(r"[*_\"']{0,3} \(([A-Z])\)", finds=" (C) is", passes=". The")
_STRANGE_MARK = Before(r"(?:\A|\s)\(([A-Z])\)\s", reach=6, finds="so (H) ", passes="so H ")
"""The mark of an option that was not offered, before its text."""
_TICK = LazyPattern(
    r"[✓✔✅☑]|[(\[:|→–—-]\s?(?:correct|right|yes|true)(?:\s(?:answer|option|choice))?[)\].!|*_\s]*\Z",
    finds=": correct.",
    passes=": it barks",
)


def label_mentions(options: OptionSet, reply: Reply, start: int = 0) -> list[Mention]:
    """Return judged mentions of marks from `start` on (at most the last 80), plain articles and names left out."""
    if start == 0 and reply.labels is not None:
        return reply.labels
    mentions = find_labels(options, reply, max(start, len(reply.low) - _FARTHEST))[-_MOST_MENTIONS:]
    judge(reply.low, mentions)
    if options.crossed:
        mentions = [mention for mention in mentions if not _CALLED.before(reply.low, mention.start)]
    if _count_others(options, reply, mentions):
        mentions = [mention for mention in mentions if reply.low[mention.start - 1 : mention.start] != "("]
    lettered = "letter" in reply.low or "label" in reply.low
    for mention in mentions:
        mention.denied &= not _ends_own_text(options, reply.low, mention)
        mention.listed |= _EXAMINED.before(reply.low, mention.start) is not None
        mention.listed |= _in_range(options, reply.low, mention) or (lettered and _in_figure(reply.low, mention))
    _ticked(reply.low, [mention for mention in mentions if mention.listed])
    if start == 0:
        reply.labels = mentions
    return mentions


def _count_others(options: OptionSet, reply: Reply, mentions: list[Mention]) -> bool:
    """Whether letters in brackets count other things than the options: one that is not offered follows a text."""
    if not options.letters or not any(reply.low.startswith(" (", mention.start - 2) for mention in mentions):
        return False
    begin = max(0, len(reply.low) - _FARTHEST)
    if not _APPOSED_MARK.search(reply.body, begin):
        return False
    marks = [apposed_mark(reply.body, text.end) for text in options.texts.find(reply.low, begin)]
    return any(mark and mark.lower() not in options.by_mark for mark in marks)


def apposed_mark(body: str, end: int) -> str:
    """Return the capital in brackets that follows a text (`the third image (C)`), or nothing."""
    found = _APPOSED_MARK.match(body, end)
    return found.group(1) if found else ""


def _in_range(options: OptionSet, low: str, mention: Mention) -> bool:
    """Whether a label is an end of a range (`options A–D`, `(A) through (D)`): that names all and chooses none.

    With a space or a word between them both must be the ends of the options: `from A to C` may be a change of mind.
    """
    on = _RANGE_ON.after(low, mention.end)
    if on:
        return _is_range(options, low, mention.start, on.group(2), on.group("sign"))
    # The pattern is dear where a label ends a sentence: it is tried only after what may end a range.
    if not low[max(0, mention.start - 14) : mention.start].rstrip(" ([\"'*_`").endswith(_range_signs()):
        return False
    back = _RANGE_BACK.before(low, mention.start)
    return back is not None and _is_range(options, low, back.start(1), low[mention.start], back.group("sign"))


def _in_figure(low: str, mention: Mention) -> bool:
    """Whether it is a letter of the figure (`the letter C points to a vein`), which names a place and no option."""
    if not low.endswith(_LETTERED, 0, mention.start):
        return False
    return _POINTS.match(low, mention.end) is not None


@cache
def _range_signs() -> tuple[str, ...]:
    return (*words("labels.range"), *_DASHES)


def _is_range(options: OptionSet, low: str, start: int, last: str, sign: str) -> bool:
    """Whether a label at `start` and a last one are the ends of a range, and not of a change (`from A to D`)."""
    first, places = low[start], options.by_mark
    if first not in places or last not in places or low.startswith("from ", max(0, start - 5)):
        return False
    whole = places[first] == 0 and places[last] == len(options.marks) - 1
    return whole or (sign in _DASHES and places[first] < places[last])


def _ends_own_text(options: OptionSet, low: str, mention: Mention) -> bool:
    """Whether the word before `(option A)` ends that option's own text: there the text denies, not the speaker."""
    if not mention.denied or DENIED_AFTER.after(low, mention.end):
        return False
    before, own = _APPOSED.before(low, mention.start), options.texts.plain[mention.index]
    return before is not None and len(own) > len(before[1]) and own.endswith(" " + before[1])


def text_mentions(options: OptionSet, reply: Reply, start: int = 0) -> list[Mention]:
    """Return judged mentions of option texts from `start` on (at most the last 80)."""
    if start == 0 and reply.texts is not None:
        return reply.texts
    mentions = options.texts.find(reply.low, max(start, len(reply.low) - _FARTHEST))[-_MOST_MENTIONS:]
    judge(reply.low, mentions)
    if mentions and "\n" in reply.low:
        items = list_items(options, reply)
        for mention in mentions:
            mention.listed = any(at in items for at in range(mention.start - 7, mention.start))
            mention.listed |= bool(items) and not mention.affirmed and _in_own_item(options, reply.low, items, mention)
    for mention in mentions:
        strange = _STRANGE_MARK.before(reply.body, mention.start)
        mention.listed |= strange is not None and options.letters and strange.group(1).lower() not in options.by_mark
    if start == 0:
        reply.texts = mentions
    return mentions


def _in_own_item(options: OptionSet, low: str, items: set[int], mention: Mention) -> bool:
    """Whether a text stands in the line of a list that its own mark heads (`C. Oil – bound with linseed oil`)."""
    line = low.rfind("\n", 0, mention.start) + 1
    head = next((at for at in range(line, min(line + 8, mention.start)) if at in items), None)
    return head is not None and options.by_mark.get(low[head : head + 1]) == mention.index


def find_labels(options: OptionSet, reply: Reply, start: int) -> list[Mention]:
    """Return mentions of marks in order, each one plausible as a label; numbers count only when wrapped."""
    labels = {match.start(1): match for match in options.wrapped.finditer(reply.body, start)}
    if options.letters:
        _add_capitals(options, reply, start, labels)
        labels = _without_quantities(options, reply, labels)
    elif options.bare_circles:
        labels |= {match.start(1): match for match in options.mention.finditer(reply.body, start)}
    # Small letters are words in prose; in a short reply without any other label one may be the answer.
    if not labels and len(reply.body) <= 80:
        lower = options.lower.finditer(reply.low, start)
        parts = _within_terms(options, reply.low)
        labels = {match.start(1): match for match in lower if match.start(1) not in parts and _named(reply.low, match)}
    items = list_items(options, reply)
    return [
        Mention(options.by_mark[match.group(1).lower()], at, match.end(1), listed=at in items)
        for at, match in sorted(labels.items())
    ]


def _add_capitals(options: OptionSet, reply: Reply, start: int, labels: dict[int, re.Match[str]]) -> None:
    """Add the bare capitals that the words around them let be labels."""
    last = -1
    for match in options.mention.finditer(reply.body, start):
        if match.start(1) not in labels and not (
            _plausible(reply, match.start(1), match.end(1))
            or _names_itself(options, reply.low, match)
            or _joined_on(reply.low, last, match.start(1))
            or leads_pair(reply.low, match.start(1), match.end(1))
            or (0 < last < match.start(1) <= last + 32 and ends_pair(reply.low, last, match.start(1)))
        ):
            continue
        labels[match.start(1)], last = match, match.end(1)


def _joined_on(low: str, last: int, start: int) -> bool:
    """Whether nothing but a conjunction stands between a label and this capital (`les réponses B et D …`)."""
    return 0 <= last < start <= last + 8 and low[last:start].strip(" ,*_)(") in word_set("polarity.joins")


def _without_quantities(options: OptionSet, reply: Reply, labels: dict[int, re.Match[str]]) -> dict[int, re.Match[str]]:
    """Leave out capitals of formulas and units, and of those that are quantities elsewhere what may be one here."""
    if not labels:
        return labels
    used = quantities(reply.body) | options.named_letters
    parts = chained(reply.body) | _within_terms(options, reply.low)
    return {
        at: match
        for at, match in labels.items()
        if at not in parts
        and not is_quantity(reply.low, at, match.end(1))
        and (match.group(1) not in used or spoken_as_label(reply.low, at, match.end(1)))
    }


def _within_terms(options: OptionSet, low: str) -> set[int]:
    """Return where letters stand that are part of another option's text (`C major`)."""
    return {match.end() for match in options.terms.finditer(low)} if options.terms else set()


def _named(low: str, match: re.Match[str]) -> bool:
    """Whether it reads `so d` or `option d is correct`: a small letter is a label where affirmed or called one."""
    if leads_on_as_quantity(low, match.end(1)):
        return False
    if AFFIRMED_BEFORE.search(low, 0, match.start(1)):
        return True
    before = low[: match.start(1)].strip()
    called = before.endswith(("option", "choice", "answer", "letter"))
    return (called and match.end() == len(low)) or (
        (called or not before) and AFFIRMED_AFTER.match(low, match.end(1)) is not None
    )


def list_items(options: OptionSet, reply: Reply) -> set[int]:
    """Return where marks head the lines of a list (`A. …`, `B. …`): such a list names options, it does not choose.

    A mark that heads a second line after the list is the choice made of it.
    """
    if "\n" not in reply.low:
        return set()
    heads = {
        match.start(1): match.group(1).lower()
        for match in options.item.finditer(reply.body, max(0, len(reply.low) - _FARTHEST))
    }
    first = options.item.match("\n" + reply.body[:16])
    if first:
        heads[first.start(1) - 1] = first.group(1).lower()
    if len(set(heads.values())) > 1:
        return set(heads) - _chosen_of(heads)
    return set()


def _chosen_of(heads: dict[int, str]) -> set[int]:
    """Return the last head if it comes after a whole list and names one of its marks again."""
    places = sorted(heads)
    before = [heads[at] for at in places[:-1]]
    return {places[-1]} if len(set(before)) > 1 and before.count(heads[places[-1]]) == 1 else set()


def _ticked(low: str, items: list[Mention]) -> None:
    """Take the one item of a list that its line marks as correct out of the list."""
    ticked = [item for item in items if _TICK.search(low, item.end, _line_end(low, item.end))]
    if len(ticked) == 1:
        ticked[0].listed, ticked[0].affirmed, ticked[0].denied = False, True, False


def _line_end(low: str, start: int) -> int:
    end = low.find("\n", start, start + 200)
    return end if end >= 0 else min(len(low), start + 200)


def speaks_of_options(line: str) -> bool:
    """Whether a line (in lower case) introduces options: what follows lists them and does not choose.

    `The option that fits is` leads to one of them.
    """
    return not line.rstrip(" :*_").endswith((" is", " be", "是", "为", "は")) and any(
        word in line for word in words("labels.introduces")
    )


def _plausible(reply: Reply, start: int, end: int) -> bool:
    """Whether a capital at this place is a label: quoted, or with fitting words on both sides."""
    body, low = reply.body, reply.low
    if body[start - 1 : start] in _OPENS and body[end : end + 1] in _CLOSES:
        return True
    if body[end : end + 1] == "." and _INITIAL.before(body, start):
        return False
    word = _word_before(low, start)
    after = _AFTER_BY_MARK.get(body[start:end], _AFTER_LABEL)
    if after.match(low, end) is None:
        return word in (word_set("labels.joined") if after is _AFTER_LABEL else _NOUNS)
    return not word or word in word_set("labels.before") or _said_of(low, word, end) or _sentence_start(low, start)


def _names_itself(options: OptionSet, low: str, match: re.Match[str]) -> bool:
    """Whether the options are called A, B, C themselves: then `point C` names one."""
    if not options.self_named or match.group(1) in _AFTER_BY_MARK:
        return False
    return _word_before(low, match.start(1)) != "" and _AFTER_LABEL.match(low, match.end(1)) is not None


def _word_before(low: str, start: int) -> str:
    before = _WORD_BEFORE.before(low, start)
    return before.group(1) if before else ""


def _said_of(low: str, word: str, end: int) -> bool:
    """Whether it reads `in B is true`: after `in`, a label is one only if something is said of it."""
    if word != "in":
        return False
    return AFFIRMED_AFTER.match(low, end, end + 80) is not None or DENIED_AFTER.match(low, end, end + 80) is not None


def _sentence_start(low: str, start: int) -> bool:
    """Whether only space and decoration stand between the last sentence end and `start`."""
    gap = low[max(0, start - 6) : start].rstrip(" *_`(\"'")
    if gap.endswith(words("labels.abbreviation")):
        return False
    return not gap or gap[-1] in ".!?:;\n—–"


_FARTHEST_LABELLED = 4000
"""So many characters at the end of a reply are searched: a bound on time."""
_MOST_LABELLED = 80


def label_and_text_mentions(options: OptionSet, reply: Reply) -> list[Mention]:
    """Return judged mentions of marks that stand with their own option's text (`**F. 112 hp**`)."""
    low, start = reply.low, max(0, len(reply.low) - _FARTHEST_LABELLED)
    found = list(labelled_mentions(options, reply, start))[-_MOST_LABELLED:]
    listed = list_items(options, reply) if found else set()
    for mention in found:
        mention.listed = mention.start in listed
        mention.denied = bool(REFUTED.after(low, mention.end) or DENIED_BEFORE.before(low, mention.start))
        mention.tentative = TENTATIVE_BEFORE.before(low, mention.start) is not None
        mention.asked = low.startswith("?", mention.end)
        mention.affirmed = (
            AFFIRMED_BEFORE.before(low, mention.start) is not None
            or AFFIRMED_AFTER.match(low, mention.end, mention.end + 80) is not None
        )
    return found


def labelled_mentions(options: OptionSet, reply: Reply, start: int = 0) -> Iterator[Mention]:
    """Yield where a mark is followed by a sign and its own option's text, whole: label and text as one mention."""
    end = 0
    for match in options.labelled.finditer(reply.body, start):
        index = options.by_mark[match.group(1).lower()]
        if match.start(1) < end:
            continue
        end = own_text_end(options, reply, match, index)
        if end > 0:
            yield Mention(index, match.start(1), end)


def own_text_end(options: OptionSet, reply: Reply, match: re.Match[str], index: int) -> int:
    """Return where the own text of a mark ends: behind the sign that parts them, or with that sign (`A-5` for −5)."""
    key = options.texts.key(index)
    if not key:
        return -1
    figure = options.texts.figures[index]
    tries = [own_end(reply.low, match.end(), key), own_end(reply.low, match.end(1), key)]
    # `F. 112` for 112 hp: a unit may be left out, but `I = 1.975` states a quantity.
    bare = figure and "=" not in match.group()
    return max(*tries, own_end(reply.low, match.end(), figure) if bare else -1)


_QUANTITY = LazyPattern(
    one_of(
        r"(?<![A-Za-z])([A-Z])(?:[_^₀-₉⁰¹²³′]"  # V_A, R²
        r"|\s?(?:[≈≠<≤≥+×·∩∪∈⊂⊆∝]|=(?!>)|/(?![A-Z](?![A-Za-z]))|\\(?:cap|cup|times|cdot|in|approx)\b)"  # I = 2, A ∩ B
        r"|\((?=[\w+-]{1,8}[),])(?=[a-z0-9ωθ+-]|[a-zA-Z_]{1,4}\)\s?[=+-])|['′]?\d)",  # H(s), C2
        # = 2 M +, ∠ A =
        r"(?:[=+×·∩∪∈∠√^/]|\\(?:cap|cup|angle|times|cdot)|(?<![\w.])\d+(?:\.\d+)?)\s?([A-Z])(?=\s?[=+×·∩∪/^_-]|[\d₀-₉])",
        r"(?<![A-Za-z])[Pp]r?\(([A-Z])(?=\s?[)|,∩∪])",  # P(A)
        r"[∠_△Δ]\s?\{?([A-Z])(?![A-Za-z])",  # ∠C
        r"[a-z/=]\s?\[([A-Z])\]",  # k[A]
        r"\[([A-Z])\](?:[₀-₉⁰¹²³_^/=]|\s?=)",  # [A]₀
    ),
    finds="I = 4",
    passes="B is right",
)
"""A capital that is a quantity where it stands: with an index, an argument or an operator at it."""
_QUANTITY_AFTER = After(
    r"\s?(?:[≈≠≤≥×·∩∪∈⊂^_]|<(?!\s*/)|=(?!>)|\\(?:cap|cup|times|cdot|in\b|approx))"
    r"|\((?=[a-z0-9_ωθ+-]{1,4}[),])|[₀-₉⁺⁻]",
    finds=" ∩ b",
    passes=") is right",
)
_QUANTITY_BEFORE = Before(
    "(?:"
    + one_of(
        r"[×·∩∪∈∠△√^_]",
        # sin(, P(
        r"(?<![a-z])(?:[a-z]|(?:arc)?(?:cos|sin|tan|cot|sec|csc)h?|log|ln|exp|det|var|cov|max|min)\(",
        r"[a-z\d/]\[",
        r"(?<![a-z])(?<![a-z]\s)\+",
        r"(?<![=-])=",
        r"\\(?:cap|cup|angle|times|cdot)",
        r"(?<![\w.)])[-−]?\d(?:[\d.,]{0,20}\d)?(?:\s?[a-zµ]\b)?",  # 1.975 A, 3 m A
        r"°",
    )
    + r")\s?\{?",
    reach=16,
    finds="i = 1.975 ",
    passes="the answer is (",
)
"""What stands after and before a capital that is a quantity or a unit (`= 1.975 A`)."""
_UNIT_BEFORE = Before(r"\d\}?\s{4,14}", reach=16, finds="10^{-19}        ", passes="option ")
"""Before a capital in braces of its own (`10^{-19}\\ \\text{C}`, blank where LaTeX stood): it is a unit."""
_CHAIN = LazyPattern(
    r"(?<![A-Za-z])(?<![Nn]ot )[A-Z](?:\s?(?:→|->)\s?[A-Z](?![A-Za-z])){1,9}(?=[\s\S]{3})",
    finds="A → B → C, then",
    passes="so → B",
)
"""A way from point to point (`A → B → C`); at the end of a reply an arrow leads to what is chosen."""
_PLAINLY_FOLLOWED = frozenset(("", ".", ",", ")", "*", "\n", ":"))
"""What most labels are followed by: no pattern is tried there."""
_SET_OFF = Before(
    one_of(
        r"(?<!\w)(?:(?:<labels.called>)[:,]?\s|[a-z]\W{0,3}(?:,|or|and)\s)[\s*_(\[\"'`$\\]*",  # option, A or
        r"(?:→|⇒|->|=>|:|<labels.called_glued>)[\s*_(\[\"'`$\\]*",
        r"(?:\*\*|__|[(\[\"'`])\s?",
        r"(?:\A|\n)[\s>#*-]*",
    ),
    reach=24,
    finds="option ",
    passes="the point marked ",
)
_LEFT_ALONE = After(
    r"[*_)\]\"'`$\\}]*(?:\s*[.,;:!?)\n。，、]|\s*\Z|\s(?:is|or|and|because|since|fits|matches)\b|[^\x00-\x7f])",
    finds="** and",
    passes=" most closely",
)


def quantities(body: str) -> frozenset[str]:
    """Return the capitals that a reply uses as quantities: each may stand for one also where nothing shows it."""
    if "=" not in body and "_" not in body and "(" not in body and body.isascii():
        return frozenset()
    return frozenset(match.group(match.lastindex or 0) for match in _QUANTITY.finditer(body))


def chained(body: str) -> frozenset[int]:
    """Return where the capitals of a way from point to point stand."""
    if "→" not in body and "->" not in body:
        return frozenset()
    return frozenset(at for match in _CHAIN.finditer(body) for at in range(*match.span()))


def leads_on_as_quantity(low: str, end: int) -> bool:
    """Whether what follows a capital makes it a quantity: an operator, an index, an argument."""
    return low[end : end + 1] not in _PLAINLY_FOLLOWED and _QUANTITY_AFTER.match(low, end) is not None


def is_quantity(low: str, start: int, end: int) -> bool:
    """Whether the capital at this place is part of a formula or a unit."""
    if _QUANTITY_AFTER.match(low, end) is not None or _QUANTITY_BEFORE.before(low, start) is not None:
        return True
    return low[end : end + 1] in {"}", " "} and _UNIT_BEFORE.before(low, start) is not None


def spoken_as_label(low: str, start: int, end: int) -> bool:
    """Whether a capital that is a quantity elsewhere is used as a label here: called one, set off, or alone."""
    return _SET_OFF.before(low, start) is not None and _LEFT_ALONE.match(low, end) is not None
