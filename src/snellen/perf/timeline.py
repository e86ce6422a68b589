"""Timeline files in, request records out, on one monotonic clock; and the window of them that is steady."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from ..core.errors import DataError
from ..core.ids import canonical_json

CANCELLED = "cancelled"
"""Outcome of a request that was in flight when the run was stopped."""


class RequestRecord(Struct, frozen=True, omit_defaults=True):
    """One request: moments in seconds on one monotonic clock, tokens, and how it ended.

    `chunks` are the events that carried text, `silent` those that did not (a role, usage).
    A failed request keeps its moments: it is timed, never dropped.
    """

    id: str
    sent: float = field(name="start")
    done: float
    scheduled: float | None = None
    first_event: float | None = None
    first_reasoning: float | None = None
    first_content: float | None = None
    chunks: tuple[float, ...] = ()
    silent: tuple[float, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    visual_tokens: int | None = None
    written_tokens: int | None = None
    counted_by: str = "server"
    """Who counted the output tokens: `server`, `chunks` (one per event, no usage came) or `words`."""
    failure: str | None = None
    """None, a FailureKind value, or `cancelled`."""
    status: int | None = None
    message: str | None = None
    streamed: bool = True
    images: int = 0
    pixels: int = 0
    sent_bytes: int = 0
    turn: int = 0
    target: str = ""
    worker: int = 0

    @property
    def ok(self) -> bool:
        """Whether a whole reply came."""
        return self.failure is None

    @property
    def due(self) -> float:
        """When it should have been sent: the scheduled moment, or the send where nothing was scheduled."""
        return self.sent if self.scheduled is None else self.scheduled

    @property
    def end(self) -> float:
        """The last event with text; the end of the reply where no event carried text."""
        return self.chunks[-1] if self.ok and self.streamed and self.chunks else self.done


class Timeline(Struct, frozen=True, omit_defaults=True):
    """All requests of one load, and what was asked of it."""

    requests: tuple[RequestRecord, ...]
    max_concurrency: int | None = None
    stream: bool = True
    stats_list: tuple[str, ...] = ()
    planned: int | None = None
    interrupted: bool = False
    every_event: bool = True
    """Whether `chunks` holds every event with text; some tools keep only the first and the last."""
    load: dict[str, Any] = {}
    """How the load was made: arrivals, seed, targets, processes."""
    watch: dict[str, Any] = {}
    """What the generator saw of itself."""


def write_timeline(path: Path, timeline: Timeline) -> None:
    """Write a timeline file that `read_timeline` reads back equal."""
    draft = path.with_name(f".{path.name}")
    draft.write_bytes(msgspec.json.format(canonical_json(timeline), indent=1) + b"\n")
    draft.replace(path)  # whole or not at all: what a killed load left beside it counts until then


def timeline_from_dict(data: dict[str, Any], where: str) -> Timeline:
    """Check and convert the file form `{max_concurrency, stream, requests: [{start, chunks, …}]}`."""
    requests = data.get("requests")
    if not isinstance(requests, list):
        raise DataError(f"{where}: no list `requests`; see `snellen perf --explain` for the file form")
    stream = bool(data.get("stream", True))
    records = tuple(_record(item, index, stream, where) for index, item in enumerate(requests))
    rest = {key: data[key] for key in Timeline.__struct_fields__ if key in data and key != "requests"}
    try:
        return msgspec.structs.replace(msgspec.convert({**rest, "requests": ()}, Timeline), requests=records)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {error}") from None


def _record(item: Any, index: int, stream: bool, where: str) -> RequestRecord:
    place = f"{where}: request {index}"
    if not isinstance(item, dict):
        raise DataError(f"{place} is a {type(item).__name__}, not an object")
    row = {"streamed": stream, **item, "id": str(item.get("id", index)), "chunks": item.get("chunks") or ()}
    _count_words(row)
    _mark_failure(row)
    if row.get("done") is None:
        row["done"] = max([row.get("start"), *(row.get("chunks") or ())], default=None, key=_number)
    try:
        record = msgspec.convert(row, RequestRecord)
    except msgspec.ValidationError as error:
        raise DataError(f"{place}: {error}") from None
    _check_moments(record, place)
    return record


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else -math.inf


def _count_words(row: dict[str, Any]) -> None:
    """Fill absent token counts from stored texts, one token a word, and say so."""
    for count, text in (("input_tokens", "prompt_text"), ("output_tokens", "output_text")):
        if not row.get(count) and isinstance(row.get(text), str):
            row[count] = len(row[text].split())
            row["counted_by"] = "words"


def _mark_failure(row: dict[str, Any]) -> None:
    failed = row.get("success") is False or row.get("failed") is True or bool(row.get("error"))
    if failed and row.get("failure") is None:
        row["failure"] = "server"
        row["message"] = str(row.get("error") or "marked as failed in the file")
    if row.get("failure") is None and not row.get("chunks") and row.get("done") is None:
        row["failure"], row["message"] = "decode", "no event and no end is recorded"


def _check_moments(record: RequestRecord, place: str) -> None:
    previous = record.sent
    for name, moment in _moments(record):
        if not math.isfinite(moment):
            raise DataError(f"{place}: {name} is {moment}; moments are finite seconds")
        if name.startswith(("chunk", "done")) and moment < previous:
            raise DataError(f"{place}: {name} at {moment} lies before {previous}; moments must not run backwards")
        previous = max(previous, moment) if name.startswith("chunk") else previous
    for name in ("input_tokens", "output_tokens"):
        if (getattr(record, name) or 0) < 0:
            raise DataError(f"{place}: {name} is negative")


def _moments(record: RequestRecord) -> Iterator[tuple[str, float]]:
    yield "start", record.sent
    if record.scheduled is not None:
        yield "scheduled", record.scheduled
    for index, moment in enumerate(record.chunks):
        yield f"chunk {index}", moment
    for index, moment in enumerate(record.silent):
        yield f"silent event {index}", moment
    yield "done", record.done


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, in seconds on the records' clock."""

    start: float
    end: float
    whole: bool = False
    """Whether it is the whole run, to which everything belongs."""

    @property
    def length(self) -> float:
        """Seconds from start to end."""
        return self.end - self.start

    def holds(self, record: RequestRecord) -> bool:
        """Tell whether a request was sent inside; the end does not belong to the window."""
        return self.start <= record.sent < self.end

    def overlap(self, record: RequestRecord) -> float:
        """Return how many seconds of a request's life (send -> end) lie inside."""
        return max(0.0, min(record.end, self.end) - max(record.sent, self.start))

    def delivered(self, record: RequestRecord) -> float:
        """Return which share of a reply came inside: of its events with text; of one that came whole, all or nothing.

        What comes at the very start belongs before it: the send that opens the window followed from it.
        """
        if self.whole:
            return 1.0
        if not record.chunks:
            return float(self.start < record.done <= self.end)
        return sum(self.start < moment <= self.end for moment in record.chunks) / len(record.chunks)


