"""A set of options to a Reader: the patterns and tables by which replies to that question are read, compiled once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from .option_text import OptionTexts, plain
from .polarity import Mention
from .verdict import Extraction
from .words import WORD_AFTER, WORD_BEFORE

_NOT_A_LABEL_AFTER = r"(?!['’][a-zA-Z])(?!-[A-Za-z0-9])(?!\.[A-Za-z](?![A-Za-z]))(?![+#&])"
_DECORATION = " \t\n\r*_`\"'.,:;!?()[]{}<>$#-–—…。，：；、「」『』【】《》（）“”\\|=→"
_SHAPES = ("{}", "{}.", "{})", "({})", "{}:", "[{}]", "**{}**", "({}).", "Answer: {}", "Answer: ({})", "Option {}", "The answer is {}", "The answer is {}.")
_SHAPES += ("The answer is ({}).", "The correct answer is {}", "The correct answer is {}.", "The correct answer is ({}).", "ANSWER: {}", "answer: {}")


class Reply:
    """One reply as the rules see it: normalised text, its lower case, and how generation ended."""

    __slots__ = ("body", "finish", "labels", "low", "offset", "texts")

    def __init__(self, body: str, offset: int = 0, finish: str | None = None) -> None:
        self.body, self.offset, self.finish = body, offset, finish
        self.low = body.lower()
        self.labels: list[Mention] | None = None
        self.texts: list[Mention] | None = None

    @property
    def cut(self) -> bool:
        """Whether generation ended at the token limit."""
        return self.finish == "length"


class Reader:
    """Reads replies to one set of options. Marks are kept as given; comparison ignores case."""

    def __init__(self, marks: Sequence[str], texts: Sequence[str]) -> None:
        self.marks = tuple(marks)
        self.texts = OptionTexts(texts)
        self.by_mark = {mark.lower(): i for i, mark in enumerate(self.marks)}
        self.label_set = {mark.upper() for mark in self.marks}
        self.letters = all(len(mark) == 1 and mark.isalpha() for mark in self.marks)
        self.lookalikes = all(mark.isascii() for mark in self.marks)
        upper = _alternatives(mark.upper() for mark in self.marks)
        either = _alternatives({form for mark in self.marks for form in (mark, mark.upper(), mark.lower())})
        self.label = re.compile(f"({either}){WORD_AFTER}{_NOT_A_LABEL_AFTER}")
        self.mention = re.compile(rf"(?<![a-zA-Z]\.)(?<![-&°]){WORD_BEFORE}({upper}){WORD_AFTER}{_NOT_A_LABEL_AFTER}" if not self.letters else _single(upper))
        self.wrapped = re.compile(rf"(?<![A-Za-z0-9])[(\[]\s?({either})\s?[)\]]")
        lower = _alternatives(mark.lower() for mark in self.marks if self.letters and mark.lower() not in {"a", "i", "o", "e", "y", "s", "t"})
        self.lower = re.compile(rf"{WORD_BEFORE}({lower}){WORD_AFTER}{_NOT_A_LABEL_AFTER}")
        self.item = re.compile(rf"(?:\A|\n)[\s*_#>•-]{{0,6}}\(?({either})[.):]")
        self.line = re.compile(rf"\W{{0,8}}(?:(?:option|choice|answer|letter|ans|选项|选|opción|réponse|antwort)\s?:?\s?)?\W{{0,6}}({either}){WORD_AFTER}(\W*)(.*)", re.IGNORECASE)
        self.far = re.compile(rf"(?:(?<![a-zA-Z])(?:is|are|be|es|est|ist)|[:=])[\s*_`\"'(\[]{{1,6}}(?:[Oo]ption |[Cc]hoice )?[(\[*\"']{{0,3}}({upper}){WORD_AFTER}{_NOT_A_LABEL_AFTER}")
        self.joined = re.compile(
            rf"[)\]}}\"'*_`.\s]{{0,6}},?\s?(?P<join>and/or|and|or|y|et|und|oder|ou|и|или|[,/&|、]|和|或者|或|与|または|또는)\s?(?:also |maybe |option |possibly )?"
            rf"(?:(?P<second>{upper})|[(\[\"'*]{{1,3}}(?P<wrapped>{either})){WORD_AFTER}"
        )
        self.whole = self._whole(texts)

    def _whole(self, texts: Sequence[str]) -> dict[str, Extraction]:
        """The commonest whole replies, verbatim, with their verdicts."""
        table: dict[str, Extraction] = {}
        clear = set(self.texts.by_text)
        for index, (mark, text) in enumerate(zip(self.marks, texts, strict=True)):
            for form in (text, f"{text}.") if plain(text) in clear and plain(text) not in self.by_mark else ():
                table[form] = Extraction(mark, "option_text", None, (0, len(form)))
            for shape in [*_SHAPES, *(("{}. " + text, "{}) " + text, "({}) " + text, "{}: " + text) if text else ())]:
                for form in {mark, mark.upper(), mark.lower()}:
                    at = shape.index("{}")
                    if shape in {"{}", "{}."} or form == mark:
                        table[shape.replace("{}", form, 1)] = Extraction(mark, "whole", None, (at, at + len(form)))
        return table

    def found(self, reply: Reply, index: int, rule: str, start: int, end: int) -> Extraction:
        """Return the verdict for option `index`, its span counted in the original reply."""
        return Extraction(self.marks[index], rule, None, (start + reply.offset, end + reply.offset))

    def bare(self, text: str) -> int | None:
        """Return the option a short piece of text stands for as a whole: a decorated mark, a mark with its text, or a text."""
        core = text.strip(_DECORATION).lower()
        if core in self.by_mark:
            return self.by_mark[core]
        if core in self.texts.by_text:
            return self.texts.by_text[core]
        if core == "none":
            return self.texts.none
        match = self.line.fullmatch(text.strip()) if len(text) < 400 else None
        if match is None or match.group(1).lower() not in self.by_mark:
            return self.texts.by_text.get(plain(core))
        if any(sign in "❌✗✘×🚫" for sign in match.group(2)):
            return None
        rest, index = plain(match.group(3).strip(_DECORATION)), self.by_mark[match.group(1).lower()]
        if not rest:
            return index
        own = self.texts.plain[index]
        separated = any(sign in match.group(2) for sign in ".):-–—") or rest == own
        return index if separated and (not own or rest == own or rest.startswith(own)) else None


def _single(letters: str) -> str:
    """A pattern for one-letter marks that begins with a character set, which the engine searches for fastest."""
    return rf"({letters}){WORD_AFTER}{_NOT_A_LABEL_AFTER}(?<![0-9a-zA-Z_\u00aa-\u024f\u0370-\u06ff\u0900-\u0dff\u1e00-\u1eff&°-][\s\S])(?<![A-Za-z]\.[\s\S])"


def _alternatives(forms: Iterable[str]) -> str:
    unique = sorted(set(forms), key=lambda form: (-len(form), form)) or ["\0"]
    if all(len(form) == 1 for form in unique):
        return "[" + "".join(re.escape(form) for form in unique) + "]"
    return "(?:" + "|".join(re.escape(form) for form in unique) + ")"


def derive_marks(count: int) -> tuple[str, ...]:
    """Return A, B, … Z, AA, AB, … for `count` options."""
    letters = [chr(65 + i) for i in range(26)]
    return tuple((letters + [a + b for a in letters for b in letters])[:count])


@lru_cache(maxsize=4096)
def compile_reader(marks: tuple[str, ...], texts: tuple[str, ...]) -> Reader:
    """Return the (cached) Reader of one set of marks and texts."""
    return Reader(marks, texts)


def reader_for(options: Mapping[str, str] | Sequence[str]) -> Reader:
    """Return the Reader for a mapping letter to text, or for texts that are then marked A, B, C, …"""
    if isinstance(options, Mapping):
        return compile_reader(tuple(options), tuple(options.values()))
    return compile_reader(derive_marks(len(options)), tuple(options))
