"""A server that knows questions by their words, their options and the pixels of their pictures, and nothing else."""

from __future__ import annotations

import base64
import io
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import PIL.Image

UNKNOWN = "nobody told me of this question"


class KnownRow(NamedTuple):
    """What must stand in a request, and the right answer to it."""

    question: str
    answer: str
    options: tuple[str, ...] = ()
    shades: tuple[int, ...] = ()
    """Of each picture, in order, the colour it was drawn in (`shaded`)."""


def shaded(shade: int, kind: str = "PNG", size: tuple[int, int] = (40, 30), **options: Any) -> bytes:
    """Return a picture that is known by its colour."""
    stream = io.BytesIO()
    PIL.Image.new("RGB", size, (shade, 255 - shade, 90)).save(stream, kind, **options)
    return stream.getvalue()


class Knowing(NamedTuple):
    """A server on loopback: its address, and the requests it got."""

    url: str
    known: list[KnownRow]
    asked: list[dict[str, Any]]


@contextmanager
def knowing_server() -> Iterator[Knowing]:
    """Serve on loopback until left; what it knows is added to `known`."""
    known: list[KnownRow] = []
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "m", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body)
            message = {"role": "assistant", "content": find_reply(body["messages"][-1]["content"], known)}
            usage = {"prompt_tokens": 500, "completion_tokens": 1, "total_tokens": 501}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._send({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})

        def _send(self, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Knowing(f"http://127.0.0.1:{server.server_port}/v1", known, asked)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def find_reply(content: Any, known: Sequence[KnownRow]) -> str:
    """Return the answer to what a message asks, by its letter where options are offered."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    shades = tuple(shade_of(part["image_url"]["url"]) for part in parts if part["type"] == "image_url")
    for row in sorted(known, key=lambda row: -len(row.question)):
        if row.question in text and shades == row.shades:
            return answer_to(row, text)
    return UNKNOWN


def answer_to(row: KnownRow, text: str) -> str:
    """Return the answer, or the answer with the letter it has among the options that are offered if they are all there."""
    if not row.options:
        return row.answer
    offered = dict(re.findall(r"^([A-Z])\. (.*)$", text, re.MULTILINE))
    if tuple(offered.values()) != row.options:
        return UNKNOWN
    letter = next(letter for letter, option in offered.items() if option == row.answer)
    return f"{letter}. {row.answer}"


def shade_of(url: str) -> int:
    """Return the colour of a sent picture, to the next ten: JPEG is not exact."""
    with PIL.Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as picture:
        return round(picture.convert("RGB").resize((1, 1)).tobytes()[0] / 10) * 10
