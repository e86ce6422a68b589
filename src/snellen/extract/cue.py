"""Replies that point at their answer to what they point at: `the answer is B`, `答案是B`; the last not denied wins."""

from __future__ import annotations

import re

from msgspec import Struct

from .extraction import AMBIGUOUS, NOT_OFFERED, TRUNCATED, Extraction
from .meant import corrected
from .mentions import label_mentions, labelled_mentions, leads_on_as_quantity
from .option_set import OptionSet, Reply
from .option_text import own_end, plain
from .phrases import (
    BINDER,
    CONTRAST,
    DENIED_AFTER,
    DOUBT,
    DOUBT_CLAUSE,
    LINK,
    NEGATION,
    NOT_AFTER,
    REFUTED,
    VERB_DENIED,
    VERB_SUBJECT,
    ascii_vocabularies,
    cue_kinds,
    whole_vocabulary,
)
from .polarity import Mention
from .word_lists import After, Before, LazyPattern, Stems, places, word_set

_ENDS = After(
    r"[)\]}\"'*_`$\s]*(?:[.,;:!?)\]}\n。，、；）—–-]|\Z|\(|<cues.value_ends>)|[^\x00-\x7f]",
    finds="**. the fur is short",
    passes=" has four legs",
)
_VERB_AFTER = After(r"[)\]}\"'*_`]*\s(?:<cues.label_verb>)(?!\w)", finds=" would fit", passes=" and c")
_TEXT_JOIN = After(r"\s?(?:,\s?)?(?:<cues.text_join>)\s?", finds=" or blue", passes=" is right")
_DENIES = LazyPattern(
    r"(?<!\w)(?:going to|not|cannot|never|neither|nor|no)(?!\w)|n't", finds="it cannot be", passes="it is"
)
# Of a language whose links are not listed: a few words, then one letter.
_FEW_WORDS = After(
    r"[^\W\d_]{0,4}(?:\s[^\W\d_]{1,14}){0,3}?[:\s]\s?[(\[\"'*]{0,3}(?=[a-z](?![^\W_]))",
    finds=" lautet daher b",
    passes=" is clear from the picture",
)
_LATIN_WORD = After(r"[)\]\"'*_`]*(?:\s+[a-z\u00c0-\u024f]{2,20}){2}", finds=" scheidet aus", passes=".")
_SIGNS = After(r"[\s*_`)\]}\"'$\\]*[.):\-–—=、：,]?[\s*_`(\[{\"'$\\:-]*", finds=". $12$")
_OPEN_END = After(r"[)\]\"'*_`]*,?\s(?:or|and)\W*\Z", finds=" or ", passes=" or b")
_GOES_THROUGH_EACH = LazyPattern(
    r"(?<!\w)(?:<labels.goes_through_each>)", finds="let us consider each option", passes="the options are clear"
)
SENTENCE_END = LazyPattern(r"[.;!?\n。；！？]", finds="it is red. so", passes="it is red, so")
_STRANGER = After(r"[A-Z](?=[)\]}\"'*_`$]*\s*(?:[.,;:!?\n]|\Z))", finds="F.", passes="D-day")
_NOUN_BEFORE = Before(
    r"(?<!\w)([^\W\d_]{3,20})[\s-][*_(\[\"']*", reach=24, finds="the answer is statement ", passes="the answer is: "
)
_ENDED = frozenset(("", ".", ")", ").", "**", "**.", ".**"))
"""What most announced labels are followed by, the end of the reply: nothing there can deny, join or undo one."""
_TIES = frozenset(":=是为為")


class Cue(Struct, frozen=True, gc=False):
    """A word that points at an answer: where it stands, and whether it names an answer, an option or the choosing."""

    start: int
    end: int
    word: str
    kind: str


class Slot(Struct, frozen=True, gc=False):
    """The place where a cue's value stands, the label there if any, and whether a linking word leads to it."""

    at: int
    label: re.Match[str] | None
    bound: bool


