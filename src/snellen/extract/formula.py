"""Capitals in formulas, units and figures: H(s), I = ½MR², 5 A, V_A, ∠C are quantities and points, not labels."""

from __future__ import annotations

import re

from .word_lists import LazyPattern

_QUANTITY = LazyPattern(
    r"(?<![A-Za-z])([A-Z])(?:[_^₀-₉⁰¹²³′]|\s?(?:[≈≠<≤≥+×·∩∪∈⊂⊆∝]|=(?!>)|/(?![A-Z](?![A-Za-z]))|\\(?:cap|cup|times|cdot|in|approx)\b)"
    r"|\((?=[\w+-]{1,8}[),])(?=[a-z0-9ωθ+-])|['′]?\d)"
    r"|(?:[=+×·∩∪∈∠√^/]|\\(?:cap|cup|angle|times|cdot)|(?<![\w.])\d+(?:\.\d+)?)\s?([A-Z])(?=\s?[=+×·∩∪/^_-]|[\d₀-₉])"
    r"|[∠_△Δ]\s?\{?([A-Z])(?![A-Za-z])"
)
"""A capital that is a quantity where it stands: with an index, an argument or an operator at it."""
_AFTER = LazyPattern(r"\s?(?:[≈≠<≤≥×·∩∪∈⊂^_]|=(?!>)|\\(?:cap|cup|times|cdot|in\b|approx))|\((?=[a-z0-9ωθ+-]{1,4}[),])|[₀-₉]")
_BEFORE = LazyPattern(
    r"(?:[×·∩∪∈∠△√^_+]|(?<![=-])=\s?-?[\d.]{0,12}|\\(?:cap|cup|angle|times|cdot)|(?<![\w.)])[-−]?\d[\d.,]*(?:\s?[a-zµ]\b)?|°)\s?\{?\Z"
)
"""What stands after and before a capital that is a quantity or a unit (`= 1.975 A`)."""


def quantities(body: str) -> frozenset[str]:
    """Return the capitals that a reply uses as quantities: each may stand for one also where nothing shows it."""
    if "=" not in body and "_" not in body and "(" not in body and body.isascii():
        return frozenset()
    return frozenset(match.group(match.lastindex or 0) for match in _QUANTITY.finditer(body))


def is_quantity(low: str, start: int, end: int) -> bool:
    """Whether the capital at this place is part of a formula or a unit."""
    return _AFTER.match(low, end) is not None or _BEFORE.search(low, max(0, start - 16), start) is not None


def spoken_as_label(body: str, match: re.Match[str]) -> bool:
    """Whether a capital that is a quantity elsewhere is used as a label here: called one, set off, or alone."""
    start, end = match.span(1)
    return _SET_OFF.search(body, max(0, start - 24), start) is not None and _LEFT_ALONE.match(body, end) is not None


_SET_OFF = LazyPattern(
    r"(?:(?:option|choice|answer|letter|select|choose|pick|correct|选项|选|答案|正解|So|so|Thus|thus|Hence|hence|Therefore|therefore"
    r"|is|be|it's|fits|matches|leaves|leaving|is not|not|only)[:,]?\s|→|⇒|->|=>|因此|所以|よって)[\s*_(\[\"'`$\\]*\Z|(?:\*\*|__|[(\[\"'`])\s?\Z|(?:\A|\n)[\s>#*-]*\Z"
)
_LEFT_ALONE = LazyPattern(r"[*_)\]\"'`$\\}]*(?:\s*[.,;:!?)\n。，、]|\s*\Z|\s(?:is|because|since|as|fits|matches)\b|[^\x00-\x7f])")
