"""A request with choices to their log-likelihoods, by a way of asking that the server passed a self-test of.

A server that ignores the request, refuses it, or answers off by one is not asked that way (`route_test.py`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from ...core.errors import ModelError, StopRun, UsageError, did_you_mean
from ...core.protocols import EncodedImages
from ...core.types import FailureKind, Prediction, Request, Timing
from ..likelihood import ask_for_priors, byte_counts, check_choices, storable, sum_usages
from ..plain import separator
from . import logprob_routes as routes
from .logprob_calls import Continued, LogprobCalls, Server
from .logprob_routes import CHAT, LETTERS, ROUTES, WITH_IMAGES, Token
from .replies import unreadable
from .route_test import Verdict, judge_letters, judge_scores

CALLS_AT_ONCE = 8


class CandidateScorer:
    """Asks a server for the log-likelihood of each choice of a request, by the route found for it."""

    def __init__(self, server: Server, forced_route: str | None = None) -> None:
        if forced_route is not None and forced_route not in ROUTES:
            near = did_you_mean(str(forced_route), ROUTES)
            raise UsageError(f"--model-arg likelihood={forced_route}{near}: choose one of {', '.join(ROUTES)}")
        self._server = server
        self._forced = forced_route
        self._calls = LogprobCalls(server)
        self._tested: dict[str, Verdict] = {}
        self._testing = asyncio.Lock()
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Score the choices of one request, or raise ModelError."""
        check_choices(request, byte_counts(request))
        route = await self._find_route(request)
        calls = LogprobCalls(self._server)
        prediction = await self._score(request, images, route, calls)
        if request.likelihood.baseline:
            priors = (await self._score(ask_for_priors(request), images, route, calls)).loglikelihoods
            prediction = replace(prediction, detail=prediction.detail | {"priors": list(priors or ())})
        return replace(prediction, usage=sum_usages(calls.usages))

    async def _find_route(self, request: Request) -> str:
        """Return the first route that fits the request and passed its test; if none does, the run ends."""
        fitting = fitting_routes(request, self._forced)
        for route in fitting:
            async with self._testing:
                if route not in self._tested:
                    self._tested[route] = await self._test(route)
            if self._is_usable(route):
                return route
        tried = "; ".join(f"{route}: {self._tested[route].problem}" for route in fitting) or "none fits"
        message = f"{self._server.name} gives no log-probabilities of these candidates ({tried})"
        raise StopRun(FailureKind.CAPABILITY, f"{message}; try {self._advice(request, fitting)}")

    def _is_usable(self, route: str) -> bool:
        """Tell whether a route passed; one that could be neither proved nor disproved is used if the user names it."""
        verdict = self._tested[route]
        return not verdict.problem or (verdict.is_open and self._forced == route)

    def _advice(self, request: Request, fitting: list[str]) -> str:
        undecided = [route for route in fitting if self._tested[route].is_open]
        force = f"--model-arg likelihood={undecided[0]} if you know its values to be right, or " if undecided else ""
        letters = "" if routes.are_marks(request.choices) else "--candidates letters, or "
        return f"{force}{letters}--infer-method generation"

    async def _test(self, route: str) -> Verdict:
        try:
            return await (judge_letters(self._calls) if route == LETTERS else judge_scores(self._calls, route))
        except ModelError as error:
            if error.retryable or isinstance(error, StopRun):
                raise
            return Verdict(str(error))

    async def _score(self, request: Request, images: EncodedImages, route: str, calls: LogprobCalls) -> Prediction:
        sent = self._server.clock.monotonic()
        score = self._score_letters if route == LETTERS else self._score_all
        raw, prompt = await score(request, images, route, calls)
        tokens = [storable(values) for values in raw]
        counts = [len(values) for values in tokens]
        check_choices(request, counts)
        detail: dict[str, Any] = {"route": route, "tokens": counts, "token_logprobs": tokens}
        detail["bytes"] = byte_counts(request)
        if self._tested[route].problem:
            detail["untested"] = self._tested[route].problem
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
        self, request: Request, images: EncodedImages, route: str, calls: LogprobCalls
    ) -> tuple[list[list[float]], list[Token]]:
        """Return the token values of every candidate, and the scored prompt."""
        gap = "" if route == CHAT else separator(routes.prompt_text(request))
        prompt = await calls.prompt(request, images, route)

        async def score_one(choice: str) -> Continued:
            async with self._slots:
                return await calls.continued(request, images, route, prompt, gap + choice)

        scored = await asyncio.gather(*map(score_one, request.choices))
        return [each.values() for each in scored], scored[0].prompt

    async def _score_letters(
        self, request: Request, images: EncodedImages, route: str, calls: LogprobCalls
    ) -> tuple[list[list[float]], list[Token]]:
        _, _, tops = routes.read_generated(await calls.chat(routes.letters_request(request), images))
        if not tops or not tops[0]:
            raise unreadable("the server left out top_logprobs")
        return [[value] for value in routes.letter_values(tops[0], request.choices)], []


def fitting_routes(request: Request, forced: str | None = None) -> list[str]:
    """Return the routes by which a request may be scored, in the order they are tried."""
    return [route for route in ROUTES if _fits(route, request) and forced in (None, route)]


def _fits(route: str, request: Request) -> bool:
    has_images = any(turn.images for turn in (*request.messages, *request.likelihood.baseline))
    if has_images and route not in WITH_IMAGES:
        return False
    return route != LETTERS or (routes.are_marks(request.choices) and not request.prefix)
