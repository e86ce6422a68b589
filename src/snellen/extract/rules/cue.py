"""Replies that point at their answer to what they point at: `the answer is B`, `答案是B`; the last not denied wins."""

from __future__ import annotations

from ..cue_value import SENTENCE_END, Cue, announced_value
from ..cue_words import (
    CONTRAST,
    CORRECTION,
    DOUBT,
    DOUBT_CLAUSE,
    VERB_DENIED,
    VERB_SUBJECT,
    WITHDRAWN,
    ascii_vocabularies,
    cue_kinds,
    whole_vocabulary,
)
from ..extraction import AMBIGUOUS, TRUNCATED, Extraction
from ..label_mentions import label_mentions, text_mentions
from ..option_set import OptionSet, Reply
from ..polarity import Mention, agreed
from ..word_lists import LazyPattern, Stems, places
from .labelled import labelled_mentions

_TAIL = 480
"""Answers stand at the end: in a long reply so many characters are searched first, the rest only if they name none."""
_MOST_CUES = 60
"""Cues of one word that are tried, from the end: a bound on time for replies that loop."""
_CLAUSE = 64
"""A clause is at most so long."""
_SHORTEST_TURN = 5
"""No self-correction fits into fewer characters: `No, B`."""
_SHORTEST_LOOP = 8
"""`the answer` and the like; less may stand anywhere."""
_QUESTION = LazyPattern(r"[)\]}\"'*_`\s]*\?")
_CONDITION = LazyPattern(
    r"(?<!\w)if [^.;\n]{1,60}(?:,| then)[^.;\n]{0,24}?(?:\bis|\bbe|'s|choose|option|:)\s"
    r"(?:option )?[(*]{0,3}([a-z])(?!\w)"
)
_OPENING = LazyPattern(
    r"(?:\A|[.!\n]\s?)\**(?:(?:therefore|so|thus|hence),? )?(?:the |my )?(?:correct |final |best )?\Z"
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
    if cue.kind == "answer" and _OPENING.search(low, max(0, start - 28), start):
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
    spoken = VERB_SUBJECT.search(low, max(0, cue.start - 24), cue.start)
    return spoken is None or VERB_DENIED.search(low, max(0, cue.start - 40), cue.start) is not None


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