def announced_value(options: OptionSet, reply: Reply, cue: Cue) -> Extraction | None:
    """Read what stands after a cue and its linking words."""
    low = reply.low
    link = LINK.match(low, cue.end)
    at = link.end() if link else cue.end
    bound = _bound(low, cue, at)
    # `option B …` and `correct B …` only name an option; `answer B` needs no tie.
    if not bound and (cue.kind == "option" or cue.word == "correct"):
        return None
    if at >= len(low):
        return _last_word(options, reply, cue) or _dangling(low, bound)
    if bound and low.startswith("also ", at):
        return Extraction(None, "cue", AMBIGUOUS)
    return _value_at(options, reply, cue, Slot(at, options.label.match(reply.body, at), bound))


def _value_at(options: OptionSet, reply: Reply, cue: Cue, slot: Slot) -> Extraction | None:
    special = _thing_value(options, reply, slot) or _special_value(options, reply, slot)
    if special is not None:
        return special
    # `the answer is a dog`: an article is tried as an option text first, any other label is taken at its word.
    if slot.label and _only_names(low=reply.low, cue=cue, slot=slot):
        return None
    if slot.label and not _wordy(reply, slot.label):
        return _label_value(options, reply, slot.label, slot.bound)
    return _worded_value(options, reply, cue, slot)


def _thing_value(options: OptionSet, reply: Reply, slot: Slot) -> Extraction | None:
    """Read a thing that option texts name with a letter (`Statement C` as the text of A): no label is meant."""
    if not options.term_words or slot.label is None:
        return None
    low, at = reply.low, slot.label.start(1)
    noun = _NOUN_BEFORE.before(low, at)
    if noun is None or noun.group(1) not in options.term_words:
        return None
    text = options.texts.at(low, noun.start(1))
    if text is not None:
        return _text_value(options, reply, text)
    return None if _named_alike(options, f"{noun.group(1)} {low[at]}", low[at]) else Extraction(None, "cue", AMBIGUOUS)


def _named_alike(options: OptionSet, thing: str, letter: str) -> bool:
    """Whether the option of a letter names the thing of that letter, or no option does: then a label is meant."""
    holders = [index for index, text in enumerate(options.texts.plain) if thing in text]
    return not holders or options.by_mark[letter] in holders


def _last_word(options: OptionSet, reply: Reply, cue: Cue) -> Extraction | None:
    """Read an option text that is also a linking word (`Answer: Right`)."""
    tail = reply.low[cue.end :]
    index = options.texts.by_text.get(plain(tail)) if len(tail) < 40 else None
    start = len(reply.low) - len(tail.lstrip(" :*_"))
    return None if index is None else options.pick_at(reply, index, "cue_text", start, len(reply.low.rstrip(" .*_\n")))


def _special_value(options: OptionSet, reply: Reply, slot: Slot) -> Extraction | None:
    """Read a label glued to its own text (`Answer: H2`), or an option text that begins like a label (`A and C`)."""
    low, at = reply.low, slot.at
    if not slot.bound or (slot.label is not None and not options.like_labels):
        return None
    index = options.by_mark.get(low[at : at + 1])
    if index is None:
        return None
    if slot.label is None:
        key = options.texts.key(index)
        glued = key != "" and own_end(low, at + 1, key) > 0
        return options.pick_at(reply, index, "cue", at, at + 1) if glued else None
    return _longer_text(options, reply, slot.label, index)


def _longer_text(options: OptionSet, reply: Reply, label: re.Match[str], index: int) -> Extraction | None:
    """Read the text of another option than `index` where it begins with the label and goes on."""
    text = options.texts.at(reply.low, label.start())
    if text is None or text.start != label.start() or text.end <= label.end() or text.index == index:
        return None
    return options.pick(reply, text, "cue_text")


def _dangling(low: str, bound: bool) -> Extraction | None:
    """`The answer is` and then nothing: the reply was cut off."""
    return Extraction(None, "cue", TRUNCATED) if bound and low.rstrip()[-1:] not in {".", "*", ")", "!"} else None


def _bound(low: str, cue: Cue, at: int) -> bool:
    """Whether the cue is tied to what stands at `at`: by a copula, a colon or an arrow; verbs and foreign cues are."""
    if cue.kind == "verb" or low[cue.end : at] in _TIES or (at > cue.end + 1 and BINDER.search(low, cue.end, at)):
        return True
    return cue.kind == "answer" and cue.word not in word_set("cues.english_first") and at > cue.end


