"""A formula in LaTeX in, its tokens in one canonical writing out: what is drawn alike is written alike.

Spacing, sizes of brackets, labels and braces around one token go; fonts, case, signs and scripts stay.
"""

from __future__ import annotations

import re

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
