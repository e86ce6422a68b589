"""Batches as Gemini has them: lines uploaded as a file in two steps, an operation that is polled, a file of results."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..http import Exchange
from ..plan import Piece, Plan, error_plan, json_plan
from .batch_book import BatchBook, BatchJob, BatchLine
from .tongue import Json

STATES = {
    "running": "BATCH_STATE_RUNNING",
    "completed": "BATCH_STATE_SUCCEEDED",
    "expired": "BATCH_STATE_EXPIRED",
    "canceled": "BATCH_STATE_CANCELLED",
    "rejected": "BATCH_STATE_FAILED",
}
CODES = {400: 3, 403: 7, 404: 5, 429: 8, 500: 13, 503: 14}
"""Statuses as numbers of google.rpc.Code."""
BATCH = re.compile(r".*/(batches/[\w.-]+?)(:cancel)?")
DOWNLOAD = re.compile(r"/download/v1beta/(files/[\w.-]+):download")


class ContentBatches:
    """`/upload/v1beta/files`, `:batchGenerateContent`, `/batches/ID` and `/download/…`."""

    def __init__(self, book: BatchBook) -> None:
        self._book = book
        self._files: dict[str, tuple[str, bytes]] = {}
        self._begun: list[str] = []

    def handle(self, exchange: Exchange) -> Plan | None:
        """Answer a request about batches or files; None where it is about something else."""
        path = exchange.path
        if path.startswith("/upload/"):
            return self._upload(exchange)
        if found := DOWNLOAD.fullmatch(path):
            return self._download(found[1])
        if path.endswith(":batchGenerateContent"):
            return self._make(exchange)
        if path.endswith("/files"):
            return json_plan({"files": [self._about(name) for name in self._files]})
        if path.endswith("/batches"):
            return json_plan({"operations": [self._describe(job) for job in self._book.jobs.values()]})
        found = BATCH.fullmatch(path)
        return self._look(found[1], cancel=bool(found[2])) if found else None

    def _upload(self, exchange: Exchange) -> Plan:
        """Begin an upload (its answer says where to send the bytes), or take the bytes."""
        if "start" in (exchange.header("x-goog-upload-command") or ""):
            wish: Json = msgspec.json.decode(exchange.body)
            self._begun.append(str(wish["file"].get("display_name", "")))
            host = exchange.header("host")
            place = f"http://{host}/upload/v1beta/files/session/{len(self._begun)}"
            return json_plan({}, headers={"X-Goog-Upload-URL": place, "X-Goog-Upload-Status": "active"})
        number = int(exchange.path.rpartition("/")[2])
        name = f"files/mock{number}"
        self._files[name] = self._begun[number - 1], exchange.body
        return json_plan({"file": self._about(name)})

    def _about(self, name: str) -> Json:
        title, content = self._files[name]
        return {"name": name, "displayName": title, "sizeBytes": str(len(content)), "state": "ACTIVE"}

    def _download(self, name: str) -> Plan:
        if name not in self._files:
            return error_plan(404, f"File {name} not found")
        return Plan(pieces=(Piece(0.0, self._files[name][1]),))

    def _make(self, exchange: Exchange) -> Plan:
        wish: Json = msgspec.json.decode(exchange.body)["batch"]
        source = wish["input_config"]["file_name"]
        if source not in self._files:
            return error_plan(404, f"File {source} not found")
        path = exchange.path.replace(":batchGenerateContent", ":generateContent")
        rows = [msgspec.json.decode(text) for text in self._files[source][1].splitlines() if text.strip()]
        lines = [BatchLine(row["key"], path, msgspec.json.encode(row["request"])) for row in rows]
        job = self._book.add("batches/", lines, wish)
        return Plan(headless=True, finish="reset") if self._book.loses_reply() else json_plan(self._describe(job))

    def _look(self, name: str, *, cancel: bool) -> Plan:
        job = self._book.find(name)
        if job is None:
            return error_plan(404, f"{name} not found")
        if cancel:
            job.cancel()
            return json_plan({})
        return json_plan(self._describe(job))

    def _describe(self, job: BatchJob) -> Json:
        stats = {"requestCount": str(len(job.lines)), "successfulRequestCount": str(job.count("answered"))}
        stats |= {"failedRequestCount": str(job.count("errored"))}
        about: Json = {"displayName": job.facts.get("display_name"), "state": STATES[job.state], "batchStats": stats}
        told: Json = {"name": job.ident, "metadata": about, "done": job.ended or bool(job.script.reject)}
        if job.script.reject:
            return {**told, "error": {"code": 3, "message": f"refused: {job.script.reject}"}}
        if job.results is None:
            return told
        name = f"files/results-{job.ident.partition('/')[2]}"
        rows = [
            _row(line, fate, status, body)
            for line, fate, status, body in job.results
            if fate in ("answered", "errored")
        ]
        self._files[name] = "results", b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        return {**told, "response": {"responsesFile": name}}


def _row(line: BatchLine, fate: str, status: int, body: Any) -> Json:
    if fate == "answered":
        return {"key": line.ident, "response": body}
    message = (body.get("error") or {}).get("message", "")
    return {"key": line.ident, "error": {"code": CODES.get(status, 2), "message": message}}
