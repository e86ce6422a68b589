"""Outcomes to stored predictions, and a stored run back to a timeline: accuracy and performance are one record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import msgspec

from ..core.errors import DataError
from ..core.types import Failure, FailureKind, ImageSent, Prediction, Request, Timing, Usage
from ..model.providers.prices import Prices
from ..store.reader import RunReader
from .load.collect import Outcome
from .steady import whole_run
from .timeline import CANCELLED, RequestRecord, Timeline

TOKEN_FIELDS = Usage.__struct_fields__
"""The counts that usage and a request record share by name."""


def to_prediction(request: Request, outcome: Outcome, images: tuple[ImageSent, ...] = ()) -> Prediction:
    """Return what the store keeps of one outcome: the reply or the typed failure, usage, all moments, what was sent."""
    record = outcome.record
    return Prediction(
        key=request.key,
        text=(outcome.text or "") if record.ok else None,
        failure=None if record.ok else _failure(record),
        reasoning=outcome.reasoning,
        usage=Usage(**{name: getattr(record, name) for name in TOKEN_FIELDS}),
        timing=_timing(record),
        finish=outcome.finish if record.ok else None,
        images=images,
        detail={"model": outcome.model} if outcome.model and record.ok else {},
    )


def _failure(record: RequestRecord) -> Failure:
    kind = FailureKind.NETWORK if record.failure in (None, CANCELLED) else FailureKind(record.failure)
    return Failure(kind, record.message or "", record.status)


def _timing(record: RequestRecord) -> Timing:
    times = record.chunks if record.streamed else ()
    firsts = (record.first_event, record.first_reasoning, record.first_content)
    return Timing(record.sent, record.done, record.scheduled, *firsts, times)


def timeline_of_run(folder: Path) -> Timeline:
    """Return the timeline of a stored run, from the timings that every streaming run keeps."""
    with RunReader(folder) as reader:
        trials = (trial for task in reader.header().tasks for trial in reader.trials(task.name))
        records = [_record(prediction) for _, _, prediction, _ in trials if prediction.timing and not prediction.cached]
    if not records:
        raise DataError(f"{folder} holds no timed reply (all came from the cache, or failed before they were sent)")
    return Timeline(requests=tuple(sorted(records, key=lambda record: record.sent)), load={"run": str(folder)})


def _record(prediction: Prediction) -> RequestRecord:
    timing, usage, failure = cast("Timing", prediction.timing), prediction.usage or Usage(), prediction.failure
    key, counted_by = prediction.key, "server"
    if usage.output_tokens is None and timing.token_times:  # as a load counts them: one an event
        usage, counted_by = msgspec.structs.replace(usage, output_tokens=len(timing.token_times)), "chunks"
    return RequestRecord(
        id=f"{key.task}/{key.sample}/{key.variant}/{key.repeat}",
        sent=timing.sent,
        done=timing.done,
        scheduled=timing.scheduled,
        first_event=timing.first_event,
        first_reasoning=timing.first_reasoning,
        first_content=timing.first_token,
        chunks=timing.token_times,
        **msgspec.structs.asdict(usage),
        counted_by=counted_by,
        failure=failure.kind.value if failure else None,
        message=failure.message if failure else None,
        streamed=timing.first_event is not None,
        images=len(prediction.images),
        pixels=sum(image.width * image.height for image in prediction.images),
    )


def value_for_money(
    timeline: Timeline, correct: float, accuracy: float | None, prices: Prices | None
) -> dict[str, float | str | None]:
    """Return right answers per second, per thousand output tokens and per unit of money, and what the load cost."""
    duration = whole_run(timeline.requests).length
    tokens_in = sum(record.input_tokens or 0 for record in timeline.requests)
    tokens_out = sum(record.output_tokens or 0 for record in timeline.requests)
    figures: dict[str, float | str | None] = {
        "accuracy": accuracy,
        "right answers": correct,
        "right answers per second": correct / duration if duration > 0 else None,
        "right answers per 1000 output tokens": 1000 * correct / tokens_out if tokens_out else None,
    }
    if prices is not None:
        cost = (tokens_in * prices.input_per_million + tokens_out * prices.output_per_million) / 1e6
        figures |= {"currency": prices.currency, "cost": cost}
        figures[f"right answers per {prices.currency}"] = correct / cost if cost else None
    return figures


def right_answers(results: Mapping[str, object]) -> tuple[float, float | None]:
    """Return (how many trials were right, accuracy) over all tasks of a results.json, by the main metric of each."""
    right, scored = 0.0, 0
    tasks = results.get("tasks")
    for task in tasks.values() if isinstance(tasks, dict) else ():
        main = next(iter(task["metrics"].values()), None)
        if main and main["value"] is not None and 0 <= main["value"] <= 1:
            right += main["value"] * main["n"]
            scored += main["n"]
    return right, right / scored if scored else None
