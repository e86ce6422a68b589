"""A limit that must be sent leaves room for the reasoning that was asked for."""

from __future__ import annotations

import asyncio
import json

import pytest

from line_doubles import ask
from snellen.core.types import Params, Request, TrialKey, Turn
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.post import HttpResponse
from snellen.model.served.served_model import ServedModel
from snellen.perf.workload import prepare_items


class Replying:
    """An HTTP client that answers one message and keeps the body."""

    body = b""

    async def send(self, url, body, headers, timeout_s):
        self.body = b"".join(body)
        return HttpResponse(200, {}, b'{"content":[{"type":"text","text":"B"}],"stop_reason":"end_turn"}')

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("reasoning", "given", "sent"),
    [
        ("4000", None, 1024 + 4000),
        ("4000", 64, 4064),
        ("high", None, 1024 + 16384),
        ("off", None, 1024),
        (None, None, 1024),
    ],
)
def test_the_limit_of_anthropic_is_above_the_budget(reasoning: str | None, given: int | None, sent: int) -> None:
    http = Replying()
    model = ServedModel(Anthropic(), "m", ModelOptions(base_url="http://x/v1", reasoning=reasoning), http)
    asyncio.run(ask(model, Request(TrialKey("t", "s"), (Turn("user", "hi"),), Params(max_tokens=given))))
    body = json.loads(http.body)
    assert body["max_tokens"] == sent
    assert body["max_tokens"] > (body.get("thinking") or {}).get("budget_tokens", 0)


@pytest.mark.parametrize("stream", [None, True])
def test_a_load_asks_for_the_reasoning_that_a_run_asks_for(stream: bool | None) -> None:
    asked = Request(TrialKey("t", "s"), (Turn("user", "hi"),), Params(stream=stream))
    model = ServedModel(Anthropic(), "m", ModelOptions(base_url="http://x/v1", reasoning="4000"), Replying())
    (item,) = asyncio.run(prepare_items(model, [[asked]]))
    body = json.loads(item.turns[0])
    assert (body["max_tokens"], body["thinking"]["budget_tokens"], body.get("stream")) == (5024, 4000, stream)
