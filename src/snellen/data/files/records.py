"""Turns records of other programs (a file, or any iterable) into checked fields; errors name file, record and field."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import msgspec

from ...core.errors import DataError
from .jsonstream import iterate_records

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


class Record:
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

    def first(self, names: Iterable[str]) -> Any:
        """Return the first of these fields that is there and not null, else None."""
        return next((value for name in names if (value := self.fields.get(name)) is not None), None)

    def text(self, name: str) -> str:
        """Return a field that must be text."""
        value = self.get(name)
        return value if isinstance(value, str) else self._refuse(name, "text", value)

    def texts(self, name: str) -> list[str]:
        """Return a field that must be a list of texts, at least one."""
        value = self.get(name)
        return value if value and _are_texts(value) else self._refuse(name, "a list of texts with at least one", value)

    def text_or_texts(self, name: str) -> str | list[str]:
        """Return a field that is text or a list of texts."""
        value = self.get(name)
        return (
            value
            if isinstance(value, str) or _are_texts(value)
            else self._refuse(name, "text or a list of texts", value)
        )

    def whole(self, name: str) -> int:
        """Return a field that must be a whole number."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            self._refuse(name, "a whole number", value)
        return value

    def number_of(self, name: str, largest: float) -> float:
        """Return a field that must be a number, smaller than `largest` in size."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < largest:
            self.fail(f"{name!r} must be a number")
        return float(value)

    def identifier(self, name: str) -> Hashable:
        """Return an id: text or a whole number (1 and "1" are two ids)."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            self._refuse(name, "text or a whole number", value)
        return value

    def _refuse(self, name: str, wanted: str, value: Any) -> NoReturn:
        self.fail(f"{name!r} must be {wanted}, not {kind_of(value)}")


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def kind_of(value: Any) -> str:
    """Name the JSON type of a value."""
    if isinstance(value, list) and value:
        return "a list of other things"
    return "an empty list" if value == [] else _KINDS.get(type(value), type(value).__name__)


def read_records(source: Source, origin: str = "predictions") -> Iterator[Record]:
    """Yield the records of a file, or of any iterable of mappings."""
    if isinstance(source, str | Path):
        for number, record in iterate_records(source):
            yield Record(str(source), number, record)
        return
    for number, fields in enumerate(source, 1):
        if not isinstance(fields, Mapping):
            raise DataError(f"{origin}: record {number} is {kind_of(fields)}, not an object")
        yield Record(origin, number, fields)


def write_lines(path: Path, records: Iterable[Any]) -> int:
    """Write records as JSON Lines, whole or not at all; return how many."""
    part = path.with_name(f".{path.name}.part")
    count = 0
    with part.open("wb") as stream:
        for record in records:
            stream.write(msgspec.json.encode(record) + b"\n")
            count += 1
    part.replace(path)
    return count
