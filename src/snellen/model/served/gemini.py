"""The Gemini generateContent dialect: contents of parts, pictures as inline data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...core.protocols import Capability, ImagePolicy
from ...core.types import Params, Request, Turn, Usage
from ..options import ModelOptions
from .dialect import Dialect, Picture, write_parts
from .replies import Reply, choice_zero, expect_object, refuse_error, text_in
from .served_model import ServedModel
from .server_fields import merge_fields

FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
TEXT_FIELDS = frozenset(
    {"text", "thought", "thoughtSignature", "executableCode", "codeExecutionResult", "partMetadata", "videoMetadata"}
)
"""Fields of the parts of an answer, and of code that the server ran itself; any other makes a part of another kind."""
OWN_CODE = "executableCode"
ROLES = {"assistant": "model", "user": "user"}


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `gemini/NAME`."""
    options.allow_arguments("gemini")
    return ServedModel(Gemini(), name, options)


class Gemini(Dialect):
    """generateContent and streamGenerateContent."""

    provider = "gemini"
    family = "gemini"
    default_url = "https://generativelanguage.googleapis.com/v1beta"
    key_variable = "GEMINI_API_KEY"
    capabilities = Dialect.capabilities | {Capability.VIDEO_FILE}
    image_policy = ImagePolicy(max_bytes=15_000_000, formats=("image/png", "image/jpeg", "image/webp"))
    sampling_place = "generationConfig"
    key_header = "x-goog-api-key"
    reasoning = "gemini"
    constrain = "gemini"
    batch = "gemini"

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the address of the model's method."""
        return f"{base_url}/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the generateContent body."""
        pairs = list(zip(request.messages, pictures, strict=True))
        system = "\n".join(turn.text for turn, _ in pairs if turn.role == "system")
        body: dict[str, Any] = {"contents": _contents([pair for pair in pairs if pair[0].role != "system"], model)}
        body |= _tool_fields(request)
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        config = _generation_config(request.params)
        body |= {"generationConfig": config} if config else {}
        return merge_fields(request.params.extra_body, body) if request.params.extra_body else body

    def parse(self, value: Any) -> Reply:
        """Read a whole response."""
        reply = Reply()
        self.parse_event(value, reply)
        return reply

    def parse_event(self, value: Any, reply: Reply) -> str | None:
        """Read one response, whole or a piece of a stream: both have the same form."""
        response = expect_object(value)
        refuse_error(response)
        blocked = (response.get("promptFeedback") or {}).get("blockReason")
        reply.refusal = f"blocked: {blocked}" if blocked else reply.refusal
        reply.usage = _usage(response.get("usageMetadata")) or reply.usage
        reply.model = response.get("modelVersion") or reply.model
        candidate = choice_zero(response.get("candidates") or [{}])
        reply.choices += bool(candidate)
        finish = candidate.get("finishReason")
        reply.finish = FINISH.get(finish, str(finish).lower()) if finish else reply.finish
        parts = (candidate.get("content") or {}).get("parts") or []
        reply.kept += [dict(part) for part in parts]  # whole and in order: signatures stand on any of them
        return _take_parts(parts, reply)


INSIDE_SINCE = re.compile(r"gemini-(?:[3-9]|\d\d)")
"""Models that take a picture inside the response of a function; for those before it stands beside it."""


def _tool_fields(request: Request) -> dict[str, Any]:
    """Return the fields that offer tools."""
    if not request.tools:
        return {}
    told = [
        {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
        for tool in request.tools
    ]
    fields: dict[str, Any] = {"tools": [{"functionDeclarations": told}]}
    if request.choice:
        fields["toolConfig"] = {"functionCallingConfig": {"mode": request.choice.upper()}}
    return fields


def _contents(pairs: Sequence[tuple[Turn, Sequence[Picture]]], model: str) -> list[dict[str, Any]]:
    """Return the messages; the responses of functions that were called together stand in one."""
    contents: list[dict[str, Any]] = []
    calls = {call.id: call for turn, _ in pairs for call in turn.calls}
    given = {str(part["functionCall"].get("id")) for turn, _ in pairs for part in turn.kept if "functionCall" in part}
    for turn, pictures in pairs:
        if not turn.answers:
            contents.append(_content(turn, pictures))
            continue
        parts = _response(turn, pictures, calls[turn.answers].name, inside=bool(INSIDE_SINCE.search(model)))
        if turn.answers in given:
            parts[0]["functionResponse"]["id"] = turn.answers
        if contents and "functionResponse" in contents[-1]["parts"][0]:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": "user", "parts": parts})
    return contents


def _response(turn: Turn, pictures: Sequence[Picture], name: str, *, inside: bool) -> list[dict[str, Any]]:
    """Return the response of a function, its pictures in it or beside it."""
    shown = _inline(pictures)
    kind = "error" if turn.text.startswith("Error:") else "output"
    response: dict[str, Any] = {"name": name, "response": {kind: turn.text}}
    if inside and shown:
        response["parts"] = shown
    return [{"functionResponse": response}, *([] if inside else shown)]


def _content(turn: Turn, pictures: Sequence[Picture]) -> dict[str, Any]:
    if turn.kept:
        return {"role": "model", "parts": list(turn.kept)}
    return {"role": ROLES.get(turn.role, turn.role), "parts": write_parts(turn, _inline(pictures))}


def _inline(pictures: Sequence[Picture]) -> list[dict[str, Any]]:
    return [{"inlineData": {"mimeType": picture.mime, "data": picture.token}} for picture in pictures]


def _generation_config(params: Params) -> dict[str, Any]:
    config = {
        "maxOutputTokens": params.max_tokens,
        "temperature": params.temperature,
        "topP": params.top_p,
        "seed": params.seed,
        "stopSequences": params.stop,
    }
    return {name: value for name, value in config.items() if value is not None}


def _take_parts(parts: Sequence[Mapping[str, Any]], reply: Reply) -> str | None:
    brought = None
    for part in parts:
        text = text_in(part.get("text"))
        reply.foreign += OWN_CODE in part
        if part.get("thought"):
            thought = reply.add_thought(text)
            brought = brought or thought
        elif part.get("text") is not None:
            reply.add_text(text)
            brought = "content"
        if odd := next((name for name in part if name not in TEXT_FIELDS), None):
            reply.part = odd
            brought = _take_call(part, reply) or brought
    return brought


def _take_call(part: Mapping[str, Any], reply: Reply) -> str | None:
    told = part.get("functionCall")
    if told is None:
        return None
    call = reply.call_at(len(reply.calls))
    call.id, call.name = str(told.get("id") or ""), str(told.get("name") or "")
    call.arguments = msgspec.json.encode(told.get("args") or {}).decode()
    return "content"


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    kinds = ("prompt", "candidates", "thoughts", "cachedContent")
    prompt, visible, thoughts, cached = (value.get(f"{kind}TokenCount") for kind in kinds)
    output = None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0)
    return Usage(prompt, output, thoughts, cached, _image_tokens(value.get("promptTokensDetails") or ()))


def _image_tokens(details: Sequence[Mapping[str, Any]]) -> int | None:
    counts = [row.get("tokenCount") or 0 for row in details if row.get("modality") == "IMAGE"]
    return sum(counts) if counts else None
