"""An Extraction to one sentence in words: which rule decided, and why. The sentences stand in catalog/reading."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Final

from .choice import RULES
from .extraction import Extraction

_SEVERAL: Final = {
    "structured": ("boxed", "tag", "json"),
    "other_box": ("boxed",),
    "of_marks": ("in_words",),
    "cue": ("cue", "cue_text", "self_correction", "affirmed"),
    "first_line": ("first_line", "leading", "self_correction"),
    "refusal": ("refusal", "undecidable", "affirmed"),
}
"""Rules of the table that sign with other names than their own."""
RULE_NAMES: Final = ("thinking", *dict.fromkeys(name for rule, _ in RULES for name in _SEVERAL.get(rule, (rule,))))
"""Every name that an Extraction may carry, in the order of the table."""
_LONGEST = 60


@cache
def _sentences() -> dict[str, dict[str, str]]:
    return tomllib.loads((files("snellen") / "catalog" / "reading" / "rules.toml").read_text("utf-8"))


def why(found: Extraction, reply: str) -> str:
    """Return one sentence that says why the rule of `found` decided as it did."""
    verdict = found.reason or "picks"
    sentences = _sentences()
    for group in (found.rule, "reasons") if found.rule in sentences else ("profile",):
        if verdict in sentences[group]:
            return sentences[group][verdict].format(part=_part(found, reply), letter=found.letter)
    return f"The rule {found.rule} read no option: {found.reason}."


def _part(found: Extraction, reply: str) -> str:
    """Return what decided, quoted and on one line."""
    if found.span is None:
        return "nothing in particular"
    part = " ".join(reply[found.span[0] : found.span[1]].split())
    return f"“{part if len(part) <= _LONGEST else part[: _LONGEST - 1] + '…'}”"
