"""Options of a question to an OptionSet: the patterns and tables by which replies to it are read, compiled once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache

from .extraction import Extraction
from .option_text import OptionTexts, is_primed, key_of, own_end, plain
from .phrases import ONLY_IF, UNDECIDED
from .polarity import Mention
from .reply_text import counts_in_arabic
from .word_lists import WORD_AFTER, WORD_BEFORE, Before, assemble, one_of, word_set

_NOT_AFTER = (
    r"(?!['’][a-zA-Z])(?!-[A-Za-z0-9]|–[A-Z](?![a-z])|[♯♭])(?!\.[A-Za-z](?![A-Za-z]))(?![+#&](?!\s?[A-Z](?![A-Za-z])))"
)
_NOT_BEFORE = r"(?<![0-9a-zA-Z_\u00aa-\u024f\u0370-\u06ff\u0900-\u0dff\u1e00-\u1eff&°-][\s\S])(?<![A-Za-z]\.[\s\S])"
_BULLET = r"[\s*_#>•|-]{0,6}(?:[Oo]ption |[Cc]hoice |选项)?[(*]{0,3}"
_COLON = r"(?:\s\([^()\n]{1,40}\))?[*_]{0,2}\s?[.):|]"
"""How an item of a list of options begins: `- **A.**`, `Option A:`, `| A |`."""
_CIRCLES = frozenset(map(chr, range(0x2460, 0x2474)))
# The commonest replies of all, verbatim, under the rule that would read them: a look-up instead of twenty rules.
_SHAPES = {
    "whole": (
        *("{}", "{}.", "{})", "({})", "{}:", "[{}]", "**{}**", "({}).", "Option {}"),
        *("Answer: {}", "Answer: ({})", "ANSWER: {}", "answer: {}"),
    ),
    "cue": (
        *("The answer is {}", "The answer is {}.", "The answer is ({})."),
        *("The correct answer is {}", "The correct answer is {}.", "The correct answer is ({})."),
    ),
}


class MarkPatterns:
    """How one set of marks looks in replies; comparison ignores case."""

    def __init__(self, marks: tuple[str, ...]) -> None:
        self.marks = marks
        self.by_mark = {mark.lower(): i for i, mark in enumerate(marks)}
        self.label_set = {mark.upper() for mark in marks}
        self.letters = "".join(marks).isalpha() and max(map(len, marks), default=0) == 1
        self.circled = bool(marks) and all(mark in _CIRCLES for mark in marks)
        self.ascii = "".join(marks).isascii()
        upper = _alternatives(map(str.upper, marks))
        either = _alternatives([*marks, *map(str.upper, marks), *map(str.lower, marks)])
        lower = _alternatives(set(map(str.lower, marks)) - set("aioeyst") if self.letters else ())
        self.label = re.compile(f"({either}){WORD_AFTER}{_NOT_AFTER}")
        # One-letter marks begin with a character set, which the engine searches for fastest.
        self.mention = re.compile(
            f"({upper}){WORD_AFTER}{_NOT_AFTER}{_NOT_BEFORE}" if self.letters else f"{WORD_BEFORE}({upper}){WORD_AFTER}"
        )
        self.wrapped = re.compile(rf"[(\[](?<![A-Za-z0-9].)\s?({either})\s?[)\]]")
        self.lower = re.compile(f"{WORD_BEFORE}({lower}){WORD_AFTER}{_NOT_AFTER}")
        self.head = re.compile(rf"{_BULLET}({either}){_COLON}")
        self.item = re.compile(rf"\n{_BULLET}({either}){_COLON}")
        # As shown or as a capital: a small letter before a full stop ends a word more often than it labels.
        shown = _alternatives([*marks, *map(str.upper, marks)])
        start = (
            rf"({shown})(?<![0-9a-zA-Z_\u00aa-\u024f\u0370-\u06ff\\\\][\s\S])"
            if self.letters
            else rf"{WORD_BEFORE}({shown})"
        )
        self.labelled = re.compile(start + r"(?:[\s*_`)\]}\"'$\\]*[.):\-–—=、：*\]}][\s*_`(\[{\"'$\\:-]*|\s?\(|の)")
        self.later = re.compile(rf"[.;,\n]\s+(?:[Oo]ption |[Cc]hoice )?\(?{either}[.):]\s")
        self.next_item = re.compile(rf"\s[(*]{{0,3}}({upper})[.):]")
        self.line = re.compile(
            assemble(r"\W{0,8}(?:(?:<cues.mark_noun>)\s?:?\s?)?\W{0,6}") + rf"({either}){WORD_AFTER}(\W*)(.*)",
            re.IGNORECASE,
        )
        self.far = re.compile(
            r"(?:(?<![a-zA-Z])(?:is|are|be|es|est|ist)|[:=])[\s*_`\"'(\[]{1,6}(?:[Oo]ption |[Cc]hoice )?[(\[*\"']{0,3}"
            rf"({upper}){WORD_AFTER}{_NOT_AFTER}"
        )
        self.joined = re.compile(
            assemble(r"[)\]}\"'*_`.\s]{0,6},?\s?(?P<join><polarity.cue_joins>|[,/&|、+→]|->)\s?")
            + assemble(r"(?:also |maybe |perhaps |possibly |even |(?:<polarity.join_filler>)\s)*+")
            + rf"(?:(?P<second>{upper})|[(\[\"'*]{{1,3}}(?P<wrapped>{either})){WORD_AFTER}"
        )
        self.whole = dict(pair for mark in marks for pair in _whole_replies(mark))


def _whole_replies(mark: str) -> Iterable[tuple[str, Extraction]]:
    """Yield the commonest replies that name a mark, verbatim, with what the rules say of them."""
    for rule, shapes in _SHAPES.items():
        for shape in shapes:
            at = shape.index("{}")
            yield shape.replace("{}", mark, 1), Extraction(mark, rule, None, (at, at + len(mark)))


def _alternatives(forms: Iterable[str]) -> str:
    unique = sorted(set(forms), key=lambda form: (-len(form), form))
    if not unique:
        return "(?!)"
    if all(len(form) == 1 for form in unique):
        return "[" + "".join(re.escape(form) for form in unique) + "]"
    return "(?:" + "|".join(re.escape(form) for form in unique) + ")"


@lru_cache(maxsize=256)
def mark_patterns(marks: tuple[str, ...]) -> MarkPatterns:
    """Return the (cached) patterns of one set of marks."""
    return MarkPatterns(marks)


def derive_marks(count: int) -> tuple[str, ...]:
    """Return A, B, … Z, AA, AB, … for `count` options."""
    letters = [chr(65 + i) for i in range(26)]
    return tuple((letters + [a + b for a in letters for b in letters])[:count])


_LONE = re.compile(r"(?<![^\W_])([a-z])(?![^\W_'])")
_WORD_BEFORE = re.compile(r"([^\W\d_]{3,20})[\s-]+\Z")
_WORD_AFTER = re.compile(r"[\s-]+([^\W\d_]{3,20})(?![^\W_])")
_BESIDE_LABELS = ("labels.before", "labels.after", "labels.after_capital", "labels.joined", "cues.mark_noun")
"""Words that stand beside labels as well: they make no term."""
_SPACE = r"[\s*_\"'-]{1,3}"


def term_pattern(texts: Sequence[str], by_mark: Mapping[str, int]) -> re.Pattern[str] | None:
    """Return what finds marks within terms of other options: in `C major`, the text of option A, C is no label.

    `texts` are in lower case. A term that the option of its own letter holds as well (`Cell B` as B) is none.
    """
    holders: dict[str, set[int]] = {}
    letters: dict[str, str] = {}
    for index, text in enumerate(texts):
        for form, letter in _terms(text, by_mark):
            holders.setdefault(form, set()).add(index)
            letters[form] = letter
    crossed = [form for form, held_by in holders.items() if by_mark[letters[form]] not in held_by]
    return re.compile("|".join(crossed)) if crossed else None


def _terms(text: str, by_mark: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the pairs of a word and a mark that stand in a text, each as a pattern, with the mark."""
    found = []
    for match in _LONE.finditer(text) if len(text) > 1 else ():
        letter = match.group(1)
        if letter not in by_mark:
            continue
        before, after = _WORD_BEFORE.search(text, 0, match.start()), _WORD_AFTER.match(text, match.end())
        if before and _is_telling(before.group(1)):
            found.append((rf"(?<!\w){before.group(1)}(?:\s(?:is|was|must be))?{_SPACE}(?={letter}(?!\w))", letter))
        if after and _is_telling(after.group(1)):
            found.append((rf"(?<![\w'])(?={letter}{_SPACE}{after.group(1)}(?!\w))", letter))
    return found


