"""A stored run as the forms of other tools need it: its trials with outcome and time, its results, its facts.

A form is registered as `export`: `write(run, output, details)` writes files below `output` and returns them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from ..core.errors import DataError, UsageError, not_among
from ..core.registry import Registry
from ..core.tasks import RunHeader, Task
from ..core.types import Image, Prediction, Request, Sample, Score, Timing
from ..data.images.decode import encode_png, open_image, read_bytes, read_header
from ..scoring.aggregates.headline import headline
from ..scoring.tables.table import lower_is_better
from ..store.reader import RunReader
from .files import write_atomically
from .stored_results import read_results

SCORED, UNSCORED, FAILED = "scored", "unscored", "failed"
ESTIMATED = "estimated"
"""How a time is marked that nobody noted: made of the run's beginning and a clock without a date."""
REMEMBERED_PICTURES = 32
Details = Mapping[str, str]
"""What only the user can say of an export: `organization`, `dataset` …"""


class _Timed(msgspec.Struct):
    timing: Timing | None = None
    at: str | None = None


class ExportedTrial(NamedTuple):
    """One trial with its scores, the main one first, and when it was sent."""

    sample: Sample
    request: Request
    prediction: Prediction
    scores: list[Score]
    began: datetime
    estimated: bool

    @property
    def main(self) -> Score | None:
        """Return the score that the trial is judged by."""
        return self.scores[0] if self.scores else None

    @property
    def outcome(self) -> str:
        """Return scored, unscored or failed."""
        if self.prediction.failure is not None:
            return FAILED
        return SCORED if self.main is not None and self.main.value is not None else UNSCORED

    @property
    def latency_s(self) -> float | None:
        """Return how long the reply took."""
        timing = self.prediction.timing
        return None if timing is None else timing.done - timing.sent

    @property
    def ended(self) -> datetime:
        """Return when the reply had come."""
        return self.began + timedelta(seconds=self.latency_s or 0.0)

    def strict_value(self) -> float:
        """Return the value in which nothing leaves the denominator: without one of its own a trial is not right."""
        if self.outcome == SCORED and self.main is not None and self.main.value is not None:
            return float(self.main.value)
        return 1.0 if self.main is not None and lower_is_better(self.main.metric) else 0.0

    def is_right(self) -> bool:
        """Tell whether the main score is the best there is."""
        value = self.main.value if self.outcome == SCORED and self.main is not None else None
        if value is None or self.main is None:
            return False
        return value <= 0.0 if lower_is_better(self.main.metric) else value >= 1.0


