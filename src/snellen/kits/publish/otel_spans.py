"""A run as OpenTelemetry: one span a trial, an evaluation event a score, in OTLP (JSON files, or to a collector);
written of a stored run, or sent while it goes on (`--log otel`).

Ids are hashes of what they name, so that sending twice overwrites and does not double.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from ...api.trackers import Wrong
from ...core.errors import EnvironmentProblem, MissingExtra, UsageError
from ...core.types import Form, Prediction, Request, Sample, Score
from ...report.exported_run import (
    ESTIMATED,
    FAILED,
    SCORED,
    Details,
    ExportedRun,
    ExportedTrial,
    check_details,
    hashed,
    picture_hashes,
    split_model,
    trial_id,
)
from ...report.files import atomic_file
from ...store.reader import RunReader

DETAILS = {
    "endpoint": "a collector, as http://127.0.0.1:4318; without one files are written",
    "protocol": "json or protobuf (extra `otel`)",
    "contents": "yes: prompts and replies too; pictures are their SHA-256 in any case",
}
AT_ONCE: Final = 500
CLIENT, INTERNAL = 3, 1
OK, ERROR = 1, 2
SCOPE = "snellen"
TIMEOUT_S = 30.0
Json = dict[str, Any]


def write(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write `traces.json` and `logs.json`, a request a line, or send the same to the collector that was named."""
    check_details(details, DETAILS, "otel")
    contents = details.get("contents") == "yes"
    sender = sender_of(details)
    if sender is not None:
        sender.send("traces", batches_of(all_spans(run, contents=contents)), run)
        sender.send("logs", batches_of(all_events(run)), run)
        return []
    output.mkdir(parents=True, exist_ok=True)
    files = {"traces": all_spans(run, contents=contents), "logs": all_events(run)}
    for kind, records in files.items():
        with atomic_file(output / f"{kind}.json") as file:
            for batch in batches_of(records):
                file.write(json.dumps(envelope(kind, batch, run), separators=(",", ":")).encode() + b"\n")
    return [output / f"{kind}.json" for kind in files]


def batches_of(records: Iterable[Json]) -> Iterator[list[Json]]:
    """Yield records a few at a time."""
    left = iter(records)
    while batch := list(islice(left, AT_ONCE)):
        yield batch


def trace_id(run: ExportedRun) -> str:
    """Return the trace of a run."""
    return hashed(run.header.id, "trace", size=16)


def root_id(run: ExportedRun) -> str:
    """Return the span that all trials of a run hang under."""
    return hashed(run.header.id, "root", size=8)


def all_spans(run: ExportedRun, *, contents: bool) -> Iterator[Json]:
    """Yield the spans of all trials, and last that of the run."""
    last = run.began
    for task in run.tasks:
        for trial in run.trials(task.name):
            last = max(last, trial.ended)
            yield span_of(run, trial, contents=contents)
    yield root_span(run, last)


def root_span(run: ExportedRun, ended: datetime) -> Json:
    """Return the span of the run itself, with its counts."""
    facts: Json = {"snellen.run": run.header.id, "snellen.command": run.header.command}
    for task in run.tasks:
        facts[f"snellen.planned.{task.name}"] = run.planned(task.name)
        facts[f"snellen.not_yet_asked.{task.name}"] = run.missing(task.name)
    return {
        "traceId": trace_id(run),
        "spanId": root_id(run),
        "name": f"snellen run {run.header.model}",
        "kind": INTERNAL,
        "startTimeUnixNano": _nanoseconds(run.began),
        "endTimeUnixNano": _nanoseconds(max(run.began, ended)),
        "attributes": attributes(facts),
        "status": {"code": OK if run.complete else ERROR},
    }


def span_of(run: ExportedRun, trial: ExportedTrial, *, contents: bool = False) -> Json:
    """Return the span of one trial."""
    failure = trial.prediction.failure
    name = split_model(run.header.model)[2]
    return {
        "traceId": trace_id(run),
        "spanId": trial_id(trial, run.header.id),
        "parentSpanId": root_id(run),
        "name": f"chat {name}",
        "kind": CLIENT,
        "startTimeUnixNano": _nanoseconds(trial.began),
        "endTimeUnixNano": _nanoseconds(trial.ended),
        "attributes": attributes(_facts(run, trial) | (_contents(trial) if contents else {})),
        "status": {"code": OK} if failure is None else {"code": ERROR, "message": failure.message},
    }


