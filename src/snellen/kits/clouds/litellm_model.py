"""`litellm/PROVIDER/NAME`: the long tail of providers through LiteLLM, asked and read as a chat server is."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any

import msgspec

from ...core.errors import EnvironmentProblem, MissingExtra, UsageError
from ...model.options import ModelOptions, first_set
from ...model.served.dialect import Dialect
from ...model.served.http_client import Body, HttpStream
from ...model.served.openai import OpenAI
from ...model.served.post import HttpResponse
from ...model.served.served_model import ServedModel

MALICIOUS = frozenset({"1.82.7", "1.82.8"})
"""Releases of 24 March 2026 that stole credentials: not even imported."""
NO_PRICES = "LITELLM_LOCAL_MODEL_COST_MAP"
"""Set before the import: without it LiteLLM fetches a table of prices from the network."""
OURS = {"num_retries": 0, "max_retries": 0, "drop_params": False}
"""The engine tries again and the negotiation leaves out; LiteLLM does neither."""


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `litellm/PROVIDER/NAME`; LiteLLM is imported here and nowhere else."""
    options.allow_arguments("litellm")
    if "/" not in name:
        raise UsageError(f"litellm/{name}: write litellm/PROVIDER/NAME, as LiteLLM names it")
    dialect = OpenAI()
    dialect.provider, dialect.batch, dialect.key_variable = "litellm", "", ""
    dialect.capabilities = Dialect.capabilities
    dialect.lists_models = False
    dialect.default_url = _place_of(name.partition("/")[0])
    return LitellmModel(dialect, name, options, LitellmClient(_imported(), options))


class LitellmModel(ServedModel):
    """A served model whose requests another library writes."""

    def surroundings(self) -> Mapping[str, Any]:
        """Return what a served model tells, and the version that writes the requests."""
        return {**super().surroundings(), "packages": {"litellm": metadata.version("litellm")}}


def _place_of(provider: str) -> str:
    """Return where LiteLLM asks a provider: as its variables say, else a name for it; it is part of who answers."""
    named = (f"{provider.upper()}_{ending}" for ending in ("API_BASE", "BASE_URL"))
    return first_set(*named) or f"litellm://{provider}"


def _imported() -> Any:
    try:
        version = metadata.version("litellm")
    except metadata.PackageNotFoundError:
        raise MissingExtra("litellm", "models of LiteLLM") from None
    if version in MALICIOUS:
        what = f"litellm {version} is a malicious release that steals credentials"
        raise EnvironmentProblem(f"{what}: remove it, change the keys of this machine, pip install 'snellen[litellm]'")
    os.environ.setdefault(NO_PRICES, "True")
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm


class LitellmClient:
    """Fits the Protocol `HttpClient`: a chat body to a call of LiteLLM, its answer or its error to a response."""

    def __init__(self, litellm: Any, options: ModelOptions) -> None:
        self._litellm = litellm
        self._errors: type[Exception] = litellm.exceptions.openai.OpenAIError  # the root of all that it raises
        self._options = options

    async def send(
        self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> HttpResponse:
        """Ask and return the answer as a chat server would have sent it."""
        try:
            answer = await self._call(body or (), headers)
        except self._errors as error:
            return _refusal(error)
        return HttpResponse(200, {}, answer.model_dump_json().encode())

    @asynccontextmanager
    async def stream(
        self, url: str, body: Body, headers: Mapping[str, str], timeout_s: float
    ) -> AsyncIterator[HttpStream]:
        """Ask and yield the answer as it comes, in events."""
        try:
            chunks = await self._call(body, headers)
        except self._errors as error:
            refusal = _refusal(error)
            yield HttpStream(refusal.status, refusal.headers, _only(refusal.body))
            return
        yield HttpStream(200, {}, self._events(chunks))

    async def close(self) -> None:
        """LiteLLM keeps its connections; they go with the process."""

    async def _call(self, body: Body, headers: Mapping[str, str]) -> Any:
        asked = msgspec.json.decode(b"".join(body))
        place = {"api_base": self._options.base_url} if self._options.base_url else {}
        own = "Authorization" in self._options.headers  # a header of the user's is no key of the model's
        token = "" if own else headers.get("Authorization", "").removeprefix("Bearer ")
        key = {"api_key": token} if token else {}
        extra = {"extra_headers": {name: value.reveal() for name, value in self._options.headers.items()}}
        more = {**OURS, **place, **key, **(extra if self._options.headers else {}), "timeout": self._options.timeout_s}
        return await self._litellm.acompletion(**asked, **more)

    async def _events(self, chunks: Any) -> AsyncIterator[bytes]:
        try:
            async for chunk in chunks:
                yield b"data: " + chunk.model_dump_json().encode() + b"\n\n"
        except self._errors as error:
            yield b"data: " + _refusal(error).body + b"\n\n"
        yield b"data: [DONE]\n\n"


def _refusal(error: Any) -> HttpResponse:
    """Return an error of LiteLLM as the response it came from; the provider's own words are in its message."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) and 400 <= status < 600 else 500
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    told = {"message": str(getattr(error, "message", error)), "type": type(error).__name__, "code": status}
    return HttpResponse(status, {str(k): str(v) for k, v in headers.items()}, msgspec.json.encode({"error": told}))


async def _only(body: bytes) -> AsyncIterator[bytes]:
    yield body
