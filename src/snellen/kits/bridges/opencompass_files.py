"""Files of OpenCompass, and of AISBench which writes the same: rows by number, messages, and numbers beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ...data.files.jsonstream import iterate_members, iterate_records
from .damage import Damage, each_readable
from .foreign_rows import (
    ForeignFile,
    ForeignRow,
    object_in,
    plain_id,
    reply_in,
    settle_gold,
    shown_options,
)
from .formats import ForeignSource, PredictionFormat, Record

OPENCOMPASS, AISBENCH = "opencompass", "aisbench"
FAILED = "_failed.jsonl"
OWN_FIELDS = frozenset(("origin_prompt", "prediction", "gold", "reference", "res_length", "error_info", "success"))


def is_opencompass(source: ForeignSource) -> bool:
    """Tell OpenCompass by rows numbered as keys, each with a prediction and nothing but what it writes beside it."""
    if not source.is_object or not source.first_key.isdecimal():
        return False
    first = next((value for _, value in iterate_members(source.path, nan=True)), None)
    return isinstance(first, dict) and "prediction" in first and first.keys() <= OWN_FIELDS


def is_aisbench(source: ForeignSource) -> bool:
    """Tell AISBench by `data_abbr` beside the prediction."""
    return {"data_abbr", "id", "prediction"} <= source.first.keys()


def open_opencompass(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a file of OpenCompass; its number is in `results/MODEL` beside `predictions/MODEL`."""
    members = iterate_members(source.path, nan=True)
    records = ((int(key) + 1, {"id": key, **value}) for key, value in members)
    return _opened(OPENCOMPASS, source.path, records, damage)


def open_aisbench(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a file of AISBench; calls that failed stand in `NAME_failed.jsonl` beside it and are rows too."""
    failed = source.path.with_name(f"{source.path.stem}{FAILED}")
    return _opened(AISBENCH, source.path, source.records(), damage, failed)


def _opened(
    harness: str, path: Path, records: Iterator[tuple[int, Record]], damage: Damage, failed: Path | None = None
) -> ForeignFile:
    rows = each_readable(records, partial(_rows, damage=damage), damage)
    if failed is not None and failed.is_file():
        rows = chain(rows, _failures(failed, damage))
    notes = [] if failed is None or not failed.is_file() else [f"failures of {failed.name}"]
    return ForeignFile(harness, path, rows, path.stem, path.parent.name, _reported(path), notes=notes)


def _rows(number: int, record: Record, damage: Damage) -> Iterator[ForeignRow]:
    name, prompt = plain_id(record.get("id")), _prompt(record.get("origin_prompt"))
    options = shown_options(prompt)
    gold = settle_gold(options, record.get("gold"), name, damage)
    for repeat, value in enumerate(_predictions(record)):
        reply, failure = _reply(value, record, name, damage)
        yield ForeignRow(name, gold.form, reply, failure, repeat, prompt=prompt, options=options, answers=gold.answers)


def _predictions(record: Record) -> list[Any]:
    value = record.get("prediction")
    return value if isinstance(value, list) and value else [value]


def _reply(value: Any, record: Record, name: str, damage: Damage) -> tuple[str | None, str | None]:
    reply, lost = reply_in(None if record.get("success") is False else value, name, damage)
    return reply, lost and str(record.get("error_info") or lost)


def _failures(path: Path, damage: Damage) -> Iterator[ForeignRow]:
    for _, record in iterate_records(path, nan=True):
        name, prompt = plain_id(record.get("id")), _prompt(record.get("input"))
        options = shown_options(prompt)
        gold = settle_gold(options, record.get("gold"), name, damage)
        why = str(record.get("error_info") or "failed")
        yield ForeignRow(name, gold.form, None, why, prompt=prompt, options=options, answers=gold.answers)


def _prompt(value: Any) -> str:
    """Return the words of a prompt: text, messages as OpenCompass writes them, or as a chat API takes them."""
    if isinstance(value, str):
        return value
    parts: list[str] = []
    for message in value if isinstance(value, list) else []:
        if not isinstance(message, Mapping) or message.get("role", "HUMAN") not in ("HUMAN", "user"):
            continue
        content = message.get("prompt", message.get("content"))
        texts = [content] if isinstance(content, str) else [part.get("text") for part in content or []]
        parts += [text for text in texts if isinstance(text, str)]
    return "\n".join(parts)


def _reported(path: Path) -> dict[str, float]:
    value = object_in(path.parent.parent.parent / "results" / path.parent.name / f"{path.stem}.json").get("accuracy")
    return {f"results/{path.stem}.json accuracy": float(value) / 100} if isinstance(value, int | float) else {}


FORMAT = PredictionFormat(is_opencompass, open_opencompass)
AISBENCH_FORMAT = PredictionFormat(is_aisbench, open_aisbench)
