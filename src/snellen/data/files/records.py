"""Turns records of other programs (a file, or any iterable) into checked fields; errors name file, record and field."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import msgspec

from ...core.errors import DataError
from .jsonstream import iterate_records

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")
_PATH = re.compile(r"(?:[^.\[\]]+|\[-?\d+\])(?:\.[^.\[\]]+|\[-?\d+\])*")


def value_at(record: Any, path: str) -> Any:
    """Return what stands at `messages[-1].content` in a record; a column of that very name goes first.

    Several paths, as `a,b`, are joined by `/`. Nothing there is None.
    """
    if isinstance(record, Mapping) and path in record:
        return record[path]
    if "," in path:
        parts = [value_at(record, part.strip()) for part in path.split(",")]
        return "/".join(map(str, parts)) if all(part is not None for part in parts) else None
    return _follow(record, path) if _PATH.fullmatch(path) else None


def _follow(value: Any, path: str) -> Any:
    for name, place in _STEP.findall(path):
        if place:
            inside = isinstance(value, list) and -len(value) <= int(place) < len(value)
            value = value[int(place)] if inside else None
        else:
            value = value.get(name) if isinstance(value, Mapping) else None
    return value


def root_of(path: str) -> str:
    """Return the column that a path begins in."""
    found = _STEP.match(path)
    return found[1] if found and found[1] else path


def paths_among(columns: Collection[str]) -> list[str]:
    """Return those of the names that lead into a column instead of being one's name alone."""
    return [name for name in columns if "," not in name and root_of(name) != name and _PATH.fullmatch(name)]


def with_values_at(row: dict[str, Any], paths: Collection[str], named: Collection[str]) -> dict[str, Any]:
    """Return a row with what stands at the paths as columns of these names.

    A list that they lead into, and that nobody named itself, is no column then: `messages` would be a dialogue.
    """
    found = {path: value for path in paths if path not in row and (value := value_at(row, path)) is not None}
    roots = {root_of(path) for path in found}
    kept = {
        name: value for name, value in row.items() if name not in roots or name in named or not isinstance(value, list)
    }
    return kept | found


LONGEST_LITERAL = 1_000_000
"""Characters of a list that only Python's own parser reads; a longer one is no list of options."""
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_ARRAY = re.compile(r"(?:np\.|numpy\.)?array\((\[.*\])(?:,\s*dtype=[^)]*)?\)", re.DOTALL)
_TOGETHER = re.compile(r"\0\s*\0")
_TEXTS = re.compile(r"\[\s*\0(?:\s+\0)*\s*\]")
_NUMBERS = re.compile(r"\[\s*-?\d[\d.e+-]*(?:\s+-?\d[\d.e+-]*)+\s*\]")


def is_written_list(text: str) -> bool:
    """Tell whether a text looks like a list that a program wrote: it begins and ends as one, and not with a word."""
    bare = text.strip()
    return bare.startswith(("['", '["', "array([", "np.array(["))


def parse_literal(text: str) -> Any:
    """Return the list or mapping a text spells as JSON, Python or NumPy would, or None; nothing is ever evaluated."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    if '"' not in text and "\\" not in text:  # a list of pictures in base64 is too long for Python's parser
        try:
            return msgspec.json.decode(text.replace("'", '"'))
        except (msgspec.DecodeError, RecursionError):
            pass
    return _parse_python(text) if len(text) <= LONGEST_LITERAL else None


def as_list(value: Any) -> Any:
    """Return the list that a text writes; any other value as it is."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        read = parse_literal(value.strip())
        return read if isinstance(read, list) else value
    return value


def is_nothing(value: Any) -> bool:
    """Tell whether a cell, or a member of a list, holds nothing: null, the empty text, or NaN, as pandas writes it."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _parse_python(text: str) -> Any:
    array = _ARRAY.fullmatch(text)
    try:
        value = ast.literal_eval(_with_commas(array[1] if array else text))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)  # a set has another order in every process
    return list(value) if isinstance(value, tuple) else value


def _with_commas(text: str) -> str:
    """Return a list whose items have commas between them; Python would run two texts without one together."""
    bare = _TEXT.sub("\0", text)
    if _NUMBERS.fullmatch(bare):
        return f"[{','.join(text.strip('[]').split())}]"
    if not _TOGETHER.search(bare):
        return text
    return f"[{','.join(_TEXT.findall(text))}]" if _TEXTS.fullmatch(bare) else ""


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
