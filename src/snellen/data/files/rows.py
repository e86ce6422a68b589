"""Files to rows by their ending, read lazily, each row with its number for error messages; JSON is read here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError, UsageError, did_you_mean
from ...core.registry import Target, resolve_target
from .delimited import SAVE_AS, open_lines, read_delimited

LOOKED_AT_BYTES = 16 * 2**20
"""Of a longer text it is not found out: it would be read a second time, by a reader that takes three times as long."""


class _TwiceError(Exception):
    """A key stands twice in one object."""


def is_plain(line: bytes, keys: int) -> bool:
    """Tell whether a line ends no more keys than its object has, so that none stands twice: most are known by that."""
    return line.count(b'":') == keys and b'" :' not in line and b'"\t:' not in line


def refuse_twice(text: bytes, where: str) -> None:
    """Refuse a text in which an object says a key twice, at whatever depth; the text has been read before."""
    if len(text) > LOOKED_AT_BYTES:
        return
    try:
        json.loads(text, object_pairs_hook=_once)
    except _TwiceError as twice:
        fix = "the last one would count: rename or remove one of them"
        raise DataError(f"{where} has the key {twice.args[0]!r} twice in one object; {fix}") from None
    except (ValueError, RecursionError):
        return  # of another grammar than the one that took it


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _TwiceError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return made


Row = dict[str, Any]
NumberedRow = tuple[int, Row]

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_rows(path: str | Path, sheet: str = "") -> Iterator[NumberedRow]:
    """Yield (row number from 1, row) of a data file; the format follows its ending. Of a workbook, of one sheet."""
    file = Path(path)
    if file.is_dir():
        raise DataError(
            f"{str(path)!r} is a folder; name the table in it that has the questions ({', '.join(READERS)})"
        )
    if not file.is_file():
        beside = [one.name for one in file.parent.glob("*") if one.suffix.lower() in READERS]
        fix = did_you_mean(file.name, beside) or (f"; there are {', '.join(sorted(beside)[:5])}" if beside else "")
        known = fix or "; a benchmark is named without an ending: `snellen tasks` lists them"
        raise DataError(f"data file {str(path)!r} does not exist{known}")
    ending = file.suffix.lower()
    if ending not in READERS:
        raise unknown_ending(path)
    if sheet and ending != WORKBOOK:
        raise UsageError(f"--sheet {sheet}: {file.name} is no workbook")
    read: Callable[..., Iterator[NumberedRow]] = resolve_target(READERS[ending])
    return read(file, sheet) if sheet else read(file)


def unknown_ending(path: str | Path) -> UsageError:
    """Return the refusal of a file that nothing reads."""
    ending = Path(path).suffix
    fix = "unpack it; " if ending.lower() in PACKED else ""
    if ending == ".py":
        fix = "a task file of FlagEvalMM or AISBench becomes one of ours by `snellen migrate`; "
    return UsageError(f"data file {str(path)!r}: unknown ending {ending!r}; {fix}known: {', '.join(READERS)}")


def _read_jsonl(file: Path) -> Iterator[NumberedRow]:
    decode = msgspec.json.Decoder().decode
    with open_lines(file) as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = decode(line)
            except NOT_JSON:
                yield from _read_odd_line(line, file, number)
            else:
                if type(row) is not dict:
                    row = _row(row, file, number)
                if not is_plain(line, len(row)):
                    refuse_twice(line, f"{file.name} line {number}")
                yield number, row


def _read_odd_line(line: bytes, file: Path, number: int) -> Iterator[NumberedRow]:
    """Yield the row of a line that begins with a byte order mark, none of a blank line, and refuse any other."""
    text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
    if not text:
        return
    try:
        row = _decode_odd(text)
    except NOT_JSON as error:
        hint = " (one object over several lines? name it .json)" if number == 1 and text[:1] in b"{[" else ""
        hint = f" (UTF-16 without its mark? {SAVE_AS})" if b"\0" in text[:4] else hint
        raise DataError(f"{file.name} line {number} is not valid JSON: {error}{hint}") from None
    refuse_twice(text, f"{file.name} line {number}")
    yield number, _row(row, file, number)


def _decode_odd(data: bytes) -> Any:
    """Return what JSON says, also where Python wrote NaN into it: an empty cell of pandas."""
    try:
        return msgspec.json.decode(data)
    except NOT_JSON:
        if b"NaN" not in data:
            raise
    try:
        return json.loads(data)
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from None


def _read_json(file: Path) -> Iterator[NumberedRow]:
    text = b""
    try:
        with open_lines(file) as lines:
            text = b"".join(lines).removeprefix(b"\xef\xbb\xbf")
            value = _decode_odd(text)
    except NOT_JSON as error:
        if _has_lines(text):  # authors name such files .json too
            yield from _read_jsonl(file)
            return
        raise DataError(f"{file.name} is not valid JSON: {error} (one object a line? name it .jsonl)") from None
    refuse_twice(text, file.name)
    if isinstance(value, dict):
        value = value["data"] if isinstance(value.get("data"), list) else _keyed(value) or _only_list(value, file)
    if not isinstance(value, list):
        raise DataError(f'{file.name} must hold a list of records, {{"data": […]}}, or an object of records by id')
    for number, row in enumerate(value, 1):
        yield number, _row(row, file, number)


def _has_lines(text: bytes) -> bool:
    """Tell whether a text is one object a line: the first line is one, and there are others."""
    first, _, rest = text.strip().partition(b"\n")
    try:
        return bool(rest) and isinstance(_decode_odd(first), dict)
    except NOT_JSON:
        return False


def _keyed(value: dict[str, Any]) -> list[Row] | None:
    """Return the records of an object of objects, each with its key as `id` if it has none; None of any other."""
    if not value or not all(isinstance(record, dict) for record in value.values()):
        return None
    return [record if "id" in record else {"id": key, **record} for key, record in value.items()]


def _only_list(value: dict[str, Any], file: Path) -> list[Any] | None:
    """Return the one list of records that an object holds beside what is said of them (`info`, `license`)."""
    lists = {key: one for key, one in value.items() if isinstance(one, list) and one and isinstance(one[0], dict)}
    if len(lists) > 1:
        fix = "join them into one list of rows, each with its question, its answer and its picture"
        raise DataError(f"{file.name} holds several lists of records ({', '.join(lists)}); {fix}")
    return next(iter(lists.values()), None)


def _row(value: Any, file: Path, number: int) -> Row:
    if not isinstance(value, dict):
        meant = "each must be an object with named fields" if file.suffix == ".json" else "a whole list? name it .json"
        fix = f" ({meant})" if isinstance(value, list) else ""
        raise DataError(f"{file.name} record {number} is a {type(value).__name__}, not an object{fix}")
    return value


PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst", ".7z", ".tgz")
WORKBOOK = ".xlsx"
_HERE = "snellen.data.files"
READERS: Mapping[str, Target] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": partial(read_delimited, delimiter=","),
    ".tsv": partial(read_delimited, delimiter="\t"),
    ".parquet": f"{_HERE}.arrow_tables:read_parquet",
    ".arrow": f"{_HERE}.arrow_tables:read_arrow",
    ".feather": f"{_HERE}.arrow_tables:read_arrow",
    ".tar": f"{_HERE}.webdataset:read_webdataset",
    WORKBOOK: f"{_HERE}.sheets:read_sheet",
}
"""Ending -> what reads such a file; what few files need is named, and imported when one comes."""
