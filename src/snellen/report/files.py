"""Results to files: results.json and records.jsonl, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..core.errors import EnvironmentProblem
from ..core.types import Prediction, Score, TrialKey
from ..store.reader import RunReader

NO_SCORE = Score(TrialKey("", ""), "", None, reason="not scored")


def write_atomically(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file beside its place, sync it, and move it there: readers see the old file or the new one."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)  # noqa: PTH101 - mkstemp makes it private; results are for sharing
            Path(temporary).replace(path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot write {path}: {error.strerror}; the run itself is safe, repeat with `snellen score {path.parent}`"
        ) from None


def write_results(folder: Path, results: Mapping[str, Any]) -> Path:
    """Write results.json, keys in a fixed order."""
    path = folder / "results.json"
    body = msgspec.json.format(msgspec.json.encode(results, order="sorted"), indent=2)
    write_atomically(path, lambda file: _write_line(file, body))
    return path


def write_records(folder: Path) -> Path:
    """Write records.jsonl: one line a trial, in the order of the plan."""
    path = folder / "records.jsonl"
    reader = RunReader(folder)

    def write(file: BinaryIO) -> None:
        for record in records(reader):
            _write_line(file, msgspec.json.encode(record))

    try:
        write_atomically(path, write)
    finally:
        reader.close()
    return path


def records(reader: RunReader) -> Iterator[dict[str, Any]]:
    """Yield every stored trial as one flat record; the first scorer's metric is its `value`."""
    for task in reader.header().tasks:
        scores = _by_trial(reader.scores(task.name))
        known = next(scores, None)
        for sample, _, prediction, _ in reader.trials(task.name):
            of_trial: list[Score] = []
            if known is not None and known[0].key == prediction.key:
                of_trial, known = known, next(scores, None)
            yield record(prediction, of_trial) | {"tags": sample.tags}


def record(prediction: Prediction, scores: list[Score]) -> dict[str, Any]:
    """Return one trial as a flat record."""
    key, failure, timing = prediction.key, prediction.failure, prediction.timing
    main = scores[0] if scores else NO_SCORE
    outcome = "failed" if failure else "unscored" if main.value is None else "scored"
    return {
        "task": key.task,
        "sample": key.sample,
        "variant": key.variant,
        "repeat": key.repeat,
        "outcome": outcome,
        "text": prediction.text,
        "reasoning": prediction.reasoning,
        "loglikelihoods": prediction.loglikelihoods,
        "metric": main.metric or None,
        "value": main.value,
        "answer": main.answer,
        "rule": main.rule,
        "reason": main.reason if scores else None,
        "scores": {score.metric: score.value for score in scores},
        "finish": prediction.finish,
        "usage": prediction.usage,
        "latency_s": timing.done - timing.sent if timing else None,
        "cached": prediction.cached,
        "error": failure and {"kind": failure.kind, "message": failure.message, "status": failure.status, "attempts": failure.attempts},
    }


def _by_trial(scores: Iterator[Score]) -> Iterator[list[Score]]:
    gathered: list[Score] = []
    for score in scores:
        if gathered and gathered[0].key != score.key:
            yield gathered
            gathered = []
        gathered.append(score)
    if gathered:
        yield gathered


def _write_line(file: BinaryIO, line: bytes) -> None:
    file.write(line)
    file.write(b"\n")
