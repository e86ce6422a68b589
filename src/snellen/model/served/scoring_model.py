"""A served model that can also score candidates: finds, by a self-test, a way of asking that the server really supports.

The server continues a fixed prompt greedily; the values of its own words, once as generated and once as scored, must be the same.
A server that ignores the request, refuses it, or answers off by one is not asked that way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from ...core.errors import ModelError, StopRun, UsageError, did_you_mean
from ...core.protocols import Capability
from ...core.types import FailureKind, Prediction, Request, Timing, TrialKey, Turn
from ..likelihood import ask_for_priors, byte_counts, check_choices, storable
from ..options import ModelOptions
from ..plain import separator
from . import logprob_routes
from .http_client import Body
from .logprob_routes import CHAT, ECHO, LETTERS, ROUTES, WITH_IMAGES, Token
from .served_model import ServedModel
from .wire import Dialect, build_body, decode_body, status_error

PROBE = Request(
    TrialKey("probe", "probe"), (Turn("user", "What colour is the sky on a clear day? Answer in a few words."),)
)
PROBE_TOKENS = 2
TOLERANCE = 0.3
"""Two runs of one server in half precision differ by less; a value that belongs to another token differs by more."""
CALLS_AT_ONCE = 8


class ScoringModel(ServedModel):
    """Generates like any served model; requests with choices are scored by the route found for them."""

    def __init__(self, dialect: Dialect, name: str, options: ModelOptions, **more: Any) -> None:
        super().__init__(dialect, name, options, **more)
        self.capabilities = dialect.capabilities | {Capability.LIKELIHOOD}
        self._forced = options.arguments.get("likelihood")
        if self._forced is not None and self._forced not in ROUTES:
            raise UsageError(
                f"--model-arg likelihood={self._forced}{did_you_mean(str(self._forced), ROUTES)}: choose one of {', '.join(ROUTES)}"
            )
        self._tested: dict[str, str] = {}
        self._testing = asyncio.Lock()
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    def predict(self, request: Request) -> Coroutine[Any, Any, Prediction]:
        """Answer one request, or raise ModelError."""
        return self._predict_choices(request) if request.choices else super().predict(request)

    async def _predict_choices(self, request: Request) -> Prediction:
        check_choices(request, byte_counts(request))
        route = await self._find_route(request)
        try:
            prediction = await self._score(request, route)
            if request.likelihood.baseline:
                priors = (await self._score(ask_for_priors(request), route)).loglikelihoods
                prediction = msgspec.structs.replace(
                    prediction, detail=prediction.detail | {"priors": list(priors or ())}
                )
        except ModelError as error:
            raise self._scrubbed(error) from None
        return prediction

    async def _find_route(self, request: Request) -> str:
        """Return the first route that fits the request and passed its test; if none does, the run ends before it began."""
        fitting = [route for route in ROUTES if _fits(route, request) and self._forced in (None, route)]
        for route in fitting:
            async with self._testing:
                if route not in self._tested:
                    self._tested[route] = await self._test(route)
            if not self._tested[route]:
                return route
        tried = "; ".join(f"{route}: {self._tested[route]}" for route in fitting) or "none fits"
        hint = "" if logprob_routes.are_marks(request.choices) else "--candidates letters, or "
        message = (
            f"{self.name} gives no log-probabilities of these candidates ({tried}); try {hint}--infer-method generation"
        )
        raise StopRun(FailureKind.CAPABILITY, message)

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
        scored, _ = await self._score_one(PROBE, route, await self._score_prompt(PROBE, route), text)
        wanted = sum(token.logprob or 0.0 for token in generated)
        if len(scored) != len(generated) or abs(sum(scored) - wanted) > TOLERANCE * len(scored):
            return f"not aligned: {text!r} has {wanted:.2f} as generated and {sum(scored):.2f} as scored"
        return ""

    async def _test_letters(self) -> str:
        text, tokens, tops = logprob_routes.read_generated(await self._chat(logprob_routes.letters_request(PROBE)))
        if not tokens or not tops or not tops[0]:
            return "top_logprobs are ignored"
        best = max(tops[0], key=lambda token: token.logprob if token.logprob is not None else -1e9)
        if (
            not text.strip().startswith(tokens[0].name.strip())
            or (best.logprob or 0.0) > (tokens[0].logprob or 0.0) + TOLERANCE
        ):
            return f"not aligned: {text!r} begins with {tokens[0].name!r}, likeliest is {best.name!r}"
        return ""

    async def _generate_probe(self, route: str) -> tuple[str, list[Token]]:
        """Return the server's greedy words after the probe, and their values."""
        if route == CHAT:
            value = await self._chat(logprob_routes.letters_request(PROBE, PROBE_TOKENS))
        else:
            body = {
                "model": self._model,
                "prompt": logprob_routes.prompt_text(PROBE),
                "max_tokens": PROBE_TOKENS,
                "temperature": 0,
                "logprobs": 1,
            }
            value = await self._post("/completions", (msgspec.json.encode(body),))
        text, tokens, _ = logprob_routes.read_generated(value)
        return text, tokens

    async def _score(self, request: Request, route: str) -> Prediction:
        sent = self._clock.monotonic()
        raw, prompt = await (self._score_letters(request) if route == LETTERS else self._score_all(request, route))
        tokens = [storable(values) for values in raw]
        counts = [len(values) for values in tokens]
        check_choices(request, counts)
        detail: dict[str, Any] = {
            "route": route,
            "tokens": counts,
            "token_logprobs": tokens,
            "bytes": byte_counts(request),
        }
        if request.likelihood.with_prompt:
            detail["prompt_logprobs"] = self._prompt_values(prompt)
        values = tuple(sum(values) for values in tokens)
        return Prediction(
            request.key, loglikelihoods=values, timing=Timing(sent, self._clock.monotonic()), detail=detail
        )

    def _prompt_values(self, prompt: list[Token]) -> list[float]:
        if not prompt:
            raise ModelError(
                FailureKind.CAPABILITY,
                f"{self.name} gives no log-probabilities of the prompt itself, which prompt-mean needs",
            )
        return storable([token.logprob for token in prompt if token.logprob is not None])

    async def _score_all(self, request: Request, route: str) -> tuple[list[list[float]], list[Token]]:
        """Return the token values of every candidate, and the scored prompt."""
        gap = "" if route == CHAT else separator(logprob_routes.prompt_text(request))
        prompt = await self._score_prompt(request, route)
        scored = await asyncio.gather(
            *(self._score_one(request, route, prompt, gap + choice) for choice in request.choices)
        )
        return [values for values, _ in scored], scored[0][1]

    async def _score_prompt(self, request: Request, route: str) -> list[Token]:
        """Return the scored prompt alone; an echo brings it with every continuation."""
        if route == CHAT:
            return logprob_routes.read_prompt_logprobs(await self._chat(logprob_routes.scoring_request(request, None)))
        if route == ECHO:
            return []
        body = msgspec.json.encode(logprob_routes.text_body(self._model, request, "", echo=False))
        return logprob_routes.read_prompt_logprobs(await self._post("/completions", (body,)))

    async def _score_one(
        self, request: Request, route: str, prompt: list[Token], continuation: str
    ) -> tuple[list[float], list[Token]]:
        """Return the values of one continuation, and the scored prompt before it."""
        async with self._slots:
            if route == CHAT:
                whole = logprob_routes.read_prompt_logprobs(
                    await self._chat(logprob_routes.scoring_request(request, continuation))
                )
                return logprob_routes.continuation_values(whole, prompt), prompt
            body = msgspec.json.encode(logprob_routes.text_body(self._model, request, continuation, echo=route == ECHO))
            value = await self._post("/completions", (body,))
        if route != ECHO:
            return logprob_routes.continuation_values(logprob_routes.read_prompt_logprobs(value), prompt), prompt
        start = len(logprob_routes.prompt_text(request))
        values = [token.logprob or 0.0 for token in logprob_routes.read_echo(value, start, start + len(continuation))]
        return values, logprob_routes.read_echo(value, 0, start + len(continuation))[: -len(values) or None]

    async def _score_letters(self, request: Request) -> tuple[list[list[float]], list[Token]]:
        _, _, tops = logprob_routes.read_generated(await self._chat(logprob_routes.letters_request(request)))
        if not tops or not tops[0]:
            raise ModelError(FailureKind.DECODE, "the server left out top_logprobs", retryable=True)
        return [[value] for value in logprob_routes.letter_values(tops[0], request.choices)], []

    async def _chat(self, request: Request) -> Mapping[str, Any]:
        images = await self.encode_pictures(request)
        return await self._post("/chat/completions", build_body(self._dialect, self._model, request, images))

    async def _post(self, path: str, body: Body) -> Mapping[str, Any]:
        response = await self._http.send(
            self._base_url + path, body, self._dialect.headers(self._key), self._options.timeout_s
        )
        if response.status != 200:
            raise status_error(response.status, response.headers, response.body, self._clock)
        value = decode_body(response.body)
        if not isinstance(value, dict):
            raise ModelError(
                FailureKind.DECODE, f"the server sent {type(value).__name__} where an object belongs", retryable=True
            )
        return value


def _fits(route: str, request: Request) -> bool:
    has_images = any(turn.images for turn in (*request.messages, *request.likelihood.baseline))
    if has_images and route not in WITH_IMAGES:
        return False
    return route != LETTERS or (logprob_routes.are_marks(request.choices) and not request.prefix)
