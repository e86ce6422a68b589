"""Requests to the conversations vLLM's offline chat takes, pictures as pixels."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import replace

from ...core.errors import DataError, ModelError
from ...core.types import FailureKind, Request, Turn
from ...data.images.decode import open_image
from ..plain import separator


class Talk(NamedTuple):
    """One conversation for the engine. `continued`: its last message is the beginning of the answer."""

    messages: list[dict[str, Any]]
    sampling: dict[str, Any]
    continued: bool


def converse(request: Request, sampling: dict[str, Any]) -> Talk:
    """Return the conversation to answer; a forced beginning stands as the assistant's unfinished words."""
    turns = (*request.messages, Turn("assistant", request.prefix)) if request.prefix else request.messages
    return Talk([_message(turn) for turn in turns], sampling, bool(request.prefix))


def scoring_talks(request: Request) -> list[Talk]:
    """Return the prompt alone, then the prompt with each candidate, all to be scored and not continued."""
    sampling = {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0}
    gap = separator(request.prefix) if request.prefix else ""
    spoken = [replace(request, prefix=request.prefix + gap + choice) for choice in request.choices]
    return [converse(each, sampling) for each in (request, *spoken)]


def _message(turn: Turn) -> dict[str, Any]:
    if not turn.images:
        return {"role": turn.role, "content": turn.text}
    try:
        pictures = [{"type": "image_pil", "image_pil": open_image(image).convert("RGB")} for image in turn.images]
    except DataError as error:
        raise ModelError(FailureKind.DECODE, str(error)) from None
    shown = turn.arrange(pictures)
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in shown]
    return {"role": turn.role, "content": content}
