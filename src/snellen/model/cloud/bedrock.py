"""The Converse dialect of AWS Bedrock: content blocks, pictures as bytes, a binary event stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ...core.protocols import Capability, ImagePolicy
from ...core.secret import Secret
from ...core.types import Request, Turn, Usage
from ..providers.reasoning import merge_fields
from ..served.dialect import Picture, key_headers
from ..served.replies import Reply, expect_object, refuse_error

FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}
CONFIG = {"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "stopSequences": "stop"}


class Bedrock:
    """`/model/ID/converse` and `/model/ID/converse-stream`."""

    provider = "bedrock"
    family = "bedrock"
    default_url = ""
    key_variable = "AWS_BEARER_TOKEN_BEDROCK"
    capabilities = frozenset({Capability.GENERATE, Capability.STREAM, Capability.IMAGES})
    image_policy = ImagePolicy(max_side=8000, max_bytes=3_750_000)
    sampling_place: str | None = "inferenceConfig"
    key_header = "Authorization"
    reasoning = "bedrock"
    constrain = ""
    default_limit: int | None = None
    unknown = frozenset({"seed"})
    batch = ""
    batch_endpoint = ""

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the address of a conversation; a model's name holds colons, which are written as AWS signs them."""
        return f"{base_url}/model/{quote(model, safe='')}/converse{'-stream' if stream else ''}"

    def headers(self, key: Secret | None) -> dict[str, str]:
        """Return JSON headers, with a bearer token if there is one; else the request is signed on its way."""
        return {"Content-Type": "application/json"} | key_headers(self.key_header, key)

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the body."""
        pairs = list(zip(request.messages, pictures, strict=True))
        params = request.params
        body: dict[str, Any] = {"messages": [_message(turn, shown) for turn, shown in pairs if turn.role != "system"]}
        system = [{"text": turn.text} for turn, _ in pairs if turn.role == "system"]
        config = {theirs: value for theirs, ours in CONFIG.items() if (value := getattr(params, ours)) is not None}
        body |= {"system": system} if system else {}
        body |= {"inferenceConfig": config} if config else {}
        return merge_fields(params.extra_body, body) if params.extra_body else body

    def parse(self, value: Any) -> Reply:
        """Read a whole reply."""
        whole = expect_object(value)
        refuse_error(whole)
        message = expect_object(expect_object(whole.get("output") or {}).get("message") or {})
        blocks = [block for block in message.get("content") or () if isinstance(block, dict)]
        texts = [str(block["text"]) for block in blocks if "text" in block]
        thoughts = [_thought(block.get("reasoningContent") or {}) for block in blocks]
        return Reply(
            text="".join(texts) if texts else None,
            reasoning="".join(thoughts) or None,
            finish=_finish(whole.get("stopReason")),
            usage=_usage(whole.get("usage")),
            choices=len(blocks),
        )

    def parse_event(self, value: Any, reply: Reply) -> str | None:
        """Read one frame; its name stands beside what it holds."""
        event = expect_object(value)
        refuse_error(event)
        kind = event.get("event")
        if kind == "messageStop":
            reply.finish = _finish(event.get("stopReason"))
        elif kind == "metadata":
            reply.usage = _usage(event.get("usage")) or reply.usage
            reply.closed = True
        return _take_delta(event.get("delta") or {}, reply) if kind == "contentBlockDelta" else None


def _message(turn: Turn, pictures: Sequence[Picture]) -> dict[str, Any]:
    shown = turn.arrange([_picture(picture) for picture in pictures])
    return {"role": turn.role, "content": [{"text": part} if isinstance(part, str) else part for part in shown]}


def _picture(picture: Picture) -> dict[str, Any]:
    return {"image": {"format": picture.mime.rpartition("/")[2], "source": {"bytes": picture.token}}}


def _thought(reasoning: Mapping[str, Any]) -> str:
    return str((reasoning.get("reasoningText") or {}).get("text") or "")


def _take_delta(delta: Mapping[str, Any], reply: Reply) -> str | None:
    thought = str((delta.get("reasoningContent") or {}).get("text") or "")
    if thought:
        reply.reasoning = (reply.reasoning or "") + thought
        return "reasoning"
    if "text" not in delta:
        return None
    reply.text = (reply.text or "") + str(delta["text"])
    reply.choices += 1
    return "content" if delta["text"] else None


def _finish(reason: Any) -> str | None:
    return FINISH.get(reason, reason) if reason else None


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    read, written = (value.get(f"cache{kind}InputTokens") for kind in ("Read", "Write"))
    fresh = value.get("inputTokens")  # without what was read from or written to a cache
    whole = None if fresh is None else fresh + (read or 0) + (written or 0)
    return Usage(whole, value.get("outputTokens"), None, read, written_tokens=written or None)
