"""What the server will send, as data: timed pieces that faults can rewrite before they are played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

JSON = "application/json"
EVENTS = "text/event-stream"
FRAMES = "application/vnd.amazon.eventstream"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes and the moment to send them, in seconds after service began."""

    at_s: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """One response. `finish`: keep (proper end), reset (TCP reset), hang (nothing more, connection open)."""

    status: int = 200
    pieces: tuple[Piece, ...] = ()
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    finish: str = "keep"
    declared_bytes: int | None = None
    """Content-Length when it is a lie."""
    headless: bool = False
    """Send nothing at all before `finish`, not even a status line."""
    tokens: tuple[int, int] = (0, 0)
    """What a provider would bill for it: tokens of the prompt and of the reply."""

    @property
    def streamed(self) -> bool:
        """Say whether it is a stream of events."""
        return self.content_type in (EVENTS, FRAMES)

    @property
    def body(self) -> bytes:
        """Return all bytes, joined."""
        return b"".join(piece.data for piece in self.pieces)

    @property
    def done_at_s(self) -> float:
        """Return when the last piece is due."""
        return self.pieces[-1].at_s if self.pieces else 0.0

    def with_body(self, body: bytes, **changes: Any) -> Plan:
        """Return the plan with one piece of other bytes at the time of the last one."""
        return replace(self, pieces=(Piece(self.done_at_s, body),), **changes)


def json_plan(value: Any, at_s: float = 0.0, status: int = 200, headers: dict[str, str] | None = None) -> Plan:
    """Return a plan that sends one JSON value."""
    return Plan(status, (Piece(at_s, msgspec.json.encode(value)),), headers=headers or {})


def error_plan(status: int, message: str, code: str | None = None, headers: dict[str, str] | None = None) -> Plan:
    """Return an error in the form OpenAI-compatible servers use."""
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    error = {"message": message, "type": kind, "code": code, "param": None}
    return json_plan({"error": error}, status=status, headers=headers)


def event(value: Any) -> bytes:
    """Encode one server-sent event."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def stream_plan(events: Sequence[tuple[float, Any]], done_at_s: float) -> Plan:
    """Return a plan that streams JSON events and ends with [DONE]."""
    pieces = [Piece(at_s, event(value)) for at_s, value in events]
    return Plan(pieces=(*pieces, Piece(done_at_s, DONE)), content_type=EVENTS)
