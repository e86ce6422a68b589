"""A model to the batch service of its provider, or why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import UsageError
from ...core.protocols import Model
from ...model.served.http_client import Body
from ...model.served.prices import BatchTerms, batch_terms
from ...model.served.replies import TYPED
from ...model.served.served_model import ServedModel
from .batch_http import BatchHttp
from .batch_service import (
    UNANSWERED,
    BatchResult,
    BatchService,
    BatchState,
    LinesFile,
    named_rows,
)
from .content_service import ContentService
from .file_service import FileService, MistralService

JOBS = "/messages/batches"


class MessageService(BatchService):
    """`/v1/messages/batches`."""

    opening, between, closing = b'{"requests":[', b",", b"]}"

    def line(self, ident: str, body: Body) -> Body:
        """Return one request with its name."""
        return f'{{"custom_id":"{ident}","params":'.encode(), *body, b"}"

    async def submit(self, lines: LinesFile) -> str:
        """Send all requests in one body."""
        return str((await self._http.post_file(JOBS, lines.path))["id"])

    async def find(self, lines: LinesFile, known: frozenset[str]) -> str | None:
        """Return the newest batch with as many requests: the service keeps no name of ours.

        Results carry our names of requests, so one that is another's brings none, and its requests are sent again.
        """
        for row in named_rows(await self._http.get(f"{JOBS}?limit=20"), "data"):
            count = sum(int(count or 0) for count in (row.get("request_counts") or {}).values())
            if count == lines.lines and str(row["id"]) not in known:
                return str(row["id"])
        return None

    async def look(self, ident: str) -> BatchState:
        """Return how a batch stands."""
        told = await self._http.get(f"{JOBS}/{ident}")
        counts = {name: int(count or 0) for name, count in (told.get("request_counts") or {}).items()}
        total, words = sum(counts.values()), str(told.get("processing_status", ""))
        state = "ended" if words == "ended" else "running"
        return BatchState(
            state, words, total - counts.get("processing", 0), total, (ident,) if state == "ended" else ()
        )

    async def fetch(self, ident: str, state: BatchState, into: Path) -> None:
        """Write the lines of results; the address is ours to know, a reply does not lead the key elsewhere."""
        await self._http.download(f"{JOBS}/{ident}/results", into)

    def read(self, line: bytes) -> BatchResult:
        """Read one line: a message, an error, or neither."""
        row = msgspec.json.decode(line, type=_Row)
        if row.result.type == "succeeded":
            return BatchResult(row.custom_id, 200, bytes(row.result.message))
        if row.result.type != "errored":
            return BatchResult(row.custom_id, UNANSWERED, b"")
        told = row.result.error
        inner = told.get("error") if isinstance(told.get("error"), dict) else told
        status = TYPED.get(str((inner or {}).get("type")), 500)
        return BatchResult(row.custom_id, status, msgspec.json.encode(told))

    async def cancel(self, ident: str) -> None:
        """End a batch."""
        await self._http.post(f"{JOBS}/{ident}/cancel")


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] = {}


class _Row(msgspec.Struct):
    custom_id: str
    result: _Result


OFFERED = "openai, azure, anthropic, gemini, mistral and dashscope"


def batched_by(model: Model) -> ServedModel:
    """Return the model if its provider takes batches; else refuse."""
    kind = model.dialect.batch if isinstance(model, ServedModel) else ""
    if not isinstance(model, ServedModel) or not kind:
        raise UsageError(f"--batch: {model.name} has no batches; {OFFERED} have, leave --batch out for others")
    return model


def terms_of(model: Model) -> BatchTerms:
    """Return limits and price of the batches of a model."""
    return batch_terms()[batched_by(model).dialect.batch]


def open_service(model: Model) -> BatchService:
    """Return the service that takes batches for a model."""
    served = batched_by(model)
    http = BatchHttp(served)
    kind = served.dialect.batch
    if kind == "anthropic":
        return MessageService(http)
    if kind == "gemini":
        return ContentService(http)
    if kind == "mistral":
        return MistralService(http)
    # Azure's older form names the deployment in the address, and its batches stand beside the deployments.
    root = "//openai" if "/deployments/" in served.reach("")[0] else ""
    return FileService(http, served.dialect.batch_endpoint, root)