def _only_names(low: str, cue: Cue, slot: Slot) -> bool:
    """Whether a noun of another language only names an option of which something is said (`Antwort B scheidet aus`)."""
    if slot.label is None or cue.kind != "answer" or cue.word in word_set("cues.english_first") or cue.word[-1] > "ɏ":
        return False
    tied = BINDER.search(low, cue.end, slot.at) is not None
    return not tied and _LATIN_WORD.match(low, slot.label.end()) is not None and not _ENDS.match(low, slot.label.end())


def _worded_value(options: OptionSet, reply: Reply, cue: Cue, slot: Slot) -> Extraction | None:
    """Read a value that is an option text, or a label that might be an article."""
    low = reply.low
    text = options.texts.at(low, slot.at) if _takes_text(low, cue) else None
    if _denied(low, slot.at, text):
        return None
    if slot.label and (text is None or text.index == options.by_mark[slot.label.group(1).lower()]):
        return _label_value(options, reply, slot.label, slot.bound)
    if text is not None and slot.bound:
        return _text_value(options, reply, text)
    return _unlisted_value(options, reply, cue, slot)


def _unlisted_value(options: OptionSet, reply: Reply, cue: Cue, slot: Slot) -> Extraction | None:
    """Read a value that is no option at its place: a mark that was not offered, or one that stands further on."""
    verdict = _strange_value(options, reply, slot)
    if verdict is not None or cue.kind != "answer":
        return verdict
    verdict = _far_value(options, reply, slot.at)
    return verdict if verdict or cue.word in word_set("cues.english_first") else _foreign_value(options, reply, cue.end)


def _strange_value(options: OptionSet, reply: Reply, slot: Slot) -> Extraction | None:
    """A capital that was not offered is an answer, but no valid one, unless it is the text of an option."""
    if not (slot.bound and options.letters and _STRANGER.match(reply.body, slot.at)):
        return None
    # Options may be capitals other than the marks: `The answer is R` where R is the text of C.
    index = options.texts.by_text.get(reply.low[slot.at])
    if index is not None and options.texts.written[index] == reply.body[slot.at]:
        return options.pick_at(reply, index, "cue_text", slot.at, slot.at + 1)
    return Extraction(None, "cue", NOT_OFFERED, reply.span(slot.at, slot.at + 1))


def _denied(low: str, at: int, text: Mention | None) -> bool:
    """Whether `not` or its like follows the link, and is not itself the option `no`."""
    return NOT_AFTER.match(low, at) is not None and (text is None or not _ENDS.match(low, text.end))


def _takes_text(low: str, cue: Cue) -> bool:
    """Whether an option text after the cue is the answer: after option nouns only if praised (`the best option`)."""
    before = low[max(0, cue.start - 9) : cue.start].rstrip()
    return cue.kind != "option" or before.endswith(
        ("correct", "right", "best", "final", "only", "remaining", "true", "accurate")
    )


def _wordy(reply: Reply, label: re.Match[str]) -> bool:
    """Whether the label may be an article: a lone A, or any lower-case letter, followed by a word."""
    mark = label.group(1)
    return (mark in {"A", "I"} or mark.islower()) and reply.low[label.end() : label.end() + 1].isspace()


def _label_value(options: OptionSet, reply: Reply, label: re.Match[str], bound: bool) -> Extraction | None:
    """Take the label, unless what follows shows that it is none, denied, cut off or one of several."""
    index, end, low = options.by_mark[label.group(1).lower()], label.end(), reply.low
    if low[end : end + 4] in _ENDED:
        return None if _heads_list(options, reply, label) else options.pick_at(reply, index, "cue", *label.span(1))
    if not _fits(options, reply, label, bound) or leads_on_as_quantity(low, end):
        return None
    own = _own_end(options, low, index, end)
    if REFUTED.after(low, own) if own > 0 else DENIED_AFTER.after(low, end):
        return None
    end = max(end, own)
    if _heads_list(options, reply, label):
        return None
    verdict = options.pick_at(reply, index, "cue", label.start(1), label.end(1))
    if _OPEN_END.match(low, end):
        return Extraction(None, "cue", TRUNCATED, verdict.span)
    return Extraction(None, "cue", AMBIGUOUS, verdict.span) if _coordinated(options, reply, index, end) else verdict


