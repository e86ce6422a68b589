"""A page in Markdown, HTML and LaTeX in, its blocks out: texts, tables and formulas. Gold and replies are read alike.

An outer fence and one line of introduction are taken off and told; nothing else of a reply is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from ...core.errors import MissingExtra

_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|\S", re.S)
_ALIASES = {
    "\\leq": "\\le",
    "\\geq": "\\ge",
    "\\neq": "\\ne",
    "\\dfrac": "\\frac",
    "\\tfrac": "\\frac",
    "\\cfrac": "\\frac",
    "\\rightarrow": "\\to",
    "\\lbrace": "\\{",
    "\\rbrace": "\\}",
    "\\lvert": "|",
    "\\rvert": "|",
    "\\vert": "|",
    "\\mid": "|",
    "\\dots": "\\ldots",
    "\\cdots": "\\ldots",
    "\\land": "\\wedge",
    "\\lor": "\\vee",
    "\\lnot": "\\neg",
    "\\operatorname": "\\mathrm",
    "\\text": "\\mathrm",
    "\\textrm": "\\mathrm",
    "\\bm": "\\boldsymbol",
    "\\prime": "'",
    "\\lt": "<",
    "\\gt": ">",
    "\\ast": "*",
    "\\epsilon": "\\varepsilon",
    "−": "-",
    "·": "\\cdot",
    "×": "\\times",
    "÷": "\\div",
    "±": "\\pm",
    "≤": "\\le",
    "≥": "\\ge",
    "≠": "\\ne",
    "≈": "\\approx",
    "→": "\\to",
    "∞": "\\infty",
    "∑": "\\sum",
    "∏": "\\prod",
    "∫": "\\int",
    "√": "\\sqrt",
    "∂": "\\partial",
    "∈": "\\in",
    "∀": "\\forall",
    "∃": "\\exists",
    "′": "'",
}
_GREEK = re.findall(
    "[a-z]+",
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi o pi rho varsigma sigma tau upsilon "
    "varphi chi psi omega",
)
_CAPITALS = re.findall("[A-Za-z]+", "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega")
_ALIASES |= {chr(0x3B1 + place): "\\" + name for place, name in enumerate(_GREEK)}
_ALIASES |= {letter: "\\" + name for letter, name in zip("ΓΔΘΛΞΠΣΥΦΨΩ", _CAPITALS, strict=True)}
_DROPPED = frozenset(
    {"\\left", "\\right", "\\displaystyle", "\\textstyle", "\\limits", "\\nolimits", "\\nonumber", "\\notag", "~", "&"}
    | {"\\,", "\\;", "\\:", "\\!", "\\ ", "\\>", "\\quad", "\\qquad", "\\enspace", "\\thinspace", "\\hline", "\\\\"}
    | {"\\big", "\\Big", "\\bigg", "\\Bigg", "\\bigl", "\\bigr", "\\Bigl", "\\Bigr", "\\biggl", "\\biggr"}
)
_NAMES = frozenset(
    "\\" + name
    for name in re.findall(
        "[A-Za-z]+",
        "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim ln log max min Pr sec "
        "sin sinh sup tan tanh",
    )
)
_WITH_GROUP = re.compile(r"\\(?:tag\*?|label|hspace\*?|vspace\*?|phantom)\s*\{[^{}]*\}")
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{([A-Za-z]+\*?)\}(?:\s*\{[lcr|@ ]*\})?")
_LINES = frozenset({"aligned", "align", "alignat", "alignedat", "gather", "gathered", "split", "equation", "multline"})
"""Environments that only arrange lines; of others (matrices, cases) name, cells and rows are part of the formula."""


def formula_tokens(latex: str) -> list[str]:
    """Return the canonical tokens of a formula, given with or without delimiters."""
    bare = latex.strip()
    for left, right in (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$")):
        if bare.startswith(left) and bare.endswith(right) and len(bare) >= len(left) + len(right):
            bare = bare[len(left) : len(bare) - len(right)].strip()
    bare = _WITH_GROUP.sub(" ", bare)
    kept = {name for _, name in _ENVIRONMENT.findall(bare) if name.rstrip("*") not in _LINES | {"array"}}
    bare = _ENVIRONMENT.sub(lambda m: f" \ue010{m[2]}" if m[2] in kept and m[1] == "begin" else " ", bare)
    tokens: list[str] = []
    for token in (_ALIASES.get(token, token) for token in _TOKEN.findall(bare)):
        if token in _NAMES:
            tokens += ["\\mathrm", "{", *token[1:], "}"]
        elif token not in _DROPPED or (kept and token in ("&", "\\\\")):
            tokens.append(token)
    return _sorted_scripts(_without_single_groups(_fractions(tokens)))


def _fractions(tokens: list[str]) -> list[str]:
    """Write `{a \\over b}` as `\\frac{a}{b}`."""
    while "\\over" in tokens:
        at = tokens.index("\\over")
        start, end = _opening(tokens, at), _closing(tokens, at)
        inner = ["\\frac", "{", *tokens[start + 1 : at], "}", "{", *tokens[at + 1 : end], "}"]
        tokens = tokens[: max(start, 0)] + inner + tokens[end + 1 :]
    return tokens


def _opening(tokens: list[str], at: int) -> int:
    depth = 0
    for index in range(at - 1, -1, -1):
        depth += {"}": 1, "{": -1}.get(tokens[index], 0)
        if depth < 0:
            return index
    return -1


def _closing(tokens: list[str], at: int) -> int:
    depth = 0
    for index in range(at + 1, len(tokens)):
        depth += {"{": 1, "}": -1}.get(tokens[index], 0)
        if depth < 0:
            return index
    return len(tokens)


def _without_single_groups(tokens: list[str]) -> list[str]:
    """Drop the braces around one token, and `^` before a prime."""
    done: list[str] = []
    for token in tokens:
        done.append(token)
        while len(done) >= 3 and done[-1] == "}" and done[-3] == "{":
            done[-3:] = [done[-2]]
        if len(done) >= 2 and done[-1] == "'" and done[-2] == "^":
            del done[-2]
        if done[-2:] == ["{", "}"]:
            del done[-2:]
    return done


def _group(tokens: list[str], at: int) -> int:
    """Return where the argument that begins at a token ends."""
    if at >= len(tokens) or tokens[at] != "{":
        return min(at + 1, len(tokens))
    return min(_closing(tokens, at) + 1, len(tokens))


def _sorted_scripts(tokens: list[str]) -> list[str]:
    """Write a subscript before a superscript, whichever came first."""
    done: list[str] = []
    index = 0
    while index < len(tokens):
        if tokens[index] == "^":
            end = _group(tokens, index + 1)
            if end < len(tokens) and tokens[end] == "_":
                last = _group(tokens, end + 1)
                done += tokens[end:last] + tokens[index:end]
                index = last
                continue
        done.append(tokens[index])
        index += 1
    return done


MOST_CHARACTERS = 200_000
"""Of a reply that many are read; what follows counts as invented. A dense page has some 10,000."""
MOST_CELLS = 20_000
MOST_SPAN = 200


class Kind(StrEnum):
    """What a block is compared as."""

    TEXT = "text"
    TABLE = "table"
    FORMULA = "formula"


class Cell(NamedTuple):
    """A cell of a table: its text and how many rows and columns it spans."""

    text: str
    rows: int = 1
    columns: int = 1


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    kind: Kind
    text: str
    """What is compared: plain text, canonical tokens of a formula, or the texts of all cells."""
    source: str = ""
    level: int = 0
    """Of a heading: 1 to 6."""
    rows: tuple[tuple[Cell, ...], ...] = ()
    category: str = ""
    """Of a gold page: what its author calls it."""
    tokens: tuple[str, ...] = ()

    @property
    def mass(self) -> int:
        """Return how much there is to read: characters, tokens, or characters and cells."""
        if self.kind is Kind.FORMULA:
            return len(self.tokens)
        return len(self.text) + sum(map(len, self.rows)) if self.kind is Kind.TABLE else len(self.text)


@dataclass(frozen=True)
class PageReading:
    """The blocks of a page, what was taken off before reading, and what was not read."""

    blocks: tuple[Block, ...]
    removed: tuple[str, ...] = ()
    unread: int = 0
    """Characters behind the limit."""
    notes: tuple[str, ...] = field(default=())


def read_page(text: str) -> PageReading:
    """Read a page as it was written."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    unread = max(0, len(text) - MOST_CHARACTERS)
    text, removed = _without_wrapping(text[:MOST_CHARACTERS])
    blocks = tuple(_Reader(text).blocks())
    notes = (f"only the first {MOST_CHARACTERS:,} characters were read",) if unread else ()
    return PageReading(blocks, removed, unread, notes)


