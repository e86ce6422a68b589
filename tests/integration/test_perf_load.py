"""The generator against the mock server, in one process: loops, queues, turns, pictures, faults, stops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.kits.mock.faults import parse_fault
from snellen.kits.mock.server import MockOptions, start
from snellen.kits.mock.wire import Pace
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create
from snellen.perf.generator import Generator
from snellen.perf.measure import LoadPlan, Measured, make_job, measure
from snellen.perf.metrics import summarize
from snellen.perf.workload import Synthetic, make_dialogues, prepare_items
from waiting import CEILING_S


def load(
    plan: LoadPlan,
    synthetic: Synthetic | None = None,
    *,
    count: int = 8,
    stream: bool = True,
    servers: int = 1,
    **options: Any,
) -> Measured:
    """Make a load on fresh mock servers that share this event loop."""

    async def go() -> Measured:
        running = [await start(MockOptions(**options), 0) for _ in range(servers)]
        try:
            models = [create("mock", ModelOptions(base_url=server.base_url)) for server in running]
            dialogues = make_dialogues(synthetic or Synthetic(8, 8), count, 0, stream=stream)
            items = await prepare_items(models[0], dialogues)
            endpoints = [model.endpoint(stream=stream) for model in models]
            return await measure(plan, items, "openai", [url for url, _ in endpoints], endpoints[0][1], stream=stream)
        finally:
            for server in running:
                await server.close()

    return asyncio.run(go())


def faults(*specs: str) -> Sequence[Any]:
    return tuple(parse_fault(spec) for spec in specs)


def test_a_closed_loop_keeps_its_slots_full() -> None:
    measured = load(LoadPlan(concurrency=4, count=24, warmup=1), pace=Pace(0.02, 0.002, 1), tokens=8)
    common = summarize(measured.timeline)["common"]
    assert common["Success Requests"] == 24
    assert common["Peak Concurrency"] == 4
    assert 2 < common["Concurrency"] <= 4.01, "a slot asks again as soon as its reply is there"
    assert common["Total Generated Tokens"] == 24 * 8
    assert len({record.id for record in measured.timeline.requests}) == 24


def test_an_overloaded_server_shows_its_queue_and_a_cap_shows_in_the_scheduled_latency() -> None:
    """One slot of 20 ms, asked 100 times a second: whatever is done to hide it, the scheduled latency tells.

    Forty requests are due within 0.4 s and need 0.8 s at least; on a slow machine everything grows, the order stays.
    """
    pace = {"pace": Pace(0.02, 0, 1), "slots": 1, "tokens": 1}
    free = summarize(load(LoadPlan(rate=100, burstiness=0, count=40, warmup=1), **pace).timeline)["metrics"]
    capped = summarize(load(LoadPlan(rate=100, burstiness=0, count=40, warmup=1, concurrency=1), **pace).timeline)[
        "metrics"
    ]
    assert free["E2EL"]["P99"] > 0.3
    assert capped["E2ELScheduled"]["P99"] > 0.3, "from the scheduled moment all of it is seen"
    assert capped["E2EL"]["Median"] < capped["E2ELScheduled"]["P99"] / 3, "from the send nothing of the queue is"
    assert capped["QueueTime"]["P99"] > 0.25


def test_turns_follow_each_other_with_think_time_and_the_models_own_replies() -> None:
    async def go() -> Measured:
        server = await start(MockOptions(answer="blue"), 0)
        try:
            model = create("mock", ModelOptions(base_url=server.base_url))
            items = await prepare_items(model, make_dialogues(Synthetic(4, 4, turns=3), 2, 0), think_s=0.03)
            url, headers = model.endpoint(stream=True)
            return await measure(LoadPlan(concurrency=2, warmup=0), items, "openai", [url], headers)
        finally:
            await server.close()

    measured = asyncio.run(go())
    first = [record for record in measured.timeline.requests if record.id.startswith("synthetic/000000")]
    assert [record.turn for record in first] == [0, 1, 2]
    assert first[1].due - first[0].done >= 0.03 - 1e-3, "the think time passes before a turn is due"
    tokens = [record.input_tokens or 0 for record in first]
    assert tokens[0] < tokens[1] < tokens[2]


def test_pictures_and_payload_are_recorded() -> None:
    record = load(LoadPlan(concurrency=2, warmup=0), Synthetic(8, 4, images=2, width=64, height=32)).timeline.requests[
        0
    ]
    assert (record.images, record.pixels) == (2, 2 * 64 * 32)
    assert record.sent_bytes > 1000


def test_replies_without_streaming() -> None:
    measured = load(LoadPlan(concurrency=2, warmup=1), stream=False)
    summary = summarize(measured.timeline)
    assert "TTFT" not in summary["metrics"]
    assert summary["common"]["Success Requests"] == 8
    assert not any("came whole" in note for note in summary["notes"])


def test_several_servers_share_the_load() -> None:
    targets = [record.target for record in load(LoadPlan(concurrency=2, warmup=0), servers=2).timeline.requests]
    assert {targets.count(target) for target in set(targets)} == {4}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("500", "server"), ("429", "rate"), ("reset", "network"), ("stream-error", "server"), ("stream-cut", "network"), ("html", "decode"),
        ("empty-choices", "decode"), ("null-content", "decode"), ("invalid-json", "decode"), ("wrong-type", "decode"),
        ("too-long", "too_long"),
    ],
)  # fmt: skip
def test_faults_are_typed_counted_and_timed(fault: str, kind: str) -> None:
    measured = load(LoadPlan(concurrency=2, count=8, warmup=0), faults=faults(f"{fault}@1-4"))
    summary = summarize(measured.timeline)
    assert summary["errors"] == {kind: 4}
    assert summary["common"]["Success Requests"] == 4
    assert summary["metrics"]["FailedTime"]["N"] == 4
    assert all(outcome.text is None for outcome in measured.outcomes if not outcome.record.ok)


def test_a_stream_without_done_is_whole() -> None:
    assert summarize(load(LoadPlan(concurrency=1, warmup=0), faults=faults("no-done")).timeline)["errors"] == {}


def test_a_server_that_hangs_times_out() -> None:
    measured = load(LoadPlan(concurrency=2, count=2, warmup=0, timeout_s=0.1), faults=faults("hang"))
    assert summarize(measured.timeline)["errors"] == {"timeout": 2}
    assert all(record.done - record.sent >= 0.1 - 1e-3 for record in measured.timeline.requests), "not before its time"


def test_nobody_there() -> None:
    async def go(warmup: int) -> Measured:
        model = create("mock", ModelOptions(base_url="http://127.0.0.1:9/v1"))
        items = await prepare_items(model, make_dialogues(Synthetic(4, 4), 2, 0))
        url, headers = model.endpoint(stream=True)
        return await measure(LoadPlan(concurrency=1, warmup=warmup), items, "openai", [url], headers)

    with pytest.raises(EnvironmentProblem, match=r"warm-up request failed: cannot connect to 127\.0\.0\.1:9"):
        asyncio.run(go(1))
    assert summarize(asyncio.run(go(0)).timeline)["errors"] == {"network": 2}


def test_an_empty_load_is_refused() -> None:
    with pytest.raises(UsageError, match="no items"):
        load(LoadPlan(concurrency=1), count=0)


def test_stop_records_what_is_in_flight_as_cancelled() -> None:
    async def go() -> Any:
        server = await start(MockOptions(pace=Pace(600.0, 0, 1)), 0)
        model = create("mock", ModelOptions(base_url=server.base_url))
        items = await prepare_items(model, make_dialogues(Synthetic(4, 4), 4, 0))
        url, headers = model.endpoint(stream=True)
        generator = Generator(
            make_job(LoadPlan(rate=1000, burstiness=0, count=4000), items, "openai", [url], headers), model.dialect
        )
        asyncio.get_running_loop().call_later(0.05, generator.stop)
        try:
            return await asyncio.wait_for(generator.run(), CEILING_S)
        finally:
            await server.close()

    result = asyncio.run(go())
    assert result.interrupted
    assert 0 < len(result.outcomes) < 4000
    assert {outcome.record.failure for outcome in result.outcomes} == {"cancelled"}


def test_a_kept_connection_that_the_server_closed_is_opened_again() -> None:
    """The server closes after every reply without saying so; no request may fail for it."""
    body = b'{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}'

    handlers: set[Any] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()
            return
        size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(size)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async def go() -> Measured:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = create("mock", ModelOptions(base_url=f"http://127.0.0.1:{port}/v1"))
        items = await prepare_items(model, make_dialogues(Synthetic(4, 4), 6, 0, stream=False))
        url, headers = model.endpoint(stream=False)
        async with server:
            measured = await measure(LoadPlan(concurrency=1, warmup=0), items, "openai", [url], headers, stream=False)
            await asyncio.gather(*handlers)
            return measured

    assert [outcome.text for outcome in asyncio.run(go()).outcomes] == ["ok"] * 6
