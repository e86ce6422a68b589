"""Options of a question to an OptionSet: the patterns and tables by which replies to it are read, compiled once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .cue_words import UNDECIDED
from .extraction import Extraction
from .mark_patterns import derive_marks, mark_patterns, term_pattern
from .normalise import counts_in_arabic
from .option_text import OptionTexts, is_primed, plain
from .own_text import key_of, own_end
from .polarity import ONLY_IF, Mention
from .word_lists import LazyPattern, word_set

_DECORATION = " \t\n\r*_`\"'.,:;!?()[]{}<>$#-–—…。，：；、「」『』【】《》«»‹›（）“”\\|=→"
_SHORTHAND = frozenset(("none", "neither", "neither of them", "both", "both of them"))
"""What is said for an option that says it at length: `None of the above`, `Both A and B`."""
_CROSSED = frozenset("❌✗✘×🚫")
_SEPARATES = frozenset(".):-–—")
_GAP = frozenset(" *_")
_FULL_STOPS = frozenset(".!?。")
_LETTER = re.compile(r"(?<![A-Za-z.])[A-Z](?![A-Za-z.'])(?! [a-z]{3})|(?<=[a-z] )[A-Z](?![A-Za-z.'])")
_RIGHT_ONLY_IF = re.compile(rf"\s{ONLY_IF}")
_HAS_CIRCLE = re.compile("[①-⑳]")
_CALLED_BY = re.compile(r"(?<!\w)([^\W\d_]{3,20})[\s-]([a-z])(?!\w)")
_CALLED_OPTION = re.compile(r"(?<!\w)(?:option|choice) ([a-z])(?!\w)")
_UNFINISHED = LazyPattern(
    r"(?<!\w)(?:<conclusions.leads_on>"
    r"|(?<!it )(?<!they )(?<!he )(?<!there )(?<!this )(?<!that )(?:<conclusions.leads_on_verb>))[\s*_`(\[\"']*\Z"
    r"|(?:\A|[.!\n]\s*)(?:among|out of) (?:the|these|all)[^.\n]{0,30}, [a-z]\Z"
    r"|(?<!\w)(?:that|which|whereas|while) (?!one)(?:the |an? )?[a-z]{2,16}\Z"
    r"|[.:!\n]\s*the(?: (?!is |are |was |has |shows )\w{1,16}){1,3}\Z"
    r"|(?:\A|[.!\n]\s*)(?:based on|according to|given) [^.,:!\n]{1,40}\Z"
    r"|[=≈]\s*\Z|(?<!yes, )(?<!no, )(?<!\A)(?<=\w )there are[\s*_]*\Z"
    r"|(?:<conclusions.goes_through>)[^.\n:]{0,60}[.:]\s+[*_(]*(?:option |choice )?[a-z]\W*\Z"
)
"""How a reply ends that was cut off: at a word that leads on, or at the first of the options it was to go through."""


class Reply:
    """One reply as the rules see it: normalised text, its lower case, and how generation ended."""

    __slots__ = ("body", "finish", "labels", "low", "offset", "texts")

    def __init__(self, body: str, offset: int = 0, finish: str | None = None) -> None:
        self.body, self.offset, self.finish = body, offset, finish
        self.low = body.lower()
        self.labels: list[Mention] | None = None
        self.texts: list[Mention] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return a place of the normalised answer part as a place of the original reply, thinking included."""
        return start + self.offset, end + self.offset

    @property
    def cut(self) -> bool:
        """Whether generation ended at the token limit, or the text ends in the midst of a sentence."""
        if self.low[-1:] in _FULL_STOPS:
            return self.finish == "length"
        return self.finish == "length" or _UNFINISHED.search(self.low, max(0, len(self.low) - 160)) is not None


def _letters_of(texts: tuple[str, ...]) -> frozenset[str]:
    """Return the capitals that option texts name (`Project B`, `A < B`): in a reply they may stand for those things."""
    named = [set(_LETTER.findall(text)) for text in texts]
    return frozenset().union(*named) if sum(map(bool, named)) > 1 else frozenset()


def _words_before_letters(texts: Sequence[str], by_mark: Mapping[str, int]) -> frozenset[str]:
    """Return the words by which several option texts call things with a letter (`Solution A`, `Solution B`)."""
    found = [{match.group(1) for match in _CALLED_BY.finditer(text) if match.group(2) in by_mark} for text in texts]
    return frozenset(word for word in set().union(*found) if sum(word in words for words in found) > 1)


