"""The Anthropic messages API as a server speaks it, on its own host or on Vertex."""

from __future__ import annotations

from typing import Any

from ...core.ids import content_hash
from .ask import Ask, BadRequestError, Body
from .plan import Plan
from .tokens import tokenize
from .wire import IMAGE_TOKENS, Completion, Pace
from .wire_format import Json, StreamEvent, data_url, decode_object, event_plan, in_chunks, to_chat, whole_plan

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicFormat:
    """`/v1/messages`, and `:rawPredict` where the model stands in the path."""

    def reads(self, path: str) -> bool:
        """Tell whether it is a message."""
        return path.endswith(("/messages", ":rawPredict", ":streamRawPredict"))

    def read(self, path: str, data: bytes) -> Body:
        """Return the message as a chat."""
        value = decode_object(data)
        if "max_tokens" not in value:
            raise BadRequestError("max_tokens: Field required")
        text = "\n".join(str(part.get("text", "")) for part in _blocks(value.get("system")))
        messages = [{"role": "system", "content": text}] if text else []
        messages += [_message(turn) for turn in value.get("messages") or ()]
        in_path = path.rpartition("/models/")[2].partition(":")[0] if ":" in path else ""
        shared = {name: value.get(name) for name in ("max_tokens", "temperature", "stream")} | _kept(value)
        return to_chat(
            shared | {"model": value.get("model") or in_path, "messages": messages, "stop": value.get("stop_sequences")}
        )

    def answer(self, ask: Ask, completion: Completion, pace: Pace, ident: str) -> Plan:
        """Return a message, or its events."""
        head: Json = {"id": f"msg_{ident}", "type": "message", "role": "assistant", "model": ask.body.model}
        if ask.body.stream:
            return event_plan(_events(head, completion, pace))
        blocks: list[Json] = []
        if completion.reasoning:
            blocks.append({"type": "thinking", "thinking": "".join(completion.reasoning), "signature": "c2ln"})
        if completion.tokens or not blocks:
            blocks.append({"type": "text", "text": "".join(completion.tokens)})
        ended = {"stop_reason": STOP_REASONS[completion.finish], "stop_sequence": None}
        return whole_plan({**head, "content": blocks, **ended, "usage": counts_of(completion)}, completion, pace)

    def refusal(self, error: Json, status: int) -> Any:
        """Return an error as Anthropic words it."""
        kind = KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {
            "type": "error",
            "error": {"type": kind, "message": str(error.get("message"))},
            "request_id": "req_mock",
        }


def counts_of(completion: Completion) -> Json:
    """Return the usage; what was read from a cache is not part of `input_tokens`."""
    return {
        "input_tokens": completion.prompt_tokens - completion.cached_tokens - completion.written_tokens,
        "cache_read_input_tokens": completion.cached_tokens,
        "cache_creation_input_tokens": completion.written_tokens,
        "output_tokens": len(completion.tokens) + len(completion.reasoning),
    }


def _blocks(content: Any) -> list[Json]:
    """Return a text or a list of blocks as blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _kept(value: Json) -> Json:
    """Return what a request marks to be kept: a hash of all up to its last mark, and its tokens."""
    blocks = list(_blocks(value.get("system")))
    for turn in value.get("messages") or ():
        blocks += _blocks(turn.get("content"))
    marked = [place for place, block in enumerate(blocks) if "cache_control" in block]
    if not marked:
        return {}
    kept = blocks[: marked[-1] + 1]
    pictures = sum(block.get("type") == "image" for block in kept)
    words = sum(len(tokenize(str(block.get("text") or ""))) for block in kept)
    return {"kept": content_hash(kept), "kept_tokens": pictures * IMAGE_TOKENS + words}


def _message(turn: Json) -> Json:
    content = turn.get("content")
    if isinstance(content, str):
        return {"role": turn.get("role"), "content": content}
    return {"role": turn.get("role"), "content": [_part(block) for block in content or ()]}


def _part(block: Json) -> Json:
    if block.get("type") == "text":
        return {"type": "text", "text": block.get("text", "")}
    source = block.get("source") or {}
    if block.get("type") != "image" or source.get("type") != "base64":
        raise BadRequestError(f"messages: Input tag {block.get('type')!r} found is not one this server takes")
    return data_url(source.get("media_type"), source.get("data"))


def _events(head: Json, completion: Completion, pace: Pace) -> list[StreamEvent]:
    usage = counts_of(completion)
    start = {**head, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events = [StreamEvent(pace.at_s(0), "message_start", {"type": "message_start", "message": start})]
    events.append(StreamEvent(pace.at_s(0), "ping", {"type": "ping"}))
    index = 0
    if completion.reasoning:
        events += _block(index, "thinking", in_chunks(completion.reasoning, pace))
        index += 1
    events += _block(index, "text", in_chunks(completion.tokens, pace, len(completion.reasoning)))
    last_s = events[-1].at_s
    ended = {"stop_reason": STOP_REASONS[completion.finish], "stop_sequence": None}
    last = {"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage["output_tokens"]}}
    return [
        *events,
        StreamEvent(last_s, "message_delta", last),
        StreamEvent(last_s, "message_stop", {"type": "message_stop"}),
    ]


def _block(index: int, kind: str, chunks: list[tuple[float, str]]) -> list[StreamEvent]:
    first_s = chunks[0][0] if chunks else 0.0
    last_s = chunks[-1][0] if chunks else 0.0
    opened = {"type": "content_block_start", "index": index, "content_block": {"type": kind, kind: ""}}
    deltas = [
        StreamEvent(
            at_s,
            "content_block_delta",
            {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", kind: text}},
        )
        for at_s, text in chunks
    ]
    closed = StreamEvent(last_s, "content_block_stop", {"type": "content_block_stop", "index": index})
    return [StreamEvent(first_s, "content_block_start", opened), *deltas, closed]
