"""Turns a file of predictions (one JSON list, or one JSON object a line) into records, one at a time, in bounded memory.

Such a list is often one line of many gigabytes, so the file is never read whole: a window moves over it, and every
record is decoded as soon as it is complete. Every error names the file and the record, counted from 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

from ...core.errors import DataError

CHUNK_BYTES = 1 << 20
MAX_RECORD_CHARS = 16 << 20
"""No record of predictions is this long; a file without an end of record is refused here instead of filling the memory."""

Record = dict[str, Any]
_SPACE = re.compile(r"[ \t\r\n]*")


def read_records(path: str | Path, *, max_record_chars: int = MAX_RECORD_CHARS) -> Iterator[tuple[int, Record]]:
    """Yield (number from 1, record). Raises DataError for anything that is not a list or lines of JSON objects."""
    file = Path(path)
    try:
        with file.open("rb") as source:
            yield from _Window(source, file, max_record_chars).records()
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None


class _Window:
    """The part of the file in memory, and how far it has been decoded."""

    def __init__(self, source: IO[bytes], path: Path, max_record_chars: int) -> None:
        self._source, self._path, self._limit = source, path, max_record_chars
        self._parser = json.JSONDecoder(parse_constant=_refuse_constant)
        self._text, self._at, self._number = "", 0, 0
        self._rest, self._bytes, self._ended, self._broken = b"", 0, False, False

    def records(self) -> Iterator[tuple[int, Record]]:
        """Yield the records of either form."""
        first = self._peek().removeprefix("\ufeff") or self._peek_after_mark()
        if not first:
            self._fail("the file is empty")
        if first == "[":
            yield from self._list()
        elif first == "{":
            yield from self._lines()
        else:
            self._fail(f"starts with {first!r}: expected a JSON list of records, or one JSON object a line")

    def _peek_after_mark(self) -> str:
        self._at += self._text.startswith("\ufeff", self._at)
        return self._peek()

    def _list(self) -> Iterator[tuple[int, Record]]:
        self._at += 1
        if self._peek() == "]":
            self._at += 1
        else:
            yield self._record()
            while (mark := self._take()) == ",":
                yield self._record()
            if mark != "]":
                self._fail(
                    f"after record {self._number}: "
                    + (f"found {mark!r} where ',' or ']' belongs" if mark else "the file is cut off")
                )
        if rest := self._peek():
            self._fail(f"after record {self._number}: found {rest!r} after the end of the list")

    def _lines(self) -> Iterator[tuple[int, Record]]:
        while self._peek():
            yield self._record()

    def _record(self) -> tuple[int, Record]:
        self._number += 1
        first = self._peek()
        if first != "{":
            self._fail(
                f"record {self._number} "
                + (f"starts with {first!r}, it is not a JSON object" if first else "is cut off")
            )
        while True:
            try:
                value, end = self._parser.raw_decode(self._text, self._at)
            except _NotANumberError as error:
                self._fail(f"record {self._number} holds {error}: only finite numbers are allowed")
            except RecursionError:
                self._fail(f"record {self._number} is nested too deeply")
            except ValueError as error:
                self._grow_or_fail(error)
            else:
                self._at = end
                return self._number, value

    def _grow_or_fail(self, error: ValueError) -> None:
        """A record that cannot be decoded may only be incomplete: get more of it, as long as there is more."""
        if self._ended:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error).split(":")[0]
            self._fail(f"record {self._number} is cut off or not valid JSON ({reason})")
        if len(self._text) - self._at > self._limit:
            self._fail(f"record {self._number} is longer than {self._limit >> 20} MiB or has no end")
        self._read(max(CHUNK_BYTES, len(self._text) - self._at))

    def _peek(self) -> str:
        """Return the next character that is not white space, or nothing at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read(CHUNK_BYTES)

    def _take(self) -> str:
        character = self._peek()
        self._at += len(character)
        return character

    def _read(self, size: int) -> None:
        """Add `size` bytes. A byte that is not UTF-8 is reported only when the records before it have been read."""
        if self._broken:
            self._fail(f"record {max(self._number, 1)} is not UTF-8 at byte {self._bytes}")
        data = self._source.read(size)
        self._ended = not data
        self._rest += data
        try:
            good = len(self._rest)
            self._rest.decode()
        except UnicodeDecodeError as error:
            good = error.start
            self._broken = self._ended or error.reason != "unexpected end of data"
        self._text, self._at = self._text[self._at :] + self._rest[:good].decode(), 0
        self._rest, self._bytes = self._rest[good:], self._bytes + good
        self._ended = self._ended and not self._broken

    def _fail(self, message: str) -> NoReturn:
        raise DataError(f"{self._path}: {message}")


class _NotANumberError(Exception):
    """NaN or Infinity, which JSON does not have."""


def _refuse_constant(name: str) -> NoReturn:
    raise _NotANumberError(name)
