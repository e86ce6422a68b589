"""Batches by files, as OpenAI, Azure and Mistral have them: upload lines, make a batch, fetch two files of results."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from ...core.errors import UsageError, did_you_mean
from ...core.ids import content_hash, rng
from .http import Exchange
from .plan import Piece, Plan, error_plan, json_plan
from .wire_format import Json

FATES = ("answered", "errored", "expired", "canceled")


class BatchLine(NamedTuple):
    """One request of a batch: its name, the path it would have gone to, its body."""

    ident: str
    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class BatchScript:
    """How batches go here: how long they take, which share of lines meets what in its first batch."""

    seconds: float = 0.0
    expire: float = 0.0
    """Share of lines that are not answered before the end; those asked a second time are."""
    error: float = 0.0
    """Share of lines that end with a server's error, the first time."""
    reject: str = ""
    """Refuse every batch as a whole after its validation, with this code."""
    lose: int = 0
    """So many batches are made without the client hearing of it: the connection breaks after they were."""


def parse_batch_script(text: str | None) -> BatchScript:
    """Read `seconds=2,expire=0.3,error=0.1,reject=token_limit_exceeded,lose=1`."""
    known = {"seconds": float, "expire": float, "error": float, "reject": str, "lose": int}
    values: dict[str, Any] = {}
    for part in filter(None, (text or "").split(",")):
        name, _, value = part.partition("=")
        if name not in known:
            raise UsageError(
                f"--batch {text!r}: unknown {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}"
            )
        try:
            values[name] = known[name](value)
        except ValueError:
            raise UsageError(f"--batch {text!r}: {name} is a number") from None
    return BatchScript(**values)


@dataclass(slots=True)
class BatchJob:
    """One batch: its lines, and their results once it has ended."""

    ident: str
    lines: Sequence[BatchLine]
    facts: dict[str, Any]
    """What the client said of it: metadata, endpoint, file."""
    script: BatchScript
    created: float = field(default_factory=time.monotonic)
    canceled_after: float | None = None
    """The share that was done when it was canceled."""
    results: list[tuple[BatchLine, str, int, Any]] | None = None
    """Line, fate, status and body of each, in no order of the lines."""

    @property
    def share_done(self) -> float:
        """Return how far it is, 0 to 1."""
        if self.canceled_after is not None:
            return self.canceled_after
        return min(1.0, (time.monotonic() - self.created) / self.script.seconds) if self.script.seconds else 1.0

    @property
    def ended(self) -> bool:
        """Tell whether nothing more will happen to it."""
        return self.canceled_after is not None or self.share_done >= 1.0

    @property
    def state(self) -> str:
        """Return running, completed, expired, canceled or rejected."""
        if self.script.reject:
            return "rejected"
        if not self.ended:
            return "running"
        if self.canceled_after is not None:
            return "canceled"
        return "expired" if any(fate == "expired" for _, fate, _, _ in self.results or ()) else "completed"

    def count(self, fate: str) -> int:
        """Return how many lines met this."""
        return sum(met == fate for _, met, _, _ in self.results or ())

    def cancel(self) -> None:
        """End it now; what is done stays done."""
        if not self.ended:
            self.canceled_after = self.share_done


Answer = Callable[[BatchLine], tuple[int, Any]]


