"""A JSON file of any size to its array elements, one at a time, in bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec

from ...core.errors import DataError

CHUNK_BYTES = 1 << 20
MAX_ELEMENT_BYTES = 256 << 20
"""One record larger than this is an error, not a reason to eat the machine's memory."""
MAX_RECORD_BYTES = 16 << 20
"""The same for records of predictions, which hold texts and no pictures."""

_STRUCTURE = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]{0,512}+")*+([{}\[\]"])')
"""Skips to a bracket, or to the quote of a string that is long, has escapes or is not yet read to its end."""
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_PLAIN = rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+"
_SHALLOW = re.compile(rb"\{(?:" + _PLAIN + rb"[\[{]" + _PLAIN + rb"[\]}])*+" + _PLAIN + rb"\}")
"""A whole object that holds at most lists and objects of plain values: most records, found in one step."""
_SCALAR_END = re.compile(rb"[,\]}\s]")
_NOT_SPACE = re.compile(rb"[^ \t\r\n]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def iterate_array(path: str | Path, pointer: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield the decoded elements of the array at `pointer` (keys from the top); everything else is skipped.

    A top-level array is `pointer=()`.
    """
    for kind, value in _walk(Path(path), pointer):
        if kind == "element":
            yield value


def iterate_members(path: str | Path, *, nan: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the (key, value) pairs of a file that is one large object; with `nan` also where it holds NaN."""
    return _walk(Path(path), ("\0",), nan=nan)


def read_header(path: str | Path, pointer: tuple[str, ...]) -> dict[str, Any]:
    """Return all of the file except the elements of the array at `pointer`, keyed by dotted path."""
    return {kind: value for kind, value in _walk(Path(path), pointer, keep_elements=False) if kind != "element"}


def iterate_with_header(path: str | Path, pointer: tuple[str, ...], *, nan: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield `("element", value)` for the array and `(dotted key, value)` for what surrounds it, in file order.

    With `nan` the bare words NaN and Infinity, which are no JSON, are numbers.
    """
    return _walk(Path(path), pointer, nan=nan)


def iterate_records(
    path: str | Path, *, max_bytes: int = MAX_RECORD_BYTES, nan: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number from 1, record) of one JSON list of objects, or of JSON objects one after the other, commas or not.

    Raises DataError naming file and record for anything else: text that is not UTF-8, a record without end, and NaN
    unless told that it is a number.
    """
    try:
        with Path(path).open("rb") as stream:
            yield from _RecordScanner(stream, Path(path), max_bytes, nan=nan).records()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def _walk(
    path: Path, pointer: tuple[str, ...], keep_elements: bool = True, *, nan: bool = False
) -> Iterator[tuple[str, Any]]:
    try:
        stream = path.open("rb")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    with stream:
        if stream.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
            stream.seek(0)
        yield from _Scanner(stream, path, keep_elements, nan=nan).walk(pointer, "")


class _Scanner:
    """A cursor over a file in chunks: finds where each value ends without building it."""

    def __init__(
        self, stream: BinaryIO, path: Path, keep_elements: bool = True, limit: int | None = None, *, nan: bool = False
    ) -> None:
        self._stream, self._path, self._keep = stream, path, keep_elements
        self._limit = MAX_ELEMENT_BYTES if limit is None else limit
        self._buffer, self._at, self._dropped = b"", 0, 0
        self._done = False
        self._count = 0
        self._nan = nan

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
            self._fail(f"expected ',' or {closing.decode()!r}, found {found.decode('utf-8', 'replace')!r}")
        self._at += 1
        return found

    def _peek(self) -> bytes:
        return self._peek_or_end() or self._fail("the file ends too early")

    def _peek_or_end(self) -> bytes:
        """Return the next byte that is not white space, none at the end of the file."""
        while True:
            match = _NOT_SPACE.search(self._buffer, self._at)
            if match:
                self._at = match.start()
                return match[0]
            self._at = len(self._buffer)
            if not self._more():
                return b""

    def _more(self) -> bool:
        """Read on, dropping what lies before the cursor."""
        if self._done:
            return False
        chunk = self._stream.read(CHUNK_BYTES)
        if len(self._buffer) - self._at > self._limit:
            self._refuse_length()
        self._dropped += self._at
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0
        self._done = not chunk
        return bool(chunk)

    def _take(self) -> bytes:
        """Return the bytes of the value at the cursor and step behind it."""
        shallow = _SHALLOW.match(self._buffer, self._at)
        if shallow:
            self._at = shallow.end()
            return shallow[0]
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
                    self._fail("a string does not end")
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
                    self._fail("the file ends inside a record")
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
            if not self._nan:
                self._fail(str(error))
        try:
            return json.loads(raw)
        except (ValueError, RecursionError) as error:
            self._fail(str(error))

    def _refuse_length(self) -> NoReturn:
        self._fail(f"one value is larger than {self._limit >> 20} MiB")

    def _fail(self, why: str) -> NoReturn:
        raise DataError(
            f"{self._path}: record {self._count} is not valid JSON: {why}. Is the download complete?"
        ) from None


class _RecordScanner(_Scanner):
    """A cursor over records of other programs: the quick decoder first, the exact one where it refuses."""

    def __init__(self, stream: BinaryIO, path: Path, limit: int, *, nan: bool = False) -> None:
        super().__init__(stream, path, limit=limit, nan=nan)
        self._quick = msgspec.json.Decoder().decode
        self._exact = json.JSONDecoder(parse_constant=float if nan else _refuse_constant)

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the numbered records of either form."""
        self._skip_byte_order_mark()
        opening = self._peek_or_end()
        if opening == b"[":
            yield from self._listed()
        elif opening == b"{":
            while opening:
                yield self._line() or self._record(opening)
                opening = self._peek_or_end()
                if opening == b",":  # a list that somebody wrote without its brackets
                    self._at += 1
                    opening = self._peek_or_end()
        elif opening:
            self._stop(f"starts with {self._sign()}: expected a JSON list of records, or one JSON object a line")
        else:
            self._stop("the file is empty")

    def _skip_byte_order_mark(self) -> None:
        while self._peek_or_end() == _BYTE_ORDER_MARK[:1] and len(self._buffer) - self._at < 3 and self._more():
            pass
        if self._buffer.startswith(_BYTE_ORDER_MARK, self._at):
            self._at += len(_BYTE_ORDER_MARK)

    def _line(self) -> tuple[int, dict[str, Any]] | None:
        """Return the record that ends with its line, as most do: its end need not be found by brackets."""
        end = self._buffer.find(b"\n", self._at)
        if end < 0:
            return None
        try:
            record = self._quick(self._buffer[self._at : end])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        self._at = end
        self._count += 1
        return self._count, record

    def _listed(self) -> Iterator[tuple[int, dict[str, Any]]]:
        self._at += 1
        mark = self._peek_or_end()
        if mark != b"]":
            yield self._record(mark)
            while (mark := self._peek_or_end()) == b",":
                self._at += 1
                yield self._record(self._peek_or_end())
        if mark != b"]":
            found = f"found {self._sign()} where ',' or ']' belongs" if mark else "the file is cut off"
            self._stop(f"after record {self._count}: {found}")
        self._at += 1
        if self._peek_or_end():
            self._stop(f"after record {self._count}: found {self._sign()} after the end of the list")

    def _record(self, opening: bytes) -> tuple[int, dict[str, Any]]:
        self._count += 1
        if opening != b"{":
            found = f"starts with {self._sign()}, it is not a JSON object" if opening else "is cut off"
            self._stop(f"record {self._count} {found}")
        raw = self._take()
        try:
            return self._count, self._quick(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._at -= len(raw)
            record = self._decode_exactly(raw)
            self._at += len(raw)
            return self._count, record

    def _decode_exactly(self, raw: bytes) -> dict[str, Any]:
        """Decode what the quick decoder refuses (a lone surrogate, a number beyond its range), or say what is wrong."""
        record: dict[str, Any]
        try:
            record, _ = self._exact.raw_decode(raw.decode())
        except UnicodeDecodeError as error:
            self._refuse_bytes(error.start)
        except _NotANumberError as error:
            self._stop(f"record {self._count} holds {error}: only finite numbers are allowed")
        except RecursionError:
            self._stop(f"record {self._count} is nested too deeply")
        except ValueError as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error).split(":")[0]
            self._stop(f"record {self._count} is cut off or not valid JSON ({reason})")
        return record

    def _sign(self) -> str:
        """Return the character at the cursor as it is quoted in an error."""
        while len(self._buffer) - self._at < 4 and self._more():
            pass
        sign = self._buffer[self._at : self._at + 4].decode(errors="ignore")[:1]
        if not sign or not self._buffer.startswith(sign.encode(), self._at):
            self._refuse_bytes(0)
        return repr(sign)

    def _refuse_bytes(self, offset: int) -> NoReturn:
        at = self._dropped + self._at + offset
        self._stop(f"record {max(self._count, 1)} is not UTF-8 at byte {at}")

    def _refuse_length(self) -> NoReturn:
        self._stop(f"record {self._count} is longer than {self._limit >> 20} MiB or has no end")

    def _fail(self, why: str) -> NoReturn:
        # The scanner only knows that brackets or quotes do not close: the exact decoder says where it goes wrong.
        self._decode_exactly(self._buffer[self._at :])
        self._stop(f"record {self._count} is cut off or not valid JSON ({why})")

    def _stop(self, message: str) -> NoReturn:
        raise DataError(f"{self._path}: {message}") from None


class _NotANumberError(Exception):
    """NaN or Infinity, which JSON does not have."""


def _refuse_constant(name: str) -> NoReturn:
    raise _NotANumberError(name)