def read_gold(blocks: Sequence[Mapping[str, Any]] | str) -> tuple[Block, ...]:
    """Return the blocks of a gold page: given as one text, or as blocks with a category."""
    if isinstance(blocks, str):
        return read_page(blocks).blocks
    done: list[Block] = []
    for block in blocks:
        if not block.get("ignore"):
            done += _gold_block(str(block["category"]), str(block.get("text") or ""))
    return tuple(done)


def _gold_block(category: str, text: str) -> list[Block]:
    if category.startswith("equation_isolated") and not re.match(r"\s*(\$\$|\\\[)", text):
        text = f"$$\n{text.strip().strip('$')}\n$$"
    if category in ("code_txt", "code_algorithm"):
        inner = re.sub(r"^```\w*\n?|\n?```$", "", text.strip())
        return [_text(inner, category=category)] if inner.strip() else []
    return [replace(block, category=category) for block in read_page(text).blocks]


_OUTER = re.compile(
    r"^(?P<intro>[^\n`]{0,160}:\s*\n+)?\s*(?P<fence>`{3,}|~{3,})(?P<name>[A-Za-z]*)[ \t]*\n(?P<body>.*?)\n?"
    r"(?P=fence)\s*$",
    re.S,
)
_CODE_NAMES = re.compile(r"^(?:markdown|md|html|latex|tex|text|txt|xml)?$", re.I)
_INTRODUCTION = re.compile(
    r"^\s*(?:sure|certainly|of course|okay|ok|here(?:'s| is| are)|below is|the following is|this is)\b"
    r"[^\n]{0,160}:[ \t]*\n",
    re.I,
)


