"""The raw request of a trial is, byte for byte, what its server got; and no key is on any page of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import snellen
from made_runs import draw_picture, make_run
from snellen.core.types import TrialKey
from snellen.report.pages.gallery import Shown, read_trial

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from asgi import call
from snellen.api.view import make_viewer
from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.raw_exchange import curl_command, shown_exchange, whole_exchange
from snellen.report.viewer.run_library import OpenRun, RunLibrary

CANARY = "sk-canary-5f3a9c77"
REPLIES = {
    "/v1/chat/completions": {"choices": [{"message": {"role": "assistant", "content": "A"}, "finish_reason": "stop"}]},
    "/v1/messages": {"content": [{"type": "text", "text": "A"}], "stop_reason": "end_turn", "role": "assistant"},
}


class Server(ThreadingHTTPServer):
    """Answers every question with A, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[tuple[str, bytes]] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._say({"data": [{"id": "small"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.path, body))
        self._say(REPLIES[self.path])

    def _say(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


def asked(tmp_path: Path, server: Server, provider: str, **more: Any) -> OpenRun:
    draw_picture(tmp_path / "one.png", 1)
    row = {"id": "q1", "image": "one.png", "question": "Which?", "options": ["red", "blue"], "answer": "red"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    url = f"http://127.0.0.1:{server.server_port}/v1"
    snellen.run(
        str(tmp_path / "rows.jsonl"),
        f"{provider}/small",
        base_url=url,
        cache=False,
        output_dir=tmp_path / "run",
        **more,
    )
    return RunLibrary([tmp_path / "run"]).runs()[0]


def shown_of(run: OpenRun) -> Shown:
    shown = read_trial(run.reader, TrialKey("rows", "q1"))
    assert shown is not None
    return shown


@pytest.mark.parametrize(
    ("provider", "more"),
    [
        ("openai", {"temperature": 0.0, "max_tokens": 40}),
        ("openai", {"constrain": "options", "model_arguments": {"images": "uuid"}}),
        ("anthropic", {"max_tokens": 50}),
        ("vllm-server", {"reasoning": "off"}),
    ],
)
def test_it_is_what_the_server_got(
    tmp_path: Path, server: Server, provider: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "VLLM_API_KEY"):
        monkeypatch.setenv(name, CANARY)
    run = asked(tmp_path, server, provider, **more)
    exchange = whole_exchange(run, shown_of(run))
    assert exchange is not None
    path, body = server.got[-1]
    assert exchange.url.endswith(path)
    assert exchange.body == body
    small = shown_exchange(run, shown_of(run))
    assert small is not None and len(small.body) < len(body) and b"bytes" in small.body
    assert CANARY not in curl_command(exchange)
    app = make_viewer([tmp_path], "key")
    cookie = {"cookie": f"{cookie_name('key')}=key"}
    for place in ("trial", "request"):
        answer = call(app, f"/run/{run.key}/{place}?task=rows&sample=q1", headers=cookie)
        assert answer.status == 200
        assert CANARY.encode() not in answer.body and str(tmp_path).encode() not in answer.body
    assert answer.body == body, "the download is the request whole"


def test_the_command_names_the_variable_of_the_key_and_other_headers(tmp_path: Path, server: Server) -> None:
    run = asked(tmp_path, server, "openai", headers={"x-team": snellen.core.secret.Secret(CANARY)})
    exchange = whole_exchange(run, shown_of(run))
    assert exchange is not None
    command = curl_command(exchange)
    assert '-H "Authorization: Bearer $OPENAI_API_KEY"' in command
    assert "x-team" in command and CANARY not in command
    assert command.endswith("-d @request.json")


def test_a_run_that_kept_nobody_is_shown_as_stored(tmp_path: Path) -> None:
    make_run(tmp_path / "made", count=2)
    run = RunLibrary([tmp_path / "made"]).runs()[0]
    shown = read_trial(run.reader, TrialKey("shapes", "shape-00000"))
    assert shown is not None
    assert shown_exchange(run, shown) is None
    app = make_viewer([tmp_path], "key")
    cookie = {"cookie": f"{cookie_name('key')}=key"}
    page = call(app, f"/run/{run.key}/trial?task=shapes&sample=shape-00000", headers=cookie)
    assert "not asked over HTTP" in page.text and str(tmp_path) not in page.text
    assert call(app, f"/run/{run.key}/request?task=shapes&sample=shape-00000", headers=cookie).status == 404
