"""An OpenAI-like server that really reads the numbers drawn in frames; it answers with the option that lists them."""

from __future__ import annotations

import base64
import io
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import av
import PIL.Image

from video_files import read_number

OPTION = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)


@dataclass
class ReadingServer:
    """Where it is, and what it was asked."""

    base_url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, body: dict[str, Any]) -> str:
        """Return the letter of the option that lists what was seen, or what was seen."""
        self.bodies.append(body)
        parts = [part for message in body["messages"] for part in _parts(message["content"])]
        seen = ", ".join(str(number) for part in parts for number in _numbers(part))
        texts = "\n".join(part["text"] for part in parts if part["type"] == "text")
        letters = {text: letter for letter, text in OPTION.findall(texts)}
        return letters.get(seen, f"I see {seen}")


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _numbers(part: dict[str, Any]) -> Iterator[int]:
    kind = part["type"]
    if kind not in ("image_url", "video_url"):
        return
    data = base64.b64decode(part[kind]["url"].partition(",")[2])
    if kind == "image_url":
        yield read_number(PIL.Image.open(io.BytesIO(data)))
        return
    with av.open(io.BytesIO(data)) as container:
        for frame in container.decode(video=0):
            yield read_number(frame.to_image())


@contextmanager
def reading_server() -> Iterator[ReadingServer]:
    """Serve on a free port of this machine."""
    state = ReadingServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "m", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = {"role": "assistant", "content": state.answer(body)}
            parts = [part for message in body["messages"] for part in _parts(message["content"])]
            tokens = 10 * max(1, sum(part["type"] == "image_url" for part in parts))  # pictures are what videos cost
            usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
            self._send({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

        def _send(self, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.base_url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
