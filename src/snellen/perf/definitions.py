"""What each metric means, as data: a request record in, its value (or values) out, and the words `--explain` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .timeline import RequestRecord

Value = float | None


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric of one request. None means it does not apply to that request; it is left out, never 0."""

    name: str
    unit: str
    values: Callable[[RequestRecord], Sequence[float]]
    meaning: str


def _latency(record: RequestRecord) -> Value:
    return record.end - record.sent if record.ok else None


def _response(record: RequestRecord) -> Value:
    return record.end - record.due if record.ok else None


def first_content(record: RequestRecord) -> float | None:
    """Return when the first answer text came, or None for a reply that was not streamed or has no text."""
    if not (record.ok and record.streamed):
        return None
    if record.first_content is None and record.first_reasoning is None and record.chunks:
        return record.chunks[0]
    return record.first_content


def first_token(record: RequestRecord) -> float | None:
    """Return when the first text of any kind (reasoning or answer) came: where decoding starts."""
    return record.chunks[0] if record.ok and record.streamed and record.chunks else None


def _ttft(record: RequestRecord) -> Value:
    moment = first_content(record)
    return None if moment is None else moment - record.sent


def _ttft_scheduled(record: RequestRecord) -> Value:
    moment = first_content(record)
    return None if moment is None else moment - record.due


def _first_reasoning(record: RequestRecord) -> Value:
    return record.first_reasoning - record.sent if record.ok and record.first_reasoning is not None else None


def _first_event(record: RequestRecord) -> Value:
    return record.first_event - record.sent if record.ok and record.first_event is not None else None


def output_tokens(record: RequestRecord) -> int | None:
    """Return the output tokens: the server's count, else one per event with text."""
    if record.output_tokens is not None:
        return record.output_tokens
    return len(record.chunks) if record.ok and record.streamed and record.chunks else None


def time_per_token(record: RequestRecord) -> Value:
    """Return (last text - first text) / (output tokens - 1), or None with fewer than two tokens."""
    start, tokens = first_token(record), output_tokens(record)
    if start is None or tokens is None or tokens < 2 or len(record.chunks) < 2:
        return None
    return (record.end - start) / (tokens - 1)


def _gaps(record: RequestRecord) -> Sequence[float]:
    if not (record.ok and record.streamed):
        return ()
    return [later - earlier for earlier, later in pairwise(record.chunks)]


def _prefill_rate(record: RequestRecord) -> Value:
    start = first_token(record)
    return None if start is None else _ratio(record.input_tokens, start - record.sent)


def _ratio(numerator: float | None, denominator: float | None) -> Value:
    return numerator / denominator if numerator is not None and denominator else None


def _failed_time(record: RequestRecord) -> Value:
    return None if record.ok else record.done - record.sent


def _one(function: Callable[[RequestRecord], Value]) -> Callable[[RequestRecord], Sequence[float]]:
    def values(record: RequestRecord) -> Sequence[float]:
        value = function(record)
        return () if value is None else (value,)

    return values


def _tokens(name: str) -> Callable[[RequestRecord], Sequence[float]]:
    return _one(lambda record: getattr(record, name) if record.ok else None)


