"""NeMo Evaluator's `results.jsonl`: one line a problem and repeat; a failed call is told by how it was scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from .damage import Damage, each_readable
from .foreign_rows import (
    ForeignFile,
    ForeignRow,
    is_nothing,
    listed_options,
    object_in,
    plain_id,
    reply_in,
    settle_gold,
    share,
    short_tags,
)
from .formats import ForeignSource, PredictionFormat, Record

HARNESS = "nemo-evaluator"
FAILED = "solve_failed"


def is_nemo(source: ForeignSource) -> bool:
    """Tell its lines by problem, reward and reply."""
    return {"problem_idx", "reward", "model_response"} <= source.first.keys()


def open_nemo(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open the lines; the bundle beside them (`eval-TIME-NAME.json`) tells model, benchmark, plan and its number."""
    bundle = _bundle(source.path)
    settings, benchmark = bundle.get("config") or {}, bundle.get("benchmark") or {}
    task = str(benchmark.get("name") or settings.get("benchmark") or source.path.parent.name)
    planned = bundle.get("n_results")
    scores = benchmark.get("scores") or {}
    reported = {name: _value(one) for name, one in scores.items() if isinstance(_value(one), int | float)}
    rows = each_readable(source.records(), partial(_rows, damage=damage), damage)
    model = str(settings.get("model") or "")
    return ForeignFile(HARNESS, source.path, rows, task, model, reported, planned if type(planned) is int else None)


def _value(score: Any) -> Any:
    return score.get("value") if isinstance(score, dict) else score


def _bundle(path: Path) -> dict[str, Any]:
    """Return the only bundle beside the lines, or nothing."""
    files = sorted(path.parent.glob("eval-*.json"))
    return object_in(files[0]) if len(files) == 1 else {}


def _rows(number: int, record: Record, damage: Damage) -> Iterator[ForeignRow]:
    meta = record.get("metadata") or {}
    own = meta.get("id", meta.get("question_id"))
    name = plain_id(record.get("problem_idx") if is_nothing(own) else own)
    prompt = _words(record.get("prompt"))
    options = listed_options(meta.get("choices", meta.get("options")), prompt)
    gold = settle_gold(options, record.get("expected_answer"), name, damage)
    reply, failure = _reply(record, name, damage)
    read, latency, tokens = record.get("extracted_answer"), record.get("latency_ms"), record.get("tokens")
    place = record.get("problem_idx")
    yield ForeignRow(
        name,
        gold.form,
        reply,
        failure,
        int(record.get("repeat") or 0),
        question=prompt,
        prompt=prompt,
        options=options,
        answers=gold.answers,
        tags=short_tags(meta, frozenset({"id", "choices", "options"})),
        read_answer=None if is_nothing(read) else str(read),
        # The reward of a call that failed is 0 there, and no verdict of a reply.
        verdict=None if failure else share(record.get("reward")),
        place=place if type(place) is int else None,
        latency_s=latency / 1000 if isinstance(latency, int | float) and not failure else None,
        detail={"total_tokens": tokens} if isinstance(tokens, int) and tokens else {},
    )


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts = [message.get("content") for message in value or [] if message.get("role") in (None, "user")]
    return "\n".join(part for part in parts if isinstance(part, str))


def _reply(record: Mapping[str, Any], name: str, damage: Damage) -> tuple[str | None, str | None]:
    how = record.get("scoring_details") or {}
    said = record.get("model_response")
    if how.get("method") == FAILED or (how.get("error") and is_nothing(said)):
        return None, str(how.get("error") or "the call failed")
    return reply_in(said, name, damage)


FORMAT = PredictionFormat(is_nemo, open_nemo, lambda file: file.name == "results.jsonl")
