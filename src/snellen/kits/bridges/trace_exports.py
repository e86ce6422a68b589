"""Exports of trace stores (Langfuse, Phoenix, Weave, MLflow) and rows of one shape: messages, output, expected, scores.

Each store writes the same four things elsewhere; a picture that the export only names, and does not hold, is counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from .chat_parts import content_of, picture_beside
from .damage import Damage, each_readable
from .foreign_rows import (
    ForeignFile,
    ForeignRow,
    is_nothing,
    listed_options,
    plain_id,
    reply_in,
    settle_gold,
    share,
    short_tags,
)
from .formats import ForeignSource, PredictionFormat, Record

_MEDIA = re.compile(r"@@@langfuseMedia:[^@]*@@@")
_INDEX = re.compile(r"\d+")
_SPAN_INPUT, _SPAN_OUTPUT = "mlflow.spanInputs", "mlflow.spanOutputs"


class Exchange(NamedTuple):
    """What a record says, in our words."""

    id: Any
    messages: Any
    output: Any = None
    expected: Any = None
    scores: Any = None
    error: Any = None
    meta: Mapping[str, Any] = {}
    seconds: float | None = None
    at: Any = None


class Store(NamedTuple):
    """How the records of a store are told, and read."""

    recognises: Callable[[Record], bool]
    read: Callable[[Record], Exchange]


def _parsed(value: Any) -> Any:
    """Return what a text that is JSON holds; anything else as it is."""
    if isinstance(value, str) and value[:1] in "[{" and value:
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _chat(value: Any) -> Any:
    """Return the messages in an input: a list of them, an object that holds them, or a text."""
    value = _parsed(value)
    if isinstance(value, Mapping):
        for name in ("messages", "input", "prompt", "question", "query", "inputs"):
            if name in value:
                found = value[name]
                pictures = [value[key] for key in ("image", "image_url", "images") if value.get(key)]
                return _with_pictures(found, pictures)
        return json.dumps(value, ensure_ascii=False)
    return value


def _with_pictures(found: Any, pictures: list[Any]) -> Any:
    if not pictures or not isinstance(found, str):
        return found
    listed = [one for value in pictures for one in (value if isinstance(value, list) else [value])]
    parts = [{"type": "image_url", "image_url": one} for one in listed]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": found}]}]


def _said(value: Any) -> Any:
    """Return the reply in an output: a text, a message, a completion with choices, or an object that names it."""
    value = _parsed(value)
    if isinstance(value, list) and value:
        return _said(value[-1])
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("choices"), list) and value["choices"]:
        return _said(value["choices"][0].get("message") or value["choices"][0].get("text"))
    for name in ("content", "output", "response", "text", "answer", "completion", "message"):
        if name in value:
            found = value[name]
            return content_of([{"content": found}])[0] if isinstance(found, list) else _said(found)
    return None


def _answer(value: Any) -> Any:
    value = _parsed(value)
    if isinstance(value, Mapping):
        names = (
            "expected_response",
            "expected_output",
            "expected",
            "answer",
            "label",
            "reference",
            "output",
            "content",
        )
        return next((_answer(value[name]) for name in names if name in value), None)
    return value


def _langfuse(row: Record) -> Exchange:
    observed, meta = row.get("latency"), row.get("metadata")
    return Exchange(
        row.get("id"),
        _chat(row.get("input")),
        _said(row.get("output")),
        _answer(row.get("expectedOutput")),
        row.get("scores"),
        row.get("statusMessage") if row.get("level") == "ERROR" else None,
        meta if isinstance(meta, dict) else {},
        observed if isinstance(observed, int | float) else None,
        row.get("timestamp") or row.get("startTime"),
    )


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return flat attributes (`llm.input_messages.0.message.role`) as the lists and objects they stand for."""
    tree: dict[str, Any] = {}
    for name, value in row.items():
        place = tree
        *path, last = name.split(".")
        for step in path:
            below = place.setdefault(step, {})
            if not isinstance(below, dict):
                break
            place = below
        else:
            place[last] = _nested(value) if isinstance(value, Mapping) else _each_nested(value)
    return {name: _listed(value) for name, value in tree.items()}