class OptionSet:
    """What replies to one question are read with: the patterns of its marks (shared), and its own texts."""

    def __init__(self, marks: tuple[str, ...], texts: tuple[str, ...]) -> None:
        marks = marks or derive_marks(len(texts))
        shared = mark_patterns(marks)
        self.marks, self.by_mark, self.label_set = marks, shared.by_mark, shared.label_set
        self.letters, self.whole = shared.letters, shared.whole
        # Options that are such letters themselves are named by them, in whatever order.
        self.lookalikes = shared.lookalikes and not any(map(counts_in_arabic, texts))
        self.label, self.mention, self.wrapped, self.lower = shared.label, shared.mention, shared.wrapped, shared.lower
        self.head, self.item, self.line, self.later = shared.head, shared.item, shared.line, shared.later
        self.far, self.joined, self.labelled = shared.far, shared.joined, shared.labelled
        self.next_item = shared.next_item
        self.nouns = word_set("cues.mark_noun")
        self.texts = OptionTexts(texts)
        # Marks in circles stand for nothing else, unless the texts count statements in circles.
        self.bare_circles = shared.circled and not any(map(_HAS_CIRCLE.search, texts))
        self.circles = self.texts.circled or shared.circled
        self.self_named = tuple(self.texts.plain) == tuple(self.by_mark)
        self.like_labels = any(text[:1] in self.by_mark and not text[1:2].isalnum() for text in self.texts.plain)
        self.named_letters = frozenset() if self.self_named else _letters_of(texts)
        # `Option C` may be the text of A: then the noun before a letter tells nothing.
        self.crossed = any(
            match.group(1) not in (mark, "")
            for mark, text in zip(self.by_mark, self.texts.plain, strict=True)
            for match in [_CALLED_OPTION.search(text)]
            if match and match.group(1) in self.by_mark
        )
        self.term_words = _words_before_letters(self.texts.plain, self.by_mark)
        self.terms = term_pattern(self.texts.plain, self.by_mark) if self.letters and not self.self_named else None

    def pick(self, reply: Reply, mention: Mention, rule: str) -> Extraction:
        """Return that `rule` chose the option of `mention`."""
        return Extraction(self.marks[mention.index], rule, None, reply.span(mention.start, mention.end))

    def pick_at(self, reply: Reply, index: int, rule: str, start: int, end: int) -> Extraction:
        """Return that `rule` chose option `index` because of what stands between `start` and `end`."""
        return Extraction(self.marks[index], rule, None, (start + reply.offset, end + reply.offset))

    def bare(self, text: str) -> int | None:
        """Return the option a short text stands for as a whole: a decorated mark, a mark with its text, or a text."""
        return self.texts.primed(text) if self.texts.terms and is_primed(text) else self._bare(text)

    def _bare(self, text: str) -> int | None:
        core = text.strip(_DECORATION).lower()
        index = self.by_mark.get(core, self.texts.by_text.get(core))
        if index is not None or not core or len(text) >= 400:
            return index
        if core in _SHORTHAND:
            return self.texts.both if core.startswith("both") else self.texts.none
        # The pattern of marked lines is dear: it is tried only where the line begins like one.
        index = self._marked(text.strip()) if self._begins_marked(core) else None
        if index is None and len(core) < self.texts.longest:
            index = self.texts.by_text.get(plain(core))
        folded = index is None and ("\\" in text or self.texts.formulas)
        return self.texts.by_key.get(key_of(text)) if folded else index

    def _begins_marked(self, core: str) -> bool:
        """Whether a line (in lower case) begins with a mark, or with a noun that leads to one (`option b`)."""
        head = core.partition(" ")[0].rstrip(".):,-–—：、")
        return head in self.by_mark or head in self.nouns or core[:1] in self.by_mark

    def _marked(self, text: str) -> int | None:
        """Return the option of a line such as `**B.** a dog`: a mark alone, or a mark, a sign and its own text."""
        match = self.line.fullmatch(text)
        if match is None or match.group(1).lower() not in self.by_mark or not _CROSSED.isdisjoint(match.group(2)):
            return None
        rest, index = plain(match.group(3).strip(_DECORATION)), self.by_mark[match.group(1).lower()]
        own = self.texts.plain[index]
        if not rest or rest == own:
            return index
        separated = bool(own) and not _SEPARATES.isdisjoint(match.group(2)) and rest.startswith(own)
        return index if separated and not self._leads_on(match.group(3)) else None

    def says_again(self, text: str) -> bool:
        """Whether what follows a mark names another mark with its own text: the options said again, not a choice."""
        low = text.lower()
        items = [(self.by_mark[match.group(1).lower()], match.end()) for match in self.next_item.finditer(text)]
        return any(own_end(low, _past_space(low, at), self.texts.key(index)) > 0 for index, at in items[:30])

    def _leads_on(self, text: str) -> bool:
        """Whether what follows a mark goes on to another mark, or leaves the choice open."""
        if self.later.search(text) or UNDECIDED.search(text.lower()) or _RIGHT_ONLY_IF.search(text.lower()):
            return True
        return self.says_again(text)


def _past_space(low: str, at: int) -> int:
    while low[at : at + 1] in _GAP:
        at += 1
    return at


@lru_cache(maxsize=4096)
def compile_options(marks: tuple[str, ...], texts: tuple[str, ...]) -> OptionSet:
    """Return the (cached) OptionSet of texts and their marks; without marks they are A, B, C, …"""
    return OptionSet(marks, texts)


def option_set(options: Mapping[str, str] | Sequence[str]) -> OptionSet:
    """Return the OptionSet for a mapping letter to text, or for texts that are then marked A, B, C, …"""
    # A plain dict first: asking the abstract class takes longer than finding the compiled options.
    if type(options) is dict or isinstance(options, Mapping):
        return compile_options(tuple(options), tuple(options.values()))
    return compile_options((), tuple(options))
