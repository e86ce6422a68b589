"""The OpenAI Responses dialect: input items, pictures as plain addresses, reasoning as items of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.types import Request, Turn, Usage
from ..options import ModelOptions
from .dialect import Dialect, Picture, write_parts
from .replies import Reply, decode_body, expect_object, refuse_error, text_in, texts_in
from .served_model import ServedModel
from .server_fields import merge_fields

FINISH = {"completed": "stop", "max_output_tokens": "length"}
NO_TEXT = frozenset({"function_call", "custom_tool_call", "image_generation_call"})
"""Items that are no part of an answer; those of tools that the server runs itself stand beside one."""
OWN_TOOLS = frozenset({"code_interpreter_call", "web_search_call", "file_search_call", "computer_call", "mcp_call"})
UNFINISHED = frozenset({"queued", "in_progress"})
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
DELTAS = {
    "response.output_text.delta": "content",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `openai-responses/NAME`."""
    options.allow_arguments("openai-responses")
    return ServedModel(Responses(), name, options)


class Responses(Dialect):
    """`/v1/responses`; nothing is stored by the server."""

    provider = "openai-responses"
    family = "openai-responses"
    default_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    reasoning = "responses"
    constrain = "responses"
    unknown = frozenset({"stop", "seed"})
    batch = "openai"
    batch_endpoint = "/v1/responses"

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the address of responses."""
        return f"{base_url}/responses"

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the body."""
        params = request.params
        body: dict[str, Any] = {
            "model": model,
            "store": False,
            "input": [
                item for turn, shown in zip(request.messages, pictures, strict=True) for item in _items(turn, shown)
            ],
            "max_output_tokens": params.max_tokens,
            "temperature": params.temperature,
            "top_p": params.top_p,
            "stream": params.stream or None,
        }
        body = {name: value for name, value in body.items() if value is not None} | _tool_fields(request)
        return merge_fields(params.extra_body, body) if params.extra_body else body

    def unfinished(self, body: bytes) -> str | None:
        """Return the path of a response that is made in the background, until it is there."""
        value = decode_body(body)
        waits = isinstance(value, dict) and value.get("status") in UNFINISHED and value.get("id")
        return f"/responses/{value['id']}" if waits else None

    def parse(self, value: Any) -> Reply:
        """Read a whole response."""
        response = expect_object(value)
        refuse_error(response)
        reply = Reply(model=response.get("model"), usage=_usage(response.get("usage")))
        items = [item for item in response.get("output") or () if isinstance(item, dict)]
        for item in items:
            _take_item(item, reply)
        reply.choices = len(items)
        reply.finish = _finish(response)
        return reply

    def parse_event(self, value: Any, reply: Reply) -> str | None:
        """Read one stream event; kinds that are not known say nothing about the text."""
        event = expect_object(value)
        kind = event.get("type")
        if kind == "error":
            refuse_error({"error": event.get("error") or event})
        if kind in ENDS:
            _take_end(expect_object(event.get("response") or {}), reply)
            return None
        if kind == "response.refusal.delta":
            reply.refusal = (reply.refusal or "") + text_in(event.get("delta"))
        if kind == "response.output_item.added":
            _note_item(expect_object(event.get("item") or {}), reply)
        if kind == "response.output_item.done":
            return _take_call(expect_object(event.get("item") or {}), reply)
        brought = DELTAS.get(str(kind))
        return _take_delta(brought, text_in(event.get("delta")), reply) if brought else None


def _tool_fields(request: Request) -> dict[str, Any]:
    """Return the fields that offer tools; thoughts come back sealed, as nothing is stored by the server."""
    if not request.tools:
        return {}
    tools = [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema}
        | {"strict": False}
        for tool in request.tools
    ]
    told = {"tools": tools, "include": ["reasoning.encrypted_content"]}
    return told | ({"tool_choice": request.choice} if request.choice else {})


def _items(turn: Turn, pictures: Sequence[Picture]) -> list[dict[str, Any]]:
    """Return a message as items: calls and their results are items of their own."""
    if turn.answers:
        content = _item(turn, pictures)["content"]
        return [{"type": "function_call_output", "call_id": turn.answers, "output": content}]
    if not (turn.calls or turn.kept):
        return [_item(turn, pictures)]
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in turn.calls
    ]
    return [*turn.kept, *([_item(turn, pictures)] if turn.text else []), *calls]


def _take_call(item: Mapping[str, Any], reply: Reply) -> str | None:
    """Take a whole item: the call of a function, or a sealed thought, which goes back with the next turn."""
    if item.get("type") == "reasoning" and item.get("encrypted_content"):
        reply.kept.append(dict(item))
    reply.foreign += str(item.get("type")) in OWN_TOOLS
    if item.get("type") != "function_call":
        return None
    call = reply.call_at(len(reply.calls))
    call.id, call.name = str(item.get("call_id") or ""), str(item.get("name") or "")
    call.arguments = str(item.get("arguments") or "")
    return "content"


def _item(turn: Turn, pictures: Sequence[Picture]) -> dict[str, Any]:
    if not pictures:
        return {"role": turn.role, "content": turn.text}
    parts = [{"type": "input_image", "image_url": f"data:{one.mime};base64,{one.token}"} for one in pictures]
    return {"role": turn.role, "content": write_parts(turn, parts, "input_text")}


def _take_item(item: Mapping[str, Any], reply: Reply) -> None:
    """Take the text of a message, or the words of a reasoning item; other items are no part of an answer."""
    parts = [part for name in ("summary", "content") for part in item.get(name) or () if isinstance(part, dict)]
    if item.get("type") == "reasoning":
        reply.reasoning = (reply.reasoning or "") + "".join(_texts(parts, "text")) or None
    elif item.get("type") == "message":
        _take_parts(parts, reply)
    _take_call(item, reply)
    _note_item(item, reply)


def _note_item(item: Mapping[str, Any], reply: Reply) -> None:
    kind = item.get("type")
    reply.part = str(kind) if kind in NO_TEXT else reply.part


def _take_parts(parts: Sequence[Mapping[str, Any]], reply: Reply) -> None:
    texts = _texts(parts, "text", "output_text")
    if texts:
        reply.add_text("".join(texts))
    reply.refusal = "".join(_texts(parts, "refusal", "refusal")) or reply.refusal
    others = (str(part.get("type")) for part in parts if part.get("type") not in ("output_text", "refusal"))
    reply.part = next(others, reply.part)


def _texts(parts: Iterable[Mapping[str, Any]], name: str, kind: str | None = None) -> list[str]:
    return texts_in((part for part in parts if kind is None or part.get("type") == kind), name)


def _take_delta(brought: str, text: str, reply: Reply) -> str | None:
    if brought == "reasoning":
        reply.add_thought(text)
    else:
        reply.add_text(text)
        reply.choices += 1
    return brought if text else None


def _take_end(response: dict[str, Any], reply: Reply) -> None:
    refuse_error(response)
    reply.finish = _finish(response)
    reply.usage = _usage(response.get("usage")) or reply.usage
    reply.model = response.get("model") or reply.model
    reply.closed = True


def _finish(response: Mapping[str, Any]) -> str | None:
    why = (response.get("incomplete_details") or {}).get("reason")
    word = str(why or response.get("status") or "")
    return FINISH.get(word, word) or None


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    given, made = (value.get(f"{kind}_tokens_details") or {} for kind in ("input", "output"))
    totals = value.get("input_tokens"), value.get("output_tokens")
    return Usage(*totals, made.get("reasoning_tokens"), given.get("cached_tokens"))