def _each_nested(value: Any) -> Any:
    value = _parsed(value) if isinstance(value, str) and value[:2] in ("[{", '{"') else value
    return [_nested(one) if isinstance(one, Mapping) else one for one in value] if isinstance(value, list) else value


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _listed(one) for name, one in value.items()}
    if inner and all(_INDEX.fullmatch(name) for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner


def _phoenix_message(entry: Mapping[str, Any]) -> dict[str, Any]:
    told = entry.get("message", entry)
    parts = []
    for one in told.get("contents") or []:
        part = one.get("message_content", one)
        picture = ((part.get("image") or {}).get("image") or {}).get("url")
        parts.append({"image_url": picture} if picture else {"text": part.get("text")})
    return {"role": told.get("role"), "content": parts or told.get("content")}


def _phoenix(row: Record) -> Exchange:
    flat = {name.removeprefix("attributes."): value for name, value in row.items() if value is not None}
    tree = _nested({**flat, **(row.get("attributes") or {})})
    llm = tree.get("llm") or {}
    asked = [_phoenix_message(one) for one in llm.get("input_messages") or []]
    replied = [_phoenix_message(one) for one in llm.get("output_messages") or []]
    whole = tree.get("input"), tree.get("output")
    asked_whole, said_whole = ((one.get("value") if isinstance(one, dict) else one) for one in whole)
    output = content_of(replied, ("assistant", None))[0] if replied else _said(said_whole)
    failed = row.get("status_code") == "ERROR"
    name = (
        (row.get("context") or {}).get("span_id") or row.get("context.span_id") or row.get("span_id") or row.get("id")
    )
    return Exchange(
        name,
        asked or _chat(asked_whole),
        output,
        _answer(row.get("expected") or (tree.get("metadata") or {}).get("expected")),
        row.get("annotations") or row.get("evaluations"),
        row.get("status_message") or "the span says ERROR" if failed else None,
        at=row.get("start_time"),
    )


def _weave(row: Record) -> Exchange:
    inputs, output = row.get("inputs") or {}, row.get("output")
    example = inputs.get("example")
    asked: Mapping[str, Any] = example if isinstance(example, dict) else inputs
    scores = output.get("scores") if isinstance(output, dict) else None
    said = output.get("model_output", output.get("output", output)) if isinstance(output, dict) else output
    expected = next((asked[name] for name in ("expected", "target", "answer", "label") if name in asked), None)
    return Exchange(
        row.get("id"), _chat(asked), _said(said), expected, scores, row.get("exception"), at=row.get("started_at")
    )


def _mlflow(row: Record) -> Exchange:
    if "inputs" in row:  # a row of an evaluation dataset, or of its results
        told = row.get("expectations")
        name = row.get("dataset_record_id") or row.get("id") or row.get("trace_id")
        return Exchange(name, _chat(row["inputs"]), _said(row.get("outputs")), _answer(told), row.get("assessments"))
    info, spans = row.get("info") or {}, (row.get("data") or {}).get("spans") or [{}]
    root = next((span for span in spans if not span.get("parent_id") and not span.get("parent_span_id")), spans[0])
    told = root.get("attributes") or {}
    failed = str(info.get("state") or info.get("status") or "") == "ERROR"
    expected = next(
        (one.get("expectation", {}).get("value") for one in info.get("assessments") or [] if "expectation" in one), None
    )
    return Exchange(
        info.get("trace_id") or info.get("request_id"),
        _chat(told.get(_SPAN_INPUT)),
        _said(told.get(_SPAN_OUTPUT)),
        _answer(expected),
        [one for one in info.get("assessments") or [] if "feedback" in one],
        "the trace says ERROR" if failed else None,
        at=info.get("request_time"),
    )


def _neutral(row: Record) -> Exchange:
    told = row.get("output", row.get("response"))
    return Exchange(
        row.get("id"), row["messages"], _said(told), row.get("expected"), row.get("scores"), row.get("error"), row
    )


def _is_phoenix(row: Record) -> bool:
    flat = any(name.startswith(("attributes.", "llm.")) for name in row)
    return "span_kind" in row or flat or ("attributes" in row and "context" in row)


def _is_mlflow(row: Record) -> bool:
    return ("info" in row and "data" in row) or ("inputs" in row and ("expectations" in row or "outputs" in row))


STORES: Final[Mapping[str, Store]] = {
    "langfuse": Store(
        lambda row: (
            "input" in row and bool({"expectedOutput", "traceId", "projectId", "htmlPath", "datasetId"} & row.keys())
        ),
        _langfuse,
    ),
    "phoenix": Store(_is_phoenix, _phoenix),
    "weave": Store(lambda row: "op_name" in row and "inputs" in row, _weave),
    "mlflow": Store(_is_mlflow, _mlflow),
    "messages": Store(
        lambda row: isinstance(row.get("messages"), list) and bool({"output", "expected", "scores"} & row.keys()),
        _neutral,
    ),
}
"""Store -> its records, the most particular first."""


def store_of(row: Record) -> str | None:
    """Return whose record this is, or None."""
    return next((name for name, store in STORES.items() if store.recognises(row)), None)


def is_traces(source: ForeignSource) -> bool:
    """Tell an export by its first record."""
    return store_of(source.first) is not None


def open_traces(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open an export; spans that are no exchange with a model (no messages, no reply) are left out and counted."""
    name = store_of(source.first) or "messages"
    records = source.records()
    rows = each_readable(records, partial(_rows, store=STORES[name], source=source, damage=damage), damage)
    return ForeignFile("traces", source.path, rows, source.path.stem, "", notes=[f"read as an export of {name}"])


def _rows(number: int, record: Record, store: Store, source: ForeignSource, damage: Damage) -> Iterator[ForeignRow]:
    told = store.read(record)
    prompt, refs = content_of(told.messages)
    name = plain_id(told.id) if not is_nothing(told.id) else f"row-{number}"
    named = _MEDIA.findall(prompt)
    for _ in named:
        damage.add("reference", name)
    prompt = _MEDIA.sub("", prompt).strip()
    images = []
    for ref in refs:
        picture = picture_beside(source.path, ref)
        if picture is None:
            damage.add("reference", name)
        else:
            images.append(picture)
    options = listed_options(told.meta.get("choices", told.meta.get("options")) if told.meta else None, prompt)
    gold = settle_gold(options, told.expected, name, damage)
    reply, failure = _reply(told, name, damage)
    yield ForeignRow(
        name,
        gold.form,
        reply,
        failure,
        question=prompt,
        prompt=prompt,
        options=options,
        answers=gold.answers,
        images=tuple(images),
        tags=short_tags(told.meta, frozenset({"id", "output", "expected", "error"})),
        verdict=_verdict(told.scores),
        latency_s=told.seconds,
        at=str(told.at) if told.at else None,
    )


def _reply(told: Exchange, name: str, damage: Damage) -> tuple[str | None, str | None]:
    if told.error:
        return None, str(told.error)
    return reply_in(told.output, name, damage)


def _verdict(scores: Any) -> float | None:
    """Return the first score that is a number from 0 to 1: of a list of named ones, or of an object of them."""
    values = list(scores.values()) if isinstance(scores, Mapping) else scores if isinstance(scores, list) else [scores]
    for one in values:
        value = one
        if isinstance(one, Mapping):
            result = one.get("result") or one.get("feedback") or one
            value = result.get("value", result.get("score")) if isinstance(result, Mapping) else result
        found = share(value)
        if found is not None:
            return found
    return None


FORMAT = PredictionFormat(is_traces, open_traces)