def _fits(options: OptionSet, reply: Reply, label: re.Match[str], bound: bool) -> bool:
    """Whether what follows the label lets it be one: `answer B would …` without a link, or an article, does not."""
    low, end = reply.low, label.end()
    if bound and not _wordy(reply, label):
        return True
    if _VERB_AFTER.match(low, end):
        return bound
    return _ENDS.match(low, end) is not None or _own_text(options, low, options.by_mark[label.group(1).lower()], end)


def _own_end(options: OptionSet, low: str, index: int, end: int) -> int:
    """Return where the label's own text ends if it follows: what that text denies (`B. no`) denies nothing."""
    key = options.texts.key(index)
    # Most labels end their sentence: the dear comparison is made only where the text may begin.
    if len(low) - end < 3 or not key or key[0] not in low[end : end + 12]:
        return -1
    gap = _SIGNS.match(low, end)
    return max(own_end(low, gap.end(), key), own_end(low, end, key)) if gap else -1


def _own_text(options: OptionSet, low: str, index: int, end: int) -> bool:
    own = options.texts.plain[index]
    return bool(own) and own in low[end : end + len(own) + 8]


def _heads_list(options: OptionSet, reply: Reply, label: re.Match[str]) -> bool:
    """Whether the label heads a list of options (`Choices:\\nA. …\\nB. …`)."""
    at = reply.body.rfind("\n", 0, label.start())
    if at < 0 or not options.item.match(reply.body, at):
        return False
    before = reply.low[max(0, at - 240) : at].rstrip()
    if _GOES_THROUGH_EACH.search(before, before.rfind("\n") + 1):
        return True
    following = options.item.search(reply.body, label.end(), label.end() + 400)
    return following is not None and following.group(1).lower() != label.group(1).lower()


def _coordinated(options: OptionSet, reply: Reply, index: int, end: int) -> bool:
    """Whether another option is joined on (`B or C`), so that none is chosen."""
    match = options.joined.match(reply.body, end)
    if match is None:
        return False
    other = options.by_mark[(match.group("second") or match.group("wrapped")).lower()]
    if other == index or DENIED_AFTER.match(reply.low, match.end(), match.end() + 80):
        return False
    # `B, and C shows …` opens a new clause; `B and C` does not.
    either = match.group("join") not in {",", "and", "&", "、"}
    return either or not _VERB_AFTER.match(reply.low, match.end())


def _text_value(options: OptionSet, reply: Reply, text: Mention) -> Extraction | None:
    low = reply.low
    if DENIED_AFTER.after(low, text.end):
        return None
    join = _TEXT_JOIN.match(low, text.end)
    other = options.texts.at(low, join.end()) if join else None
    if other is not None and other.index != text.index:
        return Extraction(None, "cue_text", AMBIGUOUS)
    return options.pick(reply, text, "cue_text")


def _far_value(options: OptionSet, reply: Reply, at: int) -> Extraction | None:
    """Look for `… is B` further on in the sentence of the cue."""
    stop = SENTENCE_END.search(reply.body, at, at + 140)
    match = options.far.search(reply.body, at, stop.start() if stop else at + 140)
    if match is None or not options.letters or _DENIES.search(reply.low, at, match.start(1)):
        return None
    label = options.label.match(reply.body, match.start(1))
    return _label_value(options, reply, label, True) if label else None


def _foreign_value(options: OptionSet, reply: Reply, at: int) -> Extraction | None:
    """Look past a few words of a language whose links are not listed, none of them a denial, for a last capital."""
    match = _FEW_WORDS.match(reply.low, at)
    if match is None or NEGATION.search(reply.low, at, match.end()):
        return None
    label = options.label.match(reply.body, match.end())
    last = label and label.group(1).isupper() and _ENDS.match(reply.low, label.end())
    return _label_value(options, reply, label, True) if label and last else None


