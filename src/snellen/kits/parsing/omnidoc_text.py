"""How OmniDocBench 1.6 makes texts, formulas and tables comparable before it measures them."""

from __future__ import annotations

import html
import logging
import re
import unicodedata
from typing import Any

INLINE = re.compile(r"\$(.*?)\$|\\\((.*?)\\\)")
_CIRCLED = (
    {chr(0x2460 + n): str(n + 1) for n in range(20)}
    | {chr(0x24D0 + n): chr(ord("a") + n) for n in range(26)}
    | {chr(0x24B6 + n): chr(ord("A") + n) for n in range(26)}
)
_CIRCLED_COMMAND = re.compile(r"\\textcircled\s*\{\s*([^{}]+?)\s*\}")
_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
_COMPLEX = (r"\begin{", r"\end{", r"\array", r"\matrix", r"\tabular", r"\cases", r"\align", r"\\", "&")


def normal_text(text: str) -> str:
    """Return the letters and digits of a text; its inline formulas as characters."""
    bare = uncircled(inline_as_characters(text))
    for gone in ("\\t", "\\n", "\t", "\n", "/t", "/n"):
        bare = bare.replace(gone, "")
    return re.sub(r"[^\w\u4e00-\u9fff]", "", bare)


def uncircled(text: str) -> str:
    """Return a text with circled digits and letters as plain ones."""
    return "".join(_CIRCLED.get(letter, letter) for letter in _CIRCLED_COMMAND.sub(lambda m: m[1].strip(), text))


def inline_as_characters(text: str) -> str:
    """Return a text in which inline formulas that need it (`\\alpha`, `x^2`) are written in characters."""
    text = uncircled(text)
    changes = []
    for found in INLINE.finditer(text):
        content = re.sub(r"\\([\\_&%^])", "", found[1] if found[1] is not None else found[2])
        if any(mark in content for mark in "\\^_"):
            content += " " if content.endswith("\\") else ""
            if not _is_complex(content):
                changes.append((found.start(), found.end(), latex_as_text(content).strip()))
    for start, end, new in reversed(changes):
        text = text[:start] + new + text[end:]
    return text


def _is_complex(latex: str) -> bool:
    bare = latex.strip()
    if not bare:
        return False
    return len(bare) > 128 or any(mark in bare for mark in _COMPLEX) or bare.count("{") != bare.count("}")


def latex_as_text(latex: str) -> str:
    """Return LaTeX in characters where it looks like sound LaTeX, else as it is."""
    bare = latex.strip()
    if not bare:
        return latex
    if not any(mark in bare for mark in "\\{}$"):
        return bare
    if _is_prose(bare) or _is_weak(bare) or _is_unsound(bare):
        return latex
    return _converted(bare, latex)


def _converted(latex: str, fallback: str) -> str:
    from pylatexenc.latex2text import LatexNodes2Text

    logger = logging.getLogger("pylatexenc")
    level, quiet = logger.level, logging.CRITICAL
    logger.setLevel(quiet)
    try:
        return str(LatexNodes2Text().latex_to_text(latex))
    except Exception:  # noqa: BLE001 - the parser of another project on any input: the original keeps the text then
        return fallback
    finally:
        logger.setLevel(level)


_SIGNAL = re.compile(r"\\[A-Za-z]+|[_^{}$]|\\[\[\]()]]|&|%|#")
_WORD = re.compile(r"[A-Za-z]{3,}")
_COMMAND = re.compile(r"\\[A-Za-z]+")


def _is_prose(text: str) -> bool:
    if len(text) < 32 or len(_SIGNAL.findall(text)) > 2 or any(mark in text for mark in "{}$^_"):
        return False
    commands = ("frac", "sqrt", "left", "right", "begin", "end", "sum", "int", "alpha", "beta")
    if any("\\" + name in text for name in commands):
        return False
    return len(_WORD.findall(text)) >= 6 and text.count(" ") >= 5


def _is_weak(text: str) -> bool:
    commands, words = len(_COMMAND.findall(text)), len(_WORD.findall(text))
    marks = sum(letter in "{}$^_=&%#" for letter in text)
    return (
        text in {"\\", "\\\\"}
        or (text.endswith("\\") and not text.endswith("\\\\") and not commands)
        or ("\\" in text and not commands and not marks)
        or (words >= 2 and not commands and marks <= 1)
        or (words >= 4 and commands <= 1 and marks <= 2)
    )


