"""Records with a checksum in them: SQLite checks its log, but nothing in a database page tells of a flipped bit.

A sealed record is the JSON it was with one more field. The seal also covers
the columns that stand beside the record and are not in it: `beside`, a text of them with NUL between.
"""

from __future__ import annotations

from zlib import crc32

MARK = b',"crc":"'
SIZE = len(MARK) + 10


def seal(record: bytes, beside: str = "") -> bytes:
    """Return an encoded object with the checksum of itself and of the columns beside it."""
    body = record[:-1]
    return body + _ending(body, beside)


def is_intact(record: object, beside: str = "") -> bool:
    """Tell whether a record is as it was sealed; one without a seal is not."""
    content = record if type(record) is bytes else _bytes(record)
    return content[-SIZE:] == _ending(content[:-SIZE], beside)


def _ending(body: bytes, beside: str) -> bytes:
    total = crc32(body)
    if beside:
        total = crc32(beside.encode("utf-8", "surrogatepass"), total)
    return b',"crc":"%08x"}' % total


def _bytes(record: object) -> bytes:
    """Return what a column holds; a damaged page may give a value of any type."""
    if isinstance(record, bytes):
        return record
    return record.encode("utf-8", "surrogatepass") if isinstance(record, str) else b""
