"""The Anthropic messages dialect: system apart, pictures as base64 sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...core.protocols import ImagePolicy
from ...core.types import Request, Turn, Usage
from ..options import ModelOptions
from .dialect import Dialect, Picture, write_parts
from .replies import CallPiece, Reply, expect_object, refuse_error, text_in, texts_in
from .served_model import ServedModel

DEFAULT_MAX_TOKENS = 1024
"""The provider demands a limit; this one is sent when none was given."""
TEXT_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"})
OWN_TOOLS = frozenset({"server_tool_use", "mcp_tool_use"})
SERVER_RESULT = "_tool_result"
"""How the blocks of a tool that the server ran itself end: they stand beside an answer."""
FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "refusal"}


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `anthropic/NAME`."""
    options.allow_arguments("anthropic")
    return ServedModel(Anthropic(), name, options)


class Anthropic(Dialect):
    """The messages API."""

    provider = "anthropic"
    family = "anthropic"
    default_url = "https://api.anthropic.com/v1"
    key_variable = "ANTHROPIC_API_KEY"
    image_policy = ImagePolicy(max_side=8000, max_bytes=3_900_000)
    key_header = "x-api-key"
    own_headers: tuple[tuple[str, str], ...] = (("anthropic-version", "2023-06-01"),)
    reasoning = "anthropic"
    constrain = "anthropic"
    default_limit = DEFAULT_MAX_TOKENS
    unknown = frozenset({"seed"})
    batch = "anthropic"

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the messages address."""
        return f"{base_url}/messages"

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the messages body."""
        pairs = list(zip(request.messages, pictures, strict=True))
        system = "\n".join(turn.text for turn, _ in pairs if turn.role == "system")
        messages = _joined([_message(turn, of_turn) for turn, of_turn in pairs if turn.role != "system"])
        params = request.params
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": params.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": messages,
            "system": self._system(system, messages),
            "temperature": params.temperature,
            "top_p": params.top_p,
            "stop_sequences": params.stop,
            "stream": params.stream or None,
        }
        body = {name: value for name, value in body.items() if value is not None} | _tool_fields(request)
        return body | (params.extra_body or {})

    def _system(self, text: str, messages: Sequence[dict[str, Any]]) -> str | list[dict[str, Any]] | None:
        """Return the system text; marked to be kept where marks are wanted and no picture took the mark."""
        if self.marks_cache and not _mark_last_picture(messages) and text:
            return _kept(text)
        return text or None

    def parse(self, value: Any) -> Reply:
        """Read a whole message."""
        message = expect_object(value)
        refuse_error(message)
        blocks = [block for block in message.get("content") or [] if isinstance(block, dict)]
        texts = texts_in((block for block in blocks if block.get("type") == "text"), "text")
        thoughts = texts_in((block for block in blocks if block.get("type") == "thinking"), "thinking")
        reply = Reply(
            text="".join(texts) if texts else None,
            reasoning="".join(thoughts) or None,
            finish=_finish(message.get("stop_reason")),
            usage=_usage(message.get("usage")),
            model=message.get("model"),
            part=next(filter(None, map(_odd_kind, blocks)), None),
            choices=len(blocks),
            kept=[block for block in blocks if block.get("type") in KEPT],
            foreign=sum(block.get("type") in OWN_TOOLS for block in blocks),
        )
        for block in blocks:
            if block.get("type") == "tool_use":
                _begin_call(reply.call_at(len(reply.calls)), block)
        return reply

    def parse_event(self, value: Any, reply: Reply) -> str | None:
        """Read one stream event."""
        event = expect_object(value)
        kind = event.get("type")
        refuse_error(event)
        if kind == "message_start":
            message = event.get("message") or {}
            reply.model, reply.usage = message.get("model"), _usage(message.get("usage"))
        elif kind == "message_delta":
            reply.finish = _finish((event.get("delta") or {}).get("stop_reason")) or reply.finish
            reply.usage = _merge(reply.usage, _usage(event.get("usage")))
        elif kind == "content_block_start":
            reply.part = _odd_kind(event.get("content_block") or {}) or reply.part
            _begin_block(event, reply)
        elif kind == "content_block_delta":
            return _take_piece(event, reply)
        elif kind == "message_stop":
            reply.closed = True
        return None


KEPT = frozenset({"thinking", "redacted_thinking"})
"""Blocks that go back unchanged with the next turn: the provider signs them."""


def _odd_kind(block: Mapping[str, Any]) -> str | None:
    """Return the type of a block that is no part of an answer, one that nobody knows among them."""
    kind = str(block.get("type"))
    return None if kind in TEXT_BLOCKS or kind.endswith(SERVER_RESULT) else kind


def _begin_call(call: CallPiece, block: Mapping[str, Any]) -> None:
    call.id, call.name = str(block.get("id") or ""), str(block.get("name") or "")
    told = block.get("input")
    call.arguments = told if isinstance(told, str) else msgspec.json.encode(told).decode() if told else ""