class BatchBook:
    """All batches of a server; answers are made when somebody looks at a batch that has ended."""

    def __init__(self, script: BatchScript, answer: Answer, seed: int) -> None:
        self.jobs: dict[str, BatchJob] = {}
        self._script = script
        self._answer = answer
        self._seed = seed
        self._asked: Counter[str] = Counter()
        self._lost = 0

    def add(self, prefix: str, lines: Sequence[BatchLine], facts: dict[str, Any]) -> BatchJob:
        """Take a batch."""
        job = BatchJob(f"{prefix}{len(self.jobs) + 1}", lines, facts, self._script)
        self.jobs[job.ident] = job
        return job

    def loses_reply(self) -> bool:
        """Tell whether the client must not hear that its batch was made."""
        self._lost += 1
        return self._lost <= self._script.lose

    def find(self, ident: str) -> BatchJob | None:
        """Return a batch as it stands now."""
        job = self.jobs.get(ident)
        if job is not None and job.ended and job.results is None and not job.script.reject:
            job.results = [self._settle(job, place, line) for place, line in enumerate(job.lines)]
            rng(self._seed, "batch", ident).shuffle(job.results)  # no service promises an order
        return job

    def _settle(self, job: BatchJob, place: int, line: BatchLine) -> tuple[BatchLine, str, int, Any]:
        self._asked[line.ident] += 1
        draw, first = rng(self._seed, "fate", line.ident).random(), self._asked[line.ident] == 1
        if job.canceled_after is not None and place >= job.canceled_after * len(job.lines):
            return line, "canceled", 0, None
        if first and draw < self._script.expire:
            return line, "expired", 0, None
        if first and draw < self._script.expire + self._script.error:
            return line, "errored", 500, {"error": {"message": "engine died", "type": "server_error", "code": None}}
        status, body = self._answer(line)
        return line, "answered" if status == 200 else "errored", status, body


ROUTE = re.compile(r".*/(files|batches|batch/jobs)(?:/([\w.-]+))?(?:/(content|cancel))?")
OPENAI_STATES = {"running": "in_progress", "canceled": "cancelled", "rejected": "failed"}
MISTRAL_STATES = {
    "running": "RUNNING",
    "completed": "SUCCESS",
    "expired": "TIMEOUT_EXCEEDED",
    "canceled": "CANCELLED",
    "rejected": "FAILED",
}
UNANSWERED = {"expired": "batch_expired", "canceled": "batch_cancelled"}


