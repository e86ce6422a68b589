"""A failure is never an answer: drawn hostile servers against the real client; no crash, nothing invented or swapped."""

from __future__ import annotations

import asyncio
import resource

import pytest

from fake_clock import FakeClock
from hostile_servers import Hostile
from snellen.core.errors import ModelError
from snellen.core.types import Params, Request, TrialKey, Turn
from snellen.model.options import ModelOptions
from snellen.model.served.openai import OpenAI
from snellen.model.served.served_model import ServedModel
from waiting import CEILING_S

WORKERS = 16
ONE_EXCHANGE_S = 20.0


@pytest.fixture(autouse=True)
def short_silences(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session waits for more of a stream whose chunk size is no number, until the time between chunks is over."""
    monkeypatch.setattr("snellen.model.served.http_client.BETWEEN_CHUNKS_S", 1.0)


@pytest.mark.parametrize("rest", [[b"zz\r\n"], [b"zz", b"\r\n"], [b"5\r\ndata:\r\n", b"zz\r\n"]])
def test_a_stream_that_ends_in_a_broken_chunk_is_a_failure_and_nobody_waits_for_the_whole_timeout(
    rest: list[bytes],
) -> None:
    """The session hears neither of the broken size, where it comes apart from the head, nor of the end."""
    listening = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await listening.wait()
        for piece in rest:
            writer.write(piece)
            await asyncio.sleep(0.01)
        writer.close()

    async def main() -> None:
        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        model = ServedModel(OpenAI(), "m", ModelOptions(base_url=url, clock=FakeClock()))
        asyncio.get_running_loop().call_later(0.2, listening.set)  # the head is read by then; if not, it also ends
        request = Request(TrialKey("t", "s"), (Turn("user", "q"),), Params(stream=True))
        with pytest.raises(ModelError) as caught:
            await asyncio.wait_for(model.predict(request, {}), CEILING_S)
        assert caught.value.retryable
        await model.close()
        listener.close()

    asyncio.run(main())


async def exchange(server: Hostile, count: int, *, stream: bool) -> tuple[int, int]:
    """Ask so many questions once each; return how many were answered and how many failed, all others are errors."""
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url=url, clock=FakeClock()))
    numbers, answered, failed = iter(range(count)), 0, 0

    async def work() -> None:
        nonlocal answered, failed
        for number in numbers:
            request = Request(TrialKey("t", str(number)), (Turn("user", f"q{number}"),), Params(stream=stream or None))
            try:
                prediction = await asyncio.wait_for(model.predict(request, {}), ONE_EXCHANGE_S)
            except ModelError as error:
                assert str(error) and "\n" not in str(error)
                failed += 1
            else:
                assert prediction.text == f"echo q{number}"
                answered += 1

    await asyncio.gather(*(work() for _ in range(WORKERS)))
    await model.close()
    listener.close()
    await server.close()
    return answered, failed


def check(seed: int, count: int, *, stream: bool) -> None:
    server = Hostile(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answered, failed = asyncio.run(exchange(server, count, stream=stream))
    assert answered + failed == count
    assert 0.15 * count < answered < 0.7 * count, "right answers are read, wrong ones are not"
    assert len(server.kinds) == 6
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024, "memory is bounded"


@pytest.mark.parametrize("stream", [False, True])
def test_a_few_hostile_exchanges(stream: bool) -> None:
    check(7, 600, stream=stream)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stream", [False, True])
def test_twenty_thousand_hostile_exchanges(seed: int, stream: bool) -> None:
    check(100 + seed, 2000, stream=stream)
