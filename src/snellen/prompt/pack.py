"""A pack file to prompts: another set of wordings for named prompts or tasks, kept outside the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..core.config import convert, read_config_file
from ..core.errors import ConfigError
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
