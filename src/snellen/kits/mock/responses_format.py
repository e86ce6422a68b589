"""The OpenAI Responses API as a server speaks it."""

from __future__ import annotations

from typing import Any

from .ask import Ask, BadRequestError, Body
from .plan import Plan
from .wire import Completion, Pace
from .wire_format import Json, StreamEvent, decode_object, event_plan, in_chunks, to_chat, whole_plan

NOT_TAKEN = ("stop", "seed", "n", "logit_bias", "max_tokens", "max_completion_tokens", "messages")
"""Parameters of chats that this API refuses."""


class ResponsesFormat:
    """`/v1/responses`."""

    def reads(self, path: str) -> bool:
        """Tell whether it is a response that is asked for."""
        return path.endswith("/responses")

    def read(self, path: str, data: bytes) -> Body:
        """Return the input as a chat."""
        value = decode_object(data)
        for name in NOT_TAKEN:
            if name in value:
                raise BadRequestError(f"Unknown parameter: '{name}'.")
        given = value.get("input")
        turns = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
        messages = [_message(turn) for turn in turns]
        if value.get("instructions"):
            messages.insert(0, {"role": "system", "content": value["instructions"]})
        shared = {name: value.get(name) for name in ("model", "temperature", "stream")}
        return to_chat(shared | {"messages": messages, "max_completion_tokens": value.get("max_output_tokens")})

    def answer(self, ask: Ask, completion: Completion, pace: Pace, ident: str) -> Plan:
        """Return a response, or its events."""
        whole = _response(ask, completion, ident)
        return event_plan(_events(whole, completion, pace)) if ask.body.stream else whole_plan(whole, completion, pace)

    def refusal(self, error: Json, status: int) -> Any:
        """Return an error as OpenAI words it: as for chats."""
        return {"error": error}


def _message(turn: Json) -> Json:
    content = turn.get("content")
    parts = content if isinstance(content, str) else [_part(part) for part in content or ()]
    role = "system" if turn.get("role") == "developer" else turn.get("role")
    return {"role": role, "content": parts}


def _part(part: Json) -> Json:
    if part.get("type") in ("input_text", "output_text"):
        return {"type": "text", "text": part.get("text", "")}
    url = part.get("image_url")
    if part.get("type") != "input_image" or not isinstance(url, str):
        raise BadRequestError(f"Invalid value: '{part.get('type')}'. image_url must be a string.")
    return {"type": "image_url", "image_url": {"url": url}}


def _response(ask: Ask, completion: Completion, ident: str) -> Json:
    output: list[Json] = []
    if completion.reasoning:
        thought = {"type": "summary_text", "text": "".join(completion.reasoning)}
        output.append({"id": f"rs_{ident}", "type": "reasoning", "summary": [thought]})
    if completion.tokens or completion.finish == "stop":
        text = {"type": "output_text", "text": "".join(completion.tokens), "annotations": []}
        message = {"id": f"msg_{ident}", "type": "message", "role": "assistant", "status": "completed"}
        output.append({**message, "content": [text]})
    why = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(completion.finish)
    count = len(completion.tokens) + len(completion.reasoning)
    usage = {
        "input_tokens": completion.prompt_tokens,
        "input_tokens_details": {"cached_tokens": completion.cached_tokens},
        "output_tokens": count,
        "output_tokens_details": {"reasoning_tokens": len(completion.reasoning)},
        "total_tokens": completion.prompt_tokens + count,
    }
    return {
        "id": f"resp_{ident}",
        "object": "response",
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "error": None,
        "model": ask.body.model,
        "output": output,
        "usage": usage,
    }


def _events(whole: Json, completion: Completion, pace: Pace) -> list[StreamEvent]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    steps: list[tuple[float, str, Json]] = [
        (pace.at_s(0), "response.created", {"response": begun}),
        (pace.at_s(0), "response.in_progress", {"response": begun}),
    ]
    before, place = len(completion.reasoning), int(bool(completion.reasoning))
    steps += [
        (at_s, "response.reasoning_summary_text.delta", {"output_index": 0, "summary_index": 0, "delta": text})
        for at_s, text in in_chunks(completion.reasoning, pace)
    ]
    steps += [
        (at_s, "response.output_text.delta", {"output_index": place, "content_index": 0, "delta": text})
        for at_s, text in in_chunks(completion.tokens, pace, before)
    ]
    last_s = steps[-1][0]
    steps += [
        (last_s, "response.output_item.done", {"output_index": i, "item": item})
        for i, item in enumerate(whole["output"])
    ]
    ended = "response.incomplete" if whole["status"] == "incomplete" else "response.completed"
    steps.append((last_s, ended, {"response": whole}))
    return [
        StreamEvent(at_s, name, {"type": name, "sequence_number": number, **value})
        for number, (at_s, name, value) in enumerate(steps)
    ]
