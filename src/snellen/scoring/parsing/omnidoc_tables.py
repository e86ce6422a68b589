"""How OmniDocBench 1.6 writes the cells of a table that no gold table asks for, before it takes them for text."""

from __future__ import annotations

import re

from .omnidoc_text import latex_as_text

_FORMULA = re.compile(r"\\\[.*?\\\]|\\\(.*?\\\)|\$\$.*?\$\$|\$.*?\$", re.DOTALL)
_FONTS = re.compile(r"\\(?:math(?:bf|rm|normal|it|bb|cal|scr|frak|sf|tt)|textbf|textit)")
_PLAIN = {"\\t": "", "\\n": "", "\t": "", "\n": "", "/t": "", "/n": "", " ": ""}
_SIGNS = {"✓": "✔", "√": "✔", "-": "—", "∼": "～", "Ø": "∅"}
_GREEK = {
    "\\checkmark": "✔",
    "\\pm": "±",
    "\\alpha": "α",
    "\\beta": "β",
    "\\gama": "γ",
    "\\gamma": "γ",
    "\\mu": "μ",
    "\\lambda": "λ",
    "\\theta": "θ",
    "\\eta": "η",
    "\\pi": "π",
    "\\rho": "ρ",
    "\\sigma": "σ",
    "\\omega": "ω",
    "\\delta": "δ",
    "∼": "～",
    "-": "—",
    "Ø": "∅",
}


def cell_text(text: str) -> str:
    """Return a cell without blanks, its formulas in characters and some signs unified."""
    parts, end = [], 0
    for found in _FORMULA.finditer(text):
        parts += [_plain(text[end : found.start()]), _formula(found[0])]
        end = found.end()
    return "".join([*parts, _plain(text[end:])])


def _plain(text: str) -> str:
    for old, new in (_PLAIN | _SIGNS).items():
        text = text.replace(old, new)
    return re.sub(r"_{4,}", "____", text)


def _formula(latex: str) -> str:
    latex = latex.strip()
    latex = latex[2:] if latex.startswith(("\\(", "\\[")) else latex
    latex = latex[:-2] if latex.endswith(("\\)", "\\]")) else latex
    latex = _FONTS.sub("", latex.strip("$"))
    for old, new in _GREEK.items():
        latex = latex.replace(old, new)
    return latex_as_text(latex).replace(" ", "").replace("\xa0", "")
