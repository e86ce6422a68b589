"""Message batches as Anthropic has them: all requests in one body, results as lines in any order."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..http import Exchange
from ..plan import Piece, Plan, error_plan, json_plan
from .anthropic_tongue import AnthropicTongue
from .batch_book import BatchBook, BatchJob, BatchLine
from .tongue import Json

ROUTE = re.compile(r".*/messages/batches(?:/([\w.-]+))?(?:/(results|cancel))?")
FATES = {"answered": "succeeded"}


class MessageBatches:
    """The routes below `/v1/messages/batches`."""

    def __init__(self, book: BatchBook) -> None:
        self._book = book

    def handle(self, exchange: Exchange) -> Plan | None:
        """Answer a request about batches; None where it is about something else."""
        found = ROUTE.fullmatch(exchange.path)
        if found is None:
            return None
        ident, more = found.groups()
        if ident is None:
            return self._make(exchange) if exchange.method == "POST" else self._list()
        job = self._book.find(ident)
        if job is None:
            return error_plan(404, f"batch {ident} not found")
        if more == "results":
            return self._results(job)
        if more == "cancel":
            job.cancel()
        return json_plan(_describe(job))

    def _make(self, exchange: Exchange) -> Plan:
        wish: Json = msgspec.json.decode(exchange.body)
        lines = [
            BatchLine(row["custom_id"], "/v1/messages", msgspec.json.encode(row["params"])) for row in wish["requests"]
        ]
        if len({line.ident for line in lines}) != len(lines):
            return error_plan(400, "requests: custom_id must be unique")
        job = self._book.add("msgbatch_", lines, {})
        return Plan(headless=True, finish="reset") if self._book.loses_reply() else json_plan(_describe(job))

    def _list(self) -> Plan:
        jobs = [_describe(job) for job in reversed(self._book.jobs.values())]
        return json_plan({"data": jobs, "has_more": False})

    def _results(self, job: BatchJob) -> Plan:
        if not job.ended:
            return error_plan(404, "the batch has not ended")
        rows = [
            {"custom_id": line.ident, "result": _result(fate, status, body)}
            for line, fate, status, body in job.results or ()
        ]
        return Plan(pieces=(Piece(0.0, b"".join(msgspec.json.encode(row) + b"\n" for row in rows)),))


def _result(fate: str, status: int, body: Any) -> Json:
    if fate == "answered":
        return {"type": "succeeded", "message": body}
    if fate != "errored":
        return {"type": fate}
    told = body if body.get("type") == "error" else AnthropicTongue().refusal(body["error"], status)
    return {"type": "errored", "error": told}


def _describe(job: BatchJob) -> Json:
    known = ("answered", "errored", "canceled", "expired")
    counts = {FATES.get(fate, fate): job.count(fate) for fate in known}
    counts["processing"] = 0 if job.ended else len(job.lines)
    return {
        "id": job.ident,
        "type": "message_batch",
        "processing_status": "ended" if job.ended else "in_progress",
        "request_counts": counts,
        "created_at": "2026-11-16T00:00:00Z",
        "results_url": f"/v1/messages/batches/{job.ident}/results" if job.ended else None,
    }
