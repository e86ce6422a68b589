"""Whether a server takes tools, and where the picture of a result is read, is found out by three requests."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from fake_clock import FakeClock
from look_doubles import Wire, chat
from snellen.api.server_probes import _Probing
from snellen.model.options import ModelOptions
from snellen.model.served.openai import OpenAI
from snellen.model.served.served_model import ServedModel

NUMBER = "4711"


class Fixed(random.Random):
    """Draws the number that the doubles see."""

    def randrange(self, *bounds: Any) -> int:  # type: ignore[override]
        return int(NUMBER)


def server(reads: tuple[str, ...], *, calls: bool = True, ignores: bool = False) -> Any:
    """Return a server that sees pictures in messages of these roles."""

    def says(body: dict[str, Any], number: int) -> Any:
        usage = {"prompt_tokens": 10 if ignores or "tools" not in body else 30, "completion_tokens": 1}
        shown = [m["role"] for m in body["messages"] if isinstance(m["content"], list)]
        if "tool" in shown and "tool" not in reads:
            return 400, {"error": {"message": "role 'tool' takes text only"}}
        if shown:
            return chat(f"It is {NUMBER}." if set(shown) & set(reads) else "I see none.", usage=usage)
        if "tools" in body and calls and not ignores:
            return chat(None, [("show_number", "{}")], usage=usage)
        return chat("no", usage=usage)

    return says


@pytest.mark.parametrize(
    ("script", "holds", "told"),
    [
        (server(("tool", "user")), True, "--carry tool"),
        (server(("user",)), True, "--carry user"),
        (server(()), False, "not read"),
        (server(("user",), calls=False), False, "not called"),
        (server(("user",), ignores=True), False, "tools-ignored"),
    ],
)
def test_the_canary_tells_what_a_server_does_with_tools(
    script: Any, holds: bool, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snellen.api.server_probes.rng", lambda *parts: Fixed())
    wire = Wire(script)
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://h/v1", clock=FakeClock()), http=wire)

    async def probe() -> Any:
        probing = _Probing(model, model, 10.0)
        try:
            return await probing._tools()
        finally:
            probing._door.close()

    found = asyncio.run(probe())
    assert (found.ok, told in found.text) == (holds, True), found
    assert len(wire.bodies) <= 4
