"""JSON that says a key twice: every reader takes the last, and which was meant nobody knows."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ...core.errors import DataError

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
