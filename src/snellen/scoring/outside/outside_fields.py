"""Turns the fields of one outside record into typed values; every error names the file, the record and the field."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from ...core.errors import DataError
from .record_file import read_records

Source = str | Path | Iterable[Mapping[str, Any]]

_KINDS = {
    type(None): "null",
    bool: "true/false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


class Row:
    """One record with its number (from 1) and where it came from."""

    __slots__ = ("fields", "number", "origin")

    def __init__(self, origin: str, number: int, fields: Mapping[str, Any]) -> None:
        self.origin, self.number, self.fields = origin, number, fields

    def fail(self, message: str) -> NoReturn:
        """Raise a DataError that names this record."""
        raise DataError(f"{self.origin}: record {self.number}: {message}")

    def get(self, name: str) -> Any:
        """Return a field that must be there."""
        if name not in self.fields:
            self.fail(f"has no field {name!r}")
        return self.fields[name]

    def text(self, name: str) -> str:
        """Return a field that must be text."""
        value = self.get(name)
        if not isinstance(value, str):
            self.fail(f"{name!r} must be text, not {kind_of(value)}")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a field that must be a list of texts, at least one."""
        value = self.get(name)
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            self.fail(f"{name!r} must be a list of texts with at least one, not {kind_of(value)}")
        return value

    def text_or_texts(self, name: str) -> str | list[str]:
        """Return a field that is text or a list of texts."""
        value = self.get(name)
        if not isinstance(value, str) and not (
            isinstance(value, list) and all(isinstance(item, str) for item in value)
        ):
            self.fail(f"{name!r} must be text or a list of texts, not {kind_of(value)}")
        return value

    def whole(self, name: str) -> int:
        """Return a field that must be a whole number."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(f"{name!r} must be a whole number, not {kind_of(value)}")
        return value

    def identifier(self, name: str) -> Hashable:
        """Return an id: text or a whole number (1 and "1" are two ids)."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            self.fail(f"{name!r} must be text or a whole number, not {kind_of(value)}")
        return value

    def options(self) -> list[Any] | None:
        """Return `answer_options` (texts or numbers), or None if there are none."""
        value = self.fields.get("answer_options")
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str | int | float) for item in value):
            self.fail(f"'answer_options' must be a list of texts, not {kind_of(value)}")
        return value


def kind_of(value: Any) -> str:
    """Name the JSON type of a value."""
    if isinstance(value, list) and value:
        return "a list of other things"
    return "an empty list" if value == [] else _KINDS.get(type(value), type(value).__name__)


def read_rows(source: Source, origin: str = "predictions") -> Iterator[Row]:
    """Yield the records of a file, or of any iterable of mappings, as Rows."""
    if isinstance(source, str | Path):
        for number, record in read_records(source):
            yield Row(str(source), number, record)
        return
    for number, fields in enumerate(source, 1):
        if not isinstance(fields, Mapping):
            raise DataError(f"{origin}: record {number} is {kind_of(fields)}, not an object")
        yield Row(origin, number, fields)
