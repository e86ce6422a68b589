"""Strict `{field}` templates: one pass, so braces in a question stay what they are; an unknown field is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..core.errors import ConfigError, did_you_mean

FIELD = re.compile(r"\{(\w+)\}")


def render(template: str, fields: Mapping[str, str]) -> str:
    """Fill the template. A line that held only fields and is empty once they are filled is dropped."""
    lines = []
    for literal, line in _lines(template):
        filled = FIELD.sub(lambda match: _look_up(match.group(1), fields, template), line) if literal != line else line
        if filled or not line:
            lines.append(filled)
    return "\n".join(lines).strip("\n")


@lru_cache(maxsize=256)
def _lines(template: str) -> tuple[tuple[str, str], ...]:
    return tuple((FIELD.sub("", line), line) for line in template.split("\n"))


def _look_up(name: str, fields: Mapping[str, str], template: str) -> str:
    if name not in fields:
        raise ConfigError(f"prompt template has an unknown field {{{name}}}{did_you_mean(name, fields)}: {template!r}")
    return fields[name]
