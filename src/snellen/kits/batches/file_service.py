"""Batches by files: OpenAI and Azure (`/files`, `/batches`), Mistral (`/files`, `/batch/jobs`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ...model.served.http_client import Body
from .batch_http import BatchHttp
from .batch_service import UNANSWERED, BatchResult, BatchService, BatchState, LinesFile, named_rows

RUNNING = frozenset(
    {"validating", "in_progress", "finalizing", "cancelling", "queued", "running", "cancellation_requested"}
)
NEVER_TRIED = frozenset({"batch_expired", "batch_cancelled", "batch_canceled"})
MARK = "snellen"


class FileService(BatchService):
    """OpenAI's form; the endpoint of a line is a path of the server."""

    jobs = "/batches"

    def __init__(self, http: BatchHttp, endpoint: str = "/v1/chat/completions", root: str = "") -> None:
        super().__init__(http)
        self._endpoint = endpoint
        self._files = f"{root}/files"
        self._jobs = f"{root}{self.jobs}"

    def line(self, ident: str, body: Body) -> Body:
        """Return one request with its name, method and endpoint."""
        head = f'{{"custom_id":"{ident}","method":"POST","url":"{self._endpoint}","body":'
        return head.encode(), *body, b"}\n"

    async def submit(self, lines: LinesFile) -> str:
        """Upload the file and make a batch; a file of this name that was left by a crash is taken instead."""
        listed = named_rows(await self._http.get(f"{self._files}?purpose=batch"), "data")
        known = next((str(row["id"]) for row in listed if row.get("filename") == lines.name and row.get("id")), None)
        if known is None:
            uploaded = await self._http.post_form(self._files, lines.path, lines.name, {"purpose": "batch"})
            known = str(uploaded["id"])
        made = await self._http.post(self._jobs, self.wish(known, lines.name))
        return str(made["id"])

    def wish(self, file: str, name: str) -> dict[str, Any]:
        """Return what makes a batch of an uploaded file."""
        window = {"input_file_id": file, "endpoint": self._endpoint, "completion_window": "24h"}
        return {**window, "metadata": {MARK: name}}

    async def find(self, lines: LinesFile, known: frozenset[str]) -> str | None:
        """Return the batch whose metadata name this file."""
        for row in named_rows(await self._http.get(self._jobs), "data"):
            if (row.get("metadata") or {}).get(MARK) == lines.name:
                return str(row["id"])
        return None

    async def look(self, ident: str) -> BatchState:
        """Return how a batch stands; both files are results, whatever it ended as."""
        told = await self._http.get(f"{self._jobs}/{ident}")
        words = str(told.get("status", ""))
        counts = told.get("request_counts") or {}
        done = sum(int(counts.get(name) or 0) for name in ("completed", "failed"))
        return state_of(
            words, done, int(counts.get("total") or 0), _files(told, "output_file_id", "error_file_id"), told
        )

    async def fetch(self, ident: str, state: BatchState, into: Path) -> None:
        """Write the lines of both files to one."""
        for file in state.results:
            await self._http.download(f"{self._files}/{file}/content", into)

    def read(self, line: bytes) -> BatchResult:
        """Read one line: a response with a status, or an error without one."""
        row = msgspec.json.decode(line, type=_Row)
        if row.response is not None:
            return BatchResult(row.custom_id, row.response.status_code or 200, bytes(row.response.body))
        error = row.error or {}
        if str(error.get("code")) in NEVER_TRIED:
            return BatchResult(row.custom_id, UNANSWERED, b"")
        return BatchResult(row.custom_id, 400, msgspec.json.encode({"error": error}))

    async def cancel(self, ident: str) -> None:
        """End a batch."""
        await self._http.post(f"{self._jobs}/{ident}/cancel")


class MistralService(FileService):
    """Mistral's form: the model stands on the job, not in the lines."""

    left_out = frozenset({"model"})
    jobs = "/batch/jobs"

    def line(self, ident: str, body: Body) -> Body:
        """Return one request with its name."""
        return f'{{"custom_id":"{ident}","body":'.encode(), *body, b"}\n"

    def wish(self, file: str, name: str) -> dict[str, Any]:
        """Return what makes a job of an uploaded file."""
        job = {"input_files": [file], "model": self._http.model.remote_name, "endpoint": self._endpoint}
        return {**job, "metadata": {MARK: name}}

    async def look(self, ident: str) -> BatchState:
        """Return how a job stands."""
        told = await self._http.get(f"{self._jobs}/{ident}")
        words = str(told.get("status", "")).lower()
        done = sum(int(told.get(f"{name}_requests") or 0) for name in ("succeeded", "failed"))
        return state_of(
            words, done, int(told.get("total_requests") or 0), _files(told, "output_file", "error_file"), told
        )


def state_of(words: str, done: int, total: int, results: tuple[str, ...], told: dict[str, Any]) -> BatchState:
    """Return how a batch stands; one that failed before any line was tried is refused as a whole."""
    if words.lower() in RUNNING:
        return BatchState("running", words, done, total)
    if words.lower() == "failed" and not results:
        return BatchState("failed", words, problem=_problem(told.get("errors")))
    return BatchState("ended", words, done, total, results)


def _files(told: dict[str, Any], *names: str) -> tuple[str, ...]:
    return tuple(str(told[name]) for name in names if told.get(name))


def _problem(errors: Any) -> str:
    rows = (
        named_rows(errors, "data")
        if isinstance(errors, dict)
        else [row for row in errors or () if isinstance(row, dict)]
    )
    told = [" ".join(str(row[key]) for key in ("code", "message") if row.get(key)) + _line(row) for row in rows[:3]]
    return "; ".join(told) or "it does not say why"


def _line(row: dict[str, Any]) -> str:
    return f" (line {row['line']})" if row.get("line") else ""


class _Response(msgspec.Struct):
    status_code: int | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Row(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: dict[str, Any] | None = None
