"""Strict `{field}` templates: one pass, so braces in a question stay what they are; an unknown field is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..core.errors import ConfigError, did_you_mean

FIELD = re.compile(r"\{(\w+)\}")

Line = tuple[bool, tuple[str, ...]]
"""Whether it has fields, and its pieces: literal, field, literal, field, … literal."""


def render(template: str, fields: Mapping[str, str]) -> str:
    """Fill the template. A line that held only fields and is empty once they are filled is dropped."""
    lines = []
    for has_fields, pieces in _lines(template):
        filled = _fill(pieces, fields, template) if has_fields else pieces[0]
        if filled or not has_fields and not pieces[0]:
            lines.append(filled)
    return lines[0] if len(lines) == 1 else "\n".join(lines).strip("\n")


def names_field(template: str, *names: str) -> bool:
    """Tell whether the template names one of the fields."""
    return any(f"{{{name}}}" in template for name in names)


@lru_cache(maxsize=1024)
def _lines(template: str) -> tuple[Line, ...]:
    split = (tuple(FIELD.split(line)) for line in template.split("\n"))
    return tuple((len(pieces) > 1, pieces) for pieces in split)


def _fill(pieces: tuple[str, ...], fields: Mapping[str, str], template: str) -> str:
    out = list(pieces)
    for place in range(1, len(out), 2):
        name = out[place]
        if name not in fields:
            raise ConfigError(f"prompt template has an unknown field {{{name}}}{did_you_mean(name, fields)}: {template!r}")
        out[place] = fields[name]
    return "".join(out)
