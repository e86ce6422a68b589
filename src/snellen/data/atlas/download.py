"""A file from an address: continued where it stopped, checked before it gets its name."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core.errors import DataError, EnvironmentProblem, UsageError

CHUNK = 1 << 20
TIMEOUT_S = 60.0
PART = ".part"
"""How a file ends that is not whole yet."""
Progress = Callable[[str, int, int | None], None]
"""Told the file, the bytes that are there and those that there will be, where known."""
DIGESTS = {8: "md5", 32: "md5", 64: "sha256"}
"""Which checksum a text of so many digits is."""


def file_digest(path: Path, kind: str) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()


def check_digest(path: Path, expected: str) -> bool | None:
    """Tell whether a file has the checksum a card says; None where the card says none."""
    kind = DIGESTS.get(len(expected))
    return None if kind is None else file_digest(path, kind).startswith(expected.lower())


def download(url: str, target: Path, expected: str = "", progress: Progress | None = None) -> None:
    """Bring a file to its place; what an earlier call left is continued, what does not match is not kept."""
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"{url!r} is no web address")
    part = target.with_name(target.name + PART)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _continue(url, part, progress)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise EnvironmentProblem(f"cannot fetch {url}: {_reason(error)}; {_what_next(error, part)}") from None
    if check_digest(part, expected) is False:
        kind = DIGESTS[len(expected)]
        found = file_digest(part, kind)
        part.unlink()
        raise DataError(
            f"{url} is another file than the card says ({kind} {found}, not {expected}): it was not kept; "
            "the benchmark may have a new version"
        )
    part.replace(target)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    return str(getattr(error, "reason", "") or error or type(error).__name__)


def _what_next(error: Exception, part: Path) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return "the file may have moved: bring it yourself, `snellen data verify` compares it with the card"
    have = part.stat().st_size if part.exists() else 0
    return f"{have:,} bytes are kept, the same command continues"


def _continue(url: str, part: Path, progress: Progress | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310 - checked
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310 - http and https only, see `download`
    except urllib.error.HTTPError as error:
        if have and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # all of it is here already
        raise
    with answer:
        whole = answer.status != http.HTTPStatus.PARTIAL_CONTENT  # a server that cannot continue sends all of it
        _write(answer, part, 0 if whole else have, progress)


def _write(answer: Any, part: Path, have: int, progress: Progress | None) -> None:
    length = answer.headers.get("Content-Length")
    total = have + int(length) if length else None
    with part.open("ab" if have else "wb") as file:
        while chunk := answer.read(CHUNK):
            file.write(chunk)
            have += len(chunk)
            if progress is not None:
                progress(part.name.removesuffix(PART), have, total)
    if total is not None and have < total:
        raise ConnectionError(f"the connection ended after {have:,} of {total:,} bytes")
