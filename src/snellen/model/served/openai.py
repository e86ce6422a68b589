"""The OpenAI chat dialect, as vLLM, SGLang, LMDeploy, llama.cpp and the commercial servers speak it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import UsageError, did_you_mean
from ...core.protocols import Capability
from ...core.types import Params, Request, ToolCall, Turn
from ..options import ModelOptions
from .dialect import Dialect, Picture, write_parts
from .replies import CallPiece, Reply, choice_zero, expect_object, read_usage, refuse_error, texts_in, unreadable
from .served_model import ServedModel


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `openai/NAME`; `--model-arg images=…` is one of IMAGE_MODES."""
    options.allow_arguments("openai", ("images", "likelihood"))
    return ServedModel(chat_dialect(options), name, options)


def chat_dialect(options: ModelOptions) -> OpenAI:
    """Return the dialect with pictures as the options want them."""
    images = str(options.arguments.get("images", "inline"))
    if images == "file" and options.strip_metadata:
        raise UsageError(
            "--strip-metadata changes what is sent, and --model-arg images=file sends the files themselves"
        )
    return OpenAI(images)


IMAGE_MODES = ("inline", "uuid", "file")
"""Images as data URLs; with their content hash as vLLM's `uuid`; or as `file://` for a server on the same disk."""


class OpenAI(Dialect):
    """Chat completions with pictures as data URLs."""

    provider = "openai"
    family = "openai"
    default_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    capabilities = Dialect.capabilities | {Capability.LIKELIHOOD, Capability.VIDEO_FILE}
    reasoning = "effort"
    constrain = "openai"
    batch = "openai"
    batch_endpoint = "/v1/chat/completions"

    def __init__(self, images: str = "inline") -> None:
        if images not in IMAGE_MODES:
            near = did_you_mean(images, IMAGE_MODES)
            raise UsageError(f"--model-arg images={images}{near}; known: {', '.join(IMAGE_MODES)}")
        self._images = images

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the chat completions address."""
        return f"{base_url}/chat/completions"

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the chat body."""
        write = _message_with_calls if request.tools else _message
        messages = [
            write(turn, of_turn, self._images) for turn, of_turn in zip(request.messages, pictures, strict=True)
        ]
        body = {"model": model, "messages": messages, **sampling(request.params)}
        return body | tool_fields(request) if request.tools else body

    def parse(self, value: Any) -> Reply:
        """Read a chat completion."""
        value = expect_object(value)
        refuse_error(value)
        choice = _first_choice(value)
        reply = Reply(
            finish=choice.get("finish_reason"),
            usage=read_usage(value.get("usage")),
            model=value.get("model"),
            fingerprint=_word(value.get("system_fingerprint")),
            host=value.get("provider"),
            refusal=None if choice else _filtered(value),
            choices=int(bool(choice)),
        )
        _take_message(choice.get("message") or {}, reply)
        return reply

    def parse_event(self, value: Any, reply: Reply) -> str | None:
        """Read one chunk of a streamed completion."""
        value = expect_object(value)
        refuse_error(value)
        reply.usage = read_usage(value.get("usage") or (value.get("x_groq") or {}).get("usage")) or reply.usage
        reply.model = value.get("model") or reply.model
        reply.fingerprint = _word(value.get("system_fingerprint")) or reply.fingerprint
        reply.host = value.get("provider") or reply.host
        choice = _first_choice(value)
        reply.choices += bool(choice)
        reply.finish = choice.get("finish_reason") or reply.finish
        if "delta" not in choice and choice.get("message"):
            raise unreadable("the stream holds a whole message where a piece belongs")
        return _take_message(choice.get("delta") or {}, reply)


def _word(told: Any) -> str | None:
    return told if isinstance(told, str) else None


SAMPLING = ("max_tokens", "temperature", "top_p", "seed", "stop")


def sampling(params: Params) -> dict[str, Any]:
    """Return the sampling fields: what is unset is not sent, 0 is sent as 0, extra_body has the last word."""
    body = {name: value for name in SAMPLING if (value := getattr(params, name)) is not None}
    if params.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body | params.extra_body if params.extra_body else body


def tool_fields(request: Request) -> dict[str, Any]:
    """Return the fields that offer tools."""
    tools = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
        }
        for tool in request.tools
    ]
    return {"tools": tools} | ({"tool_choice": request.choice} if request.choice else {})


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def _message_with_calls(turn: Turn, pictures: Sequence[Picture], mode: str) -> dict[str, Any]:
    if turn.calls:
        return {"role": turn.role, "content": turn.text or None, "tool_calls": list(map(_call, turn.calls))}
    said = _message(turn, pictures, mode)
    return said | {"tool_call_id": turn.answers} if turn.answers else said


