"""Capitals in formulas, units and figures: H(s), I = ½MR², 5 A, V_A, ∠C are quantities and points, not labels."""

from __future__ import annotations

from .word_lists import LazyPattern

_QUANTITY = LazyPattern(
    r"(?<![A-Za-z])([A-Z])(?:[_^₀-₉⁰¹²³′]|\s?(?:[≈≠<≤≥+×·∩∪∈⊂⊆∝]|=(?!>)|/(?![A-Z](?![A-Za-z]))|\\(?:cap|cup|times|cdot|in|approx)\b)"
    r"|\((?=[\w+-]{1,8}[),])(?=[a-z0-9ωθ+-]|[a-zA-Z_]{1,4}\)\s?[=+-])|['′]?\d)"
    r"|(?:[=+×·∩∪∈∠√^/]|\\(?:cap|cup|angle|times|cdot)|(?<![\w.])\d+(?:\.\d+)?)\s?([A-Z])(?=\s?[=+×·∩∪/^_-]|[\d₀-₉])"
    r"|(?<![A-Za-z])[Pp]r?\(([A-Z])(?=\s?[)|,∩∪])"
    r"|[∠_△Δ]\s?\{?([A-Z])(?![A-Za-z])|[a-z/=]\s?\[([A-Z])\]|\[([A-Z])\](?:[₀-₉⁰¹²³_^/=]|\s?=)"
)
"""A capital that is a quantity where it stands: with an index, an argument or an operator at it."""
_AFTER = LazyPattern(
    r"\s?(?:[≈≠≤≥×·∩∪∈⊂^_]|<(?!\s*/)|=(?!>)|\\(?:cap|cup|times|cdot|in\b|approx))"
    r"|\((?=[a-z0-9_ωθ+-]{1,4}[),])|[₀-₉⁺⁻]"
)
_BEFORE = LazyPattern(
    r"(?:[×·∩∪∈∠△√^_]|(?<![a-z])(?:[a-z]|(?:arc)?(?:cos|sin|tan|cot|sec|csc)h?|log|ln|exp|det|var|cov|max|min)\(|[a-z\d/]\[|(?<![a-z])(?<![a-z]\s)\+|(?<![=-])=|\\(?:cap|cup|angle|times|cdot)"
    r"|(?<![\w.)])[-−]?\d(?:[\d.,]{0,20}\d)?(?:\s?[a-zµ]\b)?|°)\s?\{?\Z"
)
"""What stands after and before a capital that is a quantity or a unit (`= 1.975 A`)."""


_UNIT_BEFORE = LazyPattern(r"\d\}?\s{4,14}\Z")
"""Before a capital in braces of its own (`10^{-19}\\ \\text{C}`, blank where LaTeX stood): it is a unit."""
_CHAIN = LazyPattern(r"(?<![A-Za-z])(?<![Nn]ot )[A-Z](?:\s?(?:→|->)\s?[A-Z](?![A-Za-z])){1,9}(?=[\s\S]{3})")
"""A way from point to point (`A → B → C`); at the end of a reply an arrow leads to what is chosen."""
_PLAIN = frozenset(("", ".", ",", ")", "*", "\n", ":"))
"""What most labels are followed by: no pattern is tried there."""


def quantities(body: str) -> frozenset[str]:
    """Return the capitals that a reply uses as quantities: each may stand for one also where nothing shows it."""
    if "=" not in body and "_" not in body and "(" not in body and body.isascii():
        return frozenset()
    return frozenset(match.group(match.lastindex or 0) for match in _QUANTITY.finditer(body))


def chained(body: str) -> frozenset[int]:
    """Return where the capitals of a way from point to point stand."""
    if "→" not in body and "->" not in body:
        return frozenset()
    return frozenset(at for match in _CHAIN.finditer(body) for at in range(*match.span()))


def leads_on_as_quantity(low: str, end: int) -> bool:
    """Whether what follows a capital makes it a quantity: an operator, an index, an argument."""
    return low[end : end + 1] not in _PLAIN and _AFTER.match(low, end) is not None


def is_quantity(low: str, start: int, end: int) -> bool:
    """Whether the capital at this place is part of a formula or a unit."""
    if _AFTER.match(low, end) is not None or _BEFORE.search(low, max(0, start - 16), start) is not None:
        return True
    return low[end : end + 1] in {"}", " "} and _UNIT_BEFORE.search(low, max(0, start - 16), start) is not None


_SET_OFF = LazyPattern(
    r"(?<!\w)(?:(?:<labels.called>)[:,]?\s|[a-z]\W{0,3}(?:,|or|and)\s)[\s*_(\[\"'`$\\]*\Z"
    r"|(?:→|⇒|->|=>|:|<labels.called_glued>)[\s*_(\[\"'`$\\]*\Z|(?:\*\*|__|[(\[\"'`])\s?\Z|(?:\A|\n)[\s>#*-]*\Z"
)
_LEFT_ALONE = LazyPattern(
    r"[*_)\]\"'`$\\}]*(?:\s*[.,;:!?)\n。，、]|\s*\Z|\s(?:is|or|and|because|since|fits|matches)\b|[^\x00-\x7f])"
)


def spoken_as_label(low: str, start: int, end: int) -> bool:
    """Whether a capital that is a quantity elsewhere is used as a label here: called one, set off, or alone."""
    return _SET_OFF.search(low, max(0, start - 24), start) is not None and _LEFT_ALONE.match(low, end) is not None
