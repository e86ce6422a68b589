"""The Gemini generateContent API as a server speaks it, on AI Studio or on Vertex."""

from __future__ import annotations

from typing import Any

from ..ask import Ask, BadRequestError, Body
from ..plan import Plan
from ..wire import IMAGE_TOKENS, Completion, Pace
from .tongue import Json, Told, data_url, decode_object, event_plan, in_chunks, to_chat, whole_plan

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


class GeminiTongue:
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


def _events(ask: Ask, completion: Completion, pace: Pace, ident: str) -> list[Told]:
    thoughts: list[tuple[float, Json]] = [
        (at_s, {"text": text, "thought": True}) for at_s, text in in_chunks(completion.reasoning, pace)
    ]
    before = len(completion.reasoning)
    texts: list[tuple[float, Json]] = [
        (at_s, {"text": text}) for at_s, text in in_chunks(completion.tokens, pace, before)
    ]
    told = [
        Told(at_s, None, _response(ask, completion, ident, [part], ended=False)) for at_s, part in (*thoughts, *texts)
    ]
    last_s = told[-1].at_s if told else pace.at_s(0)
    return [*told, Told(last_s, None, _response(ask, completion, ident, [], ended=True))]