def _is_unsound(text: str) -> bool:
    if len(text) > 8000 or not _braces_balance(text) or not _environments_balance(text):
        return True
    pairs = ((r"\\left\b", r"\\right\b"), (r"\\\(", r"\\\)"), (r"\\\[", r"\\\]"))
    if any(len(re.findall(opening, text)) != len(re.findall(closing, text)) for opening, closing in pairs):
        return True
    return len(re.findall(r"(?<!\\)\$", text)) % 2 != 0


def _braces_balance(text: str) -> bool:
    depth = 0
    for brace in re.findall(r"\\[{}\[\]()]|[{}]", text):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return False
    return depth == 0


def _environments_balance(text: str) -> bool:
    open_ones: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([^{}]+)\}", text):
        if kind == "begin":
            open_ones.append(name)
        elif not open_ones or open_ones.pop() != name:
            return False
    return not open_ones


def without_delimiters(text: str) -> str:
    """Return a formula without the `$$`, `\\[`, `\\(` and `$` around it, however many."""
    text = text.strip()
    changed = True
    while text and changed:
        changed = False
        for left, right in _DELIMITERS:
            if text.startswith(left) and text.endswith(right) and len(text) >= len(left) + len(right):
                text = text[len(left) : len(text) - len(right)].strip()
                changed = True
                break
    return text


def without_tags(text: str) -> str:
    """Return a formula without `\\tag{..}`, `\\notag` and `\\nonumber`."""
    start = 0
    while (found := re.compile(r"\\tag(?![A-Za-z])\s*(?:\*\s*)?\{").search(text, start)) is not None:
        end = _closing(text, found.end())
        text = text[: found.start()] + (text[end:] if end else text[found.start() + 4 :])
        start = found.start()
    return text.replace("\\notag", "").replace("\\nonumber", "")


