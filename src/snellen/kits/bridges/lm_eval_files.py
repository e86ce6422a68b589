"""lm-evaluation-harness's `samples_TASK_TIME.jsonl`: one row a document and filter, log-likelihoods or replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...core.errors import DataError
from ...core.types import Form
from ...data.files.jsonstream import iterate_records
from .damage import Damage, each_readable
from .foreign_rows import (
    ForeignFile,
    ForeignRow,
    Gold,
    as_list,
    lettered,
    likelihoods_in,
    plain_id,
    reply_in,
    settle_gold,
    share,
    short_tags,
    shown_options,
)
from .formats import ForeignSource, PredictionFormat, Record
from .lmms_files import IDS, SAMPLES, doc_of, first_of, is_sample_file, results_beside

HARNESS = "lm-eval"
_ARGUMENT = "gen_args_"
_FIELDS = frozenset(("choices", "options", "gold", "answer", "label", "target"))
_NO_METRICS = ("alias", "name", "sample_len")
_MUTUAL = "acc_mutual_info"
"""With it every option is asked twice: after the question, and alone."""
READINGS = "readings"
"""Where a prediction keeps what each filter read, and how that was counted."""
Readings = Mapping[Any, Mapping[str, Any]]


def is_lm_eval(source: ForeignSource) -> bool:
    """Tell its rows by `doc_id` and numbered arguments; lmms-eval, its child, writes `input` instead."""
    first = source.first
    arguments = first.get("arguments")
    numbered = isinstance(arguments, dict) and any(name.startswith(_ARGUMENT) for name in arguments)
    return "doc_id" in first and "resps" in first and (numbered or {"filter", "metrics"} <= first.keys())


def open_lm_eval(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a file of samples. Rows of further filters are other readings of the same replies, and no trials."""
    named = SAMPLES.match(source.path.stem)
    task = named["task"] if named else source.path.stem
    results = results_beside(source.path, named)
    model = str(results.get("model_name") or results.get("config", {}).get("model") or source.path.parent.name)
    filters, readings = _read_filters(source)
    rows = each_readable(_of_filter(source, filters), partial(_rows, readings=readings, damage=damage), damage)
    notes = [f"filters {', '.join(map(str, filters))}: one trial, {len(filters)} readings"] if len(filters) > 1 else []
    expected = results.get("n-samples", {}).get(task, {}).get("effective")
    repeats = results.get("configs", {}).get(task, {}).get("repeats")
    planned = expected * (repeats if type(repeats) is int else 1) if type(expected) is int else None
    return ForeignFile(HARNESS, source.path, rows, task, model, reported(results, task), planned, notes)


def reported(results: Mapping[str, Any], task: str) -> dict[str, float]:
    """Return the numbers of a results file: `METRIC,FILTER`, without counts and standard errors."""
    told = results.get("results", {}).get(task, {})
    return {
        name: float(value)
        for name, value in told.items()
        if type(value) in (int, float) and "_stderr" not in name and name not in _NO_METRICS
    }


def _read_filters(source: ForeignSource) -> tuple[list[Any], dict[Any, dict[str, Any]]]:
    """Return the filters in their order and, where there are several, document -> filter -> what it read."""
    filters: dict[Any, None] = {source.first.get("filter"): None}
    readings: dict[Any, dict[str, Any]] = {}
    for _, record in iterate_records(source.path, nan=True):
        name = record.get("filter")
        filters.setdefault(name)
        if name is not None:
            readings.setdefault(plain_id(record.get("doc_id")), {})[str(name)] = _reading(record)
    return list(filters), readings if len(filters) > 1 else {}


def _reading(record: Record) -> dict[str, Any]:
    read = record.get("filtered_resps")
    read = read[0] if isinstance(read, list) and len(read) == 1 else read
    return {"read": read, **{name: record.get(name) for name in record.get("metrics") or ()}}


def _of_filter(source: ForeignSource, filters: Sequence[Any]) -> Iterator[tuple[int, Record]]:
    return ((number, record) for number, record in source.records() if record.get("filter") == filters[0])


