"""Batches of Gemini: an uploaded file of lines, an operation that is polled, a file of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ...model.served.http_client import Body
from .batch_service import BatchResult, BatchService, BatchState, LinesFile, named_rows

RUNNING = frozenset({"UNSPECIFIED", "QUEUED", "PENDING", "RUNNING", "CANCELLING", "PAUSED", "UPDATING", ""})
CODES = {3: 400, 7: 403, 16: 401, 5: 404, 8: 429, 4: 504, 13: 500, 14: 503}
"""Numbers of google.rpc.Code as statuses."""


class ContentService(BatchService):
    """`models/NAME:batchGenerateContent` with an uploaded file."""

    def line(self, ident: str, body: Body) -> Body:
        """Return one request with its key."""
        return f'{{"key":"{ident}","request":'.encode(), *body, b"}\n"

    async def submit(self, lines: LinesFile) -> str:
        """Upload the file, unless it is there, and make a batch of it."""
        listed = named_rows(await self._http.get("/files?pageSize=100"), "files")
        known = next((str(row["name"]) for row in listed if row.get("displayName") == lines.name), None)
        if known is None:
            uploaded = await self._http.upload_in_steps("//upload/v1beta/files", lines.path, lines.name)
            known = str(uploaded["file"]["name"])
        wish = {"batch": {"display_name": lines.name, "input_config": {"file_name": known}}}
        made = await self._http.post(f"/models/{self._http.model.remote_name}:batchGenerateContent", wish)
        return str(made["name"])

    async def find(self, lines: LinesFile, known: frozenset[str]) -> str | None:
        """Return the batch that bears the file's name."""
        for row in named_rows(await self._http.get("/batches?pageSize=100"), "operations", "batches"):
            if (row.get("metadata") or row).get("displayName") == lines.name:
                return str(row["name"])
        return None

    async def look(self, ident: str) -> BatchState:
        """Return how a batch stands."""
        told = await self._http.get(f"/{ident}")
        about = told.get("metadata") or told
        words = str(about.get("state", ""))
        done, total = _counts(about.get("batchStats") or {})
        if words.rpartition("STATE_")[2] in RUNNING and not told.get("done"):
            return BatchState("running", words, done, total)
        file = (told.get("response") or about.get("output") or {}).get("responsesFile")
        if file is None and words.endswith("FAILED"):
            return BatchState("failed", words, problem=_problem(told))
        return BatchState("ended", words, done, total, (str(file),) if file else ())

    async def fetch(self, ident: str, state: BatchState, into: Path) -> None:
        """Write the lines of results."""
        for file in state.results:
            await self._http.download(f"//download/v1beta/{file}:download?alt=media", into)

    def read(self, line: bytes) -> BatchResult:
        """Read one line: a response or an error."""
        row = msgspec.json.decode(line, type=_Row)
        if row.error is None:
            return BatchResult(row.key, 200, bytes(row.response))
        code = row.error.get("code")
        status = CODES.get(code, code if isinstance(code, int) and code >= 400 else 500) if code else 500
        return BatchResult(row.key, status, msgspec.json.encode({"error": row.error}))

    async def cancel(self, ident: str) -> None:
        """End a batch."""
        await self._http.post(f"/{ident}:cancel")


def _problem(told: dict[str, Any]) -> str:
    return str((told.get("error") or {}).get("message") or "it does not say why")


def _counts(stats: dict[str, Any]) -> tuple[int, int]:
    answered, failed, total = (int(stats.get(f"{name}equestCount") or 0) for name in ("successfulR", "failedR", "r"))
    return answered + failed, total


class _Row(msgspec.Struct):
    key: str
    response: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None
