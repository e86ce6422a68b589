"""evalscope's predictions and reviews (JSON Lines under `predictions/MODEL` and `reviews/MODEL`), joined by index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...data.files.jsonstream import iterate_records
from .chat_parts import pictures_beside
from .damage import Damage, each_readable, stopped_by_filter
from .foreign_rows import (
    ForeignFile,
    ForeignRow,
    how_it_ended,
    is_nothing,
    lettered,
    object_in,
    plain_id,
    reply_in,
    settle_gold,
    share,
    short_tags,
    shown_options,
    token_pair,
)
from .formats import ForeignSource, PredictionFormat, Record

HARNESS = "evalscope"
LOST_CALL = "the call failed, and evalscope (--ignore-errors) wrote nothing of it"
_REPEATS = re.compile(r"^repeats:\s*(\d+)\s*$", re.MULTILINE)
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
    task, reported = path.stem, _reported(path, path.stem)
    asked = _Asked(path, _repeats(path, told), told, damage)
    rows = each_readable(records, asked.rows, damage)
    whole = asked.with_lost(rows, ended=bool(reported), notes=notes)
    return ForeignFile(HARNESS, path, whole, task, path.parent.name, reported, notes=notes)


def _sister(path: Path, kind: str) -> Path:
    """Return the file of the other kind: …/predictions/MODEL/x.jsonl and …/reviews/MODEL/x.jsonl."""
    return path.parent.parent.parent / kind / path.parent.name / path.name


def _records(path: Path) -> Iterator[Record]:
    return (record for _, record in iterate_records(path, nan=True))


def _numbered(path: Path) -> Iterator[tuple[int, Record]]:
    return iterate_records(path, nan=True)


def _repeats(path: Path, reviews: Mapping[str, Record]) -> int:
    """Return how often each question was asked: as the reviews count it, else as the run's settings say."""
    counted = [(review.get("sample_score") or {}).get("generation_index") for review in reviews.values()]
    if any(type(place) is int for place in counted):
        told = max(place for place in counted if type(place) is int) + 1
    else:
        told = 1
    try:
        settings = (path.parent.parent.parent / "configs" / "task_config.yaml").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return told
    said = _REPEATS.search(settings)
    return max(told, int(said[1])) if said else told


class _Asked:
    """The calls of a run by their index, which is question x repeats + repeat: what is missing was asked and lost."""

    def __init__(self, file: Path, repeats: int, reviews: Mapping[str, Record], damage: Damage) -> None:
        self._file = file
        self._repeats, self._reviews, self._damage = repeats, reviews, damage
        self._seen: set[int] = set()
        self._questions: dict[str, ForeignRow] = {}

    def rows(self, number: int, record: Record) -> Iterator[ForeignRow]:
        """Yield the row of a record."""
        index = plain_id(record.get("index"))
        review = record if "sample_score" in record else self._reviews.get(index, {})
        name, repeat = self._place(index)
        if index.isdecimal():
            self._seen.add(int(index))
        row = _row((name, repeat), record, review, self._file, self._damage)
        self._questions.setdefault(name, msgspec.structs.replace(row, images=(), tags={}))
        yield row

    def _place(self, index: str) -> tuple[str, int]:
        if self._repeats == 1 or not index.isdecimal():
            return index, 0
        return str(int(index) // self._repeats), int(index) % self._repeats

    def with_lost(self, rows: Iterator[ForeignRow], *, ended: bool, notes: list[str]) -> Iterator[ForeignRow]:
        """Yield all rows and, of a run that ended, a failure for every index that has none: its call was lost.

        A run without a report was stopped: what it did not come to is left out, and said.
        """
        yield from rows
        last = max(self._seen, default=-1)
        planned = -(-(last + 1) // self._repeats) * self._repeats
        lost = [index for index in range(planned) if index not in self._seen]
        if lost and not ended:
            notes.append(f"{len(lost)} calls have no row, and the run has no report: it was stopped before them")
        for index in lost if ended else ():
            name, repeat = self._place(str(index))
            self._damage.add("lost_call", str(index))
            known = self._questions.get(name, ForeignRow(name, next(iter(self._questions.values())).form))
            yield msgspec.structs.replace(
                known, reply=None, failure=LOST_CALL, repeat=repeat, verdict=None, read_answer=None, read_reply=None
            )


def _row(place: tuple[str, int], record: Record, review: Record, file: Path, damage: Damage) -> ForeignRow:
    name, repeat = place
    scored = review.get("sample_score") or {}
    score, meta = scored.get("score") or {}, scored.get("sample_metadata") or {}
    prompt = _prompt(review.get("input") or record.get("messages") or review.get("messages"))
    options = _options(meta, prompt)
    gold = settle_gold(options, review.get("target"), name, damage)
    reply, failure, finish = _reply(record.get("model_output"), score, name, damage)
    refused = None if failure else stopped_by_filter(finish, reply or "", score.get("extracted_prediction"))
    reply, failure = (None, refused) if refused else (reply, failure)
    return ForeignRow(
        name,
        gold.form,
        reply,
        failure,
        repeat,
        prompt=prompt,
        images=pictures_beside(file, _pictures(record.get("messages") or review.get("messages")), name, damage),
        options=options,
        answers=gold.answers,
        finish=finish,
        tags=short_tags(meta, frozenset({"choices", "options", "group_id"})),
        tokens=token_pair((record.get("model_output") or {}).get("usage"), ("input_tokens", "output_tokens")),
        latency_s=(record.get("model_output") or {}).get("time"),
        read_reply=failure,
        read_answer=None if is_nothing(score.get("extracted_prediction")) else str(score["extracted_prediction"]),
        verdict=_verdict(score),
    )


def _options(meta: Mapping[str, Any], prompt: str) -> dict[str, str]:
    listed = meta.get("choices") or meta.get("options")
    return lettered(listed) if isinstance(listed, list) else shown_options(prompt)


def _pictures(messages: Any) -> list[str]:
    parts = [part for message in messages or [] for part in _parts(message)]
    return [str(part.get("image") or "") for part in parts if part.get("type") == "image"]


def _parts(message: Any) -> list[dict[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _reply(
    output: Any, score: Mapping[str, Any], name: str, damage: Damage
) -> tuple[str | None, str | None, str | None]:
    """Return reply, failure and how the reply ended."""
    if isinstance(output, dict):
        return _output(output, name, damage)
    said = score.get("prediction")
    return ("", None, None) if said == "" else (*reply_in(said, name, damage), None)


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
    value = _score_of(object_in(names[0]))
    return {f"{names[0].name} score": float(value)} if isinstance(value, int | float) else {}


def _score_of(report: Mapping[str, Any]) -> Any:
    """Return the score: of the report itself, as older versions have it, or of its first metric."""
    first: Any = next(iter(report.get("metrics") or []), {})
    return report.get("score", first.get("score") if isinstance(first, dict) else None)


def _is_named(file: Path) -> bool:
    return file.suffix == ".jsonl" and file.parent.parent.name == PREDICTIONS


FORMAT = PredictionFormat(is_evalscope, open_evalscope, _is_named)
