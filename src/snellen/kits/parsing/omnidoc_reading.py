"""How OmniDocBench 1.6 reads a page of Markdown into pieces: tables, formulas, code and texts.

The order matters: what is found is blanked before the next kind is looked for. LaTeX tables are converted by the
program `latexmlc` in the original and dropped where it is not installed; here they are always dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .omnidoc_text import INLINE, latex_as_text, parsed_html

TEXT, FORMULA, TABLE, LATEX_TABLE, RESCUED = "text_all", "equation_isolated", "html_table", "latex_table", "rescue"
INLINE_FORMULA = "equation_inline"


@dataclass(frozen=True)
class Piece:
    """A piece of a page: what kind it is matched as, what it is called, and where it stands."""

    kind: str
    content: str
    start: int
    end: int
    name: str = ""
    source: tuple[Any, ...] = ()
    """Of a line of a formula: what it was cut from."""

    @property
    def category(self) -> str:
        """Return the finer name where there is one."""
        return self.name or self.kind


_IMAGE = re.compile(r"!\[(.*?)\]\((.*?)\)")
_DISPLAY = re.compile(r"\$\$(.*?)\$\$|\\\[(.*?)\\\]|\$(.*?)\$|\\\((.*?)\\\)", re.DOTALL)
_DOLLARS = re.compile(r"\$\$(.*?)\$\$|\$(.*?)\$|\\\((.*?)\\\)", re.DOTALL)
_CODE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_PIPE_ROW = re.compile(r"\|\s*.*?\s*\|\n", re.DOTALL)
_FENCES = (r"^```markdown\n?", r"^```html\n?", r"^```latex\n?", r"```\n?$")


def read_page(content: str) -> list[Piece]:
    """Return the pieces of a page, by where they begin; of pieces with the same beginning, as found."""
    content = content.replace("\r\n", "\n").replace("\r", "\n")  # as any file that is opened as text
    pieces: list[Piece] = []
    for image in _IMAGE.finditer(content):
        pieces += _rescued(image[1].strip(), image.start(), image.end(), "image_formula")
    content = _prepared(content)
    for kind, opening, closing in ((LATEX_TABLE, "", ""), (TABLE, r"<table(?:[^>]*)>", r"</table>")):
        spans = _latex_tables(content) if kind == LATEX_TABLE else _nested_spans(content, opening, closing)
        for start, end in spans:
            pieces.append(Piece(kind, content[start:end] if kind == TABLE else "", start, end))
            if kind == TABLE:
                pieces += _cell_formulas(content[start:end], start)
            content = _blanked(content, start, end)
    content = _take_formulas(content, pieces)
    content = _take_pipe_tables(content, pieces)
    for code in _CODE.finditer(content):
        content = _blanked(content, code.start(), code.end())
        pieces.append(Piece(TEXT, code[2].strip(), code.start(), code.end(), "code"))
    pieces += _texts(content)
    return [piece for piece in sorted(pieces, key=lambda piece: piece.start) if not _is_short_label(piece)]


def _blanked(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


def _prepared(content: str) -> str:
    content = _IMAGE.sub(lambda found: " " * len(found[0]), content)
    for fence in _FENCES:
        content = re.sub(fence, "", content, flags=re.MULTILINE)
    content = re.sub(r" {4,}", "    ", re.sub(r"_{4,}", "____", content))
    for tag in ("<html>", "</html>", "<body>", "</body>"):
        content = content.replace(tag, "")
    blocks = re.split(r"(\n\s*\n)", content)
    return "".join(_without_inline_marks(block) if _is_description(block) else block for block in blocks)


_DESCRIPTIONS = ("the image ", "the figure ", "the diagram ", "diagram:", "[diagram:", "[image:", "qr code ")


def _is_description(block: str) -> bool:
    flat = " ".join(block.split()).lower()
    return len(flat) >= 24 and flat.startswith(_DESCRIPTIONS)


def _without_inline_marks(text: str) -> str:
    text = re.sub(r"\\\((.*?)\\\)", lambda found: found[1], text, flags=re.DOTALL)
    return re.sub(r"\$(.*?)\$", lambda found: found[1], text, flags=re.DOTALL)


def _latex_tables(content: str) -> list[tuple[int, int]]:
    tables = [found.span() for found in re.finditer(r"\\begin{table}(.*?)\\end{table}", content, re.DOTALL)]
    for start, end in tables:
        content = _blanked(content, start, end)
    return sorted([*tables, *_nested_spans(content, r"\\begin{tabular}", r"\\end{tabular}")])


def _nested_spans(text: str, opening: str, closing: str, offset: int = 0) -> list[tuple[int, int]]:
    """Return the outermost spans; of one that is not closed, those within it.

    The end of a span is counted by the length of the pattern, as in the original: for `\\end{tabular}` one too many.
    """
    found: list[tuple[int, int]] = []
    open_at: list[int] = []
    marks = re.compile(f"(?P<open>{opening})|(?P<close>{closing})")
    cursor = 0
    while (mark := marks.search(text, cursor)) is not None:
        cursor = mark.start() + len(closing)
        if mark["open"] is not None:
            open_at.append(mark.start())
        elif open_at:
            start = open_at.pop()
            if not open_at:
                found.append((start + offset, cursor + offset))
    if open_at:
        start = open_at[0] + len(opening)
        found += _nested_spans(text[start:], opening, closing, offset + start)
    return found


def _take_formulas(content: str, pieces: list[Piece]) -> str:
    """Enter the formulas and blank those on lines of their own; inline ones stay in the text as well."""
    for found in list(_DISPLAY.finditer(content)):
        line = " ".join(found[0].strip().split("\n"))
        inner = _DOLLARS.search(line)
        name = ""
        if inner is not None and inner[1]:
            line = _DOLLARS.sub(lambda m: f"\\[{m[1] or ''}\\]", line)
        elif inner is not None:
            line, name = _DOLLARS.sub(lambda m: f"\\[{m[2] or ''}{m[3] or ''}\\]", line), INLINE_FORMULA
        if not name:
            content = _blanked(content, found.start(), found.end())
        pieces += _formula_pieces(line, found.start(), found.end(), name)
    return content


def _formula_pieces(line: str, start: int, end: int, name: str) -> Iterator[Piece]:
    formula, margins = _without_margins(line, start, end)
    parts = _arithmetic_parts(formula)
    span = max(max(end - start, len(parts)) // len(parts), 1) if parts else 0
    for place, part in enumerate(parts):
        at = start + place * span
        yield Piece(FORMULA, part, at, end if place == len(parts) - 1 else min(end, at + span), name)
    if not parts:
        yield Piece(FORMULA, formula, start, end, name)
    yield from margins


_SPACE = r"(?:\\qquad|\\quad|\\enspace|\\,|\\;|\\:)"
_LEADING_NUMBER = re.compile(
    rf"^\s*(?P<prefix>(?:\\left\(\s*[0-9IVXivx]+\s*\\right\)|\(\s*[0-9IVXivx]+\s*\)))\s*(?:{_SPACE}\s*)*"
)
_TRAILING_WORDS = (
    re.compile(rf"(?P<sep>{_SPACE}\s*)(?P<caption>\\text\s*\{{[^{{}}]*\}}\.?)\s*$"),
    re.compile(rf"(?P<sep>{_SPACE}\s*)(?P<caption>\([^)]*[A-Za-z][^)]*\)\.?)\s*$"),
)


def _enveloped(text: str) -> tuple[str, str, str]:
    flat = " ".join(text.split())
    for left, right in (("\\[", "\\]"), ("\\(", "\\)"), ("$$", "$$"), ("$", "$")):
        if flat.startswith(left) and flat.endswith(right) and len(flat) >= len(left) + len(right):
            return left, right, flat[len(left) : len(flat) - len(right)].strip()
    return "", "", flat


def _in_envelope(inner: str, left: str, right: str) -> str:
    return f"{left} {inner} {right}" if inner.strip() and left else inner.strip()


def _without_margins(line: str, start: int, end: int) -> tuple[str, list[Piece]]:
    """Return a formula without a number before and words after it, and those as texts beside it."""
    left, right, inner = _enveloped(line)
    words = [found for pattern in _TRAILING_WORDS if (found := _caption_at_end(pattern, inner))]
    if not inner or not (_LEADING_NUMBER.match(inner) or words):
        return line, []
    margins: list[Piece] = []
    number = _LEADING_NUMBER.match(inner)
    if number:
        prefix = number["prefix"].strip()
        margins += _margin(prefix, start, min(end, start + max(len(prefix), 1)))
        inner = inner[number.end() :].strip()
    while found := next((f for pattern in _TRAILING_WORDS if (f := _caption_at_end(pattern, inner))), None):
        caption = found["caption"].strip()
        margins += _margin(caption, max(start, end - max(len(caption), 1)), end)
        inner = inner[: found.start("sep")].rstrip()
    inner = re.sub(rf"(?:{_SPACE}\s*)+$", "", inner).strip()
    return (_in_envelope(inner, left, right), margins) if inner else (" ".join(line.split()), [])


def _caption_at_end(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = pattern.search(text)
    return found if found and _is_caption(found["caption"].strip()) else None


def _margin(text: str, start: int, end: int) -> list[Piece]:
    plain = _plain(text)
    return [Piece(TEXT, plain, start, end, "equation_caption")] if plain else []


def _plain(latex: str) -> str:
    bare = latex.strip()
    return re.sub(r"\s+", " ", latex_as_text(bare).replace("\xa0", " ")).strip() if bare else ""


def _is_caption(text: str) -> bool:
    plain = _plain(text)
    core = plain[1:-1].strip() if plain.startswith("(") and plain.endswith(")") else plain
    if not plain or re.fullmatch(r"[0-9IVXivx]+", core.replace(" ", "")):
        return False
    letters, words = len(re.findall(r"[A-Za-z]", plain)), len(re.findall(r"[A-Za-z]{2,}", plain))
    marks = len(re.findall(r"(\\[A-Za-z]+|[=<>≤≥÷×±∑∫√_^{}])", text))
    return (letters >= 10 and words >= 2 and marks <= 6) or (
        letters >= 14 and not re.search(r"\d", plain) and marks <= 3
    )


_RELATIONS = ("=", "\\approx", "≈", "\\neq", "≠", "\\leq", "≤", "\\geq", "≥")


def _arithmetic_parts(formula: str) -> list[str]:
    """Return the sums that stand side by side in one formula, between `\\quad`s; nothing if it is one formula."""
    left, right, inner = _enveloped(formula)
    if "\\quad" not in inner and "\\qquad" not in inner:
        return []
    parts = [part.strip() for part in re.split(r"\s*(?:\\qquad|\\quad)\s*", inner) if part.strip()]
    if len(parts) <= 1 or not all(map(_is_arithmetic, parts)):
        return []
    return [_in_envelope(part, left, right) for part in parts]


def _is_arithmetic(part: str) -> bool:
    flat = " ".join(part.split())
    if len(flat) > 160 or "\\begin{" in flat or "\\end{" in flat:
        return False
    if re.search(r"\\(mathbf|left|right|cdot|lambda|Gamma|varGamma|text|matrix|pmatrix|bmatrix)", flat):
        return False
    if not any(mark in flat for mark in _RELATIONS):
        return False
    return len(re.findall(r"\d", flat)) >= 2 or "\\frac" in flat or bool(re.search(r"\d+\s*/\s*\d+", flat))


def _take_pipe_tables(content: str, pieces: list[Piece]) -> str:
    if len(_PIPE_ROW.findall(content + "\n")) < 2:
        return content
    content = pipe_rows_as_html(content)
    for found in list(re.finditer(r"(<table.*?</table>)", content, re.DOTALL)):
        content = _blanked(content, *found.span())
        pieces.append(Piece(TABLE, found[0].strip(), found.start(), found.end(), "md2html_table"))
        pieces += _cell_formulas(found[0].strip(), found.start())
    return content


def pipe_rows_as_html(content: str) -> str:
    """Return a page whose tables of pipes are HTML: each row a table of its own first, then neighbours joined."""
    content = content.replace("\r", "") + "\n"
    for row in _PIPE_ROW.findall(content):
        content = content.replace(row, _row_as_table(row), 1)
    joined = _join_tables(content)
    return joined.replace("<table>", '<table border="1" >').replace("<td>", '<td colspan="1" rowspan="1">')


def _row_as_table(row: str) -> str:
    lines = [line.strip() for line in row.strip().split("\n")]
    head = "".join(f"      <th>{cell.strip()}</th>\n" for cell in lines[0].split("|")[1:-1])
    body = ""
    for line in lines[2:]:
        cells = "".join(f"      <td>{cell.strip()}</td>\n" for cell in line.split("|")[1:-1])
        body += f"    <tr>\n{cells}    </tr>\n"
    return f"<table>\n  <thead>\n    <tr>\n{head}    </tr>\n  </thead>\n  <tbody>\n{body}  </tbody>\n</table>\n"


def _is_rule_line(line: str) -> bool:
    return ":" in line or "---" in line


def _join_tables(text: str) -> str:
    """Join tables that follow each other; the line before one goes with it, and so do lines with `:` or `---`."""
    done: list[str] = []
    block, last, inside = "", "", False
    for line in text.split("\n"):
        if "<table>" in line:
            inside = True
            block += last
        elif inside:
            if not _is_rule_line(last) and "</thead>" not in last:
                block += "\n" + last
            if "</table>" in last:
                inside = False
                done.append(_joined(block))
                block = ""
        else:
            done.append(last)
        last = line
    if last and (inside or "</table>" in last):
        done.append(_joined(block + "\n" + last))
    elif last:
        done.append(last)
    return "\n".join(done)


def _joined(block: str) -> str:
    lines: list[str] = []
    for table in re.findall(r"<table>[\s\S]*?</table>", re.sub(r"<!--[\s\S]*?-->", "", block)):
        cells = (line.replace("<th>", "<td>").replace("</th>", "</td>") for line in table.split("\n"))
        kept = [line for line in cells if not re.search(r"</?t(able|head|body)>", line)]
        lines += kept if len(kept) > 2 else []
    inner = "\n".join(lines)
    return f"\n\n<table>\n{inner}\n</table>\n\n"


def _texts(content: str) -> Iterator[Piece]:
    content = re.sub(r"\\title\{(.*?)\}", r"\1", content)
    content = re.sub(r"\\title\s*\{\s*(.*?)\s*\}", r"\1", content, flags=re.DOTALL)
    content = re.sub(r"\\text\s*\{\s*(.*?)\s*\}", r"\1", content, flags=re.DOTALL)
    content = re.sub(r"\\section\*?\{(.*?)\}", r"\1", content)
    content = re.sub(r"\\section\*?\{\s*(.*?)\s*\}", r"\1", content, flags=re.DOTALL)
    parts = content.split("\n\n")
    parts = parts if len(parts) > 1 else content.split("\n")
    start = 0
    for part in parts:
        end = start + len(part)
        text = "\n".join(line.strip() for line in part.strip().split("\n") if line.strip())
        text = _without_div(text).strip()
        if text:
            yield Piece(TEXT, text, start, end, "text_block")
            yield from _rescued(text, start, end, "text_formula")
        start = end


def _without_div(text: str) -> str:
    if "<table" in text.lower() or not re.match(r"^<(div|dir)\b", text, flags=re.IGNORECASE):
        return text
    tree = parsed_html(text)
    for gone in tree.find_all(["style", "script"]):
        gone.decompose()
    for inline in tree.find_all(["span", "font", "b", "strong", "i", "em", "u", "a", "sup", "sub"]):
        inline.unwrap()
    for line in tree.find_all("br"):
        line.replace_with("\n")
    for block in tree.find_all(["div", "dir", "p", "li"]):
        if not block.contents or block.contents[-1] != "\n":
            block.append("\n")
    lines = re.sub(r"[ \t]*\n[ \t]*", "\n", tree.get_text(separator="").replace("\xa0", " ")).split("\n")
    return "\n".join(line.strip() for line in lines if line.strip()) or text


_OPERATORS = re.compile(
    r"(\\frac|\\sqrt|\\sum|\\int|\\prod|\\times|\\div|\\square|\\cdots|\\left|\\right|\\approx|\\xrightarrow|"
    r"\\rightarrow|\\longrightarrow|=|<|>|≤|≥|≈|÷|×|±|∑|∫|√|→|\^|_|□|△|…|%|/|\+|-)"
)


def _bare(text: str) -> str:
    for pattern in (r"\$\$(.*?)\$\$", r"\\\[(.*?)\\\]", r"\\\((.*?)\\\)", r"\$(.*?)\$"):
        text = re.sub(pattern, lambda found: f" {found[1]} ", text, flags=re.DOTALL)
    return text


def looks_like_formula(text: str) -> bool:
    """Return whether a short text is taken for a formula that lacks its delimiters."""
    text = " ".join(text.split())
    bare = _bare(text)
    compact = re.sub(r"\s+", "", bare)
    if len(text) > 220 or not compact:
        return False
    operators, digits = len(_OPERATORS.findall(bare)), len(re.findall(r"\d", bare))
    marked = len(INLINE.findall(text)) + len(re.findall(r"\$\$.*?\$\$|\\\[.*?\\\]", text, re.DOTALL))
    chinese, words = len(re.findall("[\u4e00-\u9fff]", bare)), len(re.findall(r"[A-Za-z]{4,}", bare))
    rest = re.sub(r"(\\[A-Za-z]+|[=<>≤≥÷×±∑∫√\^_□△…%/()+\-])|\d|\s+", "", bare)
    boxed = "□" in bare or "\\square" in bare
    arrow = any(mark in bare for mark in ("\\xrightarrow", "\\longrightarrow", "→"))
    return (
        (marked > 0 and len(rest) <= 18 and operators >= 1)
        or (boxed and operators >= 1 and words <= 1 and len(compact) <= 80)
        or (arrow and chinese <= 24 and len(compact) <= 120)
        or (operators >= 2 and digits >= 1 and words <= 2 and chinese <= 12 and len(compact) <= 100)
        or (operators >= 3 and words == 0 and chinese <= 18 and len(compact) <= 80)
    )


_AS_COMMANDS = {
    "……": " \\cdots \\cdots ",
    "…": " \\cdots ",
    "×": " \\times ",
    "÷": " \\div ",
    "≤": " \\leq ",
    "≥": " \\geq ",
    "≠": " \\neq ",
    "≈": " \\approx ",
    "□": " \\square ",
    "△": " \\triangle ",
    "（": "(",
    "）": ")",
    "［": "[",
    "］": "]",
    "｛": "{",
    "｝": "}",
}
_REDOX = "氧化还原反应"


def _as_formula(text: str) -> str:
    text = _bare(" ".join(text.replace("\u3000", " ").split()))
    for old, new in _AS_COMMANDS.items():
        text = text.replace(old, new)
    arrow = re.search(r"(?P<left>.*?)\\xrightarrow\s*\{(?P<label>[^{}]+)\}(?P<right>.*)", text)
    if arrow:
        label, right = arrow["label"].strip(), arrow["right"].strip()
        label = label if "\\" in label else f"\\text{{{label}}}"
        sign = f"\\xrightarrow{{{label}}}"
        if right.endswith(_REDOX):
            sign, right = f"\\underset{{{_REDOX}}}{{{sign}}}", right[: -len(_REDOX)].strip()
        text = f"{arrow['left'].strip()} {sign} {right}".strip()
    text = re.sub(r"(?<!\\)&", r"\\&", re.sub(r"(?<!\\)%", r"\\%", text))
    text = re.sub(r"\s+", " ", text).strip()
    return text if not text or text.startswith(("\\begin{", "$$", "\\[")) else f"\\[ {text} \\]"


def _rescued(text: str, start: int, end: int, name: str) -> list[Piece]:
    formula = _as_formula(text) if looks_like_formula(text) else ""
    if not formula:
        return []
    arrow = "\\xrightarrow" in formula or "\\longrightarrow" in formula
    return [Piece(FORMULA if arrow else RESCUED, formula, start, end, name)]


def _cell_formulas(table: str, start: int) -> Iterator[Piece]:
    cursor = start
    for cell in parsed_html(table).find_all(["td", "th"]):
        text = " ".join(cell.get_text(separator=" ").split())
        formula = _as_formula(text) if _is_cell_formula(text) else ""
        if formula:
            end = cursor + max(len(text), 1)
            yield Piece(FORMULA, formula, cursor, end, "table_formula_rescue")
            cursor = end + 1


def _is_cell_formula(text: str) -> bool:
    if not text or len(text) > 120 or not looks_like_formula(text):
        return False
    operators = ("=", "+", "-", "×", "÷", "/", "≈", "\\times", "\\div", "\\approx")
    if not any(mark in text for mark in operators):
        return False
    return len(re.findall(r"\d", text)) >= 2 or "\\frac" in text or bool(re.search(r"\d+\s*/\s*\d+", text))


_STRONG = (
    *("=", "<", ">", "≤", "≥", "≈", "≠", "^", "+", "-", "/", "\\cdot", "\\frac", "\\sqrt", "\\sum", "\\int"),
    *("\\times", "\\div", "\\approx", "\\neq", "\\leq", "\\geq", "\\xrightarrow", "\\longrightarrow"),
)


def _is_short_label(piece: Piece) -> bool:
    """Return whether an inline formula is but a name or a number; those are no candidates for formulas."""
    if piece.kind != FORMULA or piece.name != INLINE_FORMULA:
        return False
    core = _bare(piece.content)
    compact = re.sub(r"\s+", "", core)
    if compact.startswith(("\\xrightarrow", "\\longrightarrow")):
        return True
    if not compact or len(compact) > 24 or any(mark in core for mark in _STRONG):
        return False
    return bool(re.fullmatch(r"[A-Za-z0-9._,-]+|[ΓγλμνxyzuvwMNOabcABC0-9._,-]+", compact))


def moved(piece: Piece, start: int, end: int, content: str) -> Piece:
    """Return a piece with another content at another place."""
    return replace(piece, start=start, end=end, content=content)
