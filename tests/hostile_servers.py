"""Servers drawn from a seed: statuses, headers, bodies, cuts, timing and stream grammar, right and wrong ones mixed.

A right answer to question q is `echo q`. Whatever else is sent holds `WRONG`, or no answer at all.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

WRONG = "WRONG"
FINISHES = ("error", "abort", "ERROR", "cancelled", "content_filter")
STATUSES = (400, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 503, 504, 520, 529, 302, 204, 418)
RESTS = ("0", "0.001", "-5", "soon", "1e309", "nan", "Thu, 01 Jan 1970 00:00:00 GMT", "")


class Hostile:
    """Serves OpenAI chat completions, whole and streamed, as its seed will have it."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._count = 0
        self.kinds: Counter[str] = Counter()
        self._open: dict[asyncio.Task[Any] | None, asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer questions until the connection ends."""
        self._open[asyncio.current_task()] = writer
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
                )
                body = json.loads(await reader.readexactly(length))
                if not await self._answer(writer, body["messages"][0]["content"], bool(body.get("stream"))):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self._open.pop(asyncio.current_task())

    async def close(self) -> None:
        """Close all connections and wait until nobody answers any more."""
        for writer in self._open.values():
            writer.close()
        while self._open:
            await asyncio.sleep(0)

    async def _answer(self, writer: asyncio.StreamWriter, question: str, stream: bool) -> bool:
        """Send one answer; tell whether the connection goes on."""
        self._count += 1
        kind = self._draw.choice(("right", "right", "body", "status", "frame", "bytes", "copy"))
        self.kinds[kind] += 1
        content = self._right(f"echo {question}", stream)
        if kind in ("right", "copy"):
            await self._send(writer, self._framed(200, content))
            if kind == "copy":
                await self._send(writer, self._framed(200, content))
            return True
        if kind == "body":
            await self._send(writer, self._framed(200, self._wrong_body(stream)))
            return True
        if kind == "status":
            rest = f"Retry-After: {self._draw.choice(RESTS)}\r\n"
            await self._send(writer, self._framed(self._draw.choice(STATUSES), self._wrong_body(stream), rest))
            return True
        broken = self._broken_frame(content) if kind == "frame" else self._draw.randbytes(self._draw.randrange(0, 300))
        await self._send(writer, broken)
        return False

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Write in pieces of any size, with turns of the loop or a short rest between them."""
        pieces = self._draw.choice((1, 1, 2, 5))
        cuts = sorted(self._draw.randrange(len(data) + 1) for _ in range(pieces - 1))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            writer.write(data[start:end])
            await writer.drain()
            await asyncio.sleep(self._draw.choice((0, 0, 0.001)) if pieces > 1 else 0)

    def _right(self, text: str, stream: bool) -> bytes:
        name = f"chatcmpl-{self._count}"
        if not stream:
            choice: dict[str, Any] = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            choices = [choice | {"index": 0}]
            if self._draw.random() < 0.2:
                choices.insert(0, {"index": 1, "message": {"content": WRONG}, "finish_reason": "stop"})
            return json.dumps({"id": name, "choices": choices, "error": self._draw.choice((None, "", {}))}).encode()
        middle = self._draw.randrange(len(text))
        events: list[Any] = [
            {"id": name, "choices": [{"index": 0, "delta": {"content": part}}]}
            for part in (text[:middle], text[middle:])
        ]
        if self._draw.random() < 0.2:
            events.insert(1, {"id": name, "choices": [{"index": 1, "delta": {"content": WRONG}}]})
        events.append({"id": name, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        return self._events(events, done=True)

    def _events(self, events: list[Any], *, done: bool) -> bytes:
        end = self._draw.choice(("\n\n", "\r\n\r\n", "\n"))
        start = self._draw.choice(("", "\ufeff", ": ping\n\n", "retry: 10\nid: 7\n"))
        lines = [f"data:{self._draw.choice(('', ' '))}{json.dumps(event)}{end}" for event in events]
        return (start + "".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()

    def _wrong_body(self, stream: bool) -> bytes:
        choice: dict[str, Any] = {"index": 0, "delta" if stream else "message": {"content": WRONG}}
        told: list[Any] = [
            {"choices": [choice | {"finish_reason": self._draw.choice(FINISHES)}]},
            {"choices": [choice | {"finish_reason": "stop", "error": {"message": "gone"}}]},
            {"choices": [choice | {"finish_reason": "stop"}], "error": {"code": 500}},
            {"object": "error", "message": "gone"},
            {"choices": [choice | {"index": 3, "finish_reason": "stop"}]},
            {"choices": [{"index": 0, "delta" if stream else "message": {"content": None}, "finish_reason": None}]},
            {"choices": self._draw.choice(([], None, 5, "x", {}, [[]], [None]))},
            *([], None, 7, WRONG, {}, {"detail": "gone"}),
        ]
        value = self._draw.choice(told)
        if stream:
            middle = self._draw.choice((b"", b"event: error\n", b"data: {\n\n"))
            return middle + self._events([value], done=self._draw.random() < 0.5)
        makers: tuple[Callable[[bytes], bytes], ...] = (
            *(lambda body: body,) * 6,
            lambda body: b"<html>" + body,
            lambda body: body[: len(body) // 2],
            lambda body: b"\xff\xfe" + body,
            lambda body: b"[" * 3000 + body,
            lambda body: b"",
        )
        return self._draw.choice(makers)(json.dumps(value).encode())

    def _framed(self, status: int, content: bytes, more: str = "") -> bytes:
        packing = self._draw.choice(("", "", "", "gzip", "deflate"))
        if packing:
            content = gzip.compress(content) if packing == "gzip" else zlib.compress(content)
            more += f"Content-Encoding: {packing}\r\n"
        if status == 204:
            return f"HTTP/1.1 204 X\r\n{more}\r\n".encode()
        start = f"HTTP/1.1 {status} X\r\n{more}"
        if self._draw.random() < 0.5:
            return f"{start}Content-Length: {len(content)}\r\n\r\n".encode() + content
        size = self._draw.randrange(1, 50)
        parts = [content[at : at + size] for at in range(0, len(content), size)]
        return f"{start}Transfer-Encoding: chunked\r\n\r\n".encode() + b"".join(
            b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""]
        )

    def _broken_frame(self, content: bytes) -> bytes:
        whole = self._framed(200, content)
        cut = whole[: self._draw.randrange(len(whole))]
        longer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(content) + 9) + content
        odd = self._draw.choice((b"-1", b"1e3", b"99999999999999999999", b"0x10", b"800000000"))
        length = b"HTTP/1.1 200 OK\r\nContent-Length: " + odd + b"\r\n\r\n" + content
        chunk = (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + self._draw.choice((b"-5", b"zz", b"ffffffff"))
            + b"\r\n"
        )
        return self._draw.choice((cut, cut, longer, length, chunk, b"", b"SSH-2.0-x\r\n"))
