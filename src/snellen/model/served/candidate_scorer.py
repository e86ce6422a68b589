"""A request with choices to their log-likelihoods, by a way of asking that the server passed a self-test of.

The server continues a fixed prompt greedily; the values of its own words, once as generated and once as scored, must be
the same. A server that ignores the request, refuses it, or answers off by one is not asked that way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from ...core.clock import Clock
from ...core.errors import ModelError, StopRun, UsageError, did_you_mean
from ...core.protocols import EncodedImages
from ...core.types import FailureKind, Prediction, Request, Timing, TrialKey, Turn
from ..likelihood import ask_for_priors, byte_counts, check_choices, storable
from ..plain import separator
from . import logprob_routes as routes
from .dialect import Dialect, build_body
from .http_client import Body
from .logprob_routes import CHAT, ECHO, LETTERS, ROUTES, WITH_IMAGES, Token
from .negotiation import Quirks
from .replies import unreadable

PROBE = Request(
    TrialKey("probe", "probe"), (Turn("user", "What colour is the sky on a clear day? Answer in a few words."),)
)
PROBE_TOKENS = 2
TOLERANCE = 0.3
"""Two runs of one server in half precision differ by less; a value that belongs to another token differs by more."""
CALLS_AT_ONCE = 8


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


class CandidateScorer:
    """Asks a server for the log-likelihood of each choice of a request, by the route found for it."""

    def __init__(self, server: Server, forced_route: str | None = None) -> None:
        if forced_route is not None and forced_route not in ROUTES:
            near = did_you_mean(str(forced_route), ROUTES)
            raise UsageError(f"--model-arg likelihood={forced_route}{near}: choose one of {', '.join(ROUTES)}")
        self._server = server
        self._forced = forced_route
        self._tested: dict[str, str] = {}
        """Route -> what is wrong with it, or nothing."""
        self._testing = asyncio.Lock()
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Score the choices of one request, or raise ModelError."""
        check_choices(request, byte_counts(request))
        route = await self._find_route(request)
        prediction = await self._score(request, images, route)
        if not request.likelihood.baseline:
            return prediction
        priors = (await self._score(ask_for_priors(request), images, route)).loglikelihoods
        return msgspec.structs.replace(prediction, detail=prediction.detail | {"priors": list(priors or ())})

    async def _find_route(self, request: Request) -> str:
        """Return the first route that fits the request and passed its test; if none does, the run ends."""
        fitting = [route for route in ROUTES if _fits(route, request) and self._forced in (None, route)]
        for route in fitting:
            async with self._testing:
                if route not in self._tested:
                    self._tested[route] = await self._test(route)
            if not self._tested[route]:
                return route
        tried = "; ".join(f"{route}: {self._tested[route]}" for route in fitting) or "none fits"
        hint = "" if routes.are_marks(request.choices) else "--candidates letters, or "
        message = f"{self._server.name} gives no log-probabilities of these candidates ({tried})"
        raise StopRun(FailureKind.CAPABILITY, f"{message}; try {hint}--infer-method generation")

    async def _test(self, route: str) -> str:
        """Return what is wrong with a route, or nothing."""
        try:
            return await (self._test_letters() if route == LETTERS else self._test_scores(route))
        except ModelError as error:
            if error.retryable or isinstance(error, StopRun):
                raise
            return str(error)

    async def _test_scores(self, route: str) -> str:
        text, generated = await self._generate_probe(route)
        if not text or not generated or any(token.logprob is None for token in generated):
            return "the server gives no log-probabilities of what it generates, so nothing can be checked"
        scored, _ = await self._score_one(PROBE, {}, route, await self._score_prompt(PROBE, {}, route), text)
        wanted = sum(token.logprob or 0.0 for token in generated)
        if len(scored) != len(generated) or abs(sum(scored) - wanted) > TOLERANCE * len(scored):
            return f"not aligned: {text!r} has {wanted:.2f} as generated and {sum(scored):.2f} as scored"
        return ""

    async def _test_letters(self) -> str:
        text, tokens, tops = routes.read_generated(await self._chat(routes.letters_request(PROBE), {}))
        if not tokens or not tops or not tops[0]:
            return "top_logprobs are ignored"
        best = max(tops[0], key=lambda token: token.logprob if token.logprob is not None else -1e9)
        first = tokens[0]
        is_likeliest = (best.logprob or 0.0) <= (first.logprob or 0.0) + TOLERANCE
        if text.strip().startswith(first.name.strip()) and is_likeliest:
            return ""
        return f"not aligned: {text!r} begins with {first.name!r}, likeliest is {best.name!r}"

    async def _generate_probe(self, route: str) -> tuple[str, list[Token]]:
        """Return the server's greedy words after the probe, and their values."""
        if route == CHAT:
            value = await self._chat(routes.letters_request(PROBE, PROBE_TOKENS), {})
        else:
            body = {
                "model": self._server.remote_name,
                "prompt": routes.prompt_text(PROBE),
                "max_tokens": PROBE_TOKENS,
                "temperature": 0,
                "logprobs": 1,
            }
            value = await self._post_text(body)
        text, tokens, _ = routes.read_generated(value)
        return text, tokens

    async def _score(self, request: Request, images: EncodedImages, route: str) -> Prediction:
        sent = self._server.clock.monotonic()
        score = self._score_letters if route == LETTERS else self._score_all
        raw, prompt = await score(request, images, route)
        tokens = [storable(values) for values in raw]
        counts = [len(values) for values in tokens]
        check_choices(request, counts)
        detail: dict[str, Any] = {"route": route, "tokens": counts, "token_logprobs": tokens}
        detail["bytes"] = byte_counts(request)
        if request.likelihood.with_prompt:
            detail["prompt_logprobs"] = self._prompt_values(prompt)
        timing = Timing(sent, self._server.clock.monotonic())
        return Prediction(request.key, loglikelihoods=tuple(map(sum, tokens)), timing=timing, detail=detail)

    def _prompt_values(self, prompt: list[Token]) -> list[float]:
        if not prompt:
            message = f"{self._server.name} gives no log-probabilities of the prompt itself, which prompt-mean needs"
            raise ModelError(FailureKind.CAPABILITY, message)
        return storable([token.logprob for token in prompt if token.logprob is not None])

    async def _score_all(
        self, request: Request, images: EncodedImages, route: str
    ) -> tuple[list[list[float]], list[Token]]:
        """Return the token values of every candidate, and the scored prompt."""
        gap = "" if route == CHAT else separator(routes.prompt_text(request))
        prompt = await self._score_prompt(request, images, route)
        scored = await asyncio.gather(
            *(self._score_one(request, images, route, prompt, gap + choice) for choice in request.choices)
        )
        return [values for values, _ in scored], scored[0][1]

    async def _score_prompt(self, request: Request, images: EncodedImages, route: str) -> list[Token]:
        """Return the scored prompt alone; an echo brings it with every continuation."""
        if route == ECHO:
            return []
        return routes.read_prompt_logprobs(await self._complete(request, images, route, ""))

    async def _score_one(
        self, request: Request, images: EncodedImages, route: str, prompt: list[Token], continuation: str
    ) -> tuple[list[float], list[Token]]:
        """Return the values of one continuation, and the scored prompt before it."""
        async with self._slots:
            value = await self._complete(request, images, route, continuation)
        if route != ECHO:
            return routes.continuation_values(routes.read_prompt_logprobs(value), prompt), prompt
        start = len(routes.prompt_text(request))
        end = start + len(continuation)
        values = [token.logprob or 0.0 for token in routes.read_echo(value, start, end)]
        return values, routes.read_echo(value, 0, end)[: -len(values) or None]

    async def _score_letters(
        self, request: Request, images: EncodedImages, route: str
    ) -> tuple[list[list[float]], list[Token]]:
        _, _, tops = routes.read_generated(await self._chat(routes.letters_request(request), images))
        if not tops or not tops[0]:
            raise unreadable("the server left out top_logprobs")
        return [[value] for value in routes.letter_values(tops[0], request.choices)], []

    async def _complete(
        self, request: Request, images: EncodedImages, route: str, continuation: str
    ) -> Mapping[str, Any]:
        """Ask for the log-probabilities of a prompt and a continuation of it."""
        if route == CHAT:
            return await self._chat(routes.scoring_request(request, continuation), images)
        return await self._post_text(
            routes.text_body(self._server.remote_name, request, continuation, echo=route == ECHO)
        )

    async def _post_text(self, body: dict[str, Any]) -> Mapping[str, Any]:
        return await self._server.post("/completions", (msgspec.json.encode(body),))

    async def _chat(self, request: Request, images: EncodedImages) -> Mapping[str, Any]:
        body = build_body(self._server.dialect, self._server.remote_name, request, images, self._server.quirks)
        return await self._server.post("/chat/completions", body)


def _fits(route: str, request: Request) -> bool:
    has_images = any(turn.images for turn in (*request.messages, *request.likelihood.baseline))
    if has_images and route not in WITH_IMAGES:
        return False
    return route != LETTERS or (routes.are_marks(request.choices) and not request.prefix)
