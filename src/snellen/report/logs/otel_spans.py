"""A run as OpenTelemetry spans while it goes on, to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.types import Form, Prediction, Request, Sample
from ...store.reader import RunReader
from ..exports.exported_run import ExportedRun, ExportedTrial
from ..exports.otel_spans import Json, Sender, all_events, batches_of, root_span, sender_of, span_of
from .tracker import Wrong

HERE = "http://127.0.0.1:4318"
CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""OpenTelemetry's own switch for prompts and replies; pictures are hashes in any case."""
NEW = (
    "SELECT rowid, failed, request, body FROM predictions "
    "WHERE rowid > ? OR (failed = 0 AND rowid IN ({})) ORDER BY rowid"
)


class OtelSpans:
    """Sends each trial once: as soon as it is stored, and again only where a failure became a reply."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last = 0
        self._failed: set[int] = set()
        self._contents = os.environ.get(CONTENTS, "").lower() == "true"
        found = sender_of({})
        self._sender = found or Sender(HERE, protobuf=False, headers={})

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        """The run's own span is sent when it has ended."""

    def tell(self, step: int, figures: Mapping[str, float]) -> None:
        """Send the trials that are new."""
        if not (self._folder / "run.db").exists():
            return
        with RunReader(self._folder) as reader:
            run = LiveRun(reader)
            self._sender.send("traces", batches_of(self._fresh(run)), run)

    def end(self, step: int, figures: Mapping[str, float], wrong: Sequence[Wrong]) -> None:
        """Send what is left, how every reply was judged, and the run's own span."""
        self.tell(step, figures)
        with RunReader(self._folder) as reader:
            run = ExportedRun(reader)
            last = max((trial.ended for task in run.tasks for trial in run.trials(task.name)), default=run.began)
            self._sender.send("traces", [[root_span(run, last)]], run)
            self._sender.send("logs", batches_of(all_events(run)), run)

    def _fresh(self, run: LiveRun) -> Iterator[Json]:
        failed = ",".join(map(str, self._failed))
        rows = run.reader.rows(NEW.format(failed), (self._last,))
        for row, is_failed, request, body in rows:
            self._last = max(self._last, row)
            (self._failed.add if is_failed else self._failed.discard)(row)
            yield span_of(run, run.trial_of(request, body), contents=self._contents)


class LiveRun(ExportedRun):
    """A run whose results nobody has made yet: its trials one by one, without their scores."""

    def __init__(self, reader: RunReader) -> None:
        self.reader, self.header = reader, reader.header()
        self.results, self.pictures_missing = {}, 0

    def trial_of(self, request: bytes, body: bytes) -> ExportedTrial:
        """Return a stored trial by its two records."""
        asked = msgspec.json.decode(request, type=Request)
        prediction = msgspec.json.decode(body, type=Prediction)
        sample = Sample(prediction.key.sample, prediction.key.task, Form.OPEN, "")
        began, estimated = self.began_of(prediction)
        return ExportedTrial(sample, asked, prediction, [], began, estimated)
