"""Bedrock's Converse as a server speaks it, its binary event stream too."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any
from urllib.parse import unquote
from zlib import crc32

import msgspec

from .ask import Ask, BadRequestError, Body
from .plan import FRAMES, Piece, Plan
from .wire import Completion, Pace
from .wire_format import Json, data_url, decode_object, in_chunks, to_chat, whole_plan

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "content_filtered"}
EXCEPTIONS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


class BedrockFormat:
    """`/model/ID/converse` and `/model/ID/converse-stream`."""

    def reads(self, path: str) -> bool:
        """Tell whether it is a conversation."""
        return path.endswith(("/converse", "/converse-stream"))

    def read(self, path: str, data: bytes) -> Body:
        """Return the conversation as a chat."""
        value = decode_object(data)
        system = "\n".join(str(part.get("text", "")) for part in value.get("system") or ())
        messages: list[Json] = [{"role": "system", "content": system}] if system else []
        for turn in value.get("messages") or ():
            content = [_part(block) for block in turn.get("content") or ()]
            messages.append({"role": turn.get("role"), "content": content})
        config = value.get("inferenceConfig") or {}
        model = unquote(path.rpartition("/model/")[2].rpartition("/")[0])
        named = {"max_tokens": config.get("maxTokens"), "temperature": config.get("temperature")}
        rest = {"stop": config.get("stopSequences"), "stream": path.endswith("-stream")}
        return to_chat(named | rest | {"model": model, "messages": messages})

    def answer(self, ask: Ask, completion: Completion, pace: Pace, ident: str) -> Plan:
        """Return a message, or its frames."""
        called = {"x-amzn-RequestId": ident}
        if ask.body.stream:
            return Plan(pieces=tuple(_frames(completion, pace)), content_type=FRAMES, headers=called)
        content: list[Json] = []
        if completion.reasoning:
            content.append({"reasoningContent": {"reasoningText": {"text": "".join(completion.reasoning)}}})
        content += [{"text": "".join(completion.tokens)}] if completion.tokens else []
        message = {"message": {"role": "assistant", "content": content}}
        value = {"output": message, "stopReason": STOP_REASONS[completion.finish], "usage": _counts(completion)}
        return replace(whole_plan({**value, "metrics": {"latencyMs": 1}}, completion, pace), headers=called)

    def refusal(self, error: Json, status: int) -> Any:
        """Return an error as AWS words it."""
        kind = EXCEPTIONS.get(status, "InternalServerException" if status >= 500 else "ValidationException")
        kind = code if (code := str(error.get("code"))).endswith("Exception") else kind
        return {"__type": kind, "message": str(error.get("message"))}


def _part(block: Json) -> Json:
    if "text" in block:
        return {"type": "text", "text": block["text"]}
    picture = block.get("image")
    if picture is None:
        raise BadRequestError("The content block holds neither text nor image")
    return data_url(f"image/{picture.get('format')}", (picture.get("source") or {}).get("bytes"))


def _counts(completion: Completion) -> Json:
    output = len(completion.tokens) + len(completion.reasoning)
    counts = {"inputTokens": completion.prompt_tokens - completion.cached_tokens, "outputTokens": output}
    return counts | {
        "totalTokens": completion.prompt_tokens + output,
        "cacheReadInputTokens": completion.cached_tokens,
    }


def _frames(completion: Completion, pace: Pace) -> list[Piece]:
    frames = [Piece(pace.at_s(0), write_frame("messageStart", {"role": "assistant"}))]
    for at_s, text in in_chunks(completion.reasoning, pace):
        delta = {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": text}}}
        frames.append(Piece(at_s, write_frame("contentBlockDelta", delta)))
    for at_s, text in in_chunks(completion.tokens, pace, len(completion.reasoning)):
        delta = {"contentBlockIndex": 1, "delta": {"text": text}}
        frames.append(Piece(at_s, write_frame("contentBlockDelta", delta)))
    last_s = frames[-1].at_s
    frames.append(Piece(last_s, write_frame("contentBlockStop", {"contentBlockIndex": 1})))
    frames.append(Piece(last_s, write_frame("messageStop", {"stopReason": STOP_REASONS[completion.finish]})))
    frames.append(Piece(last_s, write_frame("metadata", {"usage": _counts(completion)})))
    return frames


def write_frame(kind: str, value: Any, *, exception: bool = False) -> bytes:
    """Return one message of AWS's event stream: lengths, their checksum, headers, payload, checksum."""
    name = ":exception-type" if exception else ":event-type"
    told = {":message-type": "exception" if exception else "event", name: kind, ":content-type": "application/json"}
    headers = b"".join(_header(key, text) for key, text in told.items())
    payload = msgspec.json.encode(value)
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return message + struct.pack(">I", crc32(message))


def _header(name: str, text: str) -> bytes:
    return struct.pack(">B", len(name)) + name.encode() + b"\x07" + struct.pack(">H", len(text)) + text.encode()
