"""Conversations with a real server, kept as they went: recorded once, answered again from the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from snellen.model.served.post import HttpResponse

Change = Callable[[Any], Any]


def name_of(url: str, body: bytes) -> str:
    """What was asked: the path and the body, its fields in order."""
    return f"{url.rpartition('/v1')[2]} {json.dumps(json.loads(body), sort_keys=True)}"


class Recording:
    """An HTTP client that asks a real one and keeps what came back."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.replies: dict[str, Any] = {}

    async def send(self, url, body, headers, timeout_s):
        response = await self._inner.send(url, body, headers, timeout_s)
        if response.status == 200 and body is not None:
            self.replies[name_of(url, b"".join(body))] = shorten(json.loads(response.body))
        return response

    async def close(self) -> None:
        await self._inner.close()


class Replaying:
    """An HTTP client that answers as the recorded server did; `change` makes another server of it."""

    def __init__(self, replies: dict[str, Any], change: Change = lambda reply: reply) -> None:
        self._replies, self._change = replies, change
        self.asked: list[str] = []

    async def send(self, url, body, headers, timeout_s):
        name = name_of(url, b"".join(body))
        self.asked.append(name)
        assert name in self._replies, f"the server was never asked {name[:300]}"
        reply = self._change(json.loads(json.dumps(self._replies[name])))
        return HttpResponse(200, {}, json.dumps(reply).encode())

    async def close(self) -> None:
        pass


def shorten(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply without fields that are empty or new each time."""
    kept = {key: value for key, value in reply.items() if value is not None and key not in ("id", "created")}
    kept["choices"] = [
        {key: value for key, value in choice.items() if value is not None} for choice in reply["choices"]
    ]
    return kept
