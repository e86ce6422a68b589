"""A model file to settings: the page-image scripts' form, and FlagEvalMM's JSON for a model behind an address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..api.settings import refusal, rows_of
from ..core.config import read_config_file
from ..core.errors import ConfigError, not_among
from ..core.secret import Secret

FILE_ENDINGS = (".json", ".toml")
"""What ends so is a file; anything else may be the name of a ready one (`internvl-3.5`)."""
NO_SETTING = ("backend", "chat_name", "output_dir", "retry_time")
"""Keys of these that say nothing about what is asked: which client, and where it keeps its own files."""


def read_model_file(path: Path | None, command: str, catalogs: Sequence[Path] = ()) -> dict[str, Any]:
    """Read a model file, or a ready one by its name, into settings by their names in the table.

    A key that means nothing here is refused, and so is one of a setting that the command does not honour.
    """
    if path is None:
        return {}
    by_name = not path.exists() and path.suffix not in FILE_ENDINGS and path.parent == Path()
    content = _ready(path.name, catalogs) if by_name else read_config_file(path)
    known = {key: name for name, row in rows_of("run").items() for key in row.file.split()}
    for key in content:
        if key not in known and key not in NO_SETTING:
            raise ConfigError(f"{path}: unknown key {not_among(key, known)}")
    if content.get("url") and content.get("base_url"):
        raise ConfigError(f"{path}: `url` and `base_url` are the same: give one")
    settings = {known[key]: value for key, value in content.items() if key in known and value is not None}
    if others := settings.keys() - rows_of(command).keys():
        name = min(others)
        raise refusal(name, command, f"{path}: {name}")
    if "model" in settings:
        settings["model"] = f"openai/{settings['model']}"
    if "api_key" in settings:
        settings["api_key"] = Secret(str(settings["api_key"]))
    return settings


def _ready(name: str, catalogs: Sequence[Path]) -> dict[str, Any]:
    from ..api.listing import ready_config  # most commands name no model file

    return ready_config(name, catalogs)