def _facts(run: ExportedRun, trial: ExportedTrial) -> Json:
    key, prediction, params = trial.prediction.key, trial.prediction, trial.request.params
    provider, developer, name = split_model(run.header.model)
    usage, failure = prediction.usage, prediction.failure
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider or "unknown",
        "gen_ai.request.model": name if developer == "unknown" else f"{developer}/{name}",
        "gen_ai.request.temperature": params.temperature,
        "gen_ai.request.max_tokens": params.max_tokens,
        "gen_ai.request.seed": params.seed,
        "gen_ai.response.model": prediction.detail.get("model"),
        "gen_ai.response.finish_reasons": [prediction.finish] if prediction.finish else None,
        "gen_ai.usage.input_tokens": usage.input_tokens if usage else None,
        "gen_ai.usage.output_tokens": usage.output_tokens if usage else None,
        "error.type": failure.kind.value if failure else None,
        "snellen.run": run.header.id,
        "snellen.task": key.task,
        "snellen.sample": key.sample,
        "snellen.variant": key.variant,
        "snellen.repeat": key.repeat,
        "snellen.outcome": trial.outcome if trial.scores or failure else None,
        "snellen.images": picture_hashes(trial) or None,
        "snellen.time": ESTIMATED if trial.estimated else None,
    }


def _contents(trial: ExportedTrial) -> Json:
    asked = [{"role": turn.role, "parts": [{"type": "text", "content": turn.text}]} for turn in trial.request.messages]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": trial.prediction.text or ""}]}]
    return {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said)}


def all_events(run: ExportedRun) -> Iterator[Json]:
    """Yield one evaluation event a trial that got a reply: by the score it is judged by."""
    for task in run.tasks:
        for trial in run.trials(task.name):
            if trial.outcome != FAILED and trial.main is not None:
                yield event_of(run, trial, trial.main)


def event_of(run: ExportedRun, trial: ExportedTrial, score: Score) -> Json:
    """Return an evaluation as a log record in the context of the span that it judges."""
    right = "correct" if trial.is_right() else "incorrect"
    facts: Json = {
        "gen_ai.evaluation.name": score.metric,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": right if trial.outcome == SCORED else "unscored",
        "gen_ai.evaluation.explanation": score.reason if score.value is None else score.rule,
        "snellen.task": score.key.task,
        "snellen.sample": score.key.sample,
    }
    moment = _nanoseconds(trial.ended)
    return {
        "timeUnixNano": moment,
        "observedTimeUnixNano": moment,
        "severityNumber": 9,
        "eventName": "gen_ai.evaluation.result",
        "body": {"stringValue": "gen_ai.evaluation.result"},
        "attributes": attributes(facts),
        "traceId": trace_id(run),
        "spanId": trial_id(trial, run.header.id),
    }


def attributes(facts: Mapping[str, Any]) -> list[Json]:
    """Return facts as OTLP writes attributes; what is not known is left out."""
    return [{"key": name, "value": _value(value)} for name, value in facts.items() if value is not None]


def _value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}


def _nanoseconds(moment: datetime) -> str:
    return str(int(moment.timestamp() * 1_000_000) * 1000)


def envelope(kind: str, records: Sequence[Json], run: ExportedRun) -> Json:
    """Return a request of OTLP: records of one scope of one resource."""
    resource = {"attributes": attributes({"service.name": "snellen", "service.version": run.version})}
    scope = {"name": SCOPE, "version": run.version}
    if kind == "traces":
        return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": list(records)}]}]}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": list(records)}]}]}


