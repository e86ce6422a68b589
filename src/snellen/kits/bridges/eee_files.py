"""Every Eval Ever's records (0.3): the samples of one evaluation, with what its aggregate file says of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.errors import DataError
from ...core.ids import file_sha256
from ...core.types import BASE_VARIANT
from ...data.files.jsonstream import iterate_records
from .chat_parts import content_of
from .damage import Damage, each_readable
from .foreign_rows import (
    NO_REPLY,
    ForeignFile,
    ForeignRow,
    Tag,
    as_list,
    is_nothing,
    lettered,
    object_in,
    own_scoring,
    plain_id,
    settle_gold,
    share,
    token_pair,
)
from .formats import ForeignSource, PredictionFormat, Record

HARNESS = "every-eval-ever"
SAMPLES = "_samples.jsonl"
OURS = "snellen."
_SUPPORTED = "0."
_ROW_KEYS = {"evaluation_id", "evaluation_name", "sample_id", "evaluation"}


def is_eee(source: ForeignSource) -> bool:
    """Tell samples by their fields, and an aggregate by its results beside its library."""
    if source.is_object and source.ending == ".json":
        return {"evaluation_results", "eval_library"} <= object_in(source.path).keys()
    return source.first.keys() >= _ROW_KEYS


def open_eee(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open the samples, by themselves or by their aggregate, which tells model, library, numbers and checksum."""
    path = source.path
    if source.ending == ".json":
        aggregate, path = object_in(path), _samples_of(path)
    else:
        beside = path.with_name(path.name.removesuffix(SAMPLES) + ".json")
        aggregate = object_in(beside) if path.name.endswith(SAMPLES) and beside.is_file() else {}
    records = iterate_records(path, nan=True)
    first = source.first if path == source.path else next((record for _, record in iterate_records(path, nan=True)), {})
    version = str(first.get("schema_version") or aggregate.get("schema_version") or "")
    if not version.startswith(_SUPPORTED):
        raise DataError(f"{path}: schema_version {version!r} of Every Eval Ever is not known here (0.x is)")
    model = aggregate.get("model_info") or {}
    notes = _checked(path, aggregate)
    reader = _Reader(first, damage, notes)
    rows = each_readable(records, reader.rows, damage)
    task = str(first.get("evaluation_name") or path.stem)
    name = str(model.get("id") or first.get("model_id") or "")
    return ForeignFile(
        HARNESS, path, rows, task, name, _reported(aggregate), _planned(aggregate), notes, own_scoring(_task(aggregate))
    )


def _samples_of(path: Path) -> Path:
    found = path.with_name(f"{path.stem}{SAMPLES}")
    if not found.is_file():
        raise DataError(f"{path} holds numbers and no trials, and {found.name} is not beside it: nothing to import")
    return found


def _checked(path: Path, aggregate: Mapping[str, Any]) -> list[str]:
    """Return a note where the samples are not those that the aggregate was written with."""
    told = aggregate.get("detailed_evaluation_results") or {}
    wanted = told.get("checksum")
    if not isinstance(wanted, str) or told.get("hash_algorithm", "sha256") != "sha256":
        return []
    same = file_sha256(path) == wanted.removeprefix("sha256:").lower()
    return [] if same else [f"{path.name} is not the file that its aggregate was written with (checksum)"]


def _details(aggregate: Mapping[str, Any]) -> Mapping[str, Any]:
    return (aggregate.get("source_metadata") or {}).get("additional_details") or {}


def _task(aggregate: Mapping[str, Any]) -> Mapping[str, Any]:
    told = as_list(_details(aggregate).get(f"{OURS}task"))
    try:
        read = json.loads(told) if isinstance(told, str) else {}
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _planned(aggregate: Mapping[str, Any]) -> int | None:
    told = str(_details(aggregate).get(f"{OURS}planned") or "")
    return int(told) if told.isdecimal() else None


