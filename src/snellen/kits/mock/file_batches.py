"""Batches by files, as OpenAI, Azure and Mistral have them: upload lines, make a batch, fetch two files of results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from ...core.ids import content_hash
from .batch_book import BatchBook, BatchJob, BatchLine
from .http import Exchange
from .plan import Piece, Plan, error_plan, json_plan
from .wire_format import Json

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
