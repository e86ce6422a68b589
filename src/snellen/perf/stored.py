"""Outcomes to stored predictions, and a stored run back to a timeline: accuracy and performance are one record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from ..core.errors import DataError
from ..core.types import Failure, FailureKind, ImageSent, Prediction, Request, Timing, Usage
from ..model.served.prices import Bill
from ..scoring.aggregates.headline import headline
from ..store.reader import RunReader
from .collect import Outcome
from .measure import Measured
from .timeline import CANCELLED, RequestRecord, Timeline, whole_run

RIGHT, CURRENCY, COST, UNPRICED = "right answers", "currency", "cost", "replies without a known price"
"""Figures of a load that is scored; all others are headlines."""
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
    times = (record.chunks, record.silent) if record.streamed else ((), ())
    firsts = (record.first_event, record.first_reasoning, record.first_content)
    return Timing(record.sent, record.done, record.scheduled, *firsts, *times)


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
        silent=timing.silent_times,
        **msgspec.structs.asdict(usage),
        counted_by=counted_by,
        failure=failure.kind.value if failure else None,
        message=failure.message if failure else None,
        streamed=timing.first_event is not None,
        images=len(prediction.images),
        pixels=sum(image.width * image.height for image in prediction.images),
    )


def value_for_money(measured: Measured, results: Mapping[str, Any], bill: Bill | None) -> dict[str, float | str | None]:
    """Return the headline of every task, right answers per second, per thousand output tokens and per unit of money.

    `results` are those of the stored replies, one a trial; `bill` has every reply of the load. Data that goes round is
    taken to be answered as well each time as when it was stored.
    """
    tasks = results["tasks"]
    figures: dict[str, float | str | None] = {}
    for task, result in tasks.items():
        name, estimate = headline(result)
        if name is not None:
            figures[name if len(tasks) == 1 else f"{task}: {name}"] = estimate["value"]
    rights = [result["right_answers"] for result in tasks.values()]
    right = None if None in rights else _rounds(measured) * sum(rights)
    duration = whole_run(measured.timeline.requests).length
    tokens = sum(record.output_tokens or 0 for record in measured.timeline.requests)
    figures |= {
        RIGHT: right,
        f"{RIGHT} per second": _share(right, duration),
        f"{RIGHT} per 1000 output tokens": _share(right, tokens / 1000),
    }
    if bill is not None:
        currency = bill.prices.currency
        per_money = None if bill.unpriced else _share(right, bill.paid)
        figures |= {CURRENCY: currency, COST: bill.paid, f"{RIGHT} per {currency or 'unit of money'}": per_money}
        figures |= {UNPRICED: float(bill.unpriced)} if bill.unpriced else {}
    return figures


def _rounds(measured: Measured) -> float:
    """Return how often each request of the data was answered, on average over those that ever were."""
    answered = [(outcome.item, outcome.record.turn) for outcome in measured.outcomes if outcome.record.ok]
    return len(answered) / len(set(answered)) if answered else 0.0


def _share(right: float | None, of: float) -> float | None:
    return None if right is None or of <= 0 else right / of


def headline_of_value(name: str) -> str:
    """Return the metric that a figure of `value_for_money` is the value of; nothing where it is a sum or a rate."""
    return "" if name in (CURRENCY, COST, UNPRICED) or name.startswith(RIGHT) else name.rpartition(": ")[2]
