"""Requests signed as AWS wants them (Signature Version 4): an HTTP client around another.

botocore says what is signed and how it is written; what is the same from one request to the next is asked of it once.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...core.errors import MissingExtra, UsageError
from ..served.http_client import AiohttpClient, Body, HttpClient, HttpStream
from ..served.post import HttpResponse
from .body_hash import BodyHash

SERVICE = "bedrock"
STAMP = "%Y%m%dT%H%M%SZ"
LETTER = "AWS4-HMAC-SHA256"
NOTHING = hashlib.sha256().hexdigest()
KEPT_LETTERS = 64
"""Addresses whose canonical form is kept; a run has one or two."""


def aws_credentials() -> Any:
    """Return what botocore finds: environment, profile, role. It renews what expires."""
    try:
        from botocore.session import Session
    except ImportError:
        raise MissingExtra("bedrock", "signing requests for AWS") from None
    found = Session().get_credentials()
    if found is None:
        known = "AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, or a profile (AWS_PROFILE)"
        raise UsageError(f"bedrock: no AWS credentials were found; give {known}")
    return found


def keyed_states(key: bytes) -> tuple[Any, Any]:
    """Return the two hashes that HMAC begins with for a key of up to 64 bytes.

    `hmac.digest` gives the interpreter's lock away for each request, and a copy of `hmac.new` takes four times as long.
    """
    block = key.ljust(64, b"\0")
    return hashlib.sha256(bytes(byte ^ 0x36 for byte in block)), hashlib.sha256(bytes(byte ^ 0x5C for byte in block))


def finish_keyed(inner: Any, outer: Any, message: bytes) -> str:
    """Return the HMAC of a message from the states of its key."""
    inner, outer = inner.copy(), outer.copy()
    inner.update(message)
    outer.update(inner.digest())
    return str(outer.hexdigest())


def prove(moment: Moment, body_hash: str) -> str:
    """Return the header that signs a body at a moment."""
    canonical = moment.canonical.copy()
    canonical.update(body_hash.encode())
    return moment.proof + finish_keyed(moment.inner, moment.outer, canonical.hexdigest().encode())


class Moment(NamedTuple):
    """What the signatures of one form have in common within a second: all that is hashed before the body's hash."""

    now: tuple[int, str]
    stamp: str
    canonical: Any
    inner: Any
    outer: Any
    proof: str
    """The beginning of the header."""


@dataclass(slots=True)
class Letter:
    """A canonical request as botocore wrote it, without its moment and the hash of its body."""

    before: str
    after: str
    signed: str
    """The names of the headers that are signed."""
    headers: dict[str, str]
    """What is sent with every request of this form."""
    moment: Moment | None = None


class RequestSigner:
    """Signs requests of one region; what signatures share by form, by day and by second is made once."""

    def __init__(self, credentials: Any, region: str, now: Callable[[], float] = time.time) -> None:
        self._credentials = credentials
        self._region = region
        self._now = now
        self._hash = BodyHash()
        self._letters: dict[tuple[object, ...], Letter | None] = {}
        self._day: tuple[str, str] = ("", "")
        self._keyed = keyed_states(b"")

    def sign_headers(self, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> dict[str, str]:
        """Return the headers with those of the signature."""
        who = self._credentials.get_frozen_credentials()
        key = (method, url, who.access_key, who.token, *headers.items())
        if key not in self._letters:
            if len(self._letters) >= KEPT_LETTERS:
                self._letters.clear()
            self._letters[key] = self._written(method, url, headers, who)
        letter = self._letters[key]
        if letter is None:
            return dict(self._by_library(method, url, headers, body, who)[1].headers.items())
        now = (int(self._now()), who.secret_key)
        if letter.moment is None or letter.moment.now != now:
            letter.moment = self._moment_of(letter, now, time.strftime(STAMP, time.gmtime(now[0])), who.access_key)
        proof = prove(letter.moment, self._hash.hexdigest(body))
        return {**letter.headers, "X-Amz-Date": letter.moment.stamp, "Authorization": proof}

    def _moment_of(self, letter: Letter, now: tuple[int, str], stamp: str, name: str) -> Moment:
        scope = f"{stamp[:8]}/{self._region}/{SERVICE}/aws4_request"
        keyed, outer = self._key_of(stamp[:8], now[1])
        inner = keyed.copy()
        inner.update(f"{LETTER}\n{stamp}\n{scope}\n".encode())
        canonical = hashlib.sha256(f"{letter.before}{stamp}{letter.after}".encode())
        proof = f"{LETTER} Credential={name}/{scope}, SignedHeaders={letter.signed}, Signature="
        return Moment(now, stamp, canonical, inner, outer, proof)

    def _key_of(self, day: str, secret: str) -> tuple[Any, Any]:
        """Return the key of a day: AWS derives it from the secret, the day, the region and the service."""
        if self._day != (day, secret):
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, SERVICE, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._day, self._keyed = (day, secret), keyed_states(key)
        return self._keyed

    def _written(self, method: str, url: str, headers: Mapping[str, str], who: Any) -> Letter | None:
        """Return the form of a request as botocore writes it, if ours comes to its very signature; else None."""
        library, request = self._by_library(method, url, headers, (), who)
        stamp, proof = request.context["timestamp"], request.headers["Authorization"]
        del request.headers["Authorization"]
        canonical = library.canonical_request(request).removesuffix(NOTHING)
        before, dated, after = canonical.partition(f"\nx-amz-date:{stamp}\n")
        sent = {name: value for name, value in request.headers.items() if name != "X-Amz-Date"}
        signed = library.signed_headers(library.headers_to_sign(request))
        letter = Letter(f"{before}\nx-amz-date:", f"\n{after}", signed, sent)
        ours = prove(self._moment_of(letter, (0, who.secret_key), stamp, who.access_key), NOTHING)
        return letter if dated and ours == proof else None

    def _by_library(
        self, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes], who: Any
    ) -> tuple[Any, Any]:
        """Return botocore's signer and the request it signed."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = AWSRequest(method, url, dict(headers), b"".join(body))
        library = SigV4Auth(who, SERVICE, self._region)
        library.add_auth(request)
        return library, request


class SigningClient:
    """Signs each request on its way; fits the Protocol `HttpClient`."""

    def __init__(self, credentials: Any, region: str, inner: HttpClient | None = None) -> None:
        self._signer = RequestSigner(credentials, region)
        self._inner: HttpClient = inner or AiohttpClient()

    async def send(
        self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> HttpResponse:
        """Sign and send."""
        method = "GET" if body is None else "POST"
        return await self._inner.send(url, body, self._signer.sign_headers(method, url, headers, body or ()), timeout_s)

    @asynccontextmanager
    async def stream(
        self, url: str, body: Body, headers: Mapping[str, str], timeout_s: float
    ) -> AsyncIterator[HttpStream]:
        """Sign and stream."""
        signed = self._signer.sign_headers("POST", url, headers, body)
        async with self._inner.stream(url, body, signed, timeout_s) as response:
            yield response

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()
