"""What stands after a cue to the option it announces: a label, an option text, or nothing that is offered."""

from __future__ import annotations

import re

from msgspec import Struct

from .cue_words import BINDER, LINK, NEGATION, NOT_AFTER
from .extraction import AMBIGUOUS, NOT_OFFERED, TRUNCATED, Extraction
from .formula import leads_on_as_quantity
from .option_set import OptionSet, Reply
from .option_text import plain
from .own_text import own_end
from .polarity import DENIED_AFTER, REFUTED, Mention
from .word_lists import LazyPattern, word_set

_ENDS = LazyPattern(r"[)\]}\"'*_`$\s]*(?:[.,;:!?)\]}\n。，、；）—–-]|\Z|\(|<cues.value_ends>)|[^\x00-\x7f]")
_VERB_AFTER = LazyPattern(r"[)\]}\"'*_`]*\s(?:<cues.label_verb>)(?!\w)")
_TEXT_JOIN = LazyPattern(r"\s?(?:,\s?)?(?:<cues.text_join>)\s?")
_DENIES = LazyPattern(r"(?<!\w)(?:going to|not|cannot|never|neither|nor|no)(?!\w)|n't")
# Of a language whose links are not listed: a few words, then one letter.
_FEW_WORDS = LazyPattern(r"[^\W\d_]{0,4}(?:\s[^\W\d_]{1,14}){0,3}?[:\s]\s?[(\[\"'*]{0,3}(?=[a-z](?![^\W_]))")
_LATIN_WORD = LazyPattern(r"[)\]\"'*_`]*(?:\s+[a-z\u00c0-\u024f]{2,20}){2}")
_SIGNS = LazyPattern(r"[\s*_`)\]}\"'$\\]*[.):\-–—=、：,]?[\s*_`(\[{\"'$\\:-]*")
_OPEN_END = LazyPattern(r"[)\]\"'*_`]*,?\s(?:or|and)\W*\Z")
_GOES_THROUGH_EACH = LazyPattern(r"(?<!\w)(?:<labels.goes_through_each>)")
SENTENCE_END = LazyPattern(r"[.;!?\n。；！？]")
_STRANGER = LazyPattern(r"[A-Z](?=[)\]}\"'*_`$]*\s*(?:[.,;:!?\n]|\Z))")


_NOUN_BEFORE = LazyPattern(r"(?<!\w)([^\W\d_]{3,20})[\s-][*_(\[\"']*\Z")
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
    noun = _NOUN_BEFORE.search(low, max(0, at - 24), at)
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
    if REFUTED.match(low, own, own + 80) if own > 0 else DENIED_AFTER.match(low, end, end + 120):
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
    if DENIED_AFTER.match(low, text.end, text.end + 120):
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