def _without_wrapping(text: str) -> tuple[str, tuple[str, ...]]:
    removed = []
    found = _OUTER.match(text.strip())
    if found and _CODE_NAMES.match(found["name"]) and _is_whole(found["body"], found["fence"]):
        removed += [part for part in ((found["intro"] or "").strip(), f"{found['fence']}{found['name']}") if part]
        text = found["body"]
    introduction = _INTRODUCTION.match(text)
    if introduction:
        removed.append(introduction[0].strip())
        text = text[introduction.end() :]
    return text, tuple(removed)


def _is_whole(body: str, fence: str) -> bool:
    """Return whether fences within a fenced text come in pairs, so that the outer one is around all of it."""
    return len(re.findall(rf"^{fence}", body, re.M)) % 2 == 0


_HIDDEN = "\ue000%d\ue001"
_SHOWN = re.compile("\ue000(\\d+)\ue001")
_FENCED = re.compile(r"^(?P<mark>`{3,}|~{3,})[^\n]*\n.*?(?:^(?P=mark)[ \t]*$|\Z)", re.S | re.M)
_TABLE = re.compile(r"<table\b", re.I)
_TABLE_MARKS = re.compile(r"<(/?)table\b[^>]*>", re.I)
_TABULAR = re.compile(r"\\begin\{(tabular[*x]?)\}")
_DISPLAY = re.compile(r"\$\$|\\\[|\\begin\{((?:equation|align|gather|multline|eqnarray)\*?)\}")
_MATH_FENCE = re.compile(r"^```(?:math|latex)[ \t]*\n(.*?)\n```[ \t]*$", re.S | re.M)
_INLINE = re.compile(r"\\\(([^\n]{1,400}?)\\\)|(?<![\\$])\$(?![\s$])([^$\n]+?)(?<![\s\\])\$(?![\d$])")
_TAGS = re.compile(
    r"</?(?:b|i|em|strong|u|s|sup|sub|span|font|small|center|div|p|a|mark|body|html|figure|figcaption)\b[^<>]*>", re.I
)
_BREAKS = re.compile(r"<br\s*/?>", re.I)
_IMAGES = re.compile(r"!\[[^\]\n]{0,400}\]\([^)\n]{0,2000}\)|<img\b[^<>]*>", re.I)
_COMMENT = re.compile("<!--")
_HTML_HEADING = re.compile(r"<h([1-6])\b[^<>]*>([^<]{0,400})</h\1>", re.I)


