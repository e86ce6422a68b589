"""A request, a route and a continuation to the server's answer: the calls that scoring and its self-test share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from ...core.clock import Clock
from ...core.protocols import EncodedImages
from ...core.types import Request, Usage
from . import logprob_routes as routes
from .dialect import Dialect, build_body
from .http_client import Body
from .logprob_routes import CHAT, ECHO, Token
from .negotiation import Quirks
from .token_counts import read_usage


class Server(Protocol):
    """What the scorer needs of the model it scores for."""

    name: str
    clock: Clock
    dialect: Dialect
    remote_name: str
    quirks: Quirks

    async def post(self, path: str, body: Body) -> Mapping[str, Any]:
        """Send a body to a path under the server's address and return the JSON object it answers with."""
        ...


class Continued(NamedTuple):
    """A continuation as a server scored it."""

    tokens: list[Token]
    replaced: list[Token]
    """The end of the prompt, where it grew together with the continuation into other tokens."""
    prompt: list[Token]

    def values(self) -> list[float]:
        """Return one value a token; where the prompt's end grew, the first is the grown token's less the old ones'."""
        return routes.token_values(self.tokens, self.replaced)


class LogprobCalls:
    """Asks one server for log-probabilities, by any route; `usages` are the counts of its answers so far."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.usages: list[Usage | None] = []

    async def say(self, request: Request, route: str, tokens: int) -> tuple[str, list[Token], list[list[Token]]]:
        """Return the server's own first words after a prompt, their values, and the likeliest in each place."""
        # Token numbers are vLLM's, as `prompt_logprobs` are; who is asked for an echo may refuse what it does not know.
        more = {} if route == ECHO else routes.TOKEN_IDS
        if route == CHAT:
            return routes.read_generated(await self.chat(routes.words_request(request, tokens, more), {}))
        body = routes.words_body(self._server.remote_name, request, tokens, more)
        return routes.read_generated(await self._post_text(body))

    async def prompt(self, request: Request, images: EncodedImages, route: str) -> list[Token]:
        """Return the scored prompt alone; an echo brings it with every continuation."""
        if route == ECHO:
            return []
        return routes.read_prompt_logprobs(await self._complete(request, images, route, ""))

    async def continued(
        self, request: Request, images: EncodedImages, route: str, prompt: list[Token], continuation: str
    ) -> Continued:
        """Return the scored tokens of one continuation of the prompt."""
        value = await self._complete(request, images, route, continuation)
        if route != ECHO:
            tokens, replaced = routes.continuation_tokens(routes.read_prompt_logprobs(value), prompt)
            return Continued(tokens, replaced, prompt)
        start = len(routes.prompt_text(request))
        end = start + len(continuation)
        tokens = routes.read_echo(value, start, end)
        return Continued(tokens, [], routes.read_echo(value, 0, end)[: -len(tokens) or None])

    async def chat(self, request: Request, images: EncodedImages) -> Mapping[str, Any]:
        """Send a chat request as it is."""
        body = build_body(self._server.dialect, self._server.remote_name, request, images, self._server.quirks)
        return self._counted(await self._server.post("/chat/completions", body))

    async def _complete(
        self, request: Request, images: EncodedImages, route: str, continuation: str
    ) -> Mapping[str, Any]:
        if route == CHAT:
            return await self.chat(routes.scoring_request(request, continuation), images)
        body = routes.text_body(self._server.remote_name, request, continuation, echo=route == ECHO)
        return await self._post_text(body)

    async def _post_text(self, body: dict[str, Any]) -> Mapping[str, Any]:
        return self._counted(await self._server.post("/completions", (msgspec.json.encode(body),)))

    def _counted(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        usage = read_usage(value.get("usage"))
        self.usages.append(usage and usage.believed())
        return value