class ExportedRun:
    """A run that is read once for an export."""

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader
        self.header: RunHeader = reader.header()
        self.pictures_missing = 0
        self._urls: dict[Any, str | None] = {}
        self.notes: list[str] = []
        """What must be said of the export."""

    @cached_property
    def results(self) -> Mapping[str, Any]:
        """Return results.json, or the same computed now."""
        return read_results(self.reader, self.header)

    @cached_property
    def began(self) -> datetime:
        """Return when the run was begun."""
        return _moment(self.header.created) or datetime(1970, 1, 1, tzinfo=UTC)

    @property
    def version(self) -> str:
        """Return the version of Snellen that asked."""
        return str(self.header.versions.get("snellen") or "0")

    @property
    def tasks(self) -> list[Task]:
        """Return the tasks in their order."""
        return self.header.tasks

    def metrics(self, task: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the estimates of a task by metric."""
        found: Mapping[str, Mapping[str, Any]] = self.results["tasks"].get(task, {}).get("metrics", {})
        return found

    def headline(self, task: str) -> tuple[str | None, Mapping[str, Any]]:
        """Return the metric that a task stands for, and its estimate."""
        return headline(self.results["tasks"][task])

    def planned(self, task: str) -> int:
        """Return how many trials were planned."""
        return int(self.header.planned.get(task) or 0)

    def missing(self, task: str) -> int:
        """Return how many trials were planned and are not stored."""
        return max(0, self.planned(task) - self.reader.count_trials(task))

    @property
    def complete(self) -> bool:
        """Tell whether everything planned was asked."""
        return not any(self.missing(task.name) for task in self.tasks)

    @cached_property
    def _first_sent(self) -> float:
        """Return the least monotonic moment of sending: only runs that noted no time need it."""
        decode = msgspec.json.Decoder(_Timed).decode
        rows = (decode(body) for (body,) in self.reader.rows("SELECT body FROM predictions"))
        return min((row.timing.sent for row in rows if row.timing is not None), default=0.0)

    def trials(self, task: str) -> Iterator[ExportedTrial]:
        """Yield the trials of a task in the order of the plan."""
        for (sample, request, prediction, _), scores in self.reader.with_scores(task):
            began, estimated = self.began_of(prediction)
            yield ExportedTrial(sample, request, prediction, scores, began, estimated)

    def began_of(self, prediction: Prediction) -> tuple[datetime, bool]:
        """Return when a trial was sent, and whether that is an estimate."""
        timing, came = prediction.timing, _moment(prediction.at)
        if came is not None:
            return came - timedelta(seconds=timing.done - timing.sent if timing else 0.0), False
        after = timing.sent - self._first_sent if timing is not None else 0.0
        return self.began + timedelta(seconds=max(0.0, after)), True

    def data_url(self, image: Image) -> str | None:
        """Return a picture as a data URL, its edits applied; one that is gone is counted, and None.

        Repeats and variants of a question show the same ones near each other, so the last few are remembered.
        """
        if image.ref.startswith("data:") and not image.edits and image.frame is None:
            return image.ref
        key = (image.ref, image.edits, image.frame, image.page)
        if key in self._urls:
            return self._urls[key]
        if len(self._urls) >= REMEMBERED_PICTURES:
            self._urls.pop(next(iter(self._urls)))
        found = self._urls[key] = self._as_url(image)
        return found

    def _as_url(self, image: Image) -> str | None:
        try:
            if image.edits:
                data, mime = encode_png(open_image(image)), "image/png"
            else:
                data = read_bytes(image)
                mime = read_header(data, image.ref).mime
        except DataError:
            self.pictures_missing += 1
            return None
        return f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"


Write = Callable[[ExportedRun, Path, Details], list[Path]]
"""What is registered as `export`."""


def write_export(
    folder: Path, form: str, output: Path, details: Details, registry: Registry
) -> tuple[list[Path], list[str]]:
    """Write a run in a registered form; return the files and what must be said of them."""
    write: Write = registry.get("export", form)
    with RunReader(folder) as reader:
        run = ExportedRun(reader)
        files = write(run, output, details)
        notes = [f"{run.pictures_missing} pictures are not there any more"] if run.pictures_missing else []
        return files, [*run.notes, *notes]


StoredTrial = tuple[Sample, Request, Prediction, Score | None]
"""A trial as stored, with its score of the metric to export (None: failed or not scored)."""


def first_scored(run: ExportedRun, task: Task) -> Iterator[StoredTrial]:
    """Yield every trial of a task with its first score."""
    for (sample, request, prediction, _), scores in run.reader.with_scores(task.name):
        yield sample, request, prediction, scores[0] if scores else None


def write_files(output: Path, files: Mapping[str, Any]) -> list[Path]:
    """Write files by their names: a JSON value, what yields the records of a list, or the lines of a `.jsonl`."""
    output.mkdir(parents=True, exist_ok=True)
    return [_write_file(output / name, value) for name, value in files.items()]


def _write_file(path: Path, value: Any) -> Path:
    def write(file: BinaryIO) -> None:
        if path.suffix == ".jsonl":
            file.writelines(msgspec.json.encode(line) + b"\n" for line in value)
        elif isinstance(value, Iterator):
            file.writelines(listed(value))
        else:
            file.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    write_atomically(path, write)
    return path


def listed(records: Iterator[Any]) -> Iterator[bytes]:
    """Yield the parts of a JSON list, as it would be indented whole; no more than one record is held."""
    before = b"[\n  "
    for record in records:
        # a line break in a text is escaped: each one here is of the layout
        yield before + msgspec.json.format(msgspec.json.encode(record), indent=2).replace(b"\n", b"\n  ")
        before = b",\n  "
    yield b"[]\n" if before.startswith(b"[") else b"\n]\n"


def file_stem(name: str) -> str:
    """Return a name that is safe as a file name."""
    kept = "".join(char if char.isalnum() or char in "._-" else "_" for char in name).strip(".")
    if not kept:
        raise UsageError(f"{name!r} gives no file name")
    return kept[:120]


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


def hashed(*parts: object, size: int = 16) -> str:
    """Return a hash of parts in hexadecimal: ids of an export come from what they name, never from a clock."""
    return hashlib.blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def trial_id(trial: ExportedTrial, run: str, size: int = 8) -> str:
    """Return the id of a trial within a run."""
    key = trial.prediction.key
    return hashed(run, key.task, key.sample, key.variant, key.repeat, size=size)


def picture_hashes(trial: ExportedTrial) -> list[str]:
    """Return the SHA-256 of every picture that was sent, or of its file where nothing says what was sent."""
    sent = [picture.sha256 for picture in trial.prediction.images]
    named = [image.sha256 for turn in trial.request.messages for image in turn.images if image.sha256]
    return sent or named


def check_details(details: Details, known: Mapping[str, str], form: str) -> None:
    """Refuse a detail that the form does not have."""
    if details and not known:
        raise UsageError(f"--detail says nothing of --export {form}: leave it out")
    for name in details:
        if name not in known:
            raise UsageError(f"--detail {name}=…: --export {form} has no detail {not_among(name, sorted(known))}")


def split_model(model: str) -> tuple[str, str, str]:
    """Return provider, developer and name of `openai/Qwen/Qwen3-VL`; a developer that it does not name is unknown."""
    provider, slash, rest = model.partition("/")
    if not slash:
        return "", "unknown", provider
    developer, slash, name = rest.partition("/")
    return (provider, developer, name) if slash else (provider, "unknown", rest)