class _Reader:
    """Reads one page: hides what Markdown would misread (tables, formulas), then walks the tokens of the rest."""

    def __init__(self, text: str) -> None:
        self._kept: list[Block | str] = []
        self._text = text

    def _hide(self, block: Block | str) -> str:
        self._kept.append(block)
        return _HIDDEN % (len(self._kept) - 1)

    def _hide_block(self, block: Block) -> str:
        return f"\n\n{self._hide(block)}\n\n"

    def blocks(self) -> Iterator[Block]:
        text = _IMAGES.sub(" ", self._text.replace("\ue000", "").replace("\ue001", ""))
        text = _between(text, _COMMENT, lambda opening: "-->", lambda whole, inner: " ")
        text = _MATH_FENCE.sub(lambda found: self._hide_block(_formula(found[1])), text)
        text = _FENCED.sub(lambda found: self._hide_block(_code(found[0])), text)
        text = self._hide_tables(text)
        text = _between(text, _TABULAR, _ending, lambda whole, inner: self._hide_block(_latex_table(whole)))
        text = _between(text, _DISPLAY, _ending, lambda whole, inner: self._hide_block(_formula(inner)))
        text = _INLINE.sub(lambda found: self._hide("".join(formula_tokens(found[1] or found[2]))), text)
        text = _HTML_HEADING.sub(lambda found: f"\n\n{'#' * int(found[1])} {found[2].strip()}\n\n", text)
        text = _TAGS.sub("", _BREAKS.sub("  \n", text))
        for block in _walk(_markdown().parse("\n".join(line.rstrip() for line in text.split("\n")))):
            yield from self._shown(block)

    def _hide_tables(self, text: str) -> str:
        parts, cursor = [], 0
        while (start := _TABLE.search(text, cursor)) is not None:
            end = _table_end(text, start.start())
            parts += [text[cursor : start.start()], self._hide_block(_html_table(text[start.start() : end]))]
            cursor = end
        return "".join([*parts, text[cursor:]])

    def _shown(self, block: Block) -> Iterator[Block]:
        """Yield what was hidden in a block in its place; formulas within a text as text."""
        parts = re.split("(\ue000\\d+\ue001)", block.text)
        words = ""
        for part in parts:
            found = _SHOWN.fullmatch(part)
            kept = self._kept[int(found[1])] if found and int(found[1]) < len(self._kept) else part
            if isinstance(kept, Block):
                if words.strip():
                    yield _text(words, level=block.level)
                words = ""
                if kept.mass:
                    yield kept
            else:
                words += kept
        if words.strip():
            yield replace(block, text=normal_text(words)) if block.rows else _text(words, level=block.level)


def _ending(opening: re.Match[str]) -> str:
    """Return what closes what a match has opened."""
    return {"$$": "$$", "\\[": "\\]"}.get(opening[0], f"\\end{{{opening[1]}}}")


def _between(
    text: str, opening: re.Pattern[str], ending: Callable[[re.Match[str]], str], make: Callable[[str, str], str]
) -> str:
    """Replace what stands between an opening and its ending; in time that grows as the text does.

    What is opened and never closed stays as it is, and its ending is not looked for again.
    """
    parts, cursor, search = [], 0, 0
    missing: set[str] = set()
    while (found := opening.search(text, search)) is not None:
        close = ending(found)
        end = -1 if close in missing else text.find(close, found.end())
        if end < 0:
            missing.add(close)
            search = found.end()
            continue
        whole = text[found.start() : end + len(close)]
        parts += [text[cursor : found.start()], make(whole, text[found.end() : end])]
        cursor = search = end + len(close)
    return "".join([*parts, text[cursor:]])


def _table_end(text: str, start: int) -> int:
    """Return where a table ends, those within it counted; of one that is not closed, the next blank line or the end."""
    depth = 0
    for mark in _TABLE_MARKS.finditer(text, start):
        depth += -1 if mark[1] else 1
        if not depth:
            return mark.end()
    blank = re.compile(r"\n\s*\n(?!\s*<)").search(text, start)
    return blank.start() if blank else len(text)


_SPACES = re.compile(r"\s+")
_CJK = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u30ff"
_CJK_SPACES = re.compile(rf"(?<=[{_CJK}])\s+|\s+(?=[{_CJK}])")


def normal_text(text: str) -> str:
    """Return a text as it is compared: NFC, runs of blanks as one, none beside Chinese and Japanese characters."""
    flat = _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip()
    return _CJK_SPACES.sub("", flat)


def _text(text: str, level: int = 0, category: str = "") -> Block:
    return Block(Kind.TEXT, normal_text(text), text.strip(), level, category=category)