def whole_run(records: Sequence[RequestRecord]) -> Window:
    """Return the window from the first send to the last end."""
    return Window(min(record.sent for record in records), max(record.end for record in records), whole=True)


def concurrency_steps(records: Sequence[RequestRecord]) -> list[tuple[float, int]]:
    """Return (moment, requests in flight from then on), in order; at one moment ends go before sends."""
    events = sorted([(record.sent, 1) for record in records] + [(record.end, -1) for record in records])
    steps: list[tuple[float, int]] = []
    level = 0
    for moment, change in events:
        level += change
        if steps and steps[-1][0] == moment:
            steps[-1] = (moment, level)
        else:
            steps.append((moment, level))
    return steps


def plateau(steps: Sequence[tuple[float, int]]) -> int:
    """Return the time-weighted median of the concurrency."""
    spans = sorted((level, later[0] - moment) for (moment, level), later in pairwise(steps))
    half = sum(length for _, length in spans) / 2
    passed = 0.0
    for level, length in spans:
        passed += length
        if passed >= half:
            return level
    return 0


def steady_window(records: Sequence[RequestRecord]) -> Window | None:
    """Return the steady-state window (the rule is in `metrics.STEADY_RULE`), or None if there is none."""
    if len(records) < 3:
        return None
    steps = concurrency_steps(records)
    level_wanted = plateau(steps)
    ramp_end = next((moment for moment, level in steps if level >= level_wanted), steps[-1][0])
    ramp_count = sum(record.sent <= ramp_end for record in records)
    ends = sorted(record.end for record in records)
    ramped = ends[min(ramp_count, len(ends)) - 1]
    sends = sorted(record.sent for record in records if record.sent >= ramped)
    return Window(sends[0], sends[-1]) if len(sends) > 2 and sends[-1] > sends[0] else None
