"""What a stored run was asked beside what is asked now: whether that is only more of it, and what differs, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from ..core.tasks import RunHeader
from ..core.types import Sample
from ..data.dataset import fingerprint_of, without_places

GROWING = ("repeats", "variants", "data")
"""Fields of a task of which more may be asked."""
CODE = frozenset({"code", "loaded", "file"})
"""What stands in a configuration for the files of plug-ins."""
SHOWN = 5
VALUE_LIMIT = 60
SHOWN_ROWS = 3

Data = Mapping[str, Iterable[Sample]]
"""The rows of now, by task; each can be read again."""
Asked = Callable[[str], Iterable[bytes]]
"""Task -> its stored samples, as they are encoded."""
Appended = Callable[[str], str]
"""A task's name to what was appended to its data, in words: `8 → 10 rows`; nothing if its first rows differ."""


def growth(stored: Mapping[str, Any], wanted: Mapping[str, Any], appended: Appended = lambda _: "") -> list[str]:
    """Return in words what is asked beyond the stored configuration, or nothing if more than that differs.

    What was asked stays valid: a trial hangs on its own sample, variant and repeat, never on how many others there are.
    """
    before, after = stored.get("tasks"), wanted.get("tasks")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping) or before.keys() != after.keys():
        return []
    limits = stored.get("limit"), wanted.get("limit")
    without = {"tasks": None, "limit": None}  # a limit only says how many rows there are: the rows are compared
    if {**stored, **without} != {**wanted, **without}:
        return []
    grown: list[str] = []
    for name in before:
        words = _of_task(name, before[name], after[name], appended)
        if words is None:
            return []
        grown += [f"{name}: {word}" for word in words]
    return grown or ([f"limit {limits[0]} → {limits[1]}"] if limits[0] != limits[1] else [])


def _of_task(name: str, before: Mapping[str, Any], after: Mapping[str, Any], appended: Appended) -> list[str] | None:
    """Return what one task asks more, nothing if it asks the same, None if it is another task."""
    if "variants" not in after or "variants" not in before:  # predictions made elsewhere: nothing is asked
        return None
    rest = [{key: value for key, value in task.items() if key not in GROWING} for task in (before, after)]
    if rest[0] != rest[1] or not _keeps_trials(before, after):
        return None
    trials = _more_trials(before, after)
    if before.get("data") == after.get("data"):
        return trials
    rows = "" if _shows_own_rows(after) else appended(name)
    return [rows, *trials] if rows else None


def _keeps_trials(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Tell whether every inference and variant that was asked is still asked, and asked the same."""
    fewer = after["repeats"] < before["repeats"] or not set(before["variants"]) <= set(after["variants"])
    shared = bool((after.get("infer_options") or {}).get("majority"))  # then a round hangs on all others' answers
    return not fewer and not (shared and _more_trials(before, after))


def _more_trials(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    words = []
    if after["repeats"] > before["repeats"]:
        words.append(f"{before['repeats']} → {after['repeats']} inferences")
    if len(after["variants"]) > len(before["variants"]):
        words.append(f"{len(before['variants'])} → {len(after['variants'])} variants")
    return words


def _shows_own_rows(task: Mapping[str, Any]) -> bool:
    """Tell whether examples are drawn from the rows themselves: then more rows change what was shown before."""
    prompt = task.get("prompt")
    prompts = [prompt, *prompt.values()] if isinstance(prompt, Mapping) else []
    shots = [one.get("shots") for one in prompts if isinstance(one, Mapping)]
    return any(one.get("retriever", "zero") != "zero" and not one.get("pool") for one in shots if one)


def without_code(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without the hashes of plug-ins' files."""
    model = {key: value for key, value in (config.get("model") or {}).items() if key not in CODE}
    tasks = {name: {key: value for key, value in task.items() if key not in CODE} for name, task in _tasks(config)}
    return {**config, "model": model, "tasks": tasks}


def _tasks(config: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    tasks = config.get("tasks")
    return list(tasks.items()) if isinstance(tasks, Mapping) else []


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