class FileBatches:
    """The routes `/files` and `/batches`, or `/batch/jobs` in Mistral's form."""

    def __init__(self, book: BatchBook, *, mistral: bool = False, largest: int | None = None) -> None:
        self._book = book
        self._mistral = mistral
        self._largest = largest
        self._files: dict[str, tuple[str, bytes]] = {}

    def handle(self, exchange: Exchange) -> Plan | None:
        """Answer a request about batches; None where it is about something else."""
        found = ROUTE.fullmatch(exchange.path)
        if found is None or (found[1] == "batch/jobs") != (self._mistral and found[1] != "files"):
            return None
        what, ident, more = found.groups()
        if what == "files":
            return self._file(exchange, ident, more)
        if ident is None:
            return self._make(exchange) if exchange.method == "POST" else self._list()
        job = self._book.find(ident)
        if job is None:
            return error_plan(404, f"No batch found with id '{ident}'.")
        if more == "cancel":
            job.cancel()
        return json_plan(self._describe(job))

    def _file(self, exchange: Exchange, ident: str | None, more: str | None) -> Plan:
        if ident is None and exchange.method == "POST":
            return self._upload(exchange)
        if ident is None:
            return json_plan({"object": "list", "data": [self._about(name) for name in self._files]})
        if ident not in self._files:
            return error_plan(404, f"No such File object: {ident}")
        return Plan(pieces=(Piece(0.0, self._files[ident][1]),)) if more == "content" else json_plan(self._about(ident))

    def _upload(self, exchange: Exchange) -> Plan:
        if self._largest is not None and len(exchange.body) > self._largest:
            return error_plan(413, f"File is too large: at most {self._largest} bytes")
        parts = read_form(exchange)
        if parts.get("purpose", ("", b""))[1] != b"batch" or "file" not in parts:
            return error_plan(400, "'purpose' must be 'batch' and 'file' must be given")
        ident = f"file-{len(self._files) + 1}-{content_hash(parts['file'][1].hex()[:64], 8)}"
        self._files[ident] = parts["file"]
        return json_plan(self._about(ident))

    def _about(self, ident: str) -> Json:
        name, content = self._files[ident]
        about = {"id": ident, "object": "file", "bytes": len(content), "created_at": 0}
        return {**about, "filename": name, "purpose": "batch"}

    def _make(self, exchange: Exchange) -> Plan:
        wish: Json = msgspec.json.decode(exchange.body)
        source = wish["input_files"][0] if self._mistral else wish["input_file_id"]
        if source not in self._files:
            return error_plan(400, f"No such File object: {source}")
        lines = list(read_lines(self._files[source][1], wish))
        job = self._book.add("batch_", lines, {**wish, "file": source})
        if self._book.loses_reply():
            return Plan(headless=True, finish="reset")
        return json_plan(self._describe(job))

    def _list(self) -> Plan:
        return json_plan(
            {"object": "list", "data": [self._describe(self._book.jobs[ident]) for ident in self._book.jobs]}
        )

    def _describe(self, job: BatchJob) -> Json:
        done, failed = self._result_files(job) if job.results is not None else (None, None)
        errors = [{"code": job.script.reject, "line": 1, "message": f"refused: {job.script.reject}", "param": None}]
        answered, errored = job.count("answered"), len(job.lines) - job.count("answered") if job.results else 0
        if self._mistral:
            counts = {"total_requests": len(job.lines), "succeeded_requests": answered, "failed_requests": errored}
            told: Json = {"status": MISTRAL_STATES[job.state], "output_file": done, "error_file": failed}
            told |= {"errors": [{"message": f"refused: {job.script.reject}"}] if job.script.reject else []}
            return {"id": job.ident, "object": "batch", **counts, **told, "metadata": job.facts.get("metadata")}
        sums = {"total": len(job.lines), "completed": answered, "failed": errored}
        return {
            "id": job.ident,
            "object": "batch",
            "status": OPENAI_STATES.get(job.state, job.state),
            "input_file_id": job.facts["file"],
            "output_file_id": done,
            "error_file_id": failed,
            "request_counts": None if job.script.reject else sums,
            "errors": {"object": "list", "data": errors} if job.script.reject else None,
            "metadata": job.facts.get("metadata"),
        }

    def _result_files(self, job: BatchJob) -> tuple[str | None, str | None]:
        """Return the files of results, made once: one of answers, one of errors; neither where it would be empty."""
        named = []
        for kind in ("output", "error"):
            ident = f"file-{kind}-{job.ident}"
            rows = [_row(*result) for result in job.results or () if (result[1] == "answered") == (kind == "output")]
            if rows and ident not in self._files:
                self._files[ident] = f"{kind}.jsonl", b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
            named.append(ident if rows else None)
        return named[0], named[1]


def _row(line: BatchLine, fate: str, status: int, body: Any) -> Json:
    if fate in UNANSWERED:
        why = {"code": UNANSWERED[fate], "message": "This request could not be executed before the batch ended."}
        return {"id": f"r_{line.ident}", "custom_id": line.ident, "response": None, "error": why}
    response = {"status_code": status, "request_id": f"q_{line.ident}", "body": body}
    return {"id": f"r_{line.ident}", "custom_id": line.ident, "response": response, "error": None}


def read_lines(content: bytes, wish: Json) -> Iterable[BatchLine]:
    """Yield the requests of an uploaded file."""
    for text in content.splitlines():
        if text.strip():
            row: Json = msgspec.json.decode(text)
            body = row["body"] if "model" in row["body"] else {"model": wish.get("model"), **row["body"]}
            yield BatchLine(row["custom_id"], str(row.get("url") or wish["endpoint"]), msgspec.json.encode(body))


def read_form(exchange: Exchange) -> dict[str, tuple[str, bytes]]:
    """Return the fields of a multipart body: name -> file name and content."""
    boundary = re.search(r'boundary="?([^";]+)', exchange.header("content-type") or "")
    fields: dict[str, tuple[str, bytes]] = {}
    if boundary is None:
        return fields
    for part in exchange.body.split(b"--" + boundary[1].encode())[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        said = head.decode("utf-8", "replace")
        name, file = (re.search(rf'\b{key}="([^"]*)"', said) for key in ("name", "filename"))
        if name is not None:
            fields[name[1]] = file[1] if file else "", content.removesuffix(b"\r\n")
    return fields
