"""The mock server over real HTTP: what a client sees of readers, streams, log-probabilities, limits and every fault."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from command_line import run_command
from emulator import mock_thread
from snellen.kits.mock.ask import AnswerBook, Entry
from snellen.kits.mock.faults import KINDS, parse_fault
from snellen.kits.mock.process import mock_process
from snellen.kits.mock.readers import parse_reader
from snellen.kits.mock.server import MockOptions, Running, start
from snellen.kits.mock.wire import Pace
from waiting import CEILING_S

QUESTION = "What animal is it?"
PROMPT = f"{QUESTION}\nA. cat\nB. dog\nAnswer with the letter."
PICTURE = b"not really a picture"


def body(text: str = PROMPT, **more: Any) -> dict[str, Any]:
    url = "data:image/png;base64," + base64.b64encode(PICTURE).decode()
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]
    return {"model": "mock", "messages": [{"role": "user", "content": content}], **more}


def book() -> AnswerBook:
    import hashlib

    return AnswerBook([Entry(QUESTION, "dog", images=(hashlib.sha256(PICTURE).hexdigest(),), options=("cat", "dog"))])


def serve(options: MockOptions, client: Callable[[aiohttp.ClientSession, Running], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        running = await start(options)
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CEILING_S)) as session:
                return await client(session, running)
        finally:
            await running.close()

    return asyncio.run(go())


def chat(options: MockOptions, **more: Any) -> tuple[int, dict[str, str], bytes]:
    async def client(session: aiohttp.ClientSession, running: Running) -> tuple[int, dict[str, str], bytes]:
        async with session.post(running.base_url + "/chat/completions", json=body(**more)) as response:
            return response.status, dict(response.headers), await response.read()

    result: tuple[int, dict[str, str], bytes] = serve(options, client)
    return result


def events(data: bytes) -> list[Any]:
    lines = [line[6:] for line in data.decode().split("\n\n") if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_perfect_reader_answers_with_the_mark_it_was_shown() -> None:
    status, _, data = chat(MockOptions(answers=book()))
    reply = json.loads(data)
    assert status == 200
    assert reply["choices"][0]["message"]["content"] == "B"
    assert reply["usage"]["prompt_tokens"] > 256


def test_another_order_gives_another_mark() -> None:
    _, _, data = chat(MockOptions(answers=book()), text=f"{QUESTION}\n(a) dog\n(b) cat")
    assert json.loads(data)["choices"][0]["message"]["content"] == "a"


def test_an_unknown_question_gets_the_constant() -> None:
    _, _, data = chat(MockOptions(answers=book(), answer="C"), text="Something else?")
    assert json.loads(data)["choices"][0]["message"]["content"] == "C"


def test_stream_carries_tokens_usage_and_done() -> None:
    options = MockOptions(answer="one two three", pace=Pace(0.001, 0.001))
    _, headers, data = chat(options, stream=True, stream_options={"include_usage": True})
    parts = events(data)
    assert headers["Content-Type"] == "text/event-stream"
    assert "".join(part["choices"][0]["delta"].get("content", "") for part in parts[:-2]) == "one two three"
    assert parts[-3]["choices"][0]["finish_reason"] == "stop"
    assert parts[-2]["usage"]["completion_tokens"] == 3
    assert parts[-1] == "[DONE]"


def test_max_tokens_and_stop_cut_the_reply() -> None:
    _, _, data = chat(MockOptions(answer="one two three"), max_tokens=2)
    assert json.loads(data)["choices"][0] | {"index": 0} == {
        "index": 0,
        "message": {"role": "assistant", "content": "one two"},
        "finish_reason": "length",
    }
    _, _, data = chat(MockOptions(answer="one two three"), stop=["two"])
    assert json.loads(data)["choices"][0]["message"]["content"] == "one "


def test_chat_logprobs_rank_the_chosen_mark_first() -> None:
    _, _, data = chat(MockOptions(answers=book()), logprobs=True, top_logprobs=3)
    first = json.loads(data)["choices"][0]["logprobs"]["content"][0]
    assert first["token"] == "B"
    assert "A" in [rival["token"] for rival in first["top_logprobs"]]
    assert first["logprob"] == max(rival["logprob"] for rival in first["top_logprobs"])


@pytest.mark.parametrize("mode", ["none", "error"])
def test_a_server_without_logprobs(mode: str) -> None:
    status, _, data = chat(MockOptions(logprobs=mode), logprobs=True)
    assert (status == 400) if mode == "error" else "logprobs" not in json.loads(data)["choices"][0]


def echo(options: MockOptions, prompt: str) -> dict[str, Any]:
    async def client(session: aiohttp.ClientSession, running: Running) -> Any:
        request = {
            "model": "mock",
            "prompt": prompt,
            "echo": True,
            "logprobs": 1,
            "max_tokens": 0,
            "prompt_logprobs": 1,
        }
        async with session.post(running.base_url + "/completions", json=request) as response:
            return (await response.json())["choices"][0]

    result: dict[str, Any] = serve(options, client)
    return result


def test_echo_logprobs_prefer_the_right_continuation_and_prompt_logprobs_agree() -> None:
    options = MockOptions(answers=AnswerBook([Entry(QUESTION, "dog", options=("cat", "dog"))]))
    right, wrong = (echo(options, f"{QUESTION}\nAnswer: {word}") for word in ("dog", "cat"))
    assert right["logprobs"]["token_logprobs"][0] is None
    assert right["logprobs"]["token_logprobs"][-1] > wrong["logprobs"]["token_logprobs"][-1]
    assert "".join(right["logprobs"]["tokens"]) == right["text"]
    (row,) = right["prompt_logprobs"][-1].values()
    assert row["logprob"] == right["logprobs"]["token_logprobs"][-1]


def test_shifted_logprobs_are_off_by_one() -> None:
    prompt = f"{QUESTION}\nAnswer: dog"
    good, bad = (echo(MockOptions(logprobs=mode), prompt)["logprobs"]["token_logprobs"] for mode in ("ok", "shifted"))
    assert bad[2:] == good[1:-1]


def test_models_key_and_routes() -> None:
    async def client(session: aiohttp.ClientSession, running: Running) -> list[int]:
        codes = []
        for path, key in (("/models", "right"), ("/models", "wrong"), ("/nothing", "right")):
            async with session.get(running.base_url + path, headers={"Authorization": f"Bearer {key}"}) as response:
                codes.append(response.status)
        return codes

    assert serve(MockOptions(api_key="right"), client) == [200, 401, 404]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (MockOptions(max_body_bytes=10), 413),
        (MockOptions(max_context=10), 400),
        (MockOptions(strict_model=True, models=("other",)), 404),
        (MockOptions(requests_per_minute=0.5), 200),
    ],
)
def test_refusals(options: MockOptions, status: int) -> None:
    assert chat(options)[0] == status


@pytest.mark.parametrize(
    "payload", [b"{", b'{"messages": []}', b'{"messages": [{"role": "user", "content": 3}]}', b"\xff\xfe"]
)
def test_a_bad_body_is_400(payload: bytes) -> None:
    async def client(session: aiohttp.ClientSession, running: Running) -> int:
        async with session.post(running.base_url + "/chat/completions", data=payload) as response:
            return response.status

    assert serve(MockOptions(), client) == 400


def test_concurrency_above_the_cap_gets_429_with_retry_after() -> None:
    async def client(session: aiohttp.ClientSession, running: Running) -> list[tuple[int, str | None]]:
        async def one() -> tuple[int, str | None]:
            async with session.post(running.base_url + "/chat/completions", json=body()) as response:
                return response.status, response.headers.get("Retry-After")

        return await asyncio.gather(*(one() for _ in range(8)))

    outcome = serve(MockOptions(max_concurrency=2, pace=Pace(0.2), retry_after="seconds"), client)
    assert sorted(status for status, _ in outcome) == [200] * 2 + [429] * 6
    assert {wait for status, wait in outcome if status == 429} == {"1.000"}


def test_slots_make_requests_queue() -> None:
    async def client(session: aiohttp.ClientSession, running: Running) -> float:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(session.post(running.base_url + "/chat/completions", json=body()) for _ in range(6)))
        return loop.time() - started

    assert serve(MockOptions(slots=2, pace=Pace(0.05)), client) >= 0.15


STATUSES = sorted(kind for kind in KINDS if kind.isdigit())


@pytest.mark.parametrize("kind", STATUSES)
def test_status_faults(kind: str) -> None:
    status, headers, data = chat(MockOptions(faults=(parse_fault(f"{kind}:retry_after=2"),)))
    assert (status, headers["Retry-After"]) == (int(kind), "2")
    assert json.loads(data)["error"]["message"]


def test_retry_after_as_a_date() -> None:
    from email.utils import parsedate_to_datetime

    _, headers, _ = chat(MockOptions(faults=(parse_fault("429:retry_after=date+30"),)))
    assert parsedate_to_datetime(headers["Retry-After"]).tzinfo is not None


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("reset", aiohttp.ClientConnectionError),
        ("truncate", aiohttp.ClientError),
        ("stream-cut", aiohttp.ClientError),
        ("hang", asyncio.TimeoutError),
        ("drip:interval_s=9", asyncio.TimeoutError),
    ],
)
def test_connection_faults(kind: str, error: type[Exception], stream: bool) -> None:
    async def client(session: aiohttp.ClientSession, running: Running) -> None:
        # Only the two faults that never end wait for this; a slow machine must reach the other three before it.
        timeout = aiohttp.ClientTimeout(total=1.0 if error is asyncio.TimeoutError else CEILING_S)
        async with session.post(
            running.base_url + "/chat/completions", json=body(stream=stream), timeout=timeout
        ) as response:
            await response.read()

    with pytest.raises(error):
        serve(MockOptions(answer="one two three four", faults=(parse_fault(kind),)), client)


@pytest.mark.parametrize("stream", [False, True])
def test_body_faults(stream: bool) -> None:
    def data(kind: str) -> bytes:
        status, _, answer = chat(MockOptions(answer="one two three four", faults=(parse_fault(kind),)), stream=stream)
        assert status == 200 or kind == "stream-error"
        return answer

    with pytest.raises(json.JSONDecodeError):
        events(data("invalid-json")) if stream else json.loads(data("invalid-json"))
    assert data("html").startswith(b"<!DOCTYPE html>")
    with pytest.raises(UnicodeDecodeError):
        data("invalid-utf8").decode()
    assert b'"choices":[]' in data("empty-choices")
    assert b'"content":null' in data("null-content")
    assert b"engine died" in data("stream-error") or not stream
    assert b"[DONE]" not in data("no-done")
    assert data("wrong-type").startswith(b"[")


def test_log_counts_what_the_server_saw(tmp_path: Path) -> None:
    log = tmp_path / "seen.jsonl"
    options = MockOptions(answers=book(), log=log, faults=(parse_fault("500@first1"),))

    async def client(session: aiohttp.ClientSession, running: Running) -> list[int]:
        codes = []
        for _ in range(2):
            async with session.post(running.base_url + "/chat/completions", json=body()) as response:
                codes.append(response.status)
        return codes

    assert serve(options, client) == [500, 200]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["n"], line["attempt"], line["status"], line["fault"], line["matched"]) for line in lines] == [
        (1, 1, 500, "500", True),
        (2, 2, 200, None, True),
    ]
    assert lines[0]["body_sha256"] == lines[1]["body_sha256"]


def test_chunked_upload_and_pipelined_keep_alive() -> None:
    async def client(session: aiohttp.ClientSession, running: Running) -> bytes:
        async def pieces() -> Any:
            for piece in json.dumps(body()).encode().partition(b"mock"):
                yield piece

        async with session.post(running.base_url + "/chat/completions", data=pieces()) as response:
            return await response.read()

    assert json.loads(serve(MockOptions(answers=book()), client))["choices"][0]["message"]["content"] == "B"


def test_thinking_in_a_field_of_its_own() -> None:
    _, _, data = chat(MockOptions(answers=book(), reader=parse_reader("thinking:field=1")))
    message = json.loads(data)["choices"][0]["message"]
    assert (message["content"], "maybe A" in message["reasoning_content"]) == ("B", True)


@pytest.mark.parametrize("flags", [[], ["--trivial"]])
def test_a_server_that_is_closed_drops_its_connections(flags: list[str]) -> None:
    with mock_thread(flags) as running:
        connection = socket.create_connection(("127.0.0.1", running.port), CEILING_S)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(1) == b"H"
    with connection, suppress(ConnectionError):  # an end in order, or a reset; never a wait until the time is out
        while connection.recv(2**16):
            pass


def test_trivial_mode_and_the_process() -> None:
    async def go() -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.post(running.base_url + "/chat/completions", json=body()) as response,
        ):
            return await response.json()

    with mock_process(["--trivial"]) as running:
        assert asyncio.run(go())["choices"][0]["message"]["content"] == "A"


def test_a_simulated_reader_of_known_acuity_is_measured_over_http(
    mock_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import snellen

    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    answers = tmp_path / "answers.jsonl"
    arguments = ["mock-server", "--write-answers", "eyechart", "--answers", str(answers), "--limit", "4", "--seed", "5"]
    assert run_command(arguments) == 0
    assert json.loads(capsys.readouterr().out)["entries"] == 4
    running = mock_server("--answers", answers, "--reader", "noisy:px50=6,slope=6")
    result = snellen.run(
        "eyechart", "openai/mock", base_url=running.base_url, limit=4, seed=5, output_dir=tmp_path / "run", cache=False
    )
    metrics = result.results["tasks"]["eyechart"]["metrics"]
    assert metrics["acuity_px"]["value"] == pytest.approx(6.0, rel=0.25)