def _reported(aggregate: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for result in aggregate.get("evaluation_results") or []:
        config, value = result.get("metric_config") or {}, (result.get("score_details") or {}).get("score")
        name = result.get("evaluation_result_id") or config.get("metric_id") or result.get("evaluation_name")
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[str(name)] = float(value)
            found |= _interval(str(name), result["score_details"])
    return found


def _interval(name: str, details: Mapping[str, Any]) -> dict[str, float]:
    told = (details.get("uncertainty") or {}).get("confidence_interval") or {}
    ends = {"low": told.get("lower"), "high": told.get("upper")}
    return {f"{name}.{end}": float(value) for end, value in ends.items() if isinstance(value, int | float)}


class _Reader:
    """Rows in their order: those of one sample are repeats, unless they say which, or are other metrics of it."""

    def __init__(self, first: Record, damage: Damage, notes: list[str]) -> None:
        self._first, self._damage, self._notes = first, damage, notes
        self._counts: dict[tuple[str, str], int] = {}
        self._others = 0

    def rows(self, number: int, record: Record) -> Iterator[ForeignRow]:
        """Yield the trial of a record; a further metric of a trial that is there already is none."""
        same_task = record.get("evaluation_name") == self._first.get("evaluation_name")
        if same_task and record.get("evaluation_result_id") != self._first.get("evaluation_result_id"):
            self._others += 1
            said = f"{self._others} rows score the same trials by other metrics, and are left out"
            self._notes[:] = [*(note for note in self._notes if "other metrics" not in note), said]
            return
        yield self._row(record)

    def _row(self, record: Record) -> ForeignRow:
        meta, asked = record.get("metadata") or {}, record["input"]
        name = self._name(record, meta)
        variant = str(meta.get(f"{OURS}variant") or BASE_VARIANT)
        repeat = self._repeat(name, variant, meta)
        shown = asked.get("choices")
        options = lettered(shown) if isinstance(shown, list) and shown else {}
        options = _marked(options, meta)
        reference = asked.get("reference")
        gold = settle_gold(options, _one(reference), name, self._damage)
        reply, failure = self._reply(record, name)
        evaluation = record["evaluation"]
        outcome = meta.get(f"{OURS}outcome")
        unread = outcome == "unscored" or (failure is not None)
        return ForeignRow(
            name,
            gold.form,
            reply,
            failure,
            repeat,
            question=str(asked.get("raw") or ""),
            prompt=str(asked.get("formatted") or asked.get("raw") or ""),
            options=options,
            answers=gold.answers,
            reasoning=_joined((record.get("output") or {}).get("reasoning_trace")),
            finish=meta.get(f"{OURS}finish"),
            tags=_tags(meta),
            group=meta.get(f"{OURS}group"),
            tokens=token_pair(record.get("token_usage"), ("input_tokens", "output_tokens")),
            read_answer=_read(record),
            verdict=None if unread else share(evaluation.get("score")),
            variant=variant,
            latency_s=_seconds(record.get("performance")),
            loglikelihoods=_likelihoods(meta),
            reduction=str(meta.get(f"{OURS}reduction") or "sum"),
            at=None if meta.get(f"{OURS}time") else meta.get(f"{OURS}at"),
        )

    def _name(self, record: Record, meta: Mapping[str, Any]) -> str:
        name = plain_id(record["sample_id"])
        other = record.get("evaluation_name") != self._first.get("evaluation_name")
        return f"{record.get('evaluation_name')}/{name}" if other else name

    def _repeat(self, name: str, variant: str, meta: Mapping[str, Any]) -> int:
        told = str(meta.get(f"{OURS}repeat") or "")
        seen = self._counts.get((name, variant), 0)
        self._counts[(name, variant)] = seen + 1
        return int(told) if told.isdecimal() else seen

    def _reply(self, record: Record, name: str) -> tuple[str | None, str | None]:
        if not is_nothing(record.get("error")):
            return None, _failure(str(record["error"]))
        if _likelihoods(record.get("metadata") or {}):
            return None, None
        said = (record.get("output") or {}).get("raw")
        if said is None and record.get("messages"):
            said = [_last_words(record["messages"])]
        texts = [said] if isinstance(said, str) else said
        if not texts:
            self._damage.add("lost", name)
            return None, NO_REPLY
        if not any(texts):
            self._damage.add("empty", name)
        return "\n".join(map(str, texts)), None


def _one(reference: Any) -> Any:
    return reference[0] if isinstance(reference, list) and len(reference) == 1 else reference


def _marked(options: dict[str, str], meta: Mapping[str, Any]) -> dict[str, str]:
    """Return options under the marks that were shown, where a run of ours says which."""
    told = as_list(meta.get(f"{OURS}marks"))
    if not isinstance(told, list) or len(told) != len(options):
        return options
    return dict(zip(map(str, told), options.values(), strict=True))


def _failure(told: str) -> str:
    """Return a failure's own words: a run of ours writes it whole, as JSON."""
    try:
        read = json.loads(told)
    except ValueError:
        return told
    return f"{read.get('kind')}: {read.get('message')}" if isinstance(read, dict) and "kind" in read else told


def _read(record: Record) -> str | None:
    told = [one for one in record.get("answer_attribution") or [] if one.get("is_terminal", True)]
    value = told[-1].get("extracted_value") if told else None
    return None if is_nothing(value) else str(value)


def _joined(value: Any) -> str | None:
    texts = [value] if isinstance(value, str) else value
    return "\n".join(map(str, texts)) if texts else None


def _last_words(messages: Any) -> str:
    told = [message for message in messages if message.get("role") == "assistant"]
    return content_of(told[-1:], ("assistant",))[0]


def _tags(meta: Mapping[str, Any]) -> dict[str, Tag]:
    return {name.removeprefix(f"{OURS}tag."): value for name, value in meta.items() if name.startswith(f"{OURS}tag.")}


def _seconds(performance: Any) -> float | None:
    value = performance.get("latency_ms") if isinstance(performance, dict) else None
    return value / 1000 if isinstance(value, int | float) else None


def _likelihoods(meta: Mapping[str, Any]) -> tuple[float, ...]:
    told = meta.get(f"{OURS}loglikelihoods")
    return tuple(float(value) for value in json.loads(told)) if isinstance(told, str) else ()


FORMAT = PredictionFormat(is_eee, open_eee)
