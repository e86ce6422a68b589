"""A model file to settings: the page-image scripts' form, and FlagEvalMM's JSON for a model behind an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.config import read_config_file
from ..core.errors import ConfigError, not_among
from ..core.secret import Secret

PAGE_SCRIPT_KEYS = {
    "model_name": "model",
    "prompt_template": "prompt_template",
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "timeout": "timeout_s",
    "extra_body": "extra_body",
    "presence_penalty": "presence_penalty",
    "base_url": "base_url",
    "top_p": "top_p",
    "seed": "sampling_seed",
}
"""Key of a model file -> the setting it stands for."""
MODEL_FILE_KEYS = PAGE_SCRIPT_KEYS | {
    "url": "base_url",
    "api_key": "key",
    "num_workers": "max_workers",
    "num_infers": "num_infers",
    "stream": "stream",
    "use_cache": "cache",
    "system_prompt": "system",
    "max_long_side": "max_side",
    "min_short_side": "min_side",
}
"""The same with those of FlagEvalMM's files."""
FILE_ENDINGS = (".json", ".toml")
"""What ends so is a file; anything else may be the name of a ready one (`internvl-3.5`)."""
NO_SETTING = ("backend", "chat_name", "output_dir", "retry_time")
"""Keys of these that say nothing about what is asked: which client, and where it keeps its own files."""


def read_model_file(
    path: Path | None,
    needed: tuple[str, ...] = (),
    known: Mapping[str, str] = MODEL_FILE_KEYS,
    catalogs: Sequence[Path] = (),
) -> dict[str, Any]:
    """Read a model file, or a ready one by its name, into settings.

    `needed` keys must be in it, and a key that means nothing here is refused.
    """
    if path is None:
        return {}
    by_name = not path.exists() and path.suffix not in FILE_ENDINGS and path.parent == Path()
    table = _ready(path.name, catalogs) if by_name else read_config_file(path)
    _check_model_file(table, path, needed, known)
    return _settle({setting: table[key] for key, setting in known.items() if table.get(key) is not None})


def _settle(settings: dict[str, Any]) -> dict[str, Any]:
    """Give the values the form that settings have."""
    if name := settings.pop("model", None):
        settings["model"] = f"openai/{name}"
    if key := settings.pop("key", None):
        settings["key"] = Secret(str(key))
    if system := settings.pop("system", None):
        settings["prompt"] = {"system": system}
    body = settings.pop("extra_body", {})
    if "presence_penalty" in settings:
        body = {**body, "presence_penalty": settings.pop("presence_penalty")}
    if body:
        settings["extra_body"] = body
    return settings


def _ready(name: str, catalogs: Sequence[Path]) -> dict[str, Any]:
    from ..api.listing import ready_config  # most commands name no model file

    return ready_config(name, catalogs)


def _check_model_file(table: Mapping[str, Any], path: Path, needed: tuple[str, ...], known: Mapping[str, str]) -> None:
    for name in needed:
        if table.get(name) is None:
            raise ConfigError(f"{path}: key {name!r} is missing")
    for name in table:
        if name not in known and name not in NO_SETTING:
            raise ConfigError(f"{path}: unknown key {not_among(name, known)}")
    if table.get("url") and table.get("base_url"):
        raise ConfigError(f"{path}: `url` and `base_url` are the same: give one")
