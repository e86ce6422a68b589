"""A file of predictions of any format as records: lists, lines, objects by id, lists within objects, columns by id."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from ...core.errors import DataError, UsageError
from ..files.jsonstream import iterate_members, iterate_records
from ..files.row_paths import root_of
from ..files.rows import READERS, read_rows

Record = dict[str, Any]
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
PICKLES = (".pkl", ".pickle")
REPLIES = ("response", "prediction", "reply", "output", "model_output", "generated_text", "text")
"""What a column of replies is called where nobody says."""
IDS = ("id", "index", "question_id", "sample_id", "sample", "pid", "idx")
_PEEKED = 4096
_LONGEST_LINE = 64 << 20
Path_ = tuple[str | int, ...]


class ForeignSource:
    """A path with what its first bytes and its first record say; `columns` are the user's (`--map response=PATH`)."""

    def __init__(self, path: Path, columns: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.columns = dict(columns or {})
        self.ending = path.suffix.lower()
        if self.ending in PICKLES:
            raise UsageError(
                f"{path} is a pickle, and reading one runs what it holds: write the predictions anew as "
                "PRED_FORMAT=json or tsv (VLMEvalKit falls back to pickles when a reply is too long for Excel)"
            )
        if not path.exists():
            raise DataError(f"predictions {str(path)!r} do not exist")

    @cached_property
    def opening(self) -> str:
        """Return the first character that is no space: `[` a list, `{` an object or lines of them."""
        with self.path.open("rb") as stream:
            start = stream.read(_PEEKED).removeprefix(b"\xef\xbb\xbf").lstrip()
        return start[:1].decode("latin-1")

    @cached_property
    def is_object(self) -> bool:
        """Tell whether the file is one large JSON object rather than records, one a line or one after the other."""
        if self.ending not in JSON_ENDINGS or self.path.is_dir() or self.opening != "{":
            return False
        with self.path.open("rb") as stream:
            line = stream.readline(_LONGEST_LINE).removeprefix(b"\xef\xbb\xbf").strip()
            more = bool(stream.read(_PEEKED).strip())
        try:
            json.loads(line.removesuffix(b","))
        except (ValueError, RecursionError):
            return line == b"{" or self.ending == ".json"
        return self.ending == ".json" and not more

    @cached_property
    def first(self) -> Record:
        """Return the first record, or an empty one where the file holds none that could be told."""
        if self.path.is_dir() or self.ending not in (*JSON_ENDINGS, *READERS):
            return {}
        number_and_record = next(self._rest, None)
        if number_and_record is None and self.is_object:
            return {}
        if number_and_record is None:
            raise DataError(f"{self.path} holds no rows")
        self._taken.append(number_and_record)
        return number_and_record[1]

    @cached_property
    def first_key(self) -> str:
        """Return the first key of one large object, or the empty text."""
        return next((key for key, _ in iterate_members(self.path, nan=True)), "") if self.is_object else ""

    def shown_columns(self, most: int) -> list[str]:
        """Return columns of the file, for a message: of its first record, or of its first innermost object."""
        found: Any = self.first
        if not found and self.is_object:
            found = self._whole()
            while inner := next((item for item in _below(found) if isinstance(item, dict | list) and item), None):
                found = inner
        return list(map(str, found))[:most] if isinstance(found, dict) else []

    def records(self) -> Iterator[tuple[int, Record]]:
        """Yield (number from 1, record), the first one too; once."""
        _ = self.first
        return chain(self._taken, self._rest)

    @cached_property
    def _taken(self) -> list[tuple[int, Record]]:
        return []

    @cached_property
    def _rest(self) -> Iterator[tuple[int, Record]]:
        if self.is_object:
            return enumerate(records_in(self._whole(), self.columns.get("response", "")), 1)
        if self.ending in JSON_ENDINGS:
            return iterate_records(self.path, nan=True)
        return read_rows(self.path)

    def _whole(self) -> Record:
        try:
            whole: Record = json.loads(self.path.read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path} is not valid JSON: {error}") from None
        return whole


def records_in(whole: Record, response: str = "") -> Iterator[Record]:
    """Yield the records of one large object, wherever in it they stand; `response` is the path of the replies, if told.

    `{id: record}`, `{id: reply}`, `{"val": [record, …]}`, `{video: {aspect: [record, …]}}`, or columns by id
    (`{"outputs": {id: reply}, "results": {…}}`). A record without an id gets its place as one.
    """
    names = (root_of(response),) if response else REPLIES
    column = next((name for name in names if isinstance(whole.get(name), dict)), None)
    if column is not None:
        tables = {name: values for name, values in whole.items() if isinstance(values, dict)}
        for key in whole[column]:
            yield {"id": key} | {name: values[key] for name, values in tables.items() if key in values}
    elif _is_record(whole, names):
        yield whole
    elif whole and all(isinstance(value, str | None) for value in whole.values()):
        yield from ({"id": key, REPLIES[0]: text} for key, text in whole.items())
    else:
        for place, record in _walk(whole, names, ()):
            yield _named(record, place)


def _below(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _is_record(value: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return any(name in value for name in names)


def _walk(value: Any, names: tuple[str, ...], place: Path_) -> Iterator[tuple[Path_, Record]]:
    """Yield every record below a value; what has no reply and nothing below it is no record (`args`, `acc`)."""
    if isinstance(value, dict) and place and _is_record(value, names):
        yield place, value
    elif isinstance(value, dict | list):
        children = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in children:
            yield from _walk(child, names, (*place, key))


def _named(record: Record, place: Path_) -> Record:
    """Return a record with what its place says: its id, the part of the file it stands in, and whose part that is."""
    keys = [key for key in place[: len(place) - isinstance(place[-1], str)] if isinstance(key, str)]
    told: Record = {} if any(name in record for name in IDS) else {"id": "/".join(map(str, place))}
    told |= {"part": keys[-1]} if keys else {}
    told |= {"group": keys[0]} if len(keys) > 1 else {}
    return {**told, **record}
