"""Strict `{field}` templates: one pass, so braces in a question stay what they are; an unknown field is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.config import convert, read_config_file
from ..core.errors import ConfigError, did_you_mean
from ..core.tasks import Prompt, Task

Pack = Mapping[str, dict[str, Any]]
"""Task name, prompt name or `*` -> fields of Prompt that it replaces."""


def read_pack(path: str | Path) -> Pack:
    """Read a pack (TOML or JSON): tables of Prompt fields by task name, prompt name or `*`."""
    table = read_config_file(path)
    for name, fields in table.items():
        if not isinstance(fields, dict):
            raise ConfigError(f"{path}: {name!r} must be a table of prompt fields")
        convert(fields, Prompt, f"{path}: {name}")
    return table


def apply_pack(prompt: Prompt, task: Task, pack: Pack) -> Prompt:
    """Return the prompt with the pack's fields over it, the widest first: `*`, the prompt's name, the task's name."""
    names = ("*", task.prompt if isinstance(task.prompt, str) else "", task.name)
    fields = {key: value for name in names for key, value in pack.get(name, {}).items()}
    if not fields:
        return prompt
    return convert({**msgspec.to_builtins(prompt), **fields}, Prompt, f"prompt pack for {task.name!r}")


FIELD = re.compile(r"\{(\w+)\}")


def render(template: str, fields: Mapping[str, str]) -> str:
    """Fill the template, without empty lines at its ends. A line that held only fields, now all empty, is dropped."""
    return fill(template, fields).strip("\n")


def fill(template: str, fields: Mapping[str, str]) -> str:
    """Fill the template as `render` does, but leave its ends as they are."""
    try:
        return "\n".join([filled for line in _lines(template) if (filled := line.form % fields) or line.is_fixed])
    except KeyError as error:
        name = error.args[0]
        raise ConfigError(
            f"prompt template has an unknown field {{{name}}}{did_you_mean(name, fields)}: {template!r}"
        ) from None


class _Line(NamedTuple):
    form: str
    """As `%` takes it: filled without a step of Python for each field."""
    is_fixed: bool


@lru_cache(maxsize=256)
def _lines(template: str) -> tuple[_Line, ...]:
    lines = template.split("\n")
    return tuple([_Line(FIELD.sub(r"%(\1)s", line.replace("%", "%%")), FIELD.search(line) is None) for line in lines])


@lru_cache(maxsize=256)
def fields_of(template: str) -> frozenset[str]:
    """Return the names of the fields of a template."""
    return frozenset(FIELD.findall(template))
