"""Two formulas in, how many of their glyphs stand in the same places out (CDM, Wang et al. 2024). Needs pdflatex.

Every token gets a colour of its own, the formula is set and drawn, and the colours say where each token stands. Tokens
of both are paired by what and where they are; pairs that do not move together, or are different tokens, do not count.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from functools import cache, lru_cache
from itertools import combinations, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import EnvironmentProblem, MissingExtra
from .pairing import assign

DPI = 200
TIMEOUT_S = 60
MOST_TOKENS = 1300
RESIDUAL = 30.0
TRIALS = 500
ROUNDS = 5
_DOCUMENT = r"""\documentclass[12pt]{article}
\usepackage[landscape]{geometry}
\geometry{a5paper,scale=0.98}
\pagestyle{empty}
\usepackage{amsmath}
\usepackage{amssymb}
\usepackage{xcolor}
\begin{document}
\begin{displaymath}
%s
\end{displaymath}
\end{document}
"""
_TOKEN = re.compile(r"\\(?:begin|end)\s*\{[A-Za-z]+\*?\}(?:\s*\{[lcr|]+\})?|\\[A-Za-z]+|\\.|\S", re.S)
_FORBIDDEN = re.compile(
    r"\\(?:input|include|openin|openout|read|write|immediate|csname|catcode|loop|special|def|let)(?![A-Za-z])"
)
_NAMES = frozenset("\\" + name for name in ("log", "exp", "sin", "cos", "tan", "tanh", "cosh", "sinh"))
INFIX = "\\over "
"""A fraction that was written with `\\over`: drawn as one, but another token."""
_TWO = frozenset({"\\frac", INFIX, "\\binom"})
_DRAWN_AS = {INFIX: "\\frac", "\\tag": "("}
"""Tokens that are drawn as others: of a tag in a formula on its own, the bracket."""
_LEAST_GROUP = 2
_ONE = frozenset(
    {"\\sqrt", "\\overline", "\\underline", "\\hat", "\\widehat", "\\tilde", "\\widetilde", "\\dot", "\\ddot", "\\bar"}
    | {"\\vec", "\\check", "\\breve", "\\mathring", "\\underbrace", "\\overbrace"}
)
_WRAPPERS = frozenset(
    {
        "\\mathrm",
        "\\mathbf",
        "\\mathbb",
        "\\mathcal",
        "\\mathfrak",
        "\\mathit",
        "\\boldsymbol",
        "\\pmb",
        "\\operatorname",
    }
    | {"\\text", "\\textbf", "\\textit", "\\textrm", "\\mathop", "\\mathbin", "\\overset", "\\underset", "\\stackrel"}
)
_UNSEEN = frozenset(
    {
        "{",
        "}",
        "^",
        "_",
        "&",
        "\\\\",
        "\\left",
        "\\right",
        "\\displaystyle",
        "\\scriptstyle",
        "\\quad",
        "\\qquad",
        "\\limits",
    }
    | {"\\,", "\\!", "\\;", "\\:", "\\ ", "~", "\\nolimits", "\\middle", "\\nonumber", "\\notag"}
)
_SAME = {
    **dict.fromkeys(("\\dot", "\\cdot", "\\cdotp", "\\ldotp"), "."),
    **dict.fromkeys(("\\mid", "\\vert", "\\lvert", "\\rvert"), "|"),
    **dict.fromkeys(("\\Vert", "\\lVert", "\\rVert", "\\parallel"), "\\|"),
    **{"\\rightarrow": "\\to", "\\top": "T", "\\prime": "'", "\\ast": "*", "\\colon": ":", "\\neg": "\\lnot"},
    **{"\\lbrace": "\\{", "\\rbrace": "\\}", "\\lbrack": "[", "\\rbrack": "]", "\\slash": "/"},
    **{"\\leq": "\\le", "\\geq": "\\ge", "\\neq": "\\not=", "\\dag": "\\dagger", "\\ddag": "\\ddagger"},
}
"""Tokens that count as the same, though it is worth a little to be written alike too."""


class Glyphs(NamedTuple):
    """The tokens of a drawn formula with their boxes, and the size of the picture."""

    tokens: list[str]
    boxes: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    size: tuple[int, int]


class Cdm(NamedTuple):
    """How many tokens of the gold formula were found, by both."""

    f1: float
    recall: float
    precision: float


def missing_reason() -> str | None:
    """Return why formulas cannot be compared by drawing on this machine, or None if they can."""
    try:
        check()
    except EnvironmentProblem as problem:
        return str(problem)
    return None


@cache
def check() -> None:
    """Raise EnvironmentProblem where pdflatex is missing, or draws a formula unlike itself."""
    if shutil.which("pdflatex") is None:
        raise EnvironmentProblem(
            "CDM draws formulas by pdflatex, and there is none: apt install texlive-latex-recommended"
        )
    probe = draw(r"\alpha + \frac{1}{2}")
    if len(probe.tokens) != 5:
        raise EnvironmentProblem("CDM is refused: this LaTeX does not draw a known formula as it should")


def cdm(reply: str, gold: str) -> Cdm:
    """Return F1, recall and precision of the tokens of two formulas. Raises EnvironmentProblem; see `check`."""
    check()
    wanted, found = draw(_bare(gold)), draw(_bare(reply))
    right = _matched(wanted, found)
    counts = len(wanted.tokens), len(found.tokens)
    if not counts[0]:
        raise EnvironmentProblem(f"not scored: LaTeX draws nothing of the gold formula {gold[:60]!r}")
    f1 = 2 * right / sum(counts)
    return Cdm(round(f1, 3), round(right / counts[0], 3), round(right / counts[1], 3) if counts[1] else 0.0)


def _bare(latex: str) -> str:
    text = latex.strip().strip("$").strip()
    for left, right in (("\\[", "\\]"), ("\\(", "\\)")):
        if text.startswith(left) and text.endswith(right):
            text = text[2:-2].strip()
    return text


def coloured(latex: str) -> tuple[str, list[str]]:
    """Return a formula with a colour for every token that is seen, and these tokens."""
    parts = _with_braces(_split(latex))
    seen: list[str] = []
    written = []
    for place, part in enumerate(parts):
        if _is_unseen(part) or _closes(parts, place):
            written.append(part)
            continue
        colour = _colour(len(seen))
        seen.append(part)
        head = f"\\color[RGB]{{{colour[0]},{colour[1]},{colour[2]}}}"
        drawn = _DRAWN_AS.get(part, part)
        written.append(f"{{{head}{drawn}" if part in _TWO | _ONE else f"{{{head}{drawn}}}")
    return _closed(parts, written), seen


def _split(latex: str) -> list[str]:
    parts: list[str] = []
    for part in _TOKEN.findall(re.sub(r"\\operatorname\s*\*", r"\\operatorname", latex)):
        if part in _NAMES:
            parts += ["\\mathrm", "{", *part[1:], "}"]
        elif part in ("\\ldots", "\\cdots", "\\dots"):
            parts += [".", ".", "."]
        elif part in ("\\dfrac", "\\tfrac"):
            parts.append("\\frac")
        elif part == "'":
            parts += ["^", "{", "\\prime", "}"]
        else:
            parts.append(part)
    return _infix(parts)


def _infix(parts: list[str]) -> list[str]:
    """Write `{a \\over b}` as a fraction that keeps its own name."""
    while "\\over" in parts:
        at = parts.index("\\over")
        depth, start, end = 0, at - 1, at + 1
        while start >= 0 and depth >= 0:
            depth += {"}": 1, "{": -1}.get(parts[start], 0)
            start -= 1
        start = start + 1 if depth < 0 else -1
        _, end = _argument(["{", *parts[at + 1 :]], 0)
        body = [INFIX, "{", *parts[start + 1 : at], "}", "{", *parts[at + 1 : at + end - 1], "}"]
        parts = parts[: max(start, 0)] + body + parts[at + end :]
    return parts


def _is_unseen(part: str) -> bool:
    return part in _UNSEEN or part in _WRAPPERS or part.startswith(("\\begin", "\\end"))


def _closes(parts: list[str], place: int) -> bool:
    """Return whether a token stands where LaTeX wants a delimiter: that one cannot be coloured alone."""
    return place > 0 and parts[place - 1] in ("\\left", "\\right", "\\middle") and parts[place] == "."


def _with_braces(parts: list[str]) -> list[str]:
    """Return the tokens with braces around every argument and script, scripts below before those above."""
    done: list[str] = []
    index = 0
    while index < len(parts):
        part = parts[index]
        arguments = 2 if part in _TWO or part in ("\\overset", "\\underset", "\\stackrel") else 0
        arguments = 1 if part in _ONE or part in _WRAPPERS - {"\\overset", "\\underset", "\\stackrel"} else arguments
        if part in ("^", "_"):
            scripts, index = _scripts(parts, index)
            done += scripts
            continue
        if part not in ("\\left", "\\right"):  # a delimiter is drawn as it is: it cannot be coloured after these
            done.append(part)
        index += 1
        for _ in range(arguments):
            argument, index = _argument(parts, index)
            done += ["{", *_with_braces(argument), "}"]
    return done


def _scripts(parts: list[str], index: int) -> tuple[list[str], int]:
    found: dict[str, list[str]] = {}
    while index < len(parts) and parts[index] in ("^", "_") and parts[index] not in found:
        mark = parts[index]
        argument, index = _argument(parts, index + 1)
        found[mark] = ["{", *_with_braces(argument), "}"]
    return [part for mark in ("_", "^") if mark in found for part in (mark, *found[mark])], index


def _argument(parts: list[str], index: int) -> tuple[list[str], int]:
    if index >= len(parts):
        return [], index
    if parts[index] != "{":
        return [parts[index]], index + 1
    depth = 0
    for end in range(index, len(parts)):
        depth += {"{": 1, "}": -1}.get(parts[end], 0)
        if not depth:
            return parts[index + 1 : end], end + 1
    return parts[index + 1 :], len(parts)


def _closed(parts: list[str], written: list[str]) -> str:
    """Return the text, the group of a coloured fraction or root closed behind its last argument."""
    text = list(written)
    for place, part in enumerate(parts):
        if part in _TWO | _ONE:
            end = place + 1
            for _ in range(2 if part in _TWO else 1):
                _, end = _argument(parts, end)
            text[end - 1] += "}"
    return " ".join(text)


def _colour(number: int) -> tuple[int, int, int]:
    place = number + 1
    return place // 324 * 15, place % 324 // 18 * 15, place % 18 * 15


@lru_cache(maxsize=512)
def draw(latex: str) -> Glyphs:
    """Return the tokens of a formula with their boxes; none where LaTeX cannot set it."""
    nothing = Glyphs([], np.zeros((0, 4)), (1, 1))
    if not latex or _FORBIDDEN.search(latex):
        return nothing
    text, tokens = coloured(latex.replace("\n", " "))
    if not tokens or len(tokens) > MOST_TOKENS:
        return nothing
    pixels = _picture(text)
    if pixels is None:
        return nothing
    codes = pixels[:, :, 0].astype(int) << 16 | pixels[:, :, 1].astype(int) << 8 | pixels[:, :, 2]
    rows, columns = np.nonzero(codes != 0xFFFFFF)
    if not rows.size:
        return nothing
    top, left = rows.min(), columns.min()
    kept, boxes = [], []
    for number, token in enumerate(tokens):
        red, green, blue = _colour(number)
        y, x = np.nonzero(codes == (red << 16 | green << 8 | blue))
        if y.size:
            kept.append(token)
            boxes.append((x.min() - left, y.min() - top, x.max() - left, y.max() - top))
    size = int(columns.max() - left) + 17, int(rows.max() - top) + 17
    return Glyphs(kept, np.array(boxes, dtype=float).reshape(-1, 4), size)


def _picture(text: str) -> np.ndarray[Any, Any] | None:
    try:
        import pypdfium2
    except ImportError as error:
        raise MissingExtra("pdf", "formulas compared by drawing (CDM)") from error
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "formula.tex").write_text(_DOCUMENT % text, "utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-no-shell-escape", "formula.tex"]
        limits = os.environ | {"openin_any": "p", "openout_any": "p", "TEXMFVAR": folder}
        try:
            subprocess.run(  # noqa: S603
                command, cwd=folder, env=limits, capture_output=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        made = Path(folder, "formula.pdf")
        if not made.is_file():
            return None
        with pypdfium2.PdfDocument(made.read_bytes()) as document:
            page = document[0].render(scale=DPI / 72, no_smoothtext=True, no_smoothpath=True, rev_byteorder=True)
            return np.array(page.to_numpy())[:, :, :3]


def _matched(gold: Glyphs, reply: Glyphs) -> int:
    if not gold.tokens or not reply.tokens:
        return 0
    kinds = _token_costs(gold.tokens, reply.tokens)
    places = [side.boxes / np.array([*side.size, *side.size]) for side in (gold, reply)]
    apart = np.abs(places[0][:, None, :] - places[1][None, :, :]).mean(axis=2)
    longer = max(len(gold.tokens), len(reply.tokens))
    order = np.abs(np.arange(len(gold.tokens))[:, None] - np.arange(len(reply.tokens))[None, :]) / longer
    pairs = assign(kinds + 0.05 * apart + 0.15 * order)
    rows, columns = (np.array(side) for side in zip(*pairs, strict=True))
    moved = _together(_centres(gold.boxes[rows]), _centres(reply.boxes[columns]))
    return int((moved & (kinds[rows, columns] < 1)).sum())


def _token_costs(gold: list[str], reply: list[str]) -> np.ndarray[Any, Any]:
    same = np.array([[one == other for other in reply] for one in gold])
    alike = np.array([[_plain(one) == _plain(other) for other in reply] for one in gold])
    return np.where(same, 0.0, np.where(alike, 0.005, 1.0))


def _plain(token: str) -> str:
    name = _SAME.get(token, token)
    for prefix in ("\\wide", "\\var"):
        name = "\\" + name.removeprefix(prefix) if name.startswith(prefix) else name
    return name


def _centres(boxes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.stack([(boxes[:, 1] + boxes[:, 3]) / 2, (boxes[:, 0] + boxes[:, 2]) / 2], axis=1)


def _together(source: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return which pairs move and grow together with others: in groups, the largest first."""
    found = np.zeros(len(source), dtype=bool)
    if len(source) <= _LEAST_GROUP:
        return ~found
    for _ in range(ROUNDS):
        left = np.flatnonzero(~found)
        if len(left) <= _LEAST_GROUP:
            break
        inliers = _largest_group(source[left], target[left])
        if not inliers.any():
            break
        found[left[inliers]] = True
    return found


def _largest_group(source: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    best = np.zeros(len(source), dtype=bool)
    every = list(islice(combinations(range(len(source)), _LEAST_GROUP), 20_000))
    for some in every[:: max(1, len(every) // TRIALS)]:
        chosen = list(some)
        centres = source[chosen].mean(axis=0), target[chosen].mean(axis=0)
        spread = [
            np.linalg.norm(side[chosen] - centre, axis=1).mean()
            for side, centre in zip((source, target), centres, strict=True)
        ]
        scale = spread[1] / (spread[0] + 1e-10)
        middle = source.mean(axis=0)
        moved = scale * (source - middle) + middle + centres[1] - centres[0]
        inliers = np.sqrt(((moved - target) ** 2).sum(axis=1)) < RESIDUAL
        if inliers.sum() > best.sum():
            best = inliers
    return best
