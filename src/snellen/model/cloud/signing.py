"""Requests signed as AWS wants them (Signature Version 4, by botocore): an HTTP client around another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ...core.errors import MissingExtra, UsageError
from ..served.http_client import AiohttpClient, Body, HttpClient, HttpStream
from ..served.post import HttpResponse

SERVICE = "bedrock"


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


class SigningClient:
    """Signs each request on its way; fits the Protocol `HttpClient`."""

    def __init__(self, credentials: Any, region: str, inner: HttpClient | None = None) -> None:
        self._credentials, self._region = credentials, region
        self._inner: HttpClient = inner or AiohttpClient()

    async def send(
        self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> HttpResponse:
        """Sign and send."""
        method = "GET" if body is None else "POST"
        return await self._inner.send(url, body, self._sign(method, url, headers, body or ()), timeout_s)

    @asynccontextmanager
    async def stream(
        self, url: str, body: Body, headers: Mapping[str, str], timeout_s: float
    ) -> AsyncIterator[HttpStream]:
        """Sign and stream."""
        signed = self._sign("POST", url, headers, body)
        async with self._inner.stream(url, body, signed, timeout_s) as response:
            yield response

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()

    def _sign(self, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> dict[str, str]:
        """Return the headers with those of the signature; it costs 0.1 ms beside a reply of seconds."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = AWSRequest(method, url, dict(headers), b"".join(body))
        SigV4Auth(self._credentials.get_frozen_credentials(), SERVICE, self._region).add_auth(request)
        return dict(request.headers.items())
