"""The Anthropic messages dialect: system apart, pictures as base64 sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.protocols import Capability, ImagePolicy
from ...core.secret import Secret
from ...core.types import Request, Turn, Usage
from ..options import ModelOptions
from .dialect import Picture, key_headers
from .replies import Reply, expect_object, refuse_error
from .served_model import ServedModel

DEFAULT_MAX_TOKENS = 1024
"""The provider demands a limit; this one is sent when none was given."""
NO_TEXT = frozenset({"tool_use", "image", "document"})
"""Blocks that are no part of an answer; those of tools that the server runs itself stand beside one."""
FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "refusal"}


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `anthropic/NAME`."""
    options.allow_arguments("anthropic")
    return ServedModel(Anthropic(), name, options)


class Anthropic:
    """The messages API."""

    provider = "anthropic"
    family = "anthropic"
    default_url = "https://api.anthropic.com/v1"
    key_variable = "ANTHROPIC_API_KEY"
    capabilities = frozenset({Capability.GENERATE, Capability.STREAM, Capability.IMAGES})
    image_policy = ImagePolicy(max_side=8000, max_bytes=3_900_000)
    sampling_place: str | None = None
    key_header = "x-api-key"
    reasoning = "anthropic"
    constrain = "anthropic"
    default_limit: int | None = DEFAULT_MAX_TOKENS
    unknown = frozenset({"seed"})
    batch = "anthropic"
    batch_endpoint = ""
    marks_cache = False
    """Whether the last picture, or the system text, is marked to be kept for the requests that follow."""

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the messages address."""
        return f"{base_url}/messages"

    def headers(self, key: Secret | None) -> dict[str, str]:
        """Return JSON headers with the key and the API version."""
        headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
        return headers | key_headers(self.key_header, key)

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the messages body."""
        pairs = list(zip(request.messages, pictures, strict=True))
        system = "\n".join(turn.text for turn, _ in pairs if turn.role == "system")
        messages = [_message(turn, of_turn) for turn, of_turn in pairs if turn.role != "system"]
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
        return {name: value for name, value in body.items() if value is not None} | (params.extra_body or {})

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
        texts = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
        thoughts = [str(block.get("thinking", "")) for block in blocks if block.get("type") == "thinking"]
        return Reply(
            text="".join(texts) if texts else None,
            reasoning="".join(thoughts) or None,
            finish=_finish(message.get("stop_reason")),
            usage=_usage(message.get("usage")),
            model=message.get("model"),
            part=next((block["type"] for block in blocks if block.get("type") in NO_TEXT), None),
            choices=len(blocks),
        )

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
            begun = (event.get("content_block") or {}).get("type")
            reply.part = begun if begun in NO_TEXT else reply.part
        elif kind == "message_stop":
            reply.closed = True
        return _take_delta(event.get("delta") or {}, reply) if kind == "content_block_delta" else None


def _message(turn: Turn, pictures: Sequence[Picture]) -> dict[str, Any]:
    if not pictures:
        return {"role": turn.role, "content": turn.text}
    sources = [{"type": "base64", "media_type": picture.mime, "data": picture.token} for picture in pictures]
    shown = turn.arrange([{"type": "image", "source": source} for source in sources])
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in shown]
    return {"role": turn.role, "content": content}


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
        reply.reasoning = (reply.reasoning or "") + str(delta.get("thinking", ""))
        return "reasoning"
    if delta.get("type") != "text_delta":
        return None
    text = str(delta.get("text", ""))
    reply.text = (reply.text or "") + text
    reply.choices += 1
    return "content" if text else None


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
