"""Judges for tests: a model that reads the case number of what it is asked and says what a function tells it to."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from line_doubles import Scripted
from snellen.api.judges import ask_judge
from snellen.api.settings import RunSettings
from snellen.core.types import Prediction, Request
from snellen.scoring.judges.judge_card import Judge

CASE = re.compile(r"Case ([0-9a-f]{12})\.")
FENCED = re.compile(r"=====\[[0-9a-f]{20}\]=====\n(.*?)\n=====\[", re.DOTALL)


def judged_answer(request: Request) -> str:
    """Return the answer under judgement."""
    found = FENCED.search(request.messages[-1].text)
    assert found is not None, request.messages[-1].text
    return found[1]


def judge_model(decide: Callable[[Request, str], dict[str, Any] | str], name: str = "scripted/judge") -> Scripted:
    """Return a model that answers with the fields `decide` gives for an answer, or with its text as it is."""

    async def answer(request: Request) -> Prediction:
        case = CASE.search(request.messages[-1].text)
        assert case is not None, request.messages[-1].text
        said = decide(request, judged_answer(request))
        text = said if isinstance(said, str) else json.dumps({"case": case[1], **said})
        return Prediction(request.key, text=text)

    model = Scripted(answer)
    model.name = name
    model.cacheable = False
    return model


def ask_about(folder: Path, judge: Judge, model: Scripted) -> None:
    """Ask a judge about a run, as `snellen score --judge` does."""
    ask_judge(folder, judge, model, RunSettings(tasks=(), model=model.name))


class ServedJudge(BaseHTTPRequestHandler):
    """A judge over the wire; `decide` says what a class of it answers."""

    models: ClassVar[tuple[str, ...]] = ("local-judge",)

    def decide(self, prompt: str, case: str, answer: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the answer to one request."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": name} for name in self.models]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][-1]["content"]
        text = text if isinstance(text, str) else text[-1]["text"]
        case, answer = CASE.search(text), FENCED.search(text)
        assert case
        assert answer
        self._answer(*self.decide(text, case[1], answer[1]))

    def _answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        pass


def said(text: str, **more: Any) -> dict[str, Any]:
    """Return a body that says this text."""
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], **more}


@contextmanager
def serving(judge: type[ServedJudge]) -> Iterator[str]:
    """Serve a judge for the block, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), judge)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
