"""OpenAI evals' event logs: what was sampled, and how it was matched, joined by sample."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ...data.files.jsonstream import iterate_records
from .chat_parts import content_of, pictures_beside
from .damage import Damage, each_readable
from .foreign_rows import (
    NO_REPLY,
    ForeignFile,
    ForeignRow,
    is_nothing,
    plain_id,
    settle_gold,
    share,
    shown_options,
)
from .formats import ForeignSource, PredictionFormat, Record

HARNESS = "openai-evals"
_SAMPLING, _MATCH, _METRICS, _ERROR = "sampling", "match", "metrics", "error"


def is_openai_events(source: ForeignSource) -> bool:
    """Tell a log by its first line, the specification, or by events."""
    first = source.first
    return "completion_fns" in (first.get("spec") or {}) or {"event_id", "sample_id", "type", "data"} <= first.keys()


class _Log:
    """What the small events of a log say, by sample: matches and metrics in their order, errors, the final report."""

    def __init__(self, source: ForeignSource) -> None:
        self.spec: Record = {}
        self.final: Record = {}
        self.matches: dict[str, list[Record]] = {}
        self.metrics: dict[str, Record] = {}
        self.errors: dict[str, str] = {}
        self.sampled: dict[str, int] = {}
        for _, event in iterate_records(source.path, nan=True):
            self.spec = event.get("spec") or self.spec
            self.final = event.get("final_report") or self.final
            self._take(plain_id(event.get("sample_id")), event.get("type"), event.get("data") or {})

    def _take(self, sample: str, kind: Any, data: Record) -> None:
        if kind == _MATCH:
            self.matches.setdefault(sample, []).append(data)
        elif kind == _METRICS:
            self.metrics.setdefault(sample, {}).update(data)
        elif kind == _ERROR:
            self.errors.setdefault(sample, str(data.get("message") or data.get("type") or "failed"))
        elif kind == _SAMPLING:
            self.sampled[sample] = self.sampled.get(sample, 0) + 1


def open_openai_events(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a log: first what it says of each sample, then the samples themselves, which may hold pictures."""
    log = _Log(source)
    spec = log.spec
    model = str(next(iter(spec.get("completion_fns") or []), ""))
    task = str(spec.get("base_eval") or spec.get("eval_name") or source.path.stem)
    records = ((number, event) for number, event in source.records() if event.get("type") == _SAMPLING)
    reader = _Reader(source, log, damage)
    rows = _and_failures(each_readable(records, reader.rows, damage), log, partial(reader.failure))
    notes = [] if log.final else ["the log has no final report: its run did not end"]
    reported = {f"final report {name}": value for name, value in log.final.items() if isinstance(value, int | float)}
    return ForeignFile(HARNESS, source.path, rows, task, model, reported, notes=notes)


def _and_failures(rows: Iterator[ForeignRow], log: _Log, failure: Any) -> Iterator[ForeignRow]:
    yield from rows
    for sample in log.errors:
        if not log.sampled.get(sample):
            yield failure(sample)


class _Reader:
    def __init__(self, source: ForeignSource, log: _Log, damage: Damage) -> None:
        self._file, self._log, self._damage = source.path, log, damage
        self._asked: dict[str, int] = {}

    def failure(self, sample: str) -> ForeignRow:
        """Return the row of a sample of which only an error is known."""
        gold = settle_gold({}, self._expected(sample, 0), sample, self._damage)
        return ForeignRow(sample, gold.form, None, self._log.errors[sample], answers=gold.answers)

    def _expected(self, sample: str, repeat: int) -> Any:
        matches = self._log.matches.get(sample) or []
        return matches[min(repeat, len(matches) - 1)].get("expected") if matches else None

    def rows(self, number: int, event: Record) -> Iterator[ForeignRow]:
        """Yield the replies of one sampling event; later ones of a graded sample are the grader's, and no replies."""
        sample, data = plain_id(event.get("sample_id")), event.get("data") or {}
        begun = self._asked.get(sample, 0)
        if begun and not self._log.matches.get(sample):
            return
        said = data.get("sampled")
        replies = said if isinstance(said, list) else [said]
        self._asked[sample] = begun + len(replies)
        prompt, refs = content_of(data.get("prompt"))
        options = shown_options(prompt)
        images = pictures_beside(self._file, refs, sample, self._damage)
        for repeat, reply in enumerate(replies, begun):
            gold = settle_gold(options, self._expected(sample, repeat), sample, self._damage)
            lost = is_nothing(reply) and reply != ""
            if lost or reply == "":
                self._damage.add("lost" if lost else "empty", sample)
            yield ForeignRow(
                sample,
                gold.form,
                None if lost else str(reply),
                self._log.errors.get(sample, NO_REPLY) if lost else None,
                repeat,
                prompt=prompt,
                options=options,
                answers=gold.answers,
                images=images,
                verdict=self._verdict(sample, repeat),
                read_answer=self._picked(sample, repeat),
                at=event.get("created_at"),
            )

    def _verdict(self, sample: str, repeat: int) -> float | None:
        matches = self._log.matches.get(sample) or []
        if repeat < len(matches):
            return share(matches[repeat].get("correct"))
        metrics = self._log.metrics.get(sample) or {}
        return next((share(metrics[name]) for name in ("accuracy", "score", "correct") if name in metrics), None)

    def _picked(self, sample: str, repeat: int) -> str | None:
        matches = self._log.matches.get(sample) or []
        picked = matches[repeat].get("picked") if repeat < len(matches) else None
        return None if is_nothing(picked) else str(picked)


FORMAT = PredictionFormat(is_openai_events, open_openai_events)