def _code(fenced: str) -> Block:
    lines = fenced.strip("\n").split("\n")
    closed = len(lines) > 1 and re.fullmatch(r"\s*(`{3,}|~{3,})\s*", lines[-1])
    return _text("\n".join(lines[1 : -1 if closed else None]))


def _formula(latex: str) -> Block:
    tokens = tuple(formula_tokens(latex))
    return Block(Kind.FORMULA, " ".join(tokens), latex.strip(), tokens=tokens)


def table_block(rows: Sequence[Sequence[Cell]], source: str = "") -> Block:
    """Return a block of rows of cells; rows without any cell are no rows."""
    kept = tuple(tuple(row) for row in rows if row)
    return Block(Kind.TABLE, " ".join(cell.text for row in kept for cell in row), source, rows=kept)


def _html_table(text: str) -> Block:
    try:
        from lxml import etree
        from lxml import html as lxml_html
    except ImportError as error:
        raise MissingExtra("parse", "reading pages") from error

    parser = lxml_html.HTMLParser(remove_comments=True, encoding="utf-8")
    try:
        root = lxml_html.fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, ValueError):
        return table_block([], text)
    rows, cells = [], 0
    for row in root.iter("tr"):
        rows.append([_html_cell(cell) for cell in row if cell.tag in ("td", "th")])
        cells += len(rows[-1])
        if cells > MOST_CELLS:
            break
    return table_block(rows, text)


def _html_cell(cell: Any) -> Cell:
    for line in cell.iter("br"):
        line.tail = " " + (line.tail or "")
    return Cell(_cell_text("".join(cell.itertext())), _span(cell.get("rowspan")), _span(cell.get("colspan")))


def _span(value: str | None) -> int:
    return min(MOST_SPAN, max(1, int(value))) if value and value.strip().isdecimal() and len(value) < 9 else 1


def _cell_text(text: str) -> str:
    shown = _INLINE.sub(lambda found: "".join(formula_tokens(found[1] or found[2])), text)
    return normal_text(re.sub(r"(\*\*|__)(.+?)\1", r"\2", shown))


def _latex_table(text: str) -> Block:
    inner = re.sub(r"^\\begin\{tabular[*x]?\}(?:\{[^{}]*\})*|\\end\{tabular[*x]?\}$", "", text)
    inner = re.sub(
        r"\\(?:hline|toprule|midrule|bottomrule|cline\{[^{}]*\}|cmidrule(?:\([^)]*\))?\{[^{}]*\})", "", inner
    )
    rows = [re.split(r"(?<!\\)&", row) for row in re.split(r"\\\\(?:\[[^\]]*\])?", inner) if row.strip()]
    return table_block([[_latex_cell(cell) for cell in row] for row in rows], text)


def _latex_cell(text: str) -> Cell:
    rows = columns = 1
    while found := re.match(r"\s*\\multi(column|row)\{(\d+)\}\{[^{}]*\}\{(.*)\}\s*$", text, re.S):
        rows, columns = (rows, _span(found[2])) if found[1] == "column" else (_span(found[2]), columns)
        text = found[3]
    text = re.sub(r"\\(?:textbf|textit|emph|textrm|underline)\{([^{}]*)\}", r"\1", text)
    return Cell(_cell_text(re.sub(r"\\([&%#_$])", r"\1", text)), rows, columns)


def _markdown() -> Any:
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise MissingExtra("parse", "reading pages") from error
    return (
        MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable("table").disable(["autolink", "reference"])
    )


def _walk(tokens: Sequence[Any]) -> Iterator[Block]:
    number, level = "", 0
    rows: list[list[Cell]] | None = None
    for token in tokens:
        kind = token.type
        if kind == "table_open":
            rows = []
        elif kind == "tr_open" and rows is not None:
            rows.append([])
        elif kind == "table_close" and rows is not None:
            yield table_block(rows)
            rows = None
        elif kind == "heading_open":
            level = int(token.tag[1])
        elif kind == "list_item_open":
            number = f"{token.info}. " if token.info else ""
        elif kind == "inline":
            words = _inline_text(token.children or ())
            if rows is not None:
                rows[-1].append(Cell(normal_text(words)))
            else:
                yield Block(Kind.TEXT, number + words, level=level)
            number, level = "", 0
        elif kind in ("code_block", "fence"):
            yield Block(Kind.TEXT, token.content)


def _inline_text(children: Sequence[Any]) -> str:
    parts = []
    for child in children:
        if child.type in ("text", "code_inline", "text_special"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return "".join(parts)
