"""evalscope's predictions and reviews (JSON Lines under `predictions/MODEL` and `reviews/MODEL`), joined by index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..files.jsonstream import iterate_records
from .damage_counts import Damage
from .foreign_rows import ForeignFile, ForeignRow, how_it_ended, is_nothing, plain_id, share, short_tags
from .foreign_source import ForeignSource, Record
from .gold import lettered, settle_gold, shown_options
from .malformed import each_readable

HARNESS = "evalscope"
PREDICTIONS, REVIEWS, REPORTS = "predictions", "reviews", "reports"


def is_evalscope(source: ForeignSource) -> bool:
    """Tell evalscope's files by `index` beside `model_output` or `sample_score`."""
    first = source.first
    return "index" in first and ("model_output" in first or "sample_score" in first)


def open_evalscope(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open either of the two files; right answers and verdicts stand in the reviews, failures in the predictions."""
    path, notes = source.path, []
    outputs, reviews = _sister(path, PREDICTIONS), _sister(path, REVIEWS)
    if "model_output" in source.first and not reviews.is_file():
        notes.append(f"no {reviews} beside it: right answers must come with --data")
    told = {plain_id(record.get("index")): record for record in _records(reviews)} if reviews.is_file() else {}
    records = source.records() if "model_output" in source.first or not outputs.is_file() else _numbered(outputs)
    task = path.stem
    rows = each_readable(records, partial(_rows, reviews=told, damage=damage), damage)
    return ForeignFile(HARNESS, path, rows, task, path.parent.name, _reported(path, task), notes=notes)


def _sister(path: Path, kind: str) -> Path:
    """Return the file of the other kind: …/predictions/MODEL/x.jsonl and …/reviews/MODEL/x.jsonl."""
    return path.parent.parent.parent / kind / path.parent.name / path.name


def _records(path: Path) -> Iterator[Record]:
    return (record for _, record in iterate_records(path, nan=True))


def _numbered(path: Path) -> Iterator[tuple[int, Record]]:
    return iterate_records(path, nan=True)


def _rows(number: int, record: Record, reviews: Mapping[str, Record], damage: Damage) -> Iterator[ForeignRow]:
    name = plain_id(record.get("index"))
    yield _row(name, record, record if "sample_score" in record else reviews.get(name, {}), damage)


def _row(name: str, record: Record, review: Record, damage: Damage) -> ForeignRow:
    scored = review.get("sample_score") or {}
    score, meta = scored.get("score") or {}, scored.get("sample_metadata") or {}
    prompt = _prompt(review.get("input") or record.get("messages"))
    options = _options(meta, prompt)
    gold = settle_gold(options, review.get("target"), name, damage)
    reply, failure, finish = _reply(record.get("model_output"), score, name, damage)
    return ForeignRow(
        name,
        gold.form,
        reply,
        failure,
        prompt=prompt,
        options=options,
        answers=gold.answers,
        finish=finish,
        tags=short_tags(meta, frozenset({"choices", "options", "group_id"})),
        group=_group(scored.get("group_id"), name),
        read_reply=failure,
        read_answer=None if is_nothing(score.get("extracted_prediction")) else str(score["extracted_prediction"]),
        verdict=_verdict(score),
    )


def _options(meta: Mapping[str, Any], prompt: str) -> dict[str, str]:
    listed = meta.get("choices") or meta.get("options")
    return lettered(listed) if isinstance(listed, list) else shown_options(prompt)


def _group(value: Any, name: str) -> str | None:
    return None if is_nothing(value) or plain_id(value) == name else plain_id(value)


def _reply(
    output: Any, score: Mapping[str, Any], name: str, damage: Damage
) -> tuple[str | None, str | None, str | None]:
    """Return reply, failure and how the reply ended."""
    if isinstance(output, dict):
        return _output(output, name, damage)
    said = score.get("prediction")
    if is_nothing(said) and said != "":
        damage.add("lost", name)
        return None, "the file holds no reply", None
    return str(said), None, None


def _output(output: Mapping[str, Any], name: str, damage: Damage) -> tuple[str | None, str | None, str | None]:
    if output.get("error"):
        return None, str(output["error"]), None
    choice: dict[str, Any] = next(iter(output.get("choices") or []), {})
    text = str(output.get("completion") or _words(choice.get("message") or {}))
    if not text:
        damage.add("empty", name)
    return text, None, how_it_ended(choice.get("stop_reason"))


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(str(part.get("text") or "") for part in content)


def _prompt(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts: list[str] = []
    for message in value or []:
        content = message.get("content") if isinstance(message, dict) and message.get("role") == "user" else None
        texts = [content] if isinstance(content, str) else [part.get("text") for part in content or []]
        parts += [text for text in texts if isinstance(text, str)]
    return "\n".join(parts)


def _verdict(score: Mapping[str, Any]) -> float | None:
    values = score.get("value")
    if not isinstance(values, dict) or not values:
        return None
    main = score.get("main_score_name")
    return share(values[main] if main in values else next(iter(values.values())))


def _reported(path: Path, task: str) -> dict[str, float]:
    """Return the score of the benchmark's report; the file's name is BENCHMARK_SUBSET."""
    folder = path.parent.parent.parent / REPORTS / path.parent.name
    if not folder.is_dir():
        return {}
    names = [file for file in sorted(folder.glob("*.json")) if task == file.stem or task.startswith(f"{file.stem}_")]
    if len(names) != 1:
        return {}
    try:
        told = json.loads(names[0].read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}
    value = told.get("score") if isinstance(told, dict) else None
    return {f"{names[0].name} score": float(value)} if isinstance(value, int | float) else {}
