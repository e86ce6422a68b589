"""A token that expires while a command goes on is fetched again, whatever is asked: batches, files, scores, streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fake_clock import FakeClock
from snellen.core.errors import ModelError
from snellen.core.secret import Secret
from snellen.core.types import Params, Request, TrialKey, Turn
from snellen.kits.batches.batch_http import BatchHttp
from snellen.kits.batches.batch_service import LinesFile
from snellen.kits.batches.batch_services import MessageService
from snellen.kits.batches.content_service import ContentService
from snellen.kits.batches.file_service import FileService
from snellen.model.options import ModelOptions
from snellen.model.served.openai import OpenAI
from snellen.model.served.openai_responses import Responses
from snellen.model.served.served_model import ServedModel

ASKED = Request(TrialKey("t", "s"), (Turn("user", "hi"),))
CHAT = {"choices": [{"index": 0, "message": {"content": "B"}, "finish_reason": "stop"}]}
PIECE = {"choices": [{"index": 0, "delta": {"content": "B"}, "finish_reason": "stop"}]}
SAID = [{"type": "message", "content": [{"type": "output_text", "text": "B"}]}]


class Door:
    """A server that takes each token for one request; it hands them out as a command or a library would."""

    def __init__(self, status: int, **answers: Any) -> None:
        self._status = status
        self._answers = answers
        self._holds = ""
        self.fetched = 0
        self.asked: list[str] = []
        self.bodies: list[bytes] = []
        self.opens = True
        """Whether any token is taken at all."""

    def token(self) -> Secret:
        self.fetched += 1
        self._holds = f"token-{self.fetched}"
        return Secret(self._holds)

    async def answer(self, asked: web.Request) -> web.Response:
        body = await asked.read()
        told, self._holds = asked.headers.get("Authorization", ""), self._holds if self.opens else ""
        if not self._holds or told != f"Bearer {self._holds}":
            error = {"error": {"message": "Token is expired", "code": "PERMISSION_DENIED"}}
            return web.json_response(error, status=self._status)
        self._holds = ""
        self.asked.append(f"{asked.method} {asked.path_qs}")
        self.bodies.append(body)
        value = self._answers.get(asked.path.rpartition("/")[2], {"id": "b", "status": "in_progress"})
        if isinstance(value, list):
            value = value.pop(0)
        if isinstance(value, bytes):
            return web.Response(body=value, headers={"Content-Type": "text/event-stream"})
        place = str(asked.url.with_path("/elsewhere"))
        return web.json_response(value, headers={"X-Goog-Upload-URL": place})


def through(door: Door, ask: Callable[[str], Awaitable[Any]]) -> Any:
    """Return what comes of asking at the door's address."""

    async def main() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", door.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            port = runner.addresses[0][1]
            return await ask(f"http://127.0.0.1:{port}/v1")
        finally:
            await runner.cleanup()

    return asyncio.run(main())


def served(door: Door, address: str, dialect: Any = None, query: Any = None) -> ServedModel:
    options = ModelOptions(base_url=address, renew_key=door.token, query=query or {}, clock=FakeClock())
    return ServedModel(dialect or OpenAI(), "m", options)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("kind", [FileService, MessageService, ContentService])
def test_a_batch_is_sent_waited_for_and_fetched_with_tokens_that_expire(kind: Any, status: int, tmp_path: Path) -> None:
    lines = LinesFile("snellen-x.jsonl", tmp_path / "lines", 1)
    lines.path.write_bytes(b'{"custom_id":"i"}\n')
    job: dict[str, Any] = {"id": "b", "name": "batches/b", "file": {"name": "files/1"}}
    ended = job | {"status": "completed", "output_file_id": "f", "processing_status": "ended"}
    ended |= {"done": True, "metadata": {"state": "JOB_STATE_SUCCEEDED"}, "response": {"responsesFile": "files/2"}}
    waits = job | {"status": "in_progress", "processing_status": "in_progress", "metadata": {"state": "RUNNING"}}
    rows = b'{"custom_id":"i"}\n'
    found = {"content": rows, "results": rows, "2:download": rows}
    door = Door(status, b=[waits, ended], batches=job, elsewhere=job, **found, **{"m:batchGenerateContent": job})

    async def wait_for_batch(address: str) -> bytes:
        model = served(door, address)
        service = kind(BatchHttp(model))
        try:
            batch = await service.submit(lines)
            while (told := await service.look(batch)).state == "running":
                pass
            await service.fetch(batch, told, tmp_path / "into")
        finally:
            await service.close()
            await model.close()
        return (tmp_path / "into").read_bytes()

    assert through(door, wait_for_batch) == rows
    assert any(b'{"custom_id":"i"}\n' in body for body in door.bodies), "the file came whole"
    assert door.fetched == len(door.asked) > 3


@pytest.mark.parametrize("stream", [None, True])
def test_a_live_request_goes_on_with_a_fresh_token(stream: bool | None) -> None:
    door = Door(401, completions=b"data: " + json.dumps(PIECE).encode() + b"\n\n" if stream else CHAT)

    async def ask_twice(address: str) -> list[str | None]:
        model = served(door, address)
        request = Request(ASKED.key, ASKED.messages, Params(stream=stream))
        try:
            return [(await model.predict(request, {})).text for _ in range(2)]
        finally:
            await model.close()

    assert through(door, ask_twice) == ["B", "B"]
    assert (door.fetched, len(door.asked)) == (2, 2)


def test_scores_are_asked_for_with_a_fresh_token() -> None:
    door = Door(401, completions={"choices": [{"text": "x"}]})

    async def post_twice(address: str) -> None:
        model = served(door, address, query={"api-version": "1"})
        try:
            for _ in range(2):
                await model.post("/completions", (b"{}",))
        finally:
            await model.close()

    through(door, post_twice)
    assert (
        door.asked
        == ["POST /v1/completions?api-version=1"] * door.fetched
        == ["POST /v1/completions?api-version=1"] * 2
    )


def test_a_response_made_in_the_background_is_asked_after_with_a_fresh_token_and_made_once() -> None:
    waits, done = {"id": "b", "status": "queued"}, {"id": "b", "status": "completed", "output": SAID}
    door = Door(401, responses=waits, b=[waits, waits, done])

    async def ask(address: str) -> str | None:
        model = served(door, address, Responses(), {"api-version": "1"})
        try:
            return (await model.predict(ASKED, {})).text
        finally:
            await model.close()

    assert through(door, ask) == "B"
    assert door.asked == ["POST /v1/responses?api-version=1", *["GET /v1/responses/b?api-version=1"] * 3]


def test_a_server_that_takes_no_token_is_asked_twice_and_not_for_ever() -> None:
    door = Door(401)
    door.opens = False

    async def ask(address: str) -> None:
        model = served(door, address)
        try:
            await asyncio.wait_for(model.predict(ASKED, {}), 5.0)
        finally:
            await model.close()

    with pytest.raises(ModelError, match="401"):
        through(door, ask)
    assert door.fetched == 2