def _begin_block(event: Mapping[str, Any], reply: Reply) -> None:
    """Begin what a stream sends in pieces: a call, or a signed thought."""
    block = event.get("content_block") or {}
    reply.foreign += block.get("type") in OWN_TOOLS
    if block.get("type") == "tool_use":
        _begin_call(reply.call_at(event.get("index")), block)
    elif block.get("type") in KEPT:
        reply.kept.append(dict(block))


def _take_piece(event: Mapping[str, Any], reply: Reply) -> str | None:
    """Take a piece of a block: of a call's arguments, of a thought and its signature, or of the text."""
    delta = event.get("delta") or {}
    if delta.get("type") == "input_json_delta":
        reply.call_at(event.get("index")).arguments += text_in(delta.get("partial_json"))
        return "content"
    if reply.kept and delta.get("type") in ("thinking_delta", "signature_delta"):
        name = "thinking" if delta["type"] == "thinking_delta" else "signature"
        reply.kept[-1][name] = text_in(reply.kept[-1].get(name)) + text_in(delta.get(name))
    return _take_delta(delta, reply)


def _tool_fields(request: Request) -> dict[str, Any]:
    """Return the fields that offer tools."""
    if not request.tools:
        return {}
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in request.tools
    ]
    return {"tools": tools} | ({"tool_choice": {"type": request.choice}} if request.choice else {})


def _joined(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with results of tools in one message, followed there by what the user says next."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        last = joined[-1] if joined else None
        if last is not None and last.get("role") == "user" == message["role"] and _has_results(last):
            last["content"] = [*last["content"], *_blocks(message["content"])]
        else:
            joined.append(message)
    return joined


def _has_results(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return isinstance(content, list) and bool(content) and content[0].get("type") == "tool_result"


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _called(turn: Turn) -> dict[str, Any]:
    """Return an assistant's message that calls tools: its signed thoughts first, then its text and the calls."""
    said = [{"type": "text", "text": turn.text}] if turn.text.strip() else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)} for call in turn.calls
    ]
    return {"role": "assistant", "content": [*turn.kept, *said, *calls]}


def _input(arguments: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _message(turn: Turn, pictures: Sequence[Picture]) -> dict[str, Any]:
    if turn.calls or turn.kept:
        return _called(turn)
    if turn.answers:
        inside = _spoken(turn, pictures)["content"]
        result = {"type": "tool_result", "tool_use_id": turn.answers, "content": inside}
        result |= {"is_error": True} if turn.text.startswith("Error:") else {}
        return {"role": "user", "content": [result]}
    return _spoken(turn, pictures)


def _spoken(turn: Turn, pictures: Sequence[Picture]) -> dict[str, Any]:
    if not pictures:
        return {"role": turn.role, "content": turn.text}
    sources = [{"type": "base64", "media_type": picture.mime, "data": picture.token} for picture in pictures]
    parts = [{"type": "image", "source": source} for source in sources]
    return {"role": turn.role, "content": write_parts(turn, parts, "text")}


KEEP = {"cache_control": {"type": "ephemeral"}}


def _mark_last_picture(messages: Sequence[dict[str, Any]]) -> bool:
    """Mark the last picture of the first message that has some: what stands before it is the same for each question."""
    for message in messages:
        blocks = message["content"]
        pictures = [block for block in blocks if isinstance(block, dict) and block.get("type") == "image"]
        if pictures:
            pictures[-1].update(KEEP)
            return True
    return False


def _kept(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, **KEEP}]


def _take_delta(delta: Mapping[str, Any], reply: Reply) -> str | None:
    if delta.get("type") == "thinking_delta":
        return reply.add_thought(text_in(delta.get("thinking")))
    if delta.get("type") != "text_delta":
        return None
    reply.choices += 1
    return reply.add_text(text_in(delta.get("text")))


def _finish(reason: Any) -> str | None:
    return FINISH.get(reason, reason) if reason else None


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    read, written = (value.get(f"cache_{kind}_input_tokens") for kind in ("read", "creation"))
    fresh = value.get("input_tokens")  # without what was read from or written to a cache
    whole = None if fresh is None else fresh + (read or 0) + (written or 0)
    thought = (value.get("output_tokens_details") or {}).get("reasoning_tokens")
    return Usage(whole, value.get("output_tokens"), thought, read, written_tokens=written or None)


def _merge(first: Usage | None, last: Usage | None) -> Usage | None:
    """The start of a stream knows the input, its end the output."""
    if first is None or last is None:
        return last or first
    counts = first.input_tokens or last.input_tokens, last.output_tokens or first.output_tokens
    return Usage(*counts, last.reasoning_tokens, first.cached_tokens, written_tokens=first.written_tokens)
