"""The name of a dialect to what a server of it understands: which requests, which batches, which refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.errors import UsageError, did_you_mean
from ..http import Exchange
from ..plan import Plan, error_plan, json_plan
from .anthropic_tongue import AnthropicTongue
from .batch_book import Answer, BatchBook, BatchScript
from .bedrock_tongue import BedrockTongue
from .content_batches import ContentBatches
from .file_batches import FileBatches
from .gemini_tongue import GeminiTongue
from .message_batches import MessageBatches
from .responses_tongue import ResponsesTongue
from .tongue import Json, Tongue

BatchRoutes = Callable[[Exchange], Plan | None]
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, IndexError, ValueError)


class Speech(NamedTuple):
    """What a server of one dialect answers."""

    root: str
    """What the address of the server ends with."""
    tongues: tuple[Tongue, ...] = ()
    chats: bool = False
    """Whether it answers chat and text completions too."""
    batches: str = ""
    """The kind of its batches; empty where it has none."""


_OPENAI = Speech("/v1", (ResponsesTongue(),), chats=True, batches="files")
SPEECHES: dict[str, Speech] = {
    "openai": _OPENAI,
    "openai-responses": _OPENAI,
    "azure": Speech("/openai/v1", (ResponsesTongue(),), chats=True, batches="files"),
    "mistral": Speech("/v1", chats=True, batches="mistral"),
    "anthropic": Speech("/v1", (AnthropicTongue(),), batches="messages"),
    "gemini": Speech("/v1beta", (GeminiTongue(),), batches="contents"),
    "vertex": Speech("/v1/projects/mock/locations/global", (GeminiTongue(), AnthropicTongue())),
    "bedrock": Speech("", (BedrockTongue(),)),
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


def worded(plan: Plan, tongue: Tongue | None) -> Plan:
    """Return an error in the words of a dialect; anything else as it is."""
    if tongue is None or plan.status == 200 or plan.streamed or not plan.pieces:
        return plan
    try:
        error = msgspec.json.decode(plan.body)["error"]
    except MALFORMED:
        return plan
    return json_plan(tongue.refusal(error, plan.status), plan.done_at_s, plan.status, plan.headers)


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
    if any(isinstance(tongue, GeminiTongue) for tongue in speech.tongues):
        return {"models": [{"name": f"models/{name}"} for name in models]}
    about = {"object": "model", "created": 0, "owned_by": "snellen"}
    return {"object": "list", "data": [{"id": name, **about} for name in models]}
