"""Options that are not named whole to which is meant: a surname, a value, or the words of a text among others."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from . import cue, whole_reply, without_cue
from .extraction import Extraction
from .meant import meant_text
from .mentions import label_mentions, text_mentions
from .option_set import OptionSet, Reply, compile_options
from .phrases import UNDECIDED
from .polarity import Mention, agreed, judge
from .word_lists import END, START, After, LazyPattern, word_set, words

_LETTER = r"(?:[^\W_]|[\u064b-\u0652\u0900-\u0963\u0970-\u0dff\u0e31-\u0e4e])"
"""A letter, or a sign for a vowel that other scripts set at one: without these their words fall into pieces."""
_WORD = re.compile(rf"{_LETTER}+(?:[.'’]{_LETTER}+|(?<=\d),\d{{3}}(?!\d)|-(?=\d)\d+)*")
_STOP = re.compile(r"[.!?](?=\s)|\n|[。।]")
_TURNS = LazyPattern(rf"{START}(?:<options.takes_back>){END}|n't|\?", finds="it would rise", passes="it rises")
_ENDING = re.compile(
    r"(?<=[^\W\d_]{3})(?:i[sz]ations?|[ai]tions?|at(?:e|es|ed|ing)|ings?|is[mt]s?|istic|etic|esis|asm|astic"
    r"|i?ness|an(?:ts?|cy)|en(?:ts?|cy)|ic|ia|ie[sd]|e[sd]?|s|(?<=[^aeiou])y"
    r"|[oa]s?|ый|ая|ое|ые|ий|ого|ой|ую|ом|ами?|ах|ям|ями|ях|ов|ев|ей|ем|а|у|е|ы|и|ю|я|ь"
    r"|[аеёи]?(?:ет|ёт|ит|ут|ют|ат|ят|ется|ётся|ится|утся|ются|аться|ать|ить))\Z"
)
"""How words are inflected: verbs, nouns of doing, movements and their followers; foreign adjectives."""
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1\Z")
"""`referred` is `refer`, `swimming` is `swim`."""
_IS_IT = re.compile(r"(?<=[^\W\d_]{3})[dt][ıiuü]r\Z")
"""What is said of a thing in Turkish: `armuttur`, it is a pear."""
_MOST, _SHORTEST = 40, 2
_ALIKE = (
    *("options.more", "options.less", "options.bigger", "options.smaller", "options.same", "options.stays"),
    *("options.chart", "options.how_many"),
)
_CONCLUSION = LazyPattern(
    rf"{START}(?:<conclusions.closes>|<conclusions.concludes>|explained by|described by|described as){END}"
    rf"|\A[\s*_]*(?:this|it)\s(?:is|must be|was){END}",
    finds="therefore the price rises",
    passes="the price was high",
)
_THAN = re.compile(r"(?:(?<=er)(?<!rather)(?<!other) than| than| compared (?:to|with)) [^.,;:]{1,60}")
"""With what something is compared (`larger than the object`): no part of what is said."""
_AGAINST = re.compile(r" (?:than|compared (?:to|with)|while|whereas) [^.;:]{1,200}")
_MARK_ALONE = re.compile(
    r"(?<=[a-z] )[\"'*(]{0,3}[A-Z](?![\w'])|[A-Z](?=[)\"'*]{0,3} (?:is|appears|seems|looks|has|and)\b)"
)
_SO = re.compile(r",\s(?:so|hence|therefore|thus)\s")
_REASON_FIRST = After(
    rf"\A[\s*_]*(?:<conclusions.reason_first>){END}.{{3,240}},\s(?=\D)",
    finds=" since the temperature is constant, the volume falls",
    passes=" the volume falls",
)
"""A sentence that tells its reason first: what it says stands after the comma."""
_ALGEBRA = re.compile(r"[a-z)]\s?[-+*/^\\√·×⊕]|[-+*/^\\√·×⊕]\s?[a-z(]")
_SPELT = re.compile(r"[^\W\d_]{3}")
_LONG_WORD, _TELLING_WORD = 3, 7
_OPTION_NOUNS = ("option", "choice", "answer")
_ROMAN = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}
Said = Sequence[tuple[str, int]]
"""The words of a sentence without their endings, each with the place where it ends."""
_LAST = 400
"""A last sentence longer than this is not compared: a bound on time."""


def in_words(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply names no option whole: one is called by its last name, or its words alone make the last sentence."""
    labels = [mention for mention in label_mentions(options, reply) if mention.stands]
    if labels and _labels_settle(reply.low, labels):
        return None
    if labels or text_mentions(options, reply):
        return _concluded_in_words(options, reply)
    if UNDECIDED.search(reply.low):
        return None
    names = _own_names(options.marks, tuple(options.texts.written))
    if names:
        return _by_own_name(options, reply, names)
    chosen = _by_case(options, reply) or _by_letter(options, reply) or _by_words(options, reply)
    return options.pick(reply, chosen, "in_words") if chosen else None


