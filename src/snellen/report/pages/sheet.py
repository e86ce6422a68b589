"""One plain table to every form people paste it into: terminal, Markdown, HTML, CSV, LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct
from rich import box
from rich.table import Table

from ...core.markup import Html, tag
from ...core.text import NUMBER, quoted_line, safe_cell
from ..console import WholeConsole
from ..terminal import plain
from .parts import document, head, scrolled

_LATEX = (
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "–": "--",
        "−": "$-$",
        "…": r"\ldots{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "≤": r"$\le$",
        "≥": r"$\ge$",
        "·": r"$\cdot$",
        "→": r"$\rightarrow$",
    }
    | {c: f"\\{c}" for c in "&%$#_{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)

LATIN = frozenset(map(chr, range(0xC0, 0x100))) - frozenset("ÐðÞþ×÷")
"""Letters that LaTeX has in every encoding of fonts."""


class Sheet(Struct, frozen=True):
    """A titled table of texts."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def to_markdown(sheet: Sheet) -> str:
    """Return a Markdown table."""
    rows = [sheet.head, tuple("---" for _ in sheet.head), *sheet.rows]
    lines = ["| " + " | ".join(_markdown(cell) for cell in row) + " |" for row in rows]
    return "\n".join([f"**{_markdown(sheet.title)}**", "", *lines, *(["", sheet.note] if sheet.note else [])]) + "\n"


def to_csv(sheet: Sheet) -> str:
    """Return CSV, formulas defused."""
    return "".join(quoted_line([safe_cell(cell) for cell in row]) for row in (sheet.head, *sheet.rows))


def to_latex(sheet: Sheet) -> str:
    """Return a LaTeX table for the package booktabs."""
    names, *body = (" & ".join(_latex(cell) for cell in row) + r" \\" for row in (sheet.head, *sheet.rows))
    opening = (r"\begin{table}", f"\\caption{{{_latex(sheet.title)}}}")
    table = (f"\\begin{{tabular}}{{{'l' * len(sheet.head)}}}", r"\toprule", names, r"\midrule", *body, r"\bottomrule")
    return "\n".join([*opening, *table, r"\end{tabular}", r"\end{table}", ""])


def sheet_table(sheet: Sheet) -> Html:
    """Return the table as HTML."""
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in sheet.rows]
    return scrolled(
        sheet.title,
        tag("caption", ". ".join(filter(None, (sheet.title, sheet.note)))),
        head(*sheet.head),
        tag("tbody", *body),
    )


def to_html(sheet: Sheet) -> str:
    """Return a page of its own with the table."""
    return document(sheet.title, [tag("h1", sheet.title), tag("div", sheet_table(sheet), class_="card")])


def sheet_grid(sheet: Sheet) -> Table:
    """Return the table as a terminal draws it."""
    table = Table(title=plain(sheet.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for number, name in enumerate(sheet.head):
        numeric = all(NUMBER.match(row[number].lstrip("(")) or row[number] == "–" for row in sheet.rows)
        table.add_column(plain(name), justify="right" if numeric else "left", overflow="fold")
    for row in sheet.rows:
        table.add_row(*(plain(cell) for cell in row))
    return table


def to_terminal(sheet: Sheet, width: int | None = None) -> str:
    """Return the table for a terminal."""
    table = sheet_grid(sheet)
    console = WholeConsole(width=width)
    with console.capture() as capture:
        console.print(table)
        if sheet.note:
            console.print(plain(sheet.note), style="dim")
    return capture.get()


FORMS: dict[str, Callable[[Sheet], str]] = {
    "terminal": to_terminal,
    "markdown": to_markdown,
    "html": to_html,
    "csv": to_csv,
    "latex": to_latex,
}


def render(sheets: Sequence[Sheet], form: str) -> str:
    """Return all sheets in one form."""
    if form == "html":
        cards = [(tag("h2", sheet.title), tag("div", sheet_table(sheet), class_="card")) for sheet in sheets]
        return document(sheets[0].title if sheets else "Snellen", list(cards))
    return "\n".join(FORMS[form](sheet) for sheet in sheets)


def _markdown(text: str) -> str:
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", text.replace("\n", " "))


def _latex(text: str) -> str:
    return "".join(_latex_character(char) for char in text.replace("\n", " "))


def _latex_character(char: str) -> str:
    """Return a character as every LaTeX knows it; one that needs a font of its own is named by its number."""
    if char in _LATEX:
        return _LATEX[char]
    if " " <= char <= "~" or (char in LATIN and char.isalpha()):
        return char
    return " " if char.isspace() else f"[U+{ord(char):04X}]"