def _message(turn: Turn, pictures: Sequence[Picture], mode: str) -> dict[str, Any]:
    if not pictures:
        return {"role": turn.role, "content": turn.text}
    parts = [_image_part(picture, mode) for picture in pictures]
    return {"role": turn.role, "content": write_parts(turn, parts, "text")}


def _image_part(picture: Picture, mode: str) -> dict[str, Any]:
    """Write one picture. The uuid is the hash of the bytes: a file name would let variants answer for one another."""
    as_file = mode == "file" and _is_unchanged(picture)
    url = f"file://{picture.file}" if as_file else f"data:{picture.mime};base64,{picture.token}"
    kind = "video_url" if picture.mime.startswith("video/") else "image_url"
    part: dict[str, Any] = {"type": kind, kind: {"url": url}}
    return part | {"uuid": picture.sha256} if mode == "uuid" else part


def _is_unchanged(picture: Picture) -> bool:
    """Tell whether what is sent is the file: one that was turned or drawn again may keep its width and height."""
    if picture.file is None:
        return False
    try:
        return Path(picture.file).stat().st_size == picture.size_bytes
    except OSError:  # gone since it was read: for the viewer, it is named as it was
        return True


def _first_choice(value: dict[str, Any]) -> Mapping[str, Any]:
    return choice_zero(value.get("choices") or [{}])


TEXT_PARTS = (None, "text", "output_text")
THOUGHT_PARTS = ("thinking", "reasoning", "reasoning_text", "reasoning_content", "summary_text")


def _take_content(content: Any, reply: Reply) -> dict[str, str]:
    """Return the text and the reasoning of a content, plain or in parts; what is neither is noted in the reply."""
    if content is None:
        return {}
    if isinstance(content, str):
        return {"text": content}
    if not isinstance(content, list):
        raise unreadable(f"the server's content is a {type(content).__name__}")
    found: dict[str, str] = {}
    for part in content:
        whole = {"text": part} if isinstance(part, str) else expect_object(part)
        kind = whole.get("type")
        if kind in TEXT_PARTS:
            for text in texts_in([whole], "text"):
                found["text"] = found.get("text", "") + text
        elif kind in THOUGHT_PARTS:
            found["reasoning"] = found.get("reasoning", "") + _thought(whole, reply)
        elif kind == "refusal":
            reply.refusal = (reply.refusal or "") + str(whole.get("refusal") or kind)
        else:
            reply.part = str(kind)
    return found


def _thought(part: Mapping[str, Any], reply: Reply) -> str:
    names = ("thinking", "reasoning", "text", "summary", "content")
    words = next((part[name] for name in names if part.get(name)), None)
    return "".join(_take_content(words, reply).values())


def _filtered(value: Mapping[str, Any]) -> str | None:
    """Return which filter held a prompt back, where a server sends no choice and says so (Azure)."""
    for row in value.get("prompt_filter_results") or ():
        for name, result in (row.get("content_filter_results") or {}).items():
            if isinstance(result, dict) and result.get("filtered"):
                return f"content_filter ({name})"
    return None


def _take_message(message: Mapping[str, Any], reply: Reply) -> str | None:
    """Take a message, or a piece of one, into the reply; return what it brought last."""
    brought = None
    content = _take_content(message.get("content"), reply)
    thought = message.get("reasoning_content") or message.get("reasoning") or content.get("reasoning")
    if thought:
        brought = reply.add_thought(thought)
    text = content.get("text")
    reply.nulled = reply.nulled or (text is None and "content" in message)
    if text is not None:
        brought = reply.add_text(text) or brought
    reply.refusal = message.get("refusal") or reply.refusal
    call = message.get("function_call")
    if message.get("tool_calls") or (any(call.values()) if isinstance(call, dict) else call):
        reply.part = "tool_calls"
        brought = "content" if _take_calls(message, reply) else brought
    return brought


def _take_calls(message: Mapping[str, Any], reply: Reply) -> bool:
    """Gather calls, whole or in pieces, by their index; tell whether there were any."""
    legacy = message.get("function_call")
    rows = message.get("tool_calls") or ([{"function": legacy}] if isinstance(legacy, dict) else ())
    for place, row in enumerate(rows):
        function = row.get("function") or {}
        ident, name, told = str(row.get("id") or ""), str(function.get("name") or ""), function.get("arguments")
        at = row.get("index", place)
        call = reply.call_at(at)
        if name and _is_whole(call) and (ident != call.id if ident else told):
            call = reply.call_after(at)
        call.id = call.id or ident
        call.name += name if name != call.name else ""
        call.arguments += told if isinstance(told, str) else _json(told) if told is not None else ""
    return bool(rows)


def _is_whole(call: CallPiece) -> bool:
    """Tell whether nothing of a call is missing: some servers stream every call at index 0, or at none."""
    if not call.arguments:
        return False
    try:
        msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        return False
    return True


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