def _rows(number: int, record: Record, readings: Readings, damage: Damage) -> Iterator[ForeignRow]:
    place, doc = record.get("doc_id"), doc_of(record)
    own = first_of(doc, IDS)
    name = plain_id(own) if own is not None else f"doc-{number - 1 if place is None else plain_id(place)}"
    likelihoods = likelihoods_in(record.get("resps"))
    asked = _asked_likelihoods(record, doc, likelihoods, name) if likelihoods else _asked_replies(record, doc)
    prompt, options = asked
    gold = (
        _place_gold(record, options, name, damage)
        if likelihoods
        else settle_gold(options, record.get("target"), name, damage)
    )
    verdict = next((share(record.get(metric)) for metric in record.get("metrics") or ()), None)
    common: dict[str, Any] = {
        "question": str(doc.get("question") or ""),
        "prompt": prompt,
        "options": options,
        "answers": gold.answers,
        "tags": short_tags(doc, _FIELDS | frozenset(IDS)),
        "place": place if type(place) is int else None,
    }
    of_filters = {READINGS: dict(readings[plain_id(place)])} if plain_id(place) in readings else {}
    for repeat, said in enumerate(likelihoods or _replies(record)):
        first: dict[str, Any] = {}
        if not repeat:
            first = {"verdict": verdict, "read_answer": _read(record, likelihoods), "detail": of_filters}
        if likelihoods:
            values = said[: len(options)]
            yield ForeignRow(name, gold.form, None, None, repeat, loglikelihoods=values, **common, **first)
        else:
            reply, failure = _reply(said, name, damage)
            yield ForeignRow(name, gold.form, reply, failure, repeat, **common, **first)


def _arguments(record: Record) -> list[tuple[Any, Any]]:
    """Return what each request was given: (prompt, continuation or settings)."""
    told = record.get("arguments")
    values = list(told.values()) if isinstance(told, dict) else told if isinstance(told, list) else []
    pairs = [list(value.values()) if isinstance(value, dict) else value for value in values]
    return [(pair[0], pair[1] if len(pair) > 1 else None) for pair in pairs if isinstance(pair, list) and pair]


def _asked_replies(record: Record, doc: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    prompt = next((_prompt(asked) for asked, _ in _arguments(record)), "")
    return prompt, _doc_options(doc) or shown_options(prompt)


def _asked_likelihoods(
    record: Record, doc: Mapping[str, Any], values: Sequence[Sequence[float]], name: str
) -> tuple[str, dict[str, str]]:
    """Return prompt and options: the document's own texts where there are as many, else what was appended."""
    asked = _arguments(record)
    count = len(values[0]) // (2 if _MUTUAL in (record.get("metrics") or ()) else 1)
    if count < 2:
        raise DataError(f"row {name!r} has the log-likelihood of one text: that answers no question")
    ends = [str(end).strip() for _, end in asked[:count]]
    starts = [_prompt(start) for start, _ in asked[:count]]
    options = _doc_options(doc)
    if len(options) != count:
        options = lettered(ends if len(set(ends)) == count else starts)
    if len(options) != count:
        raise DataError(f"row {name!r} has {count} log-likelihoods for {len(options)} options")
    return starts[0] if starts else "", options


def _doc_options(doc: Mapping[str, Any]) -> dict[str, str]:
    listed = as_list(doc.get("choices", doc.get("options")))
    listed = listed.get("text") if isinstance(listed, dict) else listed
    return lettered(listed) if isinstance(listed, list) and len(listed) > 1 else {}


def _place_gold(record: Record, options: Mapping[str, str], name: str, damage: Damage) -> Gold:
    """Return the right option: its place as it is written (`1`), else as any other right answer."""
    target = as_list(record.get("target"))
    places = [str(item).strip() for item in (target if isinstance(target, list) else [target])]
    texts = list(options.values())
    if all(place.isdecimal() and int(place) < len(texts) for place in places):
        return Gold(Form.CHOICE, tuple(texts[int(place)] for place in places))
    return settle_gold(options, record.get("target"), name, damage)


def _replies(record: Record) -> list[Any]:
    """Return the replies of a document, one a repeat: what a filter made of them is never one."""
    value = record.get("resps")
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return value if isinstance(value, list) and value else [None if value == [] else value]


def _reply(value: Any, name: str, damage: Damage) -> tuple[str | None, str | None]:
    reply, lost = reply_in(value, name, damage)
    if reply is not None and not isinstance(value, str):
        damage.add("typed", name)
    return reply, lost


def _read(record: Record, likelihoods: Sequence[Any]) -> str | None:
    read = None if likelihoods else _reading(record)["read"]
    return read if isinstance(read, str) else None


def _prompt(value: Any) -> str:
    """Return the words of a prompt: a text, or the messages that a chat template makes of it, as JSON in a list."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(value, str):
        return ""
    if value.startswith("[{"):
        try:
            told = json.loads(value)
        except ValueError:
            return value
        return "\n".join(_words(message) for message in told if message.get("role") in (None, "user"))
    return value


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text")) for part in content or [] if part.get("type") == "text")


FORMAT = PredictionFormat(is_lm_eval, open_lm_eval, is_sample_file)