_TAIL = 480
"""Answers stand at the end: in a long reply so many characters are searched first, the rest only if they name none."""
_MOST_CUES = 60
"""Cues of one word that are tried, from the end: a bound on time for replies that loop."""
_CLAUSE = 64
"""A clause is at most so long."""
_SHORTEST_LOOP = 8
"""`the answer` and the like; less may stand anywhere."""
_QUESTION = After(r"[)\]}\"'*_`\s]*\?", finds=")? no", passes=". why")
_CONDITION = LazyPattern(
    r"(?<!\w)if [^.;\n]{1,60}(?:,| then)[^.;\n]{0,24}?(?:\bis|\bbe|'s|choose|option|:)\s"
    r"(?:option )?[(*]{0,3}([a-z])(?!\w)",
    finds="if h = 2 m, it's d",
    passes="if in doubt, look again",
)
_OPENING = Before(
    r"(?:\A|[.!\n]\s?)\**(?:(?:therefore|so|thus|hence),? )?(?:the |my )?(?:correct |final |best )?",
    reach=28,
    finds="it is red. therefore, the correct ",
    passes="many would say the ",
)
"""The cue opens its sentence: nothing before it can take its force."""


def cue(options: OptionSet, reply: Reply) -> Extraction | None:
    """Read the last cue that names an option: English words before others, the end of a long reply before the rest."""
    low, size = reply.low, len(reply.low)
    split = size - _TAIL if size > 2 * _TAIL else 0
    for words in _vocabularies(low, split):
        verdict = _last_cue(options, reply, words, split, size)
        if verdict is None and split:
            verdict = _last_cue(options, reply, words, 0, split + 16)
        if verdict is not None:
            return verdict
    return None


def _vocabularies(low: str, split: int) -> tuple[Stems, ...]:
    """Which words to look for, in turn: a long plain English reply is not searched for those of other languages."""
    if not low.isascii():
        return whole_vocabulary()
    return ascii_vocabularies()[:1] if split and " the " in low else ascii_vocabularies()


def _last_cue(options: OptionSet, reply: Reply, words: Stems, begin: int, end: int) -> Extraction | None:
    asked: Extraction | None = None
    kinds = cue_kinds()
    for start, word in reversed(places(reply.low, words, begin, end, _MOST_CUES)):
        verdict = _announced(options, reply, Cue(start, start + len(word), word, kinds[word]))
        if verdict is None:
            continue
        if not _asked(reply, verdict):
            return _weighed(options, reply, verdict)
        asked = asked or verdict
    return asked if asked and not _others(options, reply, asked) else None


def _weighed(options: OptionSet, reply: Reply, verdict: Extraction) -> Extraction:
    """Return what a cue announces, unless another cue or another condition announces something else beside it."""
    if _enumerated(reply, verdict) or _conditional(reply.low, verdict):
        return Extraction(None, "cue", AMBIGUOUS, verdict.span)
    return corrected(options, reply, verdict)


def _loops(low: str, start: int, verdict: Extraction) -> bool:
    """Whether the sentence that is cut off was said twice before: a loop goes on with what it said."""
    if verdict.span is not None:
        return False
    head = low[max(low.rfind(stop, 0, start) for stop in (". ", "\n", "! ")) + 1 :].strip()
    return len(head) >= _SHORTEST_LOOP and low.count(head) > 2


def _announced(options: OptionSet, reply: Reply, cue: Cue) -> Extraction | None:
    """Return what the cue announces, if it announces something and the words before it do not take that back.

    Doubt is dearer to find than a value and most cues announce none, so the value is read first.
    """
    low = reply.low
    if _discusses(low, cue) or _inside_word(low, cue) or _names_thing(options, low, cue):
        return None
    if cue.word in options.texts.cues and _in_own_text(options, reply, cue):
        return None
    verdict = announced_value(options, reply, cue)
    if verdict is None or _doubted(low, cue):
        return None
    return None if verdict.reason == TRUNCATED and _loops(low, cue.start, verdict) else verdict


def _in_own_text(options: OptionSet, reply: Reply, cue: Cue) -> bool:
    """Whether the cue is a word of an option's own text behind its label (`(A) the solution is option D`)."""
    begin = max(0, cue.start - _CLAUSE)
    return any(one.start < cue.start < one.end for one in labelled_mentions(options, reply, begin))


def _names_thing(options: OptionSet, low: str, cue: Cue) -> bool:
    """Whether the cue is the noun of a thing that option texts name with a letter (`Solution A`)."""
    if cue.word not in options.term_words or low[cue.end : cue.end + 1] not in {" ", "-"}:
        return False
    return low[cue.end + 1 : cue.end + 2] in options.by_mark and not low[cue.end + 2 : cue.end + 3].isalnum()


