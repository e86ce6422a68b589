"""A file in, a timeline out: our own form, guidellm's or vLLM's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import ConfigError
from .imports import import_foreign
from .timeline import Timeline, timeline_from_dict


def read_timeline(path: Path) -> Timeline:
    """Read a timeline: our own form (one object, or one request a line), guidellm or vLLM `bench serve` JSON."""
    data = read_json(path)
    if isinstance(data, list):
        data = {"requests": data}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: a timeline is an object with `requests`, not a {type(data).__name__}")
    foreign = import_foreign(data, str(path))
    return foreign if foreign is not None else timeline_from_dict(data, str(path))


def read_json(path: Path) -> Any:
    """Read JSON or JSON lines."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        first_error = error
    try:
        return msgspec.json.Decoder().decode_lines(raw)
    except msgspec.DecodeError:
        raise ConfigError(f"{path} is neither JSON nor JSON lines: {first_error}") from None
