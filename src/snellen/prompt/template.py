"""Strict `{field}` templates: one pass, so braces in a question stay what they are; an unknown field is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..core.errors import ConfigError, did_you_mean

FIELD = re.compile(r"\{(\w+)\}")


def render(template: str, fields: Mapping[str, str]) -> str:
    """Fill the template, without empty lines at its ends. A line that held only fields, now all empty, is dropped."""
    return fill(template, fields).strip("\n")


def fill(template: str, fields: Mapping[str, str]) -> str:
    """Fill the template as `render` does, but leave its ends as they are."""
    lines = []
    for pieces in _lines(template):
        try:
            # Odd pieces are names of fields, even ones stand as they are.
            filled = "".join([fields[piece] if number % 2 else piece for number, piece in enumerate(pieces)])
        except KeyError as error:
            name = error.args[0]
            raise ConfigError(
                f"prompt template has an unknown field {{{name}}}{did_you_mean(name, fields)}: {template!r}"
            ) from None
        if filled or len(pieces) == 1:
            lines.append(filled)
    return "\n".join(lines)


@lru_cache(maxsize=256)
def _lines(template: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(FIELD.split(line)) for line in template.split("\n"))


@lru_cache(maxsize=1024)
def names_field(template: str, *names: str) -> bool:
    """Tell whether the template names one of the fields."""
    return any(f"{{{name}}}" in template for name in names)
