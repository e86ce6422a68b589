"""The name of a dialect to what a server of it understands: which requests, which batches, which refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.errors import UsageError, did_you_mean
from .anthropic_format import AnthropicFormat
from .ask import Ask, BadRequestError, Body
from .batches import Answer, BatchBook, BatchJob, BatchLine, BatchScript, FileBatches
from .bedrock_format import BedrockFormat
from .http import Exchange
from .plan import Piece, Plan, error_plan, json_plan
from .responses_format import ResponsesFormat
from .wire import IMAGE_TOKENS, Completion, Pace
from .wire_format import (
    Json,
    StreamEvent,
    WireFormat,
    data_url,
    decode_object,
    event_plan,
    in_chunks,
    to_chat,
    whole_plan,
)

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
        state: Json = {"name": job.ident, "metadata": about, "done": job.ended or bool(job.script.reject)}
        if job.script.reject:
            return {**state, "error": {"code": 3, "message": f"refused: {job.script.reject}"}}
        if job.results is None:
            return state
        name = f"files/results-{job.ident.partition('/')[2]}"
        rows = [
            _row(line, fate, status, body)
            for line, fate, status, body in job.results
            if fate in ("answered", "errored")
        ]
        self._files[name] = "results", b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        return {**state, "response": {"responsesFile": name}}


def _row(line: BatchLine, fate: str, status: int, body: Any) -> Json:
    if fate == "answered":
        return {"key": line.ident, "response": body}
    message = (body.get("error") or {}).get("message", "")
    return {"key": line.ident, "error": {"code": CODES.get(status, 2), "message": message}}


FINISH_REASONS = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "PROHIBITED_CONTENT"}
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
ROLES = {"model": "assistant", "user": "user", "": "user"}
CONFIG = {"max_tokens": "maxOutputTokens", "temperature": "temperature", "seed": "seed", "stop": "stopSequences"}


class GeminiFormat:
    """`models/NAME:generateContent` and `:streamGenerateContent`."""

    def reads(self, path: str) -> bool:
        """Tell whether it asks for content."""
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def read(self, path: str, data: bytes) -> Body:
        """Return the contents as a chat; the model and whether it is streamed stand in the path."""
        value = decode_object(data)
        if not isinstance(value.get("contents"), list):
            raise BadRequestError("* GenerateContentRequest.contents: contents is not specified")
        system = (value.get("systemInstruction") or {}).get("parts") or ()
        text = "\n".join(str(part.get("text", "")) for part in system)
        messages: list[Json] = [{"role": "system", "content": text}] if text else []
        messages += [_turn(content) for content in value["contents"]]
        config = value.get("generationConfig") or {}
        named = {ours: config.get(theirs) for ours, theirs in CONFIG.items()}
        model = path.rpartition("/models/")[2].partition(":")[0]
        return to_chat(named | {"model": model, "messages": messages, "stream": ":stream" in path})

    def answer(self, ask: Ask, completion: Completion, pace: Pace, ident: str) -> Plan:
        """Return a response, or the pieces of one: both have the same form."""
        if ask.body.stream:
            return event_plan(_events(ask, completion, pace, ident))
        parts = [{"text": "".join(completion.reasoning), "thought": True}] if completion.reasoning else []
        parts += [{"text": "".join(completion.tokens)}] if completion.tokens else []
        return whole_plan(_response(ask, completion, ident, parts, ended=True), completion, pace)

    def refusal(self, error: Json, status: int) -> Any:
        """Return an error as Google words it."""
        name = STATUSES.get(status, "UNKNOWN")
        return {"error": {"code": status, "message": str(error.get("message")), "status": name}}


def _turn(content: Json) -> Json:
    parts = [_part(part) for part in content.get("parts") or ()]
    return {"role": ROLES.get(str(content.get("role") or ""), "user"), "content": parts}


def _part(part: Json) -> Json:
    inline = part.get("inlineData")
    if inline is not None:
        return data_url(inline.get("mimeType"), inline.get("data"))
    if "text" not in part:
        raise BadRequestError("Invalid JSON payload received. Unknown name \"part\" at 'contents[0].parts[0]'")
    return {"type": "text", "text": part["text"]}


def _usage(ask: Ask, completion: Completion) -> Json:
    pictures = IMAGE_TOKENS * len(ask.images)
    text = {"modality": "TEXT", "tokenCount": completion.prompt_tokens - pictures}
    usage: Json = {
        "promptTokenCount": completion.prompt_tokens,
        "candidatesTokenCount": len(completion.tokens),
        "totalTokenCount": completion.prompt_tokens + len(completion.tokens) + len(completion.reasoning),
        "promptTokensDetails": [text, {"modality": "IMAGE", "tokenCount": pictures}] if pictures else [text],
    }
    usage |= {"thoughtsTokenCount": len(completion.reasoning)} if completion.reasoning else {}
    return usage | ({"cachedContentTokenCount": completion.cached_tokens} if completion.cached_tokens else {})


def _response(ask: Ask, completion: Completion, ident: str, parts: list[Json], *, ended: bool) -> Json:
    candidate: Json = {"content": {"parts": parts, "role": "model"} if parts else {"role": "model"}, "index": 0}
    candidate |= {"finishReason": FINISH_REASONS[completion.finish]} if ended else {}
    facts = {"usageMetadata": _usage(ask, completion), "modelVersion": ask.body.model, "responseId": ident}
    return {"candidates": [candidate], **facts}


def _events(ask: Ask, completion: Completion, pace: Pace, ident: str) -> list[StreamEvent]:
    thoughts: list[tuple[float, Json]] = [
        (at_s, {"text": text, "thought": True}) for at_s, text in in_chunks(completion.reasoning, pace)
    ]
    before = len(completion.reasoning)
    texts: list[tuple[float, Json]] = [
        (at_s, {"text": text}) for at_s, text in in_chunks(completion.tokens, pace, before)
    ]
    events = [
        StreamEvent(at_s, None, _response(ask, completion, ident, [part], ended=False))
        for at_s, part in (*thoughts, *texts)
    ]
    last_s = events[-1].at_s if events else pace.at_s(0)
    return [*events, StreamEvent(last_s, None, _response(ask, completion, ident, [], ended=True))]


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
    refusal = body if body.get("type") == "error" else AnthropicFormat().refusal(body["error"], status)
    return {"type": "errored", "error": refusal}


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


BatchRoutes = Callable[[Exchange], Plan | None]
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, IndexError, ValueError)


class Speech(NamedTuple):
    """What a server of one dialect answers."""

    root: str
    """What the address of the server ends with."""
    formats: tuple[WireFormat, ...] = ()
    chats: bool = False
    """Whether it answers chat and text completions too."""
    batches: str = ""
    """The kind of its batches; empty where it has none."""


_OPENAI = Speech("/v1", (ResponsesFormat(),), chats=True, batches="files")
SPEECHES: dict[str, Speech] = {
    "openai": _OPENAI,
    "openai-responses": _OPENAI,
    "azure": Speech("/openai/v1", (ResponsesFormat(),), chats=True, batches="files"),
    "mistral": Speech("/v1", chats=True, batches="mistral"),
    "anthropic": Speech("/v1", (AnthropicFormat(),), batches="messages"),
    "gemini": Speech("/v1beta", (GeminiFormat(),), batches="contents"),
    "vertex": Speech("/v1/projects/mock/locations/global", (GeminiFormat(), AnthropicFormat())),
    "bedrock": Speech("", (BedrockFormat(),)),
}


def speech_of(name: str) -> Speech:
    """Return a dialect by its name."""
    if name not in SPEECHES:
        raise UsageError(f"--dialect {name!r}{did_you_mean(name, SPEECHES)}; known: {', '.join(SPEECHES)}")
    return SPEECHES[name]


def batch_routes(speech: Speech, script: BatchScript, answer: Answer, seed: int) -> BatchRoutes:
    """Return what answers requests about batches; a body that is none is a refusal, not a crash."""
    book = BatchBook(script, answer, seed)
    rooms: dict[str, Any] = {"files": FileBatches(book), "mistral": FileBatches(book, mistral=True)}
    rooms |= {"messages": MessageBatches(book), "contents": ContentBatches(book)}
    room = rooms.get(speech.batches)

    def handle(exchange: Exchange) -> Plan | None:
        try:
            plan: Plan | None = room.handle(exchange) if room is not None else None
        except MALFORMED as error:
            return error_plan(400, f"invalid body: {error}")
        return plan

    return handle


def worded(plan: Plan, wire_format: WireFormat | None) -> Plan:
    """Return an error in the words of a dialect; anything else as it is."""
    if wire_format is None or plan.status == 200 or plan.streamed or not plan.pieces:
        return plan
    try:
        error = msgspec.json.decode(plan.body)["error"]
    except MALFORMED:
        return plan
    return json_plan(wire_format.refusal(error, plan.status), plan.done_at_s, plan.status, plan.headers)


def refuse_parameters(dialect: str, refused: Sequence[str], body: bytes) -> Plan | None:
    """Return the refusal of the first parameter a request holds and the server does not take, as it words it.

    A name may say what to use instead: `max_tokens=max_completion_tokens`.
    """
    if not refused:
        return None
    try:
        given = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    nested = (given.get(place) or {} for place in ("generationConfig", "inferenceConfig"))
    names = {*given, *(name for table in nested for name in table)}
    for wish in refused:
        name, _, other = wish.partition("=")
        if name in names:
            return _refusal(dialect, name, other)
    return None


def _refusal(dialect: str, name: str, other: str) -> Plan:
    if dialect == "mistral":
        detail = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        return json_plan({"object": "error", "message": {"detail": [detail]}}, status=422)
    texts = {
        "anthropic": f"`{name}` is deprecated for this model.",
        "gemini": f"Invalid JSON payload received. Unknown name \"{name}\" at 'generation_config': Cannot find field.",
        "bedrock": f"Malformed input request: #: extraneous key [{name}] is not permitted, please reformat your input.",
    }
    texts["vertex"] = texts["gemini"]
    use = f" Use '{other}' instead." if other else ""
    text = texts.get(dialect, f"Unsupported parameter: '{name}' is not supported with this model.{use}")
    return error_plan(400, text, "unsupported_parameter")


def listing(models: Sequence[str], speech: Speech) -> Json:
    """Return the list of models as the dialect has it."""
    if any(isinstance(wire_format, GeminiFormat) for wire_format in speech.formats):
        return {"models": [{"name": f"models/{name}"} for name in models]}
    about = {"object": "model", "created": 0, "owned_by": "snellen"}
    return {"object": "list", "data": [{"id": name, **about} for name in models]}