def _enumerated(reply: Reply, verdict: Extraction) -> bool:
    """Whether the line before says the same of another label (`Answer: A`, then `Answer: B`)."""
    low, (start, end) = reply.low, verdict.span or (0, 0)
    start, end = start - reply.offset, end - reply.offset
    line = low.rfind("\n", 0, max(0, start)) + 1
    if verdict.letter is None or line == 0 or end - start != 1:
        return False
    before = low[low.rfind("\n", 0, line - 1) + 1 : line - 1]
    same = before[: start - line] == low[line:start] and len(before) <= end - line + 2
    return same and before[start - line : end - line] not in {"", low[start:end]}


def _conditional(low: str, verdict: Extraction) -> bool:
    """Whether the reply names one option under one condition and another under another."""
    begin = max(0, len(low) - _TAIL)
    if verdict.letter is None or low.find("if ", begin) < 0:
        return False
    named = {match.group(1) for match in _CONDITION.finditer(low, begin)}
    return len(named) > 1 and verdict.letter.lower() in named


def _discusses(low: str, cue: Cue) -> bool:
    """Whether a noun begins `option A would …`: that speaks of an option, it does not choose one."""
    if cue.kind != "option":
        return False
    end = cue.end
    # `option – B` ties the label to the noun, as a copula does.
    return low[end : end + 1] == " " == low[end + 2 : end + 3] and low[end + 1].isalnum()


def _asked(reply: Reply, verdict: Extraction) -> bool:
    """Whether a question mark follows: `Is the answer B?` only weighs B."""
    if verdict.letter is None or verdict.span is None:
        return False
    end = verdict.span[1] - reply.offset
    return reply.low.find("?", end) >= 0 and _QUESTION.match(reply.low, end) is not None


def _others(options: OptionSet, reply: Reply, asked: Extraction) -> bool:
    """Whether an option other than the one only asked about stands undenied."""
    return any(
        mention.stands and options.marks[mention.index] != asked.letter for mention in label_mentions(options, reply)
    )


def _inside_word(low: str, cue: Cue) -> bool:
    """Whether the cue is part of a longer Latin word (`incorrect`, `answering`)."""
    before, after = low[cue.start - 1 : cue.start], low[cue.end : cue.end + 1]
    # The tag `</conclusion>` announces nothing.
    if after == ">" and before in {"<", "/"}:
        return True
    if cue.word in "选選" and after in {"项", "項", "择", "擇", "択"}:
        return True
    return ("a" <= before <= "ɏ" and before.isalpha()) or (
        "a" <= after <= "ɏ" and after.isalpha() and cue.word[-1] <= "ɏ"
    )


def _doubted(low: str, cue: Cue) -> bool:
    """Whether the words around the cue deny it, make it a condition, or give it to somebody else."""
    start = cue.start
    if low.startswith(" would have been", cue.end):
        return True
    if cue.kind == "answer" and _OPENING.before(low, start):
        return False
    if _denied_before(low, cue):
        return True
    # Most cues have no such words before them: only where some stand is it asked whether in the same clause.
    if DOUBT_CLAUSE.search(low, max(0, start - _CLAUSE), start) is None:
        return False
    reported = DOUBT_CLAUSE.search(low, _clause_start(low, start), start)
    return reported is not None and CONTRAST.search(low, reported.end(), start) is None


def _denied_before(low: str, cue: Cue) -> bool:
    """Whether what stands right before the cue denies it."""
    if cue.start and low[cue.start - 1] in "不非没別别":
        return True
    if cue.kind == "verb" and cue.word.isascii():
        return _unspoken(low, cue)
    return DOUBT.search(low, max(0, cue.start - 40), cue.start) is not None


def _clause_start(low: str, end: int) -> int:
    """Return where the sentence before `end` begins, not further back than a clause is long."""
    start = max(0, end - _CLAUSE)
    for stop in SENTENCE_END.finditer(low, start, end):
        start = stop.end()
    return start


def _unspoken(low: str, cue: Cue) -> bool:
    """Whether `choose` and its like have another subject than the speaker, or are denied."""
    spoken = VERB_SUBJECT.before(low, cue.start)
    return spoken is None or VERB_DENIED.before(low, cue.start) is not None
