"""The config border: TOML, JSON and `key=value` in, typed records out, errors by name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .errors import ConfigError, did_you_mean

T = TypeVar("T")
TOML_LIMIT = 2**20
LONG_KEY = re.compile(r"(?<![\w\-\"'])(?:[\w\-\"']+[ \t]*\.[ \t]*){40}")
"""Looked for only where a word begins: from every letter on it would take time by the square of a long one."""


def read_config_file(path: str | Path) -> dict[str, Any]:
    """Read a TOML or JSON file (by its ending) into a dict."""
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    try:
        value = msgspec.json.decode(data) if file.suffix == ".json" else parse_toml(data.decode("utf-8"))
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} is not valid {'JSON' if file.suffix == '.json' else 'TOML'}: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{file} must hold a table, not a {type(value).__name__}")
    return value


@cache
def read_shipped(name: str) -> dict[str, Any]:
    """Return a table of the catalog that comes with the package, such as `servers/errors.toml`; nobody changes it."""
    return tomllib.loads((files("snellen") / "catalog" / name).read_text("utf-8"))


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML of a bounded size; a key of a thousand dots takes memory by the square of them and is refused."""
    if len(text) > TOML_LIMIT:
        raise tomllib.TOMLDecodeError(f"it is longer than {TOML_LIMIT:,} characters")
    if LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError("a key has more than 40 parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # a number or a date that Python refuses
        raise tomllib.TOMLDecodeError(str(error)) from None


def convert(value: Any, kind: type[T], where: str) -> T:
    """Check `value` against the record type `kind`; the error names `where`, the field and a near name."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_explain(str(error), kind)}") from None


def parse_assignment(text: str) -> tuple[str, Any]:
    """Parse `key=value`; the value is read as TOML (numbers, lists, true) and else taken as text."""
    key, equals, raw = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{text!r} is not key=value")
    try:
        value = parse_toml(f"value = {raw}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        value = raw
    return key.strip(), value


def set_by_path(table: dict[str, Any], dotted: str, value: Any) -> None:
    """Set `a.b.c` in nested tables, making tables on the way."""
    *parents, last = dotted.split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{dotted!r}: {parent!r} is not a table")
    table[last] = value


def dotted_names(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield every name in nested tables as `a.b.c`, those of the tables too."""
    for name, value in table.items():
        yield name
        if isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in dotted_names(value))


def _explain(message: str, kind: type[Any]) -> str:
    unknown = re.search(r"unknown field `([^`]+)`", message)
    if not unknown:
        return message
    known = [field.encode_name for field in msgspec.structs.fields(kind)] if hasattr(kind, "__struct_fields__") else []
    return f"unknown key {unknown.group(1)!r}{did_you_mean(unknown.group(1), known)}"
