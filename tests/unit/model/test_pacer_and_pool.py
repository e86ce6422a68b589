"""Requests are spaced before a server refuses them, and several servers are asked as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from fake_clock import FakeClock
from snellen.core.errors import ModelError, StopRun, UsageError
from snellen.core.types import FailureKind, Params, Prediction, Request, TrialKey, Turn
from snellen.kits.mock.faults import parse_fault
from snellen.kits.mock.server import MockOptions, start
from snellen.model.options import ModelOptions
from snellen.model.served.http_client import HttpStream
from snellen.model.served.openai import OpenAI
from snellen.model.served.openai_responses import Responses
from snellen.model.served.pool import DOWN_S, PooledModel
from snellen.model.served.post import HttpResponse
from snellen.model.served.served_model import LONGEST_S, Pacer, ServedModel

ASKED = Request(TrialKey("t", "s"), (Turn("user", "hi"),))


def limits(left: object, limit: object, reset: str, kind: str = "requests") -> dict[str, str]:
    names = {"remaining": left, "limit": limit, "reset": reset}
    return {f"x-ratelimit-{name}-{kind}": str(value) for name, value in names.items()}


@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({}, 0.0),
        (limits(90, 100, "6s"), 0.0),
        (limits(10, 100, "30s"), 3.0),
        (limits(0, 100, "12s"), 12.0),
        (limits(1000, 100_000, "10s", "tokens"), 10.0),
        (limits(10_000, 100_000, "10s", "tokens"), 1.0),
        (limits(-1, 100, "0"), 0.0),
        (limits("many", 100, "9s"), 0.0),
        (limits(0, 100, "9h"), LONGEST_S),
        ({f"anthropic-ratelimit-requests-{n}": v for n, v in (("limit", "50"), ("remaining", "5"), ("reset", "1970-01-01T00:00:20Z"))}, 4.0),
    ],
)  # fmt: skip
def test_what_is_left_decides_the_distance(headers: dict[str, str], waits: float) -> None:
    clock = FakeClock(0.0)
    pacer = Pacer(clock)
    pacer.note(headers)
    assert pacer.must_wait is (waits > 0)
    if waits:
        asyncio.run(pacer.turn())
    assert clock.now == pytest.approx(waits)


def test_every_request_takes_its_own_place() -> None:
    async def main() -> list[float]:
        clock = FakeClock(0.0)
        pacer = Pacer(clock)
        pacer.note(limits(10, 100, "30s"))
        left: list[float] = []

        async def one() -> None:
            await pacer.turn()
            left.append(clock.now)

        await asyncio.gather(*(one() for _ in range(3)))
        pacer.note(limits(99, 100, "30s"))
        assert not pacer.must_wait, "a limit that is full again holds nobody back"
        return left

    assert asyncio.run(main()) == [3.0, 6.0, 9.0]


class Scarce:
    """An HTTP client whose answers say that the limit is used up for twelve seconds."""

    def __init__(self, status: int, body: bytes) -> None:
        self._answer = HttpResponse(status, limits(0, 100, "12s"), body)

    async def send(self, url: str, body: Any, headers: Any, timeout_s: Any) -> HttpResponse:
        return self._answer

    @asynccontextmanager
    async def stream(self, url: str, body: Any, headers: Any, timeout_s: Any) -> AsyncIterator[HttpStream]:
        async def chunks() -> AsyncIterator[bytes]:
            yield self._answer.body

        yield HttpStream(self._answer.status, self._answer.headers, chunks())

    async def close(self) -> None:
        pass


CHAT = b'{"choices":[{"index":0,"message":{"content":"B"},"finish_reason":"stop"}]}'
SAID = b'{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"B"}]}]}'


@pytest.mark.parametrize("stream", [None, True])
@pytest.mark.parametrize(
    ("dialect", "status", "body"),
    [(OpenAI, 200, CHAT), (Responses, 200, SAID), (OpenAI, 429, b"{}")],
    ids=["chat", "responses", "refused"],
)
def test_every_way_of_asking_keeps_the_pace(dialect: Any, status: int, body: bytes, stream: bool | None) -> None:
    async def seconds(ask: Any) -> float:
        clock = FakeClock(0.0)
        options = ModelOptions(base_url="http://x/v1", clock=clock)
        model = ServedModel(dialect(), "m", options, Scarce(status, body))
        for _ in range(2):
            with suppress(ModelError):
                await ask(model)
        return clock.now

    request = Request(ASKED.key, ASKED.messages, Params(stream=stream))
    assert asyncio.run(seconds(lambda model: model.predict(request, {}))) == 12.0
    assert asyncio.run(seconds(lambda model: model.post("/completions", (b"{}",)))) == 12.0


def test_a_paced_client_is_not_refused() -> None:
    """A quota of 600 a minute, a fifth of it left: without pacing the last of 140 requests would meet a 429."""

    async def main() -> Any:
        running = await start(MockOptions(requests_per_minute=600))
        running.server.limits.requests.level, running.server.limits.requests.updated = (
            20.0,
            asyncio.get_running_loop().time(),
        )
        model = ServedModel(OpenAI(), "mock", ModelOptions(base_url=running.base_url))
        for _ in range(25):
            await model.predict(ASKED, {})
        await model.close()
        await running.close()
        return running.server.stats

    stats = asyncio.run(main())
    assert stats["requests"] == 25 and stats["status_429"] == 0


class Server:
    """One server of a pool, as told."""

    def __init__(self, name: str, *outcomes: Any, said: Any = None) -> None:
        self.address, self.outcomes = name, list(outcomes)
        self.name, self.capabilities, self.image_policy = "openai/m", frozenset(), None
        self.clock, self.adjusted, self.said, self.asked = FakeClock(), (), said or {}, 0

    def identity(self) -> dict[str, Any]:
        return {"model": self.name, "base_url": self.address}

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def predict(self, request: Request, images: Any) -> Prediction:
        self.asked += 1
        outcome = self.outcomes.pop(0) if self.outcomes else "ok"
        if isinstance(outcome, Exception):
            raise outcome
        return Prediction(request.key, text=outcome)


def rate(wait_s: float) -> ModelError:
    return ModelError(FailureKind.RATE, "slow down", status=429, retryable=True, retry_after_s=wait_s)


def pool_of(*servers: Any) -> PooledModel:
    pool = PooledModel(servers)
    pool.clock = servers[0].clock
    return pool


def ask(pool: PooledModel) -> Prediction:
    return asyncio.run(pool.predict(ASKED, {}))


def test_work_is_shared_and_every_reply_says_who_gave_it() -> None:
    pool = pool_of(Server("http://a"), Server("http://b"))
    given = [ask(pool).detail["endpoint"] for _ in range(6)]
    assert sorted(given) == ["http://a"] * 3 + ["http://b"] * 3
    assert pool.identity()["pool"] == ["http://a", "http://b"]


def test_a_busy_server_rests_and_the_other_answers() -> None:
    busy, free = Server("http://a", rate(30.0)), Server("http://b")
    pool = pool_of(busy, free)
    assert [ask(pool).detail["endpoint"] for _ in range(4)] == ["http://b"] * 4
    assert busy.asked == 1
    pool.clock.now += 31.0  # type: ignore[attr-defined]
    assert ask(pool).detail["endpoint"] == "http://a"


def test_where_all_are_busy_the_shortest_rest_is_asked_for() -> None:
    pool = pool_of(Server("http://a", rate(30.0)), Server("http://b", rate(5.0)))
    with pytest.raises(ModelError) as caught:
        ask(pool)
    assert caught.value.retry_after_s == pytest.approx(5.0)


def test_a_server_that_is_gone_is_left_alone_for_a_while() -> None:
    gone = Server("http://a", *[ModelError(FailureKind.NETWORK, "gone", retryable=True)] * 9)
    pool = pool_of(gone, Server("http://b"))
    assert [ask(pool).text for _ in range(5)] == ["ok"] * 5 and gone.asked == 1
    pool.clock.now += DOWN_S + 1  # type: ignore[attr-defined]
    ask(pool)
    assert gone.asked == 2 and pool.endpoints[0].failed == 2


@pytest.mark.parametrize(
    "error",
    [StopRun(FailureKind.AUTH, "no"), ModelError(FailureKind.TOO_LONG, "long"), ModelError(FailureKind.REFUSED, "no")],
)
def test_what_no_other_server_would_answer_is_not_asked_twice(error: ModelError) -> None:
    other = Server("http://b")
    with pytest.raises(ModelError):
        ask(pool_of(Server("http://a", error), other))
    assert other.asked == 0


def test_two_models_are_no_pool() -> None:
    with pytest.raises(UsageError, match="the same server twice"):
        PooledModel([Server("http://a"), Server("http://a")])  # type: ignore[list-item]
    pool = pool_of(Server("http://a", said={"root": "x"}), Server("http://b", said={"root": "y"}))
    with pytest.raises(UsageError, match="do not serve the same model"):
        asyncio.run(pool.check())


def test_a_run_over_two_servers_goes_on_when_one_dies(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    from command_line import run_command
    from emulator import emulator

    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    rows = [{"id": str(n), "question": f"What is {n}?", "options": ["one", "two"], "answer": "A"} for n in range(40)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    faults = (parse_fault("reset@10-"),)
    with emulator(MockOptions()) as good, emulator(MockOptions(faults=faults)) as dying:
        urls = ["--base-url", dying.base_url, "--base-url", good.base_url]
        command = ["run", tmp_path / "rows.jsonl", "--model", "openai/mock", *urls, "-o", tmp_path / "run", "--quiet"]
        assert run_command(command) == 0
        assert good.server.stats["status_200"] >= 30 and dying.server.stats["status_200"] >= 1
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert len(records) == 40
