"""FlagEvalMM's predictions `<task>.json`, with labels and verdicts of `<task>_evaluated.json` beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...data.files.jsonstream import iterate_records
from .damage import Damage, each_readable, failure_in
from .foreign_rows import (
    ForeignFile,
    ForeignRow,
    is_nothing,
    lettered,
    object_in,
    plain_id,
    reply_in,
    settle_gold,
    share,
    shown_options,
    token_pair,
)
from .formats import ForeignSource, PredictionFormat, Record

HARNESS = "flageval"
EVALUATED = "_evaluated"


def is_flageval(source: ForeignSource) -> bool:
    """Tell FlagEvalMM's files by `question_id`, `question` and `answer` (the reply), without a column for replies."""
    first = source.first
    own = {"question_id", "question", "answer"} <= first.keys()
    return own and not first.keys() & {"response", "prediction", "output", "options", "image"}


def open_flageval(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a file of predictions; of an evaluated one the replies are those of the file beside it, which are whole."""
    path, notes = source.path, []
    task = path.stem.removesuffix(EVALUATED)
    whole = path.with_name(f"{task}.json")
    if path.stem.endswith(EVALUATED) and whole.is_file():
        source = ForeignSource(whole)
        notes.append(f"replies of {whole.name}: FlagEvalMM cleans those of {path.name}")
    evaluated = path.with_name(f"{task}{EVALUATED}.json")
    labels = _labels(evaluated) if evaluated.is_file() else {}
    if not labels:
        notes.append(f"no {evaluated.name} beside it: right answers must come with --data")
    rows = each_readable(source.records(), partial(_rows, labels=labels, damage=damage), damage)
    return ForeignFile(HARNESS, path, rows, task, _model(path.parent), _reported(path, task), notes=notes)


def _labels(path: Path) -> dict[str, Record]:
    kept = ("label", "correct", "question_type", "options", "answer")
    records = (record for _, record in iterate_records(path, nan=True))
    return {plain_id(record.get("question_id")): {name: record.get(name) for name in kept} for record in records}


def _rows(number: int, record: Record, labels: Mapping[str, Record], damage: Damage) -> Iterator[ForeignRow]:
    name, prompt = plain_id(record.get("question_id")), str(record.get("question") or "")
    told = labels.get(name) or record
    listed = told.get("options")
    options = lettered(listed) if isinstance(listed, list) and listed else shown_options(prompt)
    gold = settle_gold(options, told.get("label"), name, damage)
    for repeat, value in enumerate(_replies(record.get("answer"))):
        reply, failure = _reply(value, name, damage)
        yield ForeignRow(
            name,
            gold.form,
            reply,
            failure,
            repeat,
            prompt=prompt,
            options=options,
            answers=gold.answers,
            reasoning=_reason(record.get("reason"), repeat),
            tags={} if is_nothing(told.get("question_type")) else {"question_type": str(told["question_type"])},
            tokens=_tokens(record.get("usage"), repeat),
            read_reply=failure,
            verdict=None if failure else share(told.get("correct")),
        )


def _replies(answer: Any) -> list[Any]:
    """Return the replies of a question: one, or those of its inferences in their order."""
    return list(answer.values()) if isinstance(answer, dict) else [answer]


def _reply(value: Any, name: str, damage: Damage) -> tuple[str | None, str | None]:
    reply, lost = reply_in(value, name, damage)
    failure = None if reply is None else failure_in(HARNESS, reply)
    return (None, failure) if failure else (reply, lost)


def _reason(value: Any, repeat: int) -> str | None:
    reason = value[repeat] if isinstance(value, list) and repeat < len(value) else value
    return reason if isinstance(reason, str) and reason else None


def _tokens(usage: Any, repeat: int) -> tuple[int, int] | None:
    entry = usage[repeat] if isinstance(usage, list) and repeat < len(usage) else usage
    return token_pair(entry, ("prompt_tokens", "completion_tokens"))


def _model(folder: Path) -> str:
    told = object_in(folder / "task_info.json")
    return str(told.get("model_name") or told.get("model") or folder.parent.name)


def _reported(path: Path, task: str) -> dict[str, float]:
    value = object_in(path.with_name(f"{task}_result.json")).get("accuracy")
    return {f"{task}_result.json accuracy": float(value) / 100} if isinstance(value, int | float) else {}


FORMAT = PredictionFormat(is_flageval, open_flageval)