def _closing(text: str, start: int) -> int:
    """Return where the group that is open at `start` ends, or 0."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if not depth:
            return index + 1
    return 0


_DROPPED = (
    *(f"\\math{name}" for name in ("bf", "rm", "normal", "it", "bb", "cal", "scr", "frak", "sf", "tt")),
    *("\\textbf", "\\text", "\\boldmath", "\\boldsymbol", "\\operatorname", "\\bm", "\\symbfit", "\\mathbfcal"),
    *("\\symbf", "\\scriptscriptstyle", "\\notag", "\\setlength", "\\coloneqq", "\\space", "\\thickspace"),
    *("\\thinspace", "\\medspace", "\\nobreakspace", "\\negmedspace", "\\quad", "\\qquad", "\\enspace"),
    *("\\substackw", " ", "$$", "\\left", "\\right", "\\displaystyle", "\\text"),
)
_GROUPED = ("=", "+", "-", "\\\\", "^", "_", "[", "]", "(", ")")


def normal_formula(text: str) -> str:
    """Return a formula in lower case without fonts, spacing, environments and most braces."""
    text = without_tags(without_delimiters(uncircled(text)))
    inner = re.search(r"\\\[(.+?)(?<!\\)\\\]|\\\((.+?)(?<!\\)\\\)", text)
    if inner:
        text = (inner[1] or inner[2] or "").strip()
    text = _without_phantoms(text)
    text = re.sub(r"(?<!\\)&", "", re.sub(r"\\[!,;:]", "", text))
    for old, new in (("\\mid", "|"), ("\\vert", "|"), (r"\{", ""), (r"\}", ""), ("~", "")):
        text = text.replace(old, new)
    for gone in (r"\\hspace\{.*?\}", r"\\begin\{.*?\}", r"\\end\{.*?\}", r"\\arraycolsep.*?\}", r"\{[lcr| ]+\}"):
        text = re.sub(gone, "", text)
    text = text.strip(".")
    for gone in _DROPPED:
        text = text.replace(gone, "")
    return re.sub(r"\s+", "", _without_groups(text).lower())


def _without_phantoms(text: str) -> str:
    while (start := text.find("\\phantom{")) >= 0:
        end = _closing(text, start + 9)
        if not end:
            return text[:start] + text[start + 8 :]
        text = text[:start] + text[end:]
    return text


def _without_groups(text: str) -> str:
    before = None
    while text != before:
        before = text
        text = re.sub(r"\{([A-Za-z0-9.+\-]+)\}", r"\1", text).replace("{}", "")
        text = re.sub(r"}}+", "}", re.sub(r"\{\{+", "{", text))
        text = re.sub(r"\{([^{}]{1,160})\}", lambda m: m[1] if any(mark in m[1] for mark in _GROUPED) else m[0], text)
    return text


_CELL_COMMANDS = {
    "\\checkmark": "√",
    "\\checked": "√",
    "\\surd": "√",
    "\\times": "×",
    "\\xmark": "×",
    "\\crossmark": "×",
    "\\pm": "±",
    "\\mp": "∓",
    "\\alpha": "α",
    "\\beta": "β",
    "\\gamma": "γ",
    "\\gama": "γ",
    "\\mu": "μ",
    "\\lambda": "λ",
    "\\theta": "θ",
    "\\eta": "η",
    "\\pi": "π",
    "\\rho": "ρ",
    "\\sigma": "σ",
    "\\omega": "ω",
    "\\delta": "δ",
    "\\Delta": "Δ",
    "\\epsilon": "ε",
    "\\varepsilon": "ε",
    "\\phi": "φ",
    "\\varphi": "φ",
    "\\tau": "τ",
    "\\partial": "∂",
    "\\varnothing": "∅",
    "\\emptyset": "∅",
    "\\sim": "～",
}
_CELL_CHARACTERS = (
    dict.fromkeys("✓✔☑✅🗸", "√") | dict.fromkeys("✗✘✕✖☒❌╳⨯", "×") | {"Ø": "∅"} | dict.fromkeys("∼〜", "～")
)
_CELL_ESCAPES = {r"\%": "%", r"\#": "#", r"\&": "&", r"\_": "_"}
_DASHES = frozenset("-–−－—")


def normal_cell(text: str) -> str:
    """Return what stands in a cell: NFKC, symbols unified, the delimiters of a lone formula off."""
    text = _cell_symbols(unicodedata.normalize("NFKC", text).replace("\xa0", " ").replace("\u200b", ""))
    text = _cell_symbols(_without_cell_delimiters(text))
    if text.strip() in _DASHES:
        text = "—"
    return re.sub(r"\s+", " ", text).strip()


def _cell_symbols(text: str) -> str:
    for table in (_CELL_COMMANDS, _CELL_CHARACTERS, _CELL_ESCAPES):
        for old, new in table.items():
            text = text.replace(old, new)
    return text


def _without_cell_delimiters(text: str) -> str:
    text = text.strip()
    changed = True
    while text and changed:
        changed = False
        for left, right in _DELIMITERS:
            if not (text.startswith(left) and text.endswith(right) and len(text) >= len(left) + len(right)):
                continue
            inner = text[len(left) : len(text) - len(right)].strip()
            if inner and len(inner) <= 128 and not any(mark in inner for mark in "<>$"):
                text, changed = inner, True
                break
    return text


_ATTRIBUTES = ("style", "height", "width", "align", "class")


def normal_table(text: str) -> str:
    """Return an HTML table as one document: cells as `td`, no heads and bodies, no looks; empty if it is none."""
    if "<table" not in text.replace(" ", ""):
        return ""
    flat = html.unescape(_normal_dom(text)).replace("\n", "")
    flat = unicodedata.normalize("NFKC", flat).strip()
    inner = "".join(re.findall(r"<table\b[^>]*>(.*)</table>", flat, re.DOTALL | re.IGNORECASE))
    for name in _ATTRIBUTES:
        inner = re.sub(f'( {name}=".*?")', "", inner)
    inner = re.sub(r"\s+", " ", re.sub("</?tbody>", "", inner))
    for name in ("sup", "sub", "span", "div", "p"):
        inner = inner.replace(f"<{name}>", "").replace(f"</{name}>", "")
    inner = inner.replace('<spandata-span-identity="">', "")
    return f'<html><body><table border="1" >{re.sub("<colgroup>.*?</colgroup>", "", inner)}</table></body></html>'


def parsed_html(text: str) -> Any:
    """Return an HTML text as the tree that Python's own parser makes of it, as the originals use it."""
    from bs4 import BeautifulSoup

    return BeautifulSoup(text, "html.parser")


def _normal_dom(text: str) -> str:
    from bs4 import NavigableString

    tree = parsed_html(text)
    for cell in tree.find_all("th"):
        cell.name = "td"
    for name in ("thead", "tbody"):
        for part in tree.find_all(name):
            part.unwrap()
    for formula in tree.find_all("math"):
        formula.replace_with(f"${formula.get('alttext', '')}$")
    for part in tree.find_all("span"):
        part.unwrap()
    tree = parsed_html(str(tree))
    for cell in tree.find_all(["td", "th"]):
        for node in list(cell.descendants):
            if isinstance(node, NavigableString) and (new := normal_cell(str(node))) != str(node):
                node.replace_with(new)
    return str(tree)