def of_marks(options: OptionSet, reply: Reply) -> Extraction | None:
    """Options say the same of their own marks (`A is closer`): the first or last sentence says it of one of them."""
    said = _said_of_marks(options.marks, tuple(options.texts.written))
    if not said:
        return None
    first = _STOP.search(reply.low, 12)
    edges = {(0, first.end() if first else len(reply.low)), (_last_sentence(reply.low)[0], len(reply.low))}
    found = [match for edge in sorted(edges) if (match := _mark_in(options, reply, said, *edge))]
    chosen = agreed(found)
    return options.pick(reply, chosen, "in_words") if chosen else None


@lru_cache(maxsize=1024)
def _said_of_marks(marks: tuple[str, ...], texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that all texts but one say of their own marks, if they are the same words; else nothing."""
    own = [text.split()[1:] for mark, text in zip(marks, texts, strict=True) if text.split()[:1] == [mark]]
    if len(own) < max(2, len(texts) - 1) or any(words != own[0] for words in own):
        return ()
    return tuple(_content(" ".join(own[0]).lower()))


def _mark_in(options: OptionSet, reply: Reply, said: Sequence[str], start: int, end: int) -> Mention | None:
    """Return the only mark that a sentence names, outside of comparisons, if it says all the words and denies none."""
    sentence = _AGAINST.sub(lambda match: " " * len(match.group()), reply.low[start:end])
    stems = {_stem(word) for word in _WORD.findall(sentence)}
    if not stems.issuperset(said) or _TURNS.search(sentence):
        return None
    places = [match.end() - 1 for match in _MARK_ALONE.finditer(reply.body, start, end)]
    places = [at for at in places if sentence[at - start] != " "]
    named = {reply.low[at]: at for at in places if reply.low[at] in options.by_mark}
    if len(named) != 1:
        return None
    ((mark, at),) = named.items()
    return Mention(options.by_mark[mark], at, at + 1)


def _labels_settle(low: str, labels: Sequence[Mention]) -> bool:
    """Whether a label is affirmed, or stands in the last sentence: then words decide nothing."""
    return labels[-1].end > _last_sentence(low)[0] or any(label.sure for label in labels)


def _concluded_in_words(options: OptionSet, reply: Reply) -> Extraction | None:
    """Options are named before, but the last sentence is a conclusion that names none whole: its words decide."""
    start, sentence = _last_sentence(reply.low)
    if not _CONCLUSION.search(sentence) or any(mention.end > start for mention in text_mentions(options, reply)):
        return None
    chosen = None if UNDECIDED.search(reply.low) else _by_words(options, reply)
    return options.pick(reply, chosen, "in_words") if chosen else None


def _by_letter(options: OptionSet, reply: Reply) -> Mention | None:
    """Return the option that is meant where options are capitals other than the marks (`P`, `Q`, `R`)."""
    texts = options.texts.written
    letters = [text for text in texts if 0 < len(text) <= _SHORTEST and text.isupper()]
    # One option may say something else (`All of them`).
    if len(letters) < max(len(texts) - 1, min(3, len(texts))):
        return None
    longest = "|".join(re.escape(text) for text in sorted(letters, key=len, reverse=True))
    alone = rf"(?<![\w'’=+])(?<![=+<>≈]\s)(?:{longest})(?![\w'’=+(])(?!\s?[=+<>])"
    found = list(re.finditer(alone, reply.body))[-_MOST:]
    mentions = [
        Mention(texts.index(match.group()), match.start(), match.end())
        for match in found
        if not _is_called_option(options, reply.low, match)
    ]
    judge(reply.low, mentions)
    return meant_text(reply.low, [mention for mention in mentions if mention.stands], ())


def _by_case(options: OptionSet, reply: Reply) -> Mention | None:
    """Return the only option that is written out, where options differ by case alone (`AA`, `Aa`, `aa`)."""
    texts = options.texts.written
    alike = len({text.lower() for text in texts}) < len(texts) == len(set(texts))
    if not alike or min(map(len, texts)) < _SHORTEST:
        return None
    longest = "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    found = list(re.finditer(rf"(?<!\w)(?:{longest})(?!\w)", reply.body))[-_MOST:]
    mentions = [Mention(texts.index(match.group()), match.start(), match.end()) for match in found]
    judge(reply.low, mentions)
    return agreed([mention for mention in mentions if mention.stands and not mention.asked])


def _is_called_option(options: OptionSet, low: str, match: re.Match[str]) -> bool:
    """Whether a capital that is also a mark is called an option (`Option E` where the letter E is option A)."""
    return match.group().lower() in options.by_mark and low[: match.start()].rstrip(" (").endswith(_OPTION_NOUNS)


def _by_own_name(options: OptionSet, reply: Reply, names: tuple[str, ...]) -> Extraction | None:
    """Where all options are names of one kind (`Lake Huron`, `Lake Erie`), read which is called without its kind."""
    inner, again = compile_options(options.marks, names), Reply(reply.body, reply.offset, reply.finish)
    letter = _by_letter(inner, again)
    verdict = whole_reply.whole(inner, again) or cue.cue(inner, again) or without_cue.option_text(inner, again)
    found = inner.pick(again, letter, "in_words") if letter and verdict is None else verdict
    if found is None or found.letter is None or found.span is None:
        return None
    # `superior` is no lake.
    named = reply.body[found.span[0] - reply.offset]
    return Extraction(found.letter, "in_words", None, found.span) if named.isupper() else None


@lru_cache(maxsize=1024)
def _own_names(marks: tuple[str, ...], texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return what stands after the word with which all texts begin, if that is a name each time; else nothing.

    An option such as `None of these` stays as it is. A name that is the mark of another option tells nothing.
    """
    pairs = [text.partition(" ") for text in texts]
    kinds = [kind for kind, _, name in pairs if _is_own_name(name)]
    kind = max(set(kinds), key=kinds.count, default="")
    if len(kind) < _LONG_WORD or kinds.count(kind) < max(3, len(texts) - 1):
        return ()
    names = tuple(name if first == kind else text for text, (first, _, name) in zip(texts, pairs, strict=True))
    crossed = any(name in marks and name != mark for name, mark in zip(names, marks, strict=True))
    return () if crossed or len(set(names)) < len(names) else names


def _is_own_name(name: str) -> bool:
    """Whether a word is written as a name: one word with a capital (`Huron`, `B12`, `X`)."""
    return name[:1].isupper() and " " not in name and name.isalnum()


def _by_words(options: OptionSet, reply: Reply) -> Mention | None:
    """Return the only option whose words all stand in the last sentence, or in what that concludes with `so`."""
    start, sentence = _last_sentence(reply.low)
    turn = next(reversed(list(_SO.finditer(sentence))), None) or _REASON_FIRST.match(sentence)
    concluded = told_in(options, start + turn.end(), sentence[turn.end() :]) if turn else None
    return concluded or told_in(options, start, sentence)


def told_in(options: OptionSet, start: int, sentence: str) -> Mention | None:
    """Return the only option whose words all stand in a sentence, in order or not; a denial chooses none."""
    sentence = _without_comparisons(options, sentence)
    said = [(_stem(match.group()), match.end()) for match in _WORD.finditer(sentence)]
    turns = _turns_in(sentence)
    wanted = _without_symbols([_content(text) for text in options.texts.plain])
    shared: set[str] = set(*wanted[:1]).intersection(*wanted[1:])
    for find, alike in ((_in_order, list[str]), (_anyhow, sorted)):
        tellable = [index for index in _told_by_words(wanted, alike) if turns <= set(wanted[index])]
        for spared in (set[str](), shared):
            fitting = [(i, end) for i in tellable if (end := _said(wanted[i], spared, said, find)) > 0]
            if fitting:
                return _mention_of(fitting, start)
    return None


def _without_comparisons(options: OptionSet, sentence: str) -> str:
    """Return a sentence without what something is compared with, unless the options compare."""
    if not _THAN.search(sentence) or any(map(_THAN.search, options.texts.plain)):
        return sentence
    return _THAN.sub(lambda match: " " * len(match.group()), sentence)


def _mention_of(fitting: Sequence[tuple[int, int]], start: int) -> Mention | None:
    """Return the one option that fits, up to where it was said."""
    return Mention(fitting[0][0], start, start + fitting[0][1]) if len(fitting) == 1 else None


def _turns_in(sentence: str) -> set[str]:
    """Return the words by which a sentence takes something back: they must be the option's own."""
    return {_stem(word) for turn in _TURNS.finditer(sentence) for word in turn.group().split()}


def _told_by_words(wanted: list[list[str]], alike: Callable[[list[str]], list[str]]) -> list[int]:
    """Return the options that no other one is like, and whose words no other one holds whole, and more."""
    bags = [alike(words) for words in wanted]
    held = [any(set(words) < set(other) for other in wanted) for words in wanted]
    return [index for index, bag in enumerate(bags) if bags.count(bag) == 1 and not held[index]]


def _said(words: Sequence[str], shared: set[str], said: Said, find: Callable[[Sequence[str], Said], int]) -> int:
    """Return where an option's words end if they are said; of those that all options share one is enough."""
    own = [word for word in words if word not in shared]
    named = sum(word in shared for word, _ in said)
    enough = len(own) + min(named, 1) > 1 or len("".join(own)) >= (_LONG_WORD if len(words) == 1 else _TELLING_WORD)
    return find(own, said) if own and enough else -1


def _anyhow(words: Sequence[str], said: Said) -> int:
    """Return where the last of `words` ends if all are said, in any order; numbers are said in theirs."""
    ends = dict(said)
    numbers = [word for word in words if word[0].isdigit()]
    if not ends.keys() >= set(words) or (len(numbers) > 1 and _in_order(numbers, said) < 0):
        return -1
    return max(ends[word] for word in words)


def _last_sentence(low: str) -> tuple[int, str]:
    text = low.rstrip()
    start = max((stop.end() for stop in _STOP.finditer(text, 0, max(0, len(text) - 1))), default=0)
    return (start, text[start:]) if len(text) - start <= _LAST else (start, "")


def _without_symbols(wanted: list[list[str]]) -> list[list[str]]:
    """Leave out the letter that each text holds beside its words (`Capacitor C`), if the words tell them apart."""
    spelt = [[word for word in words if len(word) > 1] for words in wanted]
    lettered = all(len(words) == len(own) - 1 and words for words, own in zip(spelt, wanted, strict=True))
    return spelt if lettered and len(set(map(tuple, spelt))) == len(wanted) else wanted


def _content(text: str) -> list[str]:
    """Return the words that tell a text, without their endings; a formula has none."""
    if _ALGEBRA.search(text) and not _SPELT.search(text):
        return []
    return [_stem(word) for word in _WORD.findall(text) if word not in word_set("options.filler")]


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """Return a word without its ending, so that `reducing` is `reduce`; at least three letters stay."""
    word = _synonyms().get(word, word)
    word = _IS_IT.sub("", word)
    root = _ENDING.sub("", word.replace("oe", "e").replace("ae", "e").replace("ё", "е"), 1)
    return _ROMAN.get(word) or _DOUBLED.sub(r"\1", root)


@cache
def _synonyms() -> dict[str, str]:
    """Return words that say the same in most options (`rises`, `increases`), each to the first of its kind."""
    return {word: words(kind)[0] for kind in _ALIKE for word in words(kind)}


def _in_order(words: Sequence[str], said: Said) -> int:
    """Return where the last of `words` ends if they are all said in this order, else -1."""
    rest, end = iter(said), -1
    for wanted in words:
        end = next((stop for word, stop in rest if word == wanted), -1)
        if end < 0:
            return -1
    return end
