"""The Gemini generateContent dialect: contents of parts, pictures as inline data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.protocols import Capability, ImagePolicy
from ...core.secret import Secret
from ...core.types import Params, Request, Turn, Usage
from ..options import ModelOptions
from .dialect import NO_NAMES, Picture, key_headers
from .reasoning import merge_fields
from .replies import Reply, choice_zero, expect_object, refuse_error
from .served_model import ServedModel

FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
NO_TEXT = ("functionCall", "inlineData", "fileData")
"""Parts that are no part of an answer; code that the server ran itself stands beside one."""
ROLES = {"assistant": "model", "user": "user"}


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `gemini/NAME`."""
    options.allow_arguments("gemini")
    return ServedModel(Gemini(), name, options)


class Gemini:
    """generateContent and streamGenerateContent."""

    provider = "gemini"
    family = "gemini"
    default_url = "https://generativelanguage.googleapis.com/v1beta"
    key_variable = "GEMINI_API_KEY"
    capabilities = frozenset({Capability.GENERATE, Capability.STREAM, Capability.IMAGES, Capability.VIDEO_FILE})
    image_policy = ImagePolicy(max_bytes=15_000_000, formats=("image/png", "image/jpeg", "image/webp"))
    sampling_place: str | None = "generationConfig"
    key_header = "x-goog-api-key"
    reasoning = "gemini"
    constrain = "gemini"
    default_limit: int | None = None
    unknown = NO_NAMES
    batch = "gemini"
    batch_endpoint = ""

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the address of the model's method."""
        return f"{base_url}/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"

    def headers(self, key: Secret | None) -> dict[str, str]:
        """Return JSON headers with the key."""
        headers = {"Content-Type": "application/json"}
        return headers | key_headers(self.key_header, key)

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the generateContent body."""
        pairs = list(zip(request.messages, pictures, strict=True))
        system = "\n".join(turn.text for turn, _ in pairs if turn.role == "system")
        body: dict[str, Any] = {
            "contents": [_content(turn, of_turn) for turn, of_turn in pairs if turn.role != "system"]
        }
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
        return _take_parts((candidate.get("content") or {}).get("parts") or [], reply)


def _content(turn: Turn, pictures: Sequence[Picture]) -> dict[str, Any]:
    shown = turn.arrange([{"inlineData": {"mimeType": picture.mime, "data": picture.token}} for picture in pictures])
    parts = [{"text": part} if isinstance(part, str) else part for part in shown]
    return {"role": ROLES.get(turn.role, turn.role), "parts": parts}


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
        text = str(part.get("text") or "")
        if part.get("thought"):
            reply.reasoning = (reply.reasoning or "") + text
            brought = brought or "reasoning"
        elif "text" in part:
            reply.text = (reply.text or "") + text
            brought = "content"
        elif kind := next(filter(part.__contains__, NO_TEXT), None):
            reply.part = kind
    return brought


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
