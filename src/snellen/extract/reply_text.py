"""A raw reply to the text the rules read: its answer part, in plain letters at equal length, without a courtesy."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from .word_lists import END, START, LazyPattern

_TAG = LazyPattern(
    r"[<\[◁]\|?(?P<close>/?)(?:seed:)?(?:<machine.thinking>)\|?[>\]▷]"
    r"|<\|(?P<edge>begin_of_thought|start_thinking|end_of_thought|end_thinking)\|>"
    r"|(?P<done>\.\.\.\s?done thinking\.?)",
    re.IGNORECASE,
    finds="<think>maybe B</think>",
    passes="<b>B</b>",
)
_FINAL_CHANNEL = LazyPattern(
    r"<\|channel\|>\s?final\s?(?:<\|[^|<>]{1,40}\|>)?(?:<\|message\|>)?|assistantfinal(?=[^a-z])",
    re.IGNORECASE,
    finds="<|channel|>final<|message|>B",
    passes="final: B",
)
_OTHER_CHANNEL = LazyPattern(
    r"<\|channel\|>\s?(?:analysis|commentary)", re.IGNORECASE, finds="<|channel|>analysis", passes="analysis"
)
SHORTEST_COURTEOUS, _TAIL = 80, 400
"""A shorter reply is its own point; more than a few sentences at the end are no courtesy."""
_COURTESY = LazyPattern(
    r"(?:[.!?*)](?=[ \t])|(?=\n))"
    rf"([\s*_>(\[-]*(?:<conclusions.courtesy>){END}[^.!?\n]{{0,200}}[.!?]?[\s)*_\]]*)\Z",
    finds="it is red. let me know if you have any other questions.",
    passes="it is red. it is not blue.",
)
_SIGN = LazyPattern(r"[.!?\n*)]", finds="red. B", passes="red, B")
_CLOSERS = " \t\r\n)*_].!?"
_SPOKEN = LazyPattern(
    rf"{START}(?:answer|option|choice|correct){END}|[=:]", finds="the answer is b", passes="thank you"
)
"""What may still be an answer is left."""
NEXT_QUESTION = "\nQuestion:"
"""How a model goes on that was shown worked examples: with questions of its own, and their answers."""
_NEXT = LazyPattern(
    r"\n\s*(?:hint:[^\n]{0,400}\s+)?question:",
    re.IGNORECASE,
    finds="B\n\nQuestion: what now?",
    passes="B: the question",
)
_FIRST_WORDS = 12
"""Shorter than the shortest sentence that answers (`Answer is A.`): what is asked again is then the question itself."""


def before_next_question(body: str, finish: str | None) -> tuple[str, str | None]:
    """Return what a reply says before it asks itself something else, which is whole however the reply ends."""
    found = _NEXT.search(body)
    own = body[: found.start()].strip() if found else ""
    return (own, None) if len(own) >= _FIRST_WORDS and not own.endswith(":") else (body, finish)


def answer_start(text: str) -> int | None:
    """Return the index where the answer part begins (0 without thinking), or None if the thinking never ends."""
    # Plain searches first: most replies hold none of these signs and are not thought aloud.
    if "<" not in text and "◁" not in text and "[" not in text and "..." not in text and "assistantfinal" not in text:
        return 0
    start = _after_channels(text)
    if start is None:
        return None
    tags = list(_TAG.finditer(text, start))
    if not tags:
        return start
    return tags[-1].end() if _closes(tags[-1]) else None


def _closes(tag: re.Match[str]) -> bool:
    edge = tag.group("edge")
    return bool(tag.group("close") or tag.group("done") or (edge and edge.lower().startswith("end")))


def _after_channels(text: str) -> int | None:
    """Skip to the last `final` channel of the harmony format; None if only other channels were opened."""
    if "<|channel|>" not in text and "assistantfinal" not in text:
        return 0
    end = max((match.end() for match in _FINAL_CHANNEL.finditer(text)), default=0)
    return None if end == 0 and _OTHER_CHANNEL.search(text) else end


def without_courtesy(body: str) -> str:
    """Return a reply without a last sentence that offers help, thanks, or warns of taking it for advice."""
    end = body.rstrip(_CLOSERS)
    if end[-1:].isupper() and not end[-2:-1].isalnum():
        # A label stands last, as in most replies: that is what the sentence is for.
        return body
    # In one sentence there is none after another.
    return _without(body, end) if _SIGN.search(end, max(0, len(body) - _TAIL)) else body


def _without(body: str, end: str) -> str:
    """Return a reply without a courtesy in its last sentence, which begins after a sign or, in the midst, after `*`."""
    least = max(0, len(body) - _TAIL)
    begin = max(least, *(end.rfind(sign, least) for sign in "\n.!?"))
    low = body[begin:].lower()
    found = _COURTESY.match(low)
    if found is None and ("* " in low or ") " in low):
        found = _COURTESY.search(low)
    if found is None or _SPOKEN.search(found.group(1)):
        return body
    return body[: begin + found.start(1)].rstrip()


_RANGES = (
    *((0x2000, 0x2070), (0x2460, 0x2500), (0x3000, 0x3001), (0xFF01, 0xFF5F)),
    *((0x1D400, 0x1D800), (0x1F100, 0x1F1AE)),
)
"""Spaces and dashes, circled, full-width, mathematical and squared letters."""
_LINE_ENDS = dict.fromkeys((0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029), "\n")
_QUOTES = {0x2019: "'", 0x2018: "'", 0x201C: '"', 0x201D: '"'}
_DIGITS = {base + i: str(i) for base in (0x660, 0x6F0) for i in range(10)}
"""Figures of Arabic and Persian; U+066B and U+066C are their decimal and thousands signs."""
_SINGLES = {
    **_DIGITS,
    **dict.fromkeys((0xA0, 0xAD, 0xFEFF, 0xFE0F), " "),
    0x130: "I",
    **_QUOTES,
    **{0x66B: ".", 0x66C: ","},
    0x2260: "≠",
    0x2212: "-",
}


def _plain(code: int) -> str | None:
    """Return the one plain character that stands for `code`, or None to leave it."""
    char = chr(code)
    folded = unicodedata.normalize("NFKC", char)
    inner = folded.strip("().〔〕 ")
    if unicodedata.category(char) in {"Cf", "Zs"}:
        return " "
    if len(inner) == 1 and inner.isalnum() and inner != char:
        return inner
    return folded if len(folded) == 1 and folded != char else None


@cache
def _odd_table() -> dict[int, str]:
    table = {code: plain for low, high in _RANGES for code in range(low, high) if (plain := _plain(code)) is not None}
    negative = {base + i: chr(65 + i) for base in (0x1F150, 0x1F170) for i in range(26)}
    return {**table, **negative, **_LINE_ENDS, **_SINGLES}


_ODD = LazyPattern(
    f"[{''.join(f'{chr(low)}-{chr(high)}' for low, high in _RANGES)}{''.join(map(chr, (*_LINE_ENDS, *_SINGLES)))}]",
    finds="Ⓑ",
    passes="B",
)
"""Ranges, not single characters: a set of a thousand of them above U+FFFF is searched one by one."""
_LOOKALIKES = dict(zip("АВСЕНІЈКМОРЅТХУΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABCEHIJKMOPSTXYABEZHIKMNOPTYX", strict=True))
_LOOKALIKE = LazyPattern(
    "[" + "".join(_LOOKALIKES) + r"](?<!\w.)(?!\w)(?:(?<=[а-яё:]\s.)|(?!\s{1,3}[\u0370-\u052f]))",
    finds="Ответ: В",
    passes="А это",
)
"""Before a word of its own script a capital is a word (`А это`), unless within a sentence (`вариант А верный`)."""
_CYRILLIC_LABELS = dict(zip("АБВГДЕ", "ABCDEF", strict=True))
_CYRILLIC_LABEL = LazyPattern(
    r"(?:\A[\s*_(\"«]*|(?:[Оо]твет|[Вв]ариант|[Бб]уква|[Вв]ідповідь|[Оо]тговор)(?:\s[а-яіїєё]{2,12}){0,2}\s?[:—–-]?[\s*_(\"«]{0,4})"
    r"([АБВГДЕ])(?=[\s*_\"»]*(?:[).:,;\n]|\Z))",
    finds="Ответ: Б",
    passes="Баба",
)
"""Letters with which options are counted in Cyrillic. Alone, В is read as the B it looks like; beside Б it is a C."""
_KEPT = {code: chr(code) for code in range(0x2460, 0x2474)}
"""Figures in circles."""
_ARABIC_LABELS = dict(zip("أابجدهو", "AABCDEF", strict=True))
_ARABIC_LABEL = LazyPattern(
    r"(?<![\w\u064b-\u0652ـ])([أابجدهو])(ـ?)(?=\s?[).:\]*_-]|\s*(?:\n|\Z))(?:(?<=[(\[*_:-].)|(?<=[(\[*_:-]..)"
    r"|(?<=[:\n-]\s.)|(?<=\A.)|(?<=\n.)|(?<=(?:هي|هو)\s.)|(?<=(?:خيار|جابة|جواب|حيحة)\s.))",
    finds="(ب)",
    passes="كتاب",
)
"""Letters with which options are counted in Arabic: single, set off on both sides, where a label stands."""
_ARABIC = re.compile("[أابجد]")
_OTHER_COUNT = LazyPattern(r"(?<![\w])[تث]\s?[).:\]]", finds="(ت)", passes="كتاب")
"""Some count by the order of the alphabet; which letter is the third option is then open."""
_FONT = (
    r"\\(?:text|textbf|textit|textrm|texttt|textsf|mathrm|mathbf|mathit|mathsf|mathtt|bf|rm|mathcal|underline|displaystyle"
    r"|operatorname|large|Large|huge)\b\s?"
)
_LATEX = LazyPattern(rf"{_FONT}\{{?|\\(?:[ ,;:!]|q?quad\b)", finds="\\text{B}", passes="text")
_SET_IN_FONT = LazyPattern(rf"({_FONT}\{{)([^{{}}]{{0,400}})\}}", finds="\\mathrm{~cm}", passes="{cm}")
"""With its closing brace: a box around it must not end there."""
_MARKUP = LazyPattern(
    r"</?(?:b|strong|i|em|p|br|u|span|div|li|ul|ol|mark|code|h\d|td|tr|table|center|font|s)(?:\s[^<>]{0,80})?/?>"
    r"|<\|(?:im_end|im_start|eot_id|endoftext|end|eos|return|end_of_text|end_of_sentence)\|>|</?s>|<end_of_turn>|<eos>",
    re.IGNORECASE,
    finds="<td>B</td>",
    passes="a < b > c",
)
_STRUCK = LazyPattern(
    r"~~[^~\n]{1,200}~~|<(?:s|del|strike)>[^<>\n]{1,200}</(?:s|del|strike)>", finds="~~A~~ B", passes="~ A"
)
_ESCAPED = {"&lt;": "<   ", "&gt;": ">   ", "&amp;": "&    ", "&quot;": '"     ', "&#39;": "'    ", "&nbsp;": "      "}
_ESCAPE = LazyPattern("|".join(_ESCAPED), finds="a &lt; b", passes="a & b")
_WRITTEN_LINE_END = LazyPattern(r"\\n(?![a-z])", finds="B\\nC", passes="\\nabla")
_DEGREE = LazyPattern(r"\^\s?\{?\s?\\circ\s?\}?\$?", finds="30^\\circ", passes="30")
_FRACTION = LazyPattern(r"\\[dt]?frac\s?\{(\\?\w{1,9})\}\s?\{(\\?\w{1,9})\}", finds="\\frac{1}{2}", passes="1/2")


def _fraction(match: re.Match[str]) -> str:
    return f"{match.group(1)}/{match.group(2)}".ljust(match.end() - match.start())


def _unwrapped(match: re.Match[str]) -> str:
    return f"{' ' * len(match.group(1))}{match.group(2)} "


def _blank(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


def counts_in_arabic(text: str) -> bool:
    """Tell whether a whole text is one of the letters with which options are counted in Arabic."""
    return text.strip("() .-ـ") in _ARABIC_LABELS


def _arabic_labels(text: str) -> str:
    """Return `text` with labels such as `(ب)` in the letters of the options, if they are counted in that order."""
    if not _ARABIC.search(text) or _OTHER_COUNT.search(text):
        return text
    return _ARABIC_LABEL.sub(lambda match: _ARABIC_LABELS[match.group(1)] + " " * len(match.group(2)), text)


def _cyrillic_labels(text: str) -> str:
    """Return `text` with labels such as `Ответ: Б` in the letters of the options, if Б, Г or Д is one of them."""
    if "Б" not in text and "Г" not in text and "Д" not in text:
        return text
    labels = list(_CYRILLIC_LABEL.finditer(text))
    if not any(label.group(1) in "БГД" for label in labels):
        return text
    signs = list(text)
    for label in labels:
        signs[label.start(1)] = _CYRILLIC_LABELS[label.group(1)]
    return "".join(signs)


def normalise(text: str, *, lookalikes: bool = True, circles: bool = False) -> str:
    """Return `text` at equal length: full-width, circled and look-alike letters plain; LaTeX and HTML blank.

    Each step runs only where a plain sign of it occurs: most replies pass through untouched. `circles` stay where
    options are made of them (`①③`): there they count statements, and `13` would be a number.
    """
    if not text.isascii():
        plain = _odd_table()
        plain = {**plain, **_KEPT} if circles else plain
        text = _ODD.sub(lambda match: plain.get(ord(match.group()), match.group()), text)
        if lookalikes:
            text = _cyrillic_labels(text)
            text = _arabic_labels(_LOOKALIKE.sub(lambda match: _LOOKALIKES[match.group()], text))
    elif "\r" in text:
        text = text.replace("\r", "\n")
    if "\\" in text:
        text = _WRITTEN_LINE_END.sub(" \n", text)
        text = _DEGREE.sub(lambda match: "°".rjust(match.end() - match.start()), _FRACTION.sub(_fraction, text))
        text = _SET_IN_FONT.sub(_unwrapped, _SET_IN_FONT.sub(_unwrapped, text))
        text = _LATEX.sub(_blank, text)
    if "&" in text:
        text = _ESCAPE.sub(lambda match: _ESCAPED[match.group()], text)
    if "~~" in text or "<" in text:
        text = _MARKUP.sub(_blank, _STRUCK.sub(_blank, text))
    return text
