"""A reader's reply to the plan of an OpenAI-compatible response: whole or streamed, usage and log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from .ask import Ask, find_mark
from .plan import Plan, json_plan, stream_plan
from .readers import Reply
from .tokens import log_probability, sequence_log_probabilities, token_id, tokenize

Json = dict[str, Any]

IMAGE_TOKENS = 256
"""What one image costs in the toy count."""
FILLER = " and so on"


@dataclass(frozen=True, slots=True)
class Pace:
    """When tokens leave: the first after `ttft_s`, then one every `itl_s`, `chunk_tokens` in one event."""

    ttft_s: float = 0.0
    itl_s: float = 0.0
    chunk_tokens: int = 1

    def at_s(self, index: int) -> float:
        """Return when token `index` leaves, in seconds after service began."""
        return self.ttft_s + self.itl_s * index


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply as tokens, after stop strings and the token limit."""

    tokens: list[str]
    reasoning: list[str]
    finish: str
    prompt_tokens: int
    cached_tokens: int = 0
    """The part of the prompt that the server had kept."""
    written_tokens: int = 0
    """The part that it keeps from now on."""

    @property
    def output_tokens(self) -> int:
        """Return how many tokens were written, thoughts too."""
        return len(self.tokens) + len(self.reasoning)

    @property
    def usage(self) -> Json:
        """Return the usage object."""
        output = self.output_tokens
        usage: Json = {"prompt_tokens": self.prompt_tokens, "completion_tokens": output}
        usage["total_tokens"] = self.prompt_tokens + output
        if self.reasoning:
            usage["completion_tokens_details"] = {"reasoning_tokens": len(self.reasoning)}
        if self.cached_tokens:
            usage["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        return usage


def prompt_tokens(ask: Ask) -> int:
    """Count the toy tokens of a request, images included."""
    return len(tokenize(ask.transcript)) + (IMAGE_TOKENS - 1) * len(ask.images)


def complete(ask: Ask, reply: Reply, length: int | None) -> Completion:
    """Cut the reply at stop strings and max_tokens; with `length`, first stretch or cut it to that many tokens."""
    text = reply.text
    for stop in ask.stops:
        text = text.partition(stop)[0] if stop else text
    tokens, finish = tokenize(text), "stop"
    reasoning = tokenize(reply.reasoning or "")
    if length is not None:
        tokens = (tokens + tokenize(FILLER) * (length // 3 + 1))[:length]
    limit = ask.max_tokens
    if limit is not None and len(tokens) + len(reasoning) > limit:
        reasoning, finish = reasoning[:limit], "length"
        tokens = tokens[: limit - len(reasoning)]
    return Completion(tokens, reasoning, finish, prompt_tokens(ask))


def alternatives(ask: Ask, token: str, before: str, count: int, options: tuple[str, ...]) -> list[tuple[str, float]]:
    """Return (token, log-probability) of the chosen token, then of its rivals; `options` matter for the first token."""
    marks = [mark for option in options if (mark := find_mark(ask.text, option))]
    rivals = [mark for mark in [*marks, "the", "a", "I", "The", "not"] if mark != token.strip()]
    chosen = (token, log_probability(token, before, token))
    others = sorted(((rival, log_probability(rival, before, None)) for rival in rivals), key=lambda pair: -pair[1])
    return [chosen, *others][: max(1, count)]


def token_logprobs(ask: Ask, tokens: list[str], options: tuple[str, ...]) -> list[Json]:
    """Return `logprobs.content` of a chat completion."""
    content: list[Json] = []
    before = ask.transcript[-64:]
    for token in tokens:
        rivals = alternatives(ask, token, before, ask.body.top_logprobs or 0, options if not content else ())
        entry = _token_entry(*rivals[0])
        entry["top_logprobs"] = [_token_entry(*rival) for rival in rivals] if ask.body.top_logprobs else []
        content.append(entry)
        before = (before + token)[-64:]
    return content


def _token_entry(token: str, value: float) -> Json:
    return {"token": token, "logprob": value, "bytes": list(token.encode())}


def prompt_logprobs(text: str, answers: tuple[str, ...], *, shifted: bool) -> list[Json | None]:
    """Return vLLM's list: None for the first token, then {token id: {logprob, rank, decoded_token}}."""
    tokens = tokenize(text)
    values = sequence_log_probabilities(tokens, answers)
    values = shift(values) if shifted else values
    rows: list[Json | None] = [
        {str(token_id(token)): {"logprob": value, "rank": 1 if value > -1 else 9, "decoded_token": token}}
        for token, value in zip(tokens, values, strict=True)
    ]
    return [None, *rows[1:]] if rows else []


def shift(values: list[float]) -> list[float]:
    """Return the values off by one: the one at i belongs to token i − 1."""
    return [values[0], *values[:-1]] if values else []


def echo_logprobs(ask: Ask, tokens: list[str], answers: tuple[str, ...], *, shifted: bool, generated: int = 0) -> Json:
    """Return `logprobs` of a text completion; `tokens` hold those of the prompt too where it is echoed."""
    scored = tokens[: len(tokens) - generated]
    values, before = sequence_log_probabilities(scored, answers), ask.text[-64:]
    rivals: list[dict[str, float]] = []
    for token in tokens[len(scored) :]:
        rivals.append(dict(alternatives(ask, token, before, int(ask.body.logprobs or 0), ())))
        values.append(rivals[-1][token])
        before = (before + token)[-64:]
    values = shift(values) if shifted and scored else values
    offsets = list(accumulate(map(len, tokens[:-1]), initial=0))[: len(tokens)]
    echoed = [{token: value} for token, value in zip(scored, values, strict=False)]
    top = echoed + rivals
    return {
        "tokens": tokens,
        "token_logprobs": [None, *values[1:]] if scored else values,
        "top_logprobs": [None, *top[1:]] if scored else top,
        "text_offset": offsets,
    }


def _head(ask: Ask, ident: str, kind: str) -> Json:
    return {"id": ident, "object": kind, "created": 0, "model": ask.body.model or "mock"}


def chat_plan(
    ask: Ask, completions: list[Completion], pace: Pace, ident: str, *, extra: Json, logprobs: list[Any] | None
) -> Plan:
    """Return the plan of a chat completion, streamed if asked."""
    if ask.body.stream:
        return _stream(ask, completions[0], pace, ident, logprobs)
    choices = []
    for index, completion in enumerate(completions):
        message: Json = {"role": "assistant", "content": "".join(completion.tokens)}
        if completion.reasoning:
            message["reasoning_content"] = "".join(completion.reasoning)
        choice = {"index": index, "message": message, "finish_reason": completion.finish}
        if logprobs is not None:
            choice["logprobs"] = {"content": logprobs}
        choices.append(choice)
    count = len(completions[0].tokens) + len(completions[0].reasoning)
    value = {**_head(ask, ident, "chat.completion"), "choices": choices, "usage": completions[0].usage, **extra}
    return json_plan(value, pace.at_s(max(0, count - 1)))


def _stream(ask: Ask, completion: Completion, pace: Pace, ident: str, logprobs: list[Any] | None) -> Plan:
    head = _head(ask, ident, "chat.completion.chunk")
    events: list[tuple[float, Any]] = [(pace.at_s(0), _chunk(head, {"role": "assistant", "content": ""}))]
    tokens = [("reasoning_content", token) for token in completion.reasoning]
    tokens += [("content", token) for token in completion.tokens]
    size = pace.chunk_tokens
    for start in range(0, len(tokens), size):
        group = tokens[start : start + size]
        delta: dict[str, str] = {}
        for name, token in group:
            delta[name] = delta.get(name, "") + token
        chunk = _chunk(head, delta)
        if logprobs is not None and start >= len(completion.reasoning):
            offset = start - len(completion.reasoning)
            chunk["choices"][0]["logprobs"] = {"content": logprobs[offset : offset + size]}
        events.append((pace.at_s(start + len(group) - 1), chunk))
    last_s = events[-1][0]
    events.append((last_s, _chunk(head, {}, completion.finish)))
    if ask.body.stream_options is not None and ask.body.stream_options.include_usage:
        events.append((last_s, {**head, "choices": [], "usage": completion.usage}))
    return stream_plan(events, last_s)


def _chunk(head: Json, delta: dict[str, str], finish: str | None = None) -> Json:
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def text_plan(
    ask: Ask, completion: Completion, pace: Pace, ident: str, *, logprobs: Json | None, prompt: list[Any] | None
) -> Plan:
    """Return the plan of a text completion; with echo its text begins with the prompt."""
    text = (ask.text if ask.body.echo else "") + "".join(completion.tokens)
    choice: Json = {"index": 0, "text": text, "finish_reason": completion.finish, "logprobs": logprobs}
    if prompt is not None:
        choice["prompt_logprobs"] = prompt
    value = {**_head(ask, ident, "text_completion"), "choices": [choice], "usage": completion.usage}
    return json_plan(value, pace.at_s(max(0, len(completion.tokens) - 1)))