class Sender:
    """Posts requests to a collector; one that does not answer, or refuses, ends the export by name."""

    def __init__(self, endpoint: str, *, protobuf: bool, headers: Mapping[str, str]) -> None:
        if not endpoint.startswith(("http://", "https://")):
            raise UsageError(f"the collector {endpoint!r} is no address as http://127.0.0.1:4318")
        self._endpoint, self._protobuf, self._headers = endpoint.rstrip("/"), protobuf, dict(headers)

    def send(self, kind: str, batches: Iterable[list[Json]], run: ExportedRun) -> int:
        """Send batches and return how many records went."""
        count = 0
        for batch in batches:
            count += len(batch)
            self._post(kind, envelope(kind, batch, run))
        return count

    def _post(self, kind: str, body: Json) -> None:
        data = _as_protobuf(kind, body) if self._protobuf else json.dumps(body).encode()
        media = "application/x-protobuf" if self._protobuf else "application/json"
        address = f"{self._endpoint}/v1/{kind}"
        request = urllib.request.Request(address, data, {"Content-Type": media, **self._headers})  # noqa: S310 - checked
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:  # noqa: S310
                reply.read()
        except urllib.error.HTTPError as error:
            raise EnvironmentProblem(f"the collector at {address} answered HTTP {error.code}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise EnvironmentProblem(f"the collector at {address} cannot be reached: {reason}") from None


def sender_of(details: Details) -> Sender | None:
    """Return the sender that details or OpenTelemetry's own variables name, or None."""
    endpoint = details.get("endpoint") or ("" if details else os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", ""))
    if not endpoint:
        return None
    said = details.get("protocol") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    protocol = said.removeprefix("http/")
    if protocol not in ("json", "protobuf"):
        raise UsageError(f"protocol {said!r} is none of json, protobuf (over HTTP)")
    told = os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    headers = dict(part.split("=", 1) for part in told.split(",") if "=" in part)
    return Sender(endpoint, protobuf=protocol == "protobuf", headers=headers)


def _as_protobuf(kind: str, body: Json) -> bytes:
    """Return a request as protobuf; there ids are bytes, which its JSON writes in base 64 instead of hexadecimal."""
    try:
        from google.protobuf import json_format
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    except ImportError:
        raise MissingExtra("otel", "OTLP as protobuf") from None
    made = (
        trace_service_pb2.ExportTraceServiceRequest()
        if kind == "traces"
        else logs_service_pb2.ExportLogsServiceRequest()
    )
    json_format.ParseDict(_with_bytes(body), made)
    data: bytes = made.SerializeToString()
    return data


_IDS = frozenset(("traceId", "spanId", "parentSpanId"))


def _with_bytes(value: Any) -> Any:
    import base64

    if isinstance(value, list):
        return [_with_bytes(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(one)).decode() if name in _IDS else _with_bytes(one)
        for name, one in value.items()
    }


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
            run = ExportedRun(reader)
            self._sender.send("traces", batches_of(self._fresh(run)), run)

    def end(self, step: int, figures: Mapping[str, float], wrong: Sequence[Wrong]) -> None:
        """Send what is left, how every reply was judged, and the run's own span."""
        self.tell(step, figures)
        with RunReader(self._folder) as reader:
            run = ExportedRun(reader)
            last = max((trial.ended for task in run.tasks for trial in run.trials(task.name)), default=run.began)
            self._sender.send("traces", [[root_span(run, last)]], run)
            self._sender.send("logs", batches_of(all_events(run)), run)

    def _fresh(self, run: ExportedRun) -> Iterator[Json]:
        failed = ",".join(map(str, self._failed))
        rows = run.reader.rows(NEW.format(failed), (self._last,))
        for row, is_failed, request, body in rows:
            self._last = max(self._last, row)
            (self._failed.add if is_failed else self._failed.discard)(row)
            yield span_of(run, _unscored(run, request, body), contents=self._contents)


def _unscored(run: ExportedRun, request: bytes, body: bytes) -> ExportedTrial:
    """Return a stored trial by its two records; nobody has scored it yet."""
    asked = msgspec.json.decode(request, type=Request)
    prediction = msgspec.json.decode(body, type=Prediction)
    sample = Sample(prediction.key.sample, prediction.key.task, Form.OPEN, "")
    return ExportedTrial(sample, asked, prediction, [], *run.began_of(prediction))
