"""Servers that answer twice on a connection, late: no copy answers the next question, and nothing after it is shifted."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from fake_clock import FakeClock
from snellen.core.errors import ModelError
from snellen.core.types import Params, Request, TrialKey, Turn
from snellen.model.options import ModelOptions
from snellen.model.served.connection import REMEMBERED, Copies, Recent, answer_id
from snellen.model.served.openai import OpenAI
from snellen.model.served.served_model import ServedModel


class Echo:
    """Answers with the question; one answer in ten comes a second time, 0 to 10 ms later, on the same connection."""

    def __init__(self, seed: int, *, constant_id: bool = False) -> None:
        self._draw = random.Random(seed)
        self._count = 0
        self._constant_id = constant_id
        self.copies = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
                body = json.loads(await reader.readexactly(length))
                answer = self._answer(body)
                writer.write(answer)
                if not self._constant_id and self._draw.random() < 0.1:
                    self.copies += 1
                    asyncio.get_running_loop().call_later(self._draw.uniform(0, 0.01), writer.write, answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, body: dict[str, object]) -> bytes:
        self._count += 1
        messages = body["messages"]
        assert isinstance(messages, list)
        name = "same" if self._constant_id else f"chatcmpl-{self._count}"
        text = messages[0]["content"]
        if body.get("stream"):
            event = {"id": name, "choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}
            content = b"data: " + json.dumps(event).encode() + b"\n\ndata: [DONE]\n\n"
        else:
            reply = {"id": name, "choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
            content = json.dumps(reply).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content


async def asked(server: Echo, count: int, workers: int, *, stream: bool) -> tuple[int, int]:
    """Ask so many questions; return how many got the answer to another one, and how often one was asked again."""
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url=url, clock=FakeClock()))
    wrong = again = 0
    numbers = iter(range(count))

    async def work() -> None:
        nonlocal wrong, again
        for number in numbers:
            request = Request(TrialKey("t", str(number)), (Turn("user", f"q{number}"),), Params(stream=stream or None))
            for _ in range(6):
                try:
                    wrong += (await model.predict(request, {})).text != f"q{number}"
                    break
                except ModelError as error:
                    assert error.retryable
                    again += 1
            else:
                raise AssertionError("never answered")

    await asyncio.gather(*(work() for _ in range(workers)))
    await model.close()
    listener.close()
    return wrong, again


def test_no_late_copy_answers_another_question() -> None:
    server = Echo(1)
    wrong, again = asyncio.run(asyncio.wait_for(asked(server, 5000, 16, stream=False), 120))
    assert server.copies > 400
    assert wrong == 0
    assert again <= server.copies


def test_no_late_copy_answers_another_stream() -> None:
    server = Echo(2)
    wrong, _ = asyncio.run(asyncio.wait_for(asked(server, 600, 16, stream=True), 120))
    assert server.copies > 30
    assert wrong == 0


def test_a_server_whose_ids_are_all_the_same_is_believed_after_one_doubt() -> None:
    wrong, again = asyncio.run(asyncio.wait_for(asked(Echo(3, constant_id=True), 300, 1, stream=False), 60))
    assert (wrong, again) == (0, 1)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"id": "chatcmpl-1", "choices": []}', b"chatcmpl-1"),
        (b'{"model":"m","id":"msg_1","type":"message"}', b"msg_1"),
        (b'{"candidates": [' + b"1," * 500 + b'], "responseId": "r1"}', b"r1"),
        (b'{"id": "", "choices": []}', None),
        (b'{"choices": [{"message": {"content": "\\"id\\": \\"x\\""}}]}', None),
        (b"", None),
    ],
)
def test_what_an_answer_calls_itself(body: bytes, name: bytes | None) -> None:
    assert answer_id(body) == name


def test_only_so_many_ids_are_remembered() -> None:
    copies, seen = Copies(), Recent()
    bodies = [b'{"id": "%d"}' % number for number in range(REMEMBERED + 2)]
    assert not any(copies.is_copy(body, seen, first=not number) for number, body in enumerate(bodies))
    assert copies.is_copy(bodies[-1], seen, first=False)
    assert not copies.is_copy(bodies[0], seen, first=False), "forgotten"


def test_an_answer_without_a_name_has_that_of_its_header() -> None:
    """Bedrock's answers hold no id; its header does, and "B" twice with two of them is two answers."""
    copies, seen = Copies(), Recent()
    body = b'{"output":{"message":{"content":[{"text":"B"}]}}}'
    assert not copies.is_copy(body, seen, first=True, called="r1")
    assert not copies.is_copy(body, seen, first=False, called="r2")
    assert copies.is_copy(body, seen, first=False, called="r1")
    assert not copies.is_copy(body, seen, first=False)
