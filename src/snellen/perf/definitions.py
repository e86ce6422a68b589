"""What each metric means, as data: a request record in, its value (or values) out, and the words `--explain` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise

from msgspec import Struct

from ..core.config import convert, read_config_file
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


def output_tokens(record: RequestRecord) -> int | None:
    """Return the output tokens: the server's count, else one per event with text."""
    if record.output_tokens is not None:
        return record.output_tokens
    return len(record.chunks) if record.ok and record.streamed and record.chunks else None


def hidden_tokens(record: RequestRecord) -> int:
    """Return the tokens of reasoning that a server counts and does not show: they came before the first event.

    Where there are more events than other tokens, the reasoning was among them.
    """
    reasoning = record.reasoning_tokens or 0
    if not reasoning or record.first_reasoning is not None:
        return 0
    return reasoning if len(record.chunks) <= (output_tokens(record) or 0) - reasoning else 0


def _prefill(record: RequestRecord) -> Value:
    if hidden_tokens(record):  # the time to the first text is mostly reasoning
        return None
    return _ratio(record.input_tokens, _elapsed(record.sent, first_token(record)))


def time_per_token(record: RequestRecord) -> Value:
    """Return (last text - first text) / (tokens that came as events - 1), or None with fewer than two of them."""
    start, tokens = first_token(record), output_tokens(record)
    shown = 0 if tokens is None else tokens - hidden_tokens(record)
    if start is None or shown < 2 or len(record.chunks) < 2:
        return None
    return (record.end - start) / (shown - 1)


def _gaps(record: RequestRecord) -> Sequence[float]:
    if not (record.ok and record.streamed):
        return ()
    return [later - earlier for earlier, later in pairwise(record.chunks)]


def _elapsed(start: float, moment: float | None, applies: bool = True) -> Value:
    return moment - start if applies and moment is not None else None


def _ratio(numerator: float | None, denominator: float | None) -> Value:
    return numerator / denominator if numerator is not None and denominator else None


def _one(function: Callable[[RequestRecord], Value]) -> Callable[[RequestRecord], Sequence[float]]:
    def values(record: RequestRecord) -> Sequence[float]:
        value = function(record)
        return () if value is None else (value,)

    return values


def _tokens(name: str) -> Callable[[RequestRecord], Value]:
    return lambda record: getattr(record, name) if record.ok else None


_VALUE: dict[str, Callable[[RequestRecord], Value]] = {
    "E2EL": _latency,
    "E2ELScheduled": lambda record: _elapsed(record.due, record.end, record.ok),
    "TTFT": lambda record: _elapsed(record.sent, first_content(record)),
    "TTFTScheduled": lambda record: _elapsed(record.due, first_content(record)),
    "TTFR": lambda record: _elapsed(record.sent, record.first_reasoning, record.ok),
    "TTFE": lambda record: _elapsed(record.sent, record.first_event, record.ok),
    "TPOT": time_per_token,
    "QueueTime": lambda record: record.sent - record.due,
    "FailedTime": lambda record: _elapsed(record.sent, record.done, not record.ok),
    "InputTokens": _tokens("input_tokens"),
    "OutputTokens": lambda record: output_tokens(record) if record.ok else None,
    "ReasoningTokens": _tokens("reasoning_tokens"),
    "VisualTokens": _tokens("visual_tokens"),
    "CachedTokens": _tokens("cached_tokens"),
    "OutputTokenThroughput": lambda record: _ratio(output_tokens(record), _latency(record)),
    "PrefillTokenThroughput": _prefill,
    "DecodeTokenThroughput": lambda record: _ratio(1, time_per_token(record)),
}


class _Words(Struct, forbid_unknown_fields=True):
    """What `catalog/perf/figures.toml` holds: rows of name, unit and meaning."""

    metrics: tuple[tuple[str, str, str], ...]
    common: tuple[tuple[str, str, str], ...]
    differences: tuple[tuple[str, str], ...]
    steady: str
    file: str


_WORDS = convert(read_config_file(str(files("snellen") / "catalog/perf/figures.toml")), _Words, "catalog/perf/figures")
DEFINITIONS = tuple(
    Definition(name, unit, _gaps if name == "ITL" else _one(_VALUE[name]), meaning)
    for name, unit, meaning in _WORDS.metrics
)
COMMON = _WORDS.common
"""(name, unit, meaning) of the figures of the load as a whole."""
DIFFERENCES = _WORDS.differences
"""(name, how the figure of AISBench differs from ours)."""
STEADY_RULE, FILE_FORM = _WORDS.steady, _WORDS.file
