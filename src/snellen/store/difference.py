"""What differs: two configurations in one line, and rows of now beside the rows a run has stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from ..core.tasks import RunHeader
from ..core.types import Sample
from ..data.dataset import fingerprint_of, without_places

SHOWN = 5
VALUE_LIMIT = 60


def describe_difference(old: Any, new: Any) -> str:
    """Return `a.b was 1, now 2; …`, the first few differences."""
    changes = list(_walk("", old, new))
    lines = [f"{path} was {_short(was)}, now {_short(now)}" for path, was, now in changes[:SHOWN]]
    more = f"; and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    return "; ".join(lines) + more


def _walk(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _walk(f"{path}.{key}" if path else str(key), old.get(key), new.get(key))
    elif old != new:
        yield path, old, new


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= VALUE_LIMIT else text[: VALUE_LIMIT - 1] + "…"


SHOWN_ROWS = 3

Data = Mapping[str, Iterable[Sample]]
"""The rows of now, by task; each can be read again."""
Asked = Callable[[str], Iterable[bytes]]
"""Task -> its stored samples, as they are encoded."""


def rows_appended(stored: RunHeader, header: RunHeader, data: Data, task: str) -> str:
    """Return `8 → 10 rows` if the first rows are those the stored run was planned with, else nothing."""
    before, now = _row_count(stored, task), _row_count(header, task)
    if task not in data or not 0 < before < now:
        return ""
    known = stored.config["tasks"][task].get("data")
    return f"{before} → {now} rows" if fingerprint_of(islice(data[task], before)) == known else ""


def _row_count(header: RunHeader, task: str) -> int:
    config = header.config["tasks"][task]
    trials_a_row: int = config["repeats"] * len(config["variants"])
    return header.planned.get(task, 0) // trials_a_row


def describe_rows_changed(asked: Asked, stored: RunHeader, header: RunHeader, data: Data) -> str:
    """Return which asked rows of tasks whose data differs are other rows now, or are gone; nothing if none is."""
    before, now = stored.config.get("tasks") or {}, header.config.get("tasks") or {}
    differ = [task for task in data if task in before and before[task].get("data") != now[task].get("data")]
    changes = [change for task in differ for change in islice(_changes(asked(task), data[task]), SHOWN_ROWS + 1)]
    more = "; and more" if len(changes) > SHOWN_ROWS else ""
    return "; ".join(changes[:SHOWN_ROWS]) + more


def _changes(stored: Iterable[bytes], samples: Iterable[Sample]) -> Iterator[str]:
    asked = {old.id: old for old in (msgspec.json.decode(body, type=Sample) for body in stored)}
    for sample in samples:
        old = asked.pop(sample.id, None)
        pair = [] if old is None else [msgspec.to_builtins(_bare(one)) for one in (old, sample)]
        if pair and pair[0] != pair[1]:
            yield f"row {sample.id!r}: {describe_difference(*pair)}"
    if asked:
        gone = "1 row that was asked is" if len(asked) == 1 else f"{len(asked)} rows that were asked are"
        yield f"{gone} gone ({', '.join(map(repr, islice(asked, SHOWN_ROWS)))})"


def _bare(sample: Sample) -> Sample:
    """Return a sample without where its pictures lie and without its form as a tag, which only mixed files have."""
    tags = {key: value for key, value in sample.tags.items() if key != "form"}
    names = tuple([image.ref.rpartition("/")[2] for image in sample.images])
    bare = without_places(sample)
    return msgspec.structs.replace(bare, tags=tags, meta={**bare.meta, "pictures": names} if names else bare.meta)
