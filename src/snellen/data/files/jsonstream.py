"""A JSON file of any size to its array elements, one at a time, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ...core.errors import DataError

CHUNK_BYTES = 1 << 20
MAX_ELEMENT_BYTES = 256 << 20
"""One record larger than this is an error, not a reason to eat the machine's memory."""

_STRUCTURE = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]{0,512}+")*+([{}\[\]"])')
"""Skips to a bracket, or to the quote of a string that is long, has escapes or is not yet read to its end."""
_SCALAR_END = re.compile(rb"[,\]}\s]")
_SPACE = b" \t\r\n"


def iterate_array(path: str | Path, pointer: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield the decoded elements of the array at `pointer` (keys from the top); everything else is skipped.

    A top-level array is `pointer=()`.
    """
    for kind, value in _walk(Path(path), pointer):
        if kind == "element":
            yield value


def iterate_members(path: str | Path) -> Iterator[tuple[str, Any]]:
    """Yield the (key, value) pairs of a file that is one large object."""
    return _walk(Path(path), ("\0",))


def read_header(path: str | Path, pointer: tuple[str, ...]) -> dict[str, Any]:
    """Return all of the file except the elements of the array at `pointer`, keyed by dotted path."""
    return {kind: value for kind, value in _walk(Path(path), pointer, keep_elements=False) if kind != "element"}


def iterate_with_header(path: str | Path, pointer: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield `("element", value)` for the array and `(dotted key, value)` for what surrounds it, in file order."""
    return _walk(Path(path), pointer)


def _walk(path: Path, pointer: tuple[str, ...], keep_elements: bool = True) -> Iterator[tuple[str, Any]]:
    try:
        stream = path.open("rb")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    with stream:
        yield from _Scanner(stream, path, keep_elements).walk(pointer, "")


class _Scanner:
    """A cursor over a file in chunks: finds where each value ends without building it."""

    def __init__(self, stream: BinaryIO, path: Path, keep_elements: bool) -> None:
        self._stream = stream
        self._path = path
        self._keep = keep_elements
        self._buffer = b""
        self._at = 0
        self._done = False
        self._count = 0

    def walk(self, pointer: tuple[str, ...], where: str) -> Iterator[tuple[str, Any]]:
        """Yield the elements at `pointer` and what surrounds them."""
        opening = self._peek()
        if opening == b"[" and not pointer:
            yield from self._elements()
        elif opening == b"{" and pointer:
            yield from self._members(pointer, where)
        else:
            yield (where.rstrip(".") or "element"), self._decode(self._take())

    def _elements(self) -> Iterator[tuple[str, Any]]:
        self._at += 1
        if self._peek() == b"]":
            self._at += 1
            return
        while True:
            raw = self._take()
            self._count += 1
            if self._keep:
                yield "element", self._decode(raw)
            if self._delimiter(b"]") == b"]":
                return

    def _members(self, pointer: tuple[str, ...], where: str) -> Iterator[tuple[str, Any]]:
        self._at += 1
        if self._peek() == b"}":
            self._at += 1
            return
        while True:
            key = self._decode(self._take())
            self._delimiter(b":")
            if key == pointer[0]:
                yield from self.walk(pointer[1:], f"{where}{key}.")
            else:
                yield f"{where}{key}", self._decode(self._take())
            if self._delimiter(b"}") == b"}":
                return

    def _delimiter(self, closing: bytes) -> bytes:
        found = self._peek()
        if found not in (b",", closing) or (closing == b":" and found != b":"):
            raise self._broken(f"expected ',' or {closing.decode()!r}, found {found.decode('utf-8', 'replace')!r}")
        self._at += 1
        return found

    def _peek(self) -> bytes:
        while True:
            while self._at < len(self._buffer):
                byte = self._buffer[self._at : self._at + 1]
                if byte not in _SPACE:
                    return byte
                self._at += 1
            if not self._more():
                raise self._broken("the file ends too early")

    def _more(self) -> bool:
        """Read on, dropping what lies before the cursor."""
        if self._done:
            return False
        chunk = self._stream.read(CHUNK_BYTES)
        if len(self._buffer) - self._at > MAX_ELEMENT_BYTES:
            raise self._broken(f"one value is larger than {MAX_ELEMENT_BYTES >> 20} MiB")
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0
        self._done = not chunk
        return bool(chunk)

    def _take(self) -> bytes:
        """Return the bytes of the value at the cursor and step behind it."""
        first = self._peek()
        if first == b'"':
            length = self._string_length(0)
        else:
            length = self._nested_length() if first in b"{[" else self._scalar_length()
        raw = self._buffer[self._at : self._at + length]
        self._at += length
        return raw

    def _scalar_length(self) -> int:
        while True:
            found = _SCALAR_END.search(self._buffer, self._at)
            if found:
                return found.start() - self._at
            if not self._more():
                return len(self._buffer) - self._at

    def _string_length(self, start: int) -> int:
        """Length from the cursor to behind the string whose quote stands `start` bytes after the cursor."""
        look = start + 1
        while True:
            end = self._buffer.find(b'"', self._at + look)
            if end < 0:
                look = len(self._buffer) - self._at
                look -= self._backslashes(self._at + look)
                if not self._more():
                    raise self._broken("a string does not end")
            elif self._backslashes(end) % 2:
                look = end + 1 - self._at
            else:
                return end + 1 - self._at

    def _backslashes(self, end: int) -> int:
        start = end
        while start > self._at and self._buffer[start - 1] == 0x5C:
            start -= 1
        return end - start

    def _nested_length(self) -> int:
        depth, offset = 0, 0
        while True:
            found = _STRUCTURE.match(self._buffer, self._at + offset)
            if not found:
                if not self._more():
                    raise self._broken("the file ends inside a record")
                continue
            sign, offset = found[1], found.end() - self._at
            if sign == b'"':
                offset = self._string_length(offset - 1)
                continue
            depth += 1 if sign in b"{[" else -1
            if not depth:
                return offset

    def _decode(self, raw: bytes) -> Any:
        try:
            return msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._broken(str(error)) from None

    def _broken(self, why: str) -> DataError:
        return DataError(f"{self._path}: record {self._count} is not valid JSON: {why}. Is the download complete?")
