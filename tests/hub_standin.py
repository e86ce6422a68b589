"""A hub and a file server on loopback: datasets by name, files by path, ranges, and connections that break."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

REVISION = "0123456789abcdef0123456789abcdef01234567"


class StandIn(ThreadingHTTPServer):
    """Serves datasets (`owner/name` -> path -> bytes) as a hub does, and plain files under /files/."""

    daemon_threads = True

    def __init__(self, datasets: Mapping[str, Mapping[str, bytes]], files: Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.datasets, self.files = datasets, files
        self.asked: list[tuple[str, str, str]] = []
        """Method, path and range of every request."""
        self.break_after: int | None = None
        """End the next plain download after so many bytes."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        self.server.asked.append((self.command, self.path, self.headers.get("Range", "")))
        path = unquote(self.path.partition("?")[0])
        if path.startswith("/files/"):
            self._file(self.server.files.get(path.removeprefix("/files/")), body=body)
        elif path.startswith("/api/datasets/"):
            self._api(path.removeprefix("/api/datasets/"))
        elif path.startswith("/datasets/"):
            name, _, file = path.removeprefix("/datasets/").partition("/resolve/")
            self._file(self.server.datasets.get(name, {}).get(file.partition("/")[2]), body=body)
        else:
            self._missing()

    def _api(self, path: str) -> None:
        name = "/".join(path.split("/")[:2])
        files = self.server.datasets.get(name)
        if files is None:
            self._missing()
            return
        if "/tree/" in path:
            found: Any = [{"type": "file", "path": file, "size": len(data), "oid": "0"} for file, data in files.items()]
        else:
            found = {"id": name, "sha": REVISION, "siblings": [{"rfilename": file} for file in files]}
        self._send(200, json.dumps(found).encode(), {"Content-Type": "application/json"})

    def _missing(self) -> None:
        self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def _file(self, data: bytes | None, *, body: bool) -> None:
        if data is None:
            self._missing()
            return
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": REVISION}
        if start >= len(data) > 0:
            self._send(416, b"", headers)
            return
        self._send(206 if start else 200, data[start:], headers, body=body)

    def _send(self, status: int, data: bytes, headers: Mapping[str, str], *, body: bool = True) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        cut, self.server.break_after = (
            (self.server.break_after, None) if body and "/files/" in self.path else (None, self.server.break_after)
        )
        if body:
            self.wfile.write(data if cut is None else data[:cut])
        self.close_connection = cut is not None


@contextmanager
def hub_standin(datasets: Mapping[str, Mapping[str, bytes]], files: Mapping[str, bytes] = {}) -> Iterator[StandIn]:
    """Serve on loopback until the block ends."""
    server = StandIn(datasets, files)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
