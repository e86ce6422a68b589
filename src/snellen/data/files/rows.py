"""Files to rows by their ending, read lazily, each row with its number for error messages; JSON is read here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError, MissingExtra, UsageError, did_you_mean
from .delimited import SAVE_AS, open_lines, read_delimited
from .sheets import read_sheet
from .webdataset import read_webdataset

BATCH_LIMIT = 64 * 2**20
"""So many bytes of a Parquet file are unpacked at once; no cell is larger."""
BOMB_RATIO = 1000
"""What is packed better than this is no data."""
ROWS_AT_ONCE = 256
IPC_FILE = b"ARROW1"
"""How an Arrow file (and a Feather file of version 2) begins; one without it is a stream."""
FEATHER_1 = b"FEA1"
HUB_FACTS = b"huggingface"
"""Where the schema of a hub's table says what its columns are."""


def read_parquet(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) of a Parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("parquet", f"reading {file.name}") from None
    try:
        content = pyarrow.parquet.ParquetFile(file)
        batches = content.iter_batches(batch_size=_rows_at_once(content.metadata, file))
        rows = (row for batch in batches for row in _bounded(batch, file).to_pylist())
        yield from enumerate(_labelled(_dated(rows, content.schema_arrow), content.schema_arrow.metadata), 1)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file.name} is not valid Parquet: {error}") from None


def read_arrow(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) of an Arrow file or stream, as `datasets` and `feather` write them."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise MissingExtra("parquet", f"reading {file.name}") from None
    try:
        with pyarrow.memory_map(str(file)) as source:
            yield from enumerate(_rows_of(_batches(pyarrow.ipc, source, file), file), 1)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file.name} is not a valid Arrow file: {error}") from None


def _rows_of(batches: Iterator[Any], file: Path) -> Iterator[dict[str, Any]]:
    for batch in batches:
        rows = (row for piece in _pieces(batch) for row in _bounded(piece, file).to_pylist())
        yield from _labelled(_dated(rows, batch.schema), batch.schema.metadata)


def _dated(rows: Iterator[dict[str, Any]], schema: Any) -> Iterator[dict[str, Any]]:
    """Return rows with days and times as texts: a day that a table keeps as its first moment is a day."""
    columns = [field.name for field in schema if str(field.type).startswith(("timestamp", "date", "time"))]
    return (row | {column: _moment(row[column]) for column in columns} for row in rows) if columns else rows


def _moment(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    return value.isoformat() if isinstance(value, date | time) else value


def _labelled(rows: Iterator[dict[str, Any]], metadata: Mapping[bytes, bytes] | None) -> Iterator[dict[str, Any]]:
    """Yield rows with the names of class labels: hubs store their numbers, and the names beside the table."""
    names = _class_names(metadata or {})
    for row in rows:
        for column, labels in names.items():
            number = row.get(column)
            if isinstance(number, int):
                row[column] = labels[number] if 0 <= number < len(labels) else None  # -1: kept back
        yield row


def _class_names(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    try:
        features = msgspec.json.decode(metadata[HUB_FACTS])["info"]["features"]
        labels = {name: kind for name, kind in features.items() if kind.get("_type") == "ClassLabel"}
        return {name: list(kind["names"]) for name, kind in labels.items()}
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return {}


def _batches(ipc: Any, source: Any, file: Path) -> Iterator[Any]:
    with file.open("rb") as stream:
        head = stream.read(len(IPC_FILE))
    if head.startswith(FEATHER_1):
        raise DataError(f"{file.name} is a Feather file of version 1: write it again as version 2, or as Parquet")
    if head != IPC_FILE:
        yield from ipc.open_stream(source)
        return
    reader = ipc.open_file(source)
    yield from map(reader.get_batch, range(reader.num_record_batches))


def _pieces(batch: Any) -> Iterator[Any]:
    """Yield a batch in pieces that are small as Python objects too."""
    a_row = max(1, batch.nbytes // max(1, batch.num_rows))
    size = max(1, min(ROWS_AT_ONCE, BATCH_LIMIT // a_row))
    yield from (batch.slice(start, size) for start in range(0, batch.num_rows, size))


def _rows_at_once(facts: Any, file: Path) -> int:
    """Return how many rows may be read together; refuse a file that says of itself that it is a bomb."""
    widest = 1
    for number in range(facts.num_row_groups):
        group = facts.row_group(number)
        columns = [group.column(place) for place in range(group.num_columns)]
        for column in columns:
            size, packed = column.total_uncompressed_size, max(1, column.total_compressed_size)
            if size > BATCH_LIMIT and (size > BOMB_RATIO * packed or size > BATCH_LIMIT * max(1, column.num_values)):
                raise DataError(
                    f"{file.name}: column {column.path_in_schema!r} unpacks from {packed:,} to {size:,} bytes"
                )
        widest = max(widest, sum(column.total_uncompressed_size for column in columns) // max(1, group.num_rows))
    return max(1, min(ROWS_AT_ONCE, BATCH_LIMIT // widest))


def _bounded(batch: Any, file: Path) -> Any:
    """Return a batch unless it is far larger than the file said: values that stand once and are meant many times."""
    if batch.nbytes > 4 * BATCH_LIMIT:
        raise DataError(f"{file.name}: {batch.num_rows} rows unpack to {batch.nbytes:,} bytes")
    return batch


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
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise unknown_ending(path)
    if sheet and reader is not read_sheet:
        raise UsageError(f"--sheet {sheet}: {file.name} is no workbook")
    return read_sheet(file, sheet) if sheet else reader(file)


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
READERS: dict[str, Callable[[Path], Iterator[NumberedRow]]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": partial(read_delimited, delimiter=","),
    ".tsv": partial(read_delimited, delimiter="\t"),
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".tar": read_webdataset,
    ".xlsx": read_sheet,
}