DEFINITIONS: tuple[Definition, ...] = (
    Definition("E2EL", "s", _one(_latency),
        "End-to-end latency: send -> last event with text (whole body when not streamed). Successes."),
    Definition("E2ELScheduled", "s", _one(_response),
        "The same from the scheduled moment: includes the wait for a free slot, so overload cannot hide."),
    Definition("TTFT", "s", _one(_ttft),
        "Time to first token: send -> first event with answer text. Role-only, empty and usage events do not count."),
    Definition("TTFTScheduled", "s", _one(_ttft_scheduled), "The same from the scheduled moment."),
    Definition("TTFR", "s", _one(_first_reasoning),
        "Send -> first event with reasoning text, for models that think aloud."),
    Definition("TTFE", "s", _one(_first_event), "Send -> first event of any kind, also one without text."),
    Definition("TPOT", "s", _one(time_per_token),
        "Time per output token: (last text - first text) / (output tokens - 1). Requests with one token have none."),
    Definition("ITL", "s", _gaps,
        "Inter-token latency: gaps between events with text, pooled over all requests. Per event: an event may carry "
        "several tokens."),
    Definition("QueueTime", "s", _one(lambda record: record.sent - record.due),
        "Scheduled moment -> send: the wait inside the load generator (dispatch delay, concurrency cap). "
        "All requests."),
    Definition("FailedTime", "s", _one(_failed_time), "Send -> failure, of failed and cancelled requests."),
    Definition("InputTokens", "token", _tokens("input_tokens"),
        "Prompt tokens as the server counted them, images included."),
    Definition("OutputTokens", "token", _one(lambda r: output_tokens(r) if r.ok else None),
        "Output tokens (server's usage; without it one per event with text, marked)."),
    Definition("ReasoningTokens", "token", _tokens("reasoning_tokens"),
        "Part of the output tokens that was reasoning, where the server says so."),
    Definition("VisualTokens", "token", _tokens("visual_tokens"),
        "Part of the input tokens that came from images, where the server says so."),
    Definition("CachedTokens", "token", _tokens("cached_tokens"),
        "Part of the input tokens read from the server's prefix cache."),
    Definition("OutputTokenThroughput", "token/s", _one(lambda r: _ratio(output_tokens(r), _latency(r))),
        "Output tokens / E2EL, per request."),
    Definition("PrefillTokenThroughput", "token/s", _one(_prefill_rate),
        "Input tokens / (send -> first text of any kind), per request."),
    Definition("DecodeTokenThroughput", "token/s", _one(lambda r: _ratio(1, time_per_token(r))),
        "1 / TPOT, per request."),
)  # fmt: skip

COMMON: tuple[tuple[str, str, str], ...] = (
    ("Benchmark Duration", "s",
        "First send -> last end, over all requests, failed ones too. In steady state: the length of the window."),
    ("Total Requests", "", "Requests that were sent: success + failed + cancelled."),
    ("Success Requests", "", "Requests with a whole reply."),
    ("Failed Requests", "", "Requests with a typed failure; counted and timed, never dropped."),
    ("Cancelled Requests", "", "In flight when the run was stopped by hand."),
    ("Concurrency", "", "Time-weighted mean of requests in flight (send -> end)."),
    ("Peak Concurrency", "", "The most requests in flight at one time."),
    ("Max Concurrency", "", "The cap that was set; null without one."),
    ("Request Throughput", "req/s",
        "Successful requests per second of the duration (steady state: by share of the reply inside the window)."),
    ("Total Input Tokens", "token", "Sum over successes (steady state: by share)."),
    ("Total Generated Tokens", "token", "Sum over successes (steady state: by share)."),
    ("Input Token Throughput", "token/s", "Input tokens / duration."),
    ("Output Token Throughput", "token/s", "Output tokens / duration."),
    ("Total Token Throughput", "token/s", "Both / duration."),
    ("Image Throughput", "image/s", "Images of successful requests / duration."),
    ("Pixel Throughput", "pixel/s", "Pixels of successful requests / duration."),
    ("Goodput", "req/s", "Requests per second that met every objective of --slo. Failures never do."),
    ("Goodput Share", "", "Good requests / all requests."),
)  # fmt: skip

STEADY_RULE = (
    "Steady state: the plateau is the time-weighted median concurrency. The ramp ends when it is first reached; the "
    "window opens with the first send after as many requests have finished as had been sent by then, and closes with "
    "the last send: from send to send, at the same phase of a closed loop. Latencies are those of requests sent "
    "inside the window (also when they end after it); throughput counts each reply by the share of its text that came"
    " inside, so neither edge adds or loses a request, and a growing queue adds none."
)

FILE_FORM = (
    'Timeline file: {"max_concurrency", "stream", "requests": [{"id", "start", "chunks": [moments], "input_tokens", '
    '"output_tokens", optional: "scheduled", "first_event", "first_reasoning", "first_content", "done", "failure", '
    '"images", "pixels"}]}, seconds on one monotonic clock. Also read: one request a line, guidellm reports, vLLM '
    "`bench serve --save-detailed` results."
)
