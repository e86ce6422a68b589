"""Results to files: results.json and records.jsonl, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..core.errors import EnvironmentProblem
from ..core.looks import DETAIL
from ..core.types import Prediction, Sample, Score, TrialKey, Usage
from ..scoring.protocols.readings import file_of
from ..store.owner import own_name, sweep
from ..store.reader import RunReader, Trial

NO_SCORE = Score(TrialKey("", ""), "", None, reason="not scored")


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside its place; after the block it is synced and moved there: readers see the old or the new."""
    sweep(path.parent, f".{path.name}.")  # what a kill left
    draft = path.with_name(f".{path.name}.{own_name()}")
    try:
        try:
            with draft.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        if error.filename is not None and Path(error.filename).absolute().parent != path.absolute().parent:
            raise  # not of this file: something that was done in the block
        again = f", repeat with `snellen score {path.parent}`" if (path.parent / "run.db").exists() else ""
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror}; the run itself is safe{again}") from None


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file whole or not at all."""
    with atomic_file(path) as file:
        write(file)


def write_results(folder: Path, results: Mapping[str, Any], reading: str | None = None) -> Path:
    """Write results.json, or that of a named reading, keys in a fixed order."""
    path = file_of(folder, "results", "json", reading)
    body = msgspec.json.format(msgspec.json.encode(results, order="sorted"), indent=2)
    write_atomically(path, lambda file: file.writelines((body, b"\n")))
    return path


USED = frozenset({"temperature", "top_p", "max_tokens", "repetition_penalty", "route", "boundary", "untested", "batch"})
"""What of a prediction's `detail` stands in its record."""


class Record(Struct, gc=False):
    """One line of records.jsonl."""

    task: str
    sample: str
    variant: str
    repeat: int
    outcome: str
    text: str | None
    reasoning: str | None
    loglikelihoods: tuple[float, ...] | None
    metric: str | None
    value: float | None
    answer: str | None
    rule: str | None
    reason: str | None
    scores: dict[str, float | None]
    finish: str | None
    usage: Usage | None
    latency_s: float | None
    cached: bool
    error: dict[str, Any] | None
    tags: Mapping[str, Any]
    used: Mapping[str, Any]
    """What the model really did where a request left it open: temperature, top_p, the likelihood route."""
    fields: Mapping[str, Any] | UnsetType = UNSET
    """What a plug-in keeps with a trial (`detail["fields"]`); not written where there is nothing."""
    look: Mapping[str, Any] | UnsetType = UNSET
    """How a trial with tools went: end, turns, calls, looks, classes; not written where none were offered."""


def write_records(run: RunReader) -> Path:
    """Write records.jsonl: one line a trial, in the order of the plan."""
    path = run.folder / "records.jsonl"
    write_atomically(path, lambda file: file.writelines(record_lines([each]) for each in records(run)))
    return path


def records(reader: RunReader) -> Iterator[Record]:
    """Yield every stored trial as one flat record; the first scorer's metric is its `value`."""
    for task in reader.header().tasks:
        for trial, scores in reader.with_scores(task.name):
            yield record(trial.sample, trial.prediction, scores)


def record(sample: Sample, prediction: Prediction, scores: Sequence[Score]) -> Record:
    """Return one trial as a flat record."""
    key, failure, timing = prediction.key, prediction.failure, prediction.timing
    main = scores[0] if scores else NO_SCORE
    values = {score.metric: None if score.value is None else float(score.value) for score in scores}
    return Record(
        key.task,
        key.sample,
        key.variant,
        key.repeat,
        _outcome(prediction, main),
        prediction.text,
        prediction.reasoning,
        prediction.loglikelihoods,
        main.metric or None,
        values.get(main.metric),
        main.answer,
        main.rule,
        main.reason if scores else None,
        values,
        prediction.finish,
        prediction.usage,
        timing.done - timing.sent if timing else None,
        prediction.cached,
        msgspec.structs.asdict(failure) if failure else None,
        sample.tags,
        _used(prediction.detail),
        prediction.detail.get("fields") or UNSET,
        prediction.detail.get(DETAIL, UNSET),
    )


def recorded_batch(batch: Sequence[tuple[Trial, Sequence[Score]]]) -> bytes:
    """Return scored trials as the lines that stand in records.jsonl."""
    return record_lines([record(trial.sample, trial.prediction, scores) for trial, scores in batch])


def _outcome(prediction: Prediction, main: Score) -> str:
    if prediction.failure is not None:
        return "failed"
    return "unscored" if main.value is None else "scored"


def _used(detail: Mapping[str, Any]) -> dict[str, Any]:
    return {} if USED.isdisjoint(detail) else {name: value for name, value in detail.items() if name in USED}


record_lines = msgspec.json.Encoder().encode_lines
"""Records to the lines that stand in records.jsonl."""
