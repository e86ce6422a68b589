"""Bytes of an HTTP/1.1 response to status, headers and body; no sockets here, so every split can be tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping

HEAD_LIMIT = 64 * 2**10
REPLY_LIMIT = 64 * 2**20
"""No answer is longer, also when it is unpacked: a few kilobytes of gzip could fill the memory."""
LONGEST_LENGTH = 18
"""Digits of a length that is meant."""
VERSION = b"HTTP/1."
_END_OF_HEAD = b"\r\n\r\n"


class BadResponseError(ValueError):
    """The bytes are no HTTP/1.1 response."""


class TooLargeError(BadResponseError):
    """The answer is larger than any that is meant."""

    def __init__(self) -> None:
        super().__init__(f"the answer is larger than {REPLY_LIMIT // 2**20} MB")


class Response:
    """Reads one response as its bytes arrive; `on_data` gets the body, decoded from its transfer encoding."""

    __slots__ = ("_body", "_on_data", "_rest", "_size", "headers", "keep_alive", "status")

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.keep_alive = True
        self._on_data = on_data
        self._rest = b""
        self._size = 0
        self._body: _Length | Chunked | _UntilClose | None = None

    def feed(self, data: bytes) -> bool:
        """Take bytes; return True when the response is complete."""
        while self._body is None:
            data = self._rest + data
            end = data.find(_END_OF_HEAD)
            if end < 0:
                self._keep_head(data)
                return False
            self._rest = b""
            self._read_head(data[:end])
            data = data[end + 4 :]
        body, complete = self._body.feed(data)
        if body:
            self._size += len(body)
            if self._size > REPLY_LIMIT:
                raise TooLargeError
            self._on_data(body)
        if complete and self._body.surplus:  # what comes after the end would be taken for the next answer
            self.keep_alive = False
        return complete

    def finish(self) -> bool:
        """The connection has ended; return True if that completes the response."""
        return isinstance(self._body, _UntilClose)

    @property
    def begun(self) -> bool:
        """Whether anything of the response has come."""
        return bool(self.status or self._rest)

    def _keep_head(self, data: bytes) -> None:
        if not data.startswith(VERSION[: len(data)]):  # what speaks another protocol may wait for us in turn
            raise BadResponseError(f"not an HTTP/1.1 response: {data[:60]!r}")
        if len(data) > HEAD_LIMIT:
            raise BadResponseError("the response head does not end")
        self._rest = data

    def _read_head(self, head: bytes) -> None:
        start, _, more = head.partition(b"\r\n")
        version, _, rest = start.partition(b" ")
        if not version.startswith(VERSION) or not rest[:3].isdigit():
            raise BadResponseError(f"not an HTTP/1.1 response: {start[:60]!r}")
        status = int(rest[:3])
        if 100 <= status < 200:
            return
        headers: dict[str, str] = {}
        for line in more.decode("latin-1").split("\r\n") if more else ():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        self.status, self.headers = status, headers
        self._body = _body_of(status, headers)
        connection = headers.get("connection", "").lower()
        is_new = version != b"HTTP/1.0"
        self.keep_alive = not isinstance(self._body, _UntilClose) and (
            "close" not in connection if is_new else "keep-alive" in connection
        )


def _body_of(status: int, headers: Mapping[str, str]) -> _Length | Chunked | _UntilClose:
    if status in (204, 304):
        return _Length(0)
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return Chunked()
    length = headers.get("content-length")
    if length is None:
        return _UntilClose()
    if not length.isdecimal() or len(length) > LONGEST_LENGTH:
        raise BadResponseError(f"Content-Length is {length[:60]!r}")
    if int(length) > REPLY_LIMIT:
        raise TooLargeError
    return _Length(int(length))


class _Length:
    __slots__ = ("_left", "surplus")

    def __init__(self, length: int) -> None:
        self._left = length
        self.surplus = b""

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        data, self.surplus = data[: self._left], data[self._left :]
        self._left -= len(data)
        return data, self._left == 0


class _UntilClose:
    __slots__ = ()
    surplus = b""

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        return data, False


class Chunked:
    """Chunked transfer encoding; trailers are skipped."""

    __slots__ = ("_left", "_rest", "_trailer")

    def __init__(self) -> None:
        self._rest = b""
        self._left = -1
        self._trailer = False

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Take bytes; return what they add to the body, and whether that is all of it."""
        data = self._rest + data if self._rest else data
        parts: list[bytes] = []
        at = 0
        while not self._trailer:
            if self._left < 0:
                end = data.find(b"\r\n", at)
                if end < 0:
                    break
                self._left = _chunk_size(data[at:end])
                at = end + 2
                self._trailer = self._left == 0
                continue
            if len(data) < at + self._left + 2:
                break
            parts.append(data[at : at + self._left])
            at += self._left + 2
            self._left = -1
        self._rest = data[at:]
        if len(self._rest) > HEAD_LIMIT and (self._left < 0 or self._trailer):
            raise BadResponseError("a chunk size or trailer does not end")
        # Trailers, if any, end with an empty line: without any that is the first one.
        return b"".join(parts), self._trailer and _END_OF_HEAD in b"\r\n" + self._rest

    @property
    def surplus(self) -> bytes:
        """What came after the end."""
        return (b"\r\n" + self._rest).partition(_END_OF_HEAD)[2]


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits.isalnum():  # int() would also take a sign
        raise BadResponseError(f"not a chunk size: {line[:20]!r}")
    try:
        size = int(digits, 16)
    except ValueError:
        raise BadResponseError(f"not a chunk size: {line[:20]!r}") from None
    if size > REPLY_LIMIT:
        raise TooLargeError
    return size