def _is_telling(word: str) -> bool:
    return not any(word in word_set(group) for group in _BESIDE_LABELS)


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
_UNFINISHED = Before(
    one_of(
        r"(?<!\w)(?:<conclusions.leads_on>"  # because, has
        r"|(?<!it )(?<!they )(?<!he )(?<!there )(?<!this )(?<!that )(?:<conclusions.leads_on_verb>))[\s*_`(\[\"']*",
        r"(?:\A|[.!\n]\s*)(?:among|out of) (?:the|these|all)[^.\n]{0,30}, [a-z]",  # Among the options, B
        r"(?<!\w)(?:that|which|whereas|while) (?!one)(?:the |an? )?[a-z]{2,16}",  # while the dog
        r"[.:!\n]\s*the(?: (?!is |are |was |has |shows )\w{1,16}){1,3}",  # . The blue bus
        r"(?:\A|[.!\n]\s*)(?:based on|according to|given) [^.,:!\n]{1,40}",  # . Based on the colour
        r"[=≈]\s*",
        r"(?<!yes, )(?<!no, )(?<!\A)(?<=\w )there are[\s*_]*",  # so there are, but not `Yes, there are`
        # Let us check the options: A
        r"(?:<conclusions.goes_through>)[^.\n:]{0,60}[.:]\s+[*_(]*(?:option |choice )?[a-z]\W*",
    ),
    reach=160,
    finds="the picture shows the",
    passes="the picture shows it",
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
        return self.finish == "length" or _UNFINISHED.before(self.low, len(self.low)) is not None


def _letters_of(texts: tuple[str, ...]) -> frozenset[str]:
    """Return the capitals that option texts name (`Project B`, `A < B`): in a reply they may stand for those things."""
    named = [set(_LETTER.findall(text)) for text in texts]
    return frozenset().union(*named) if sum(map(bool, named)) > 1 else frozenset()


def _words_before_letters(texts: Sequence[str], by_mark: Mapping[str, int]) -> frozenset[str]:
    """Return the words by which several option texts call things with a letter (`Solution A`, `Solution B`)."""
    found = [{match.group(1) for match in _CALLED_BY.finditer(text) if match.group(2) in by_mark} for text in texts]
    return frozenset(word for word in set().union(*found) if sum(word in words for words in found) > 1)


class OptionSet:
    """What replies to one question are read with: the patterns of its marks (shared), and its own texts.

    What is known of the texts is worked out when a reply first asks for it: most replies are a mark and nothing else.
    """

    def __init__(self, marks: tuple[str, ...], texts: tuple[str, ...]) -> None:
        marks = marks or derive_marks(len(texts))
        shared = mark_patterns(marks)
        if len(shared.by_mark) != len(texts):
            raise ValueError(f"{len(texts)} options have {len(shared.by_mark)} different marks")
        self.marks, self.by_mark, self.label_set = marks, shared.by_mark, shared.label_set
        self.letters, self.circled, self.whole = shared.letters, shared.circled, shared.whole
        self.ascii_marks = shared.ascii
        self.label, self.mention, self.wrapped, self.lower = shared.label, shared.mention, shared.wrapped, shared.lower
        self.head, self.item, self.line, self.later = shared.head, shared.item, shared.line, shared.later
        self.far, self.joined, self.labelled = shared.far, shared.joined, shared.labelled
        self.next_item = shared.next_item
        self.written = texts

    @cached_property
    def texts(self) -> OptionTexts:
        """The option texts, ready to be found in replies."""
        return OptionTexts(self.written)

    @cached_property
    def lookalikes(self) -> bool:
        """Whether letters of other scripts may stand for marks; not where options are such letters themselves."""
        return self.ascii_marks and not any(map(counts_in_arabic, self.written))

    @cached_property
    def bare_circles(self) -> bool:
        """Whether marks in circles stand for nothing else: no text counts statements in circles."""
        return self.circled and not any(map(_HAS_CIRCLE.search, self.written))

    @cached_property
    def circles(self) -> bool:
        """Whether circles mean something, so that they stay circles."""
        return self.circled or self.texts.circled

    @cached_property
    def self_named(self) -> bool:
        """Whether the options are called A, B, C themselves."""
        return tuple(self.texts.plain) == tuple(self.by_mark)

    @cached_property
    def like_labels(self) -> bool:
        """Whether a text begins as a label does (`A and C`)."""
        return any(text[:1] in self.by_mark and not text[1:2].isalnum() for text in self.texts.plain)

    @cached_property
    def named_letters(self) -> frozenset[str]:
        """The capitals that the texts name: in a reply they may stand for those things."""
        return frozenset() if self.self_named else _letters_of(self.written)

    @cached_property
    def crossed(self) -> bool:
        """Whether a text calls another mark an option (`Option C` as A): the noun before it then tells nothing."""
        return any(
            match.group(1) != mark and match.group(1) in self.by_mark
            for mark, text in zip(self.by_mark, self.texts.plain, strict=True)
            for match in [_CALLED_OPTION.search(text)]
            if match
        )

    @cached_property
    def term_words(self) -> frozenset[str]:
        """The words by which several texts call things with a letter (`Solution A`, `Solution B`)."""
        return _words_before_letters(self.texts.plain, self.by_mark)

    @cached_property
    def terms(self) -> re.Pattern[str] | None:
        """What finds marks within terms of other options' texts (`C major`)."""
        return term_pattern(self.texts.plain, self.by_mark) if self.letters and not self.self_named else None

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
        return head in self.by_mark or head in word_set("cues.mark_noun") or core[:1] in self.by_mark

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
