"""A request with choices to their log-likelihoods, by a way of asking that the server passed a self-test of.

A server that ignores the request, refuses it, or answers off by one is not asked that way (`route_test.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from ...core.clock import Clock
from ...core.errors import ModelError, StopRun, UsageError, did_you_mean
from ...core.protocols import EncodedImages
from ...core.types import FailureKind, Prediction, Request, Timing, TrialKey, Turn, Usage
from ..likelihood import ask_for_priors, byte_counts, check_choices, storable, sum_usages
from ..plain import separator
from . import logprob_routes as routes
from .dialect import Dialect, build_body
from .http_client import Body
from .logprob_routes import CHAT, ECHO, LETTERS, NUMBERED, ROUTES, Token
from .negotiation import Quirks
from .replies import read_usage, unreadable


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


PROBE = Request(
    TrialKey("probe", "probe"), (Turn("user", "What colour is the sky on a clear day? Answer in a few words."),)
)
PROBE_TOKENS = 8
RIVALS = 6
"""How many rivals of the first word are scored at most."""
TAIL = " and so on"
"""Stands after each rival: a value that belongs to the token after it is found out, too."""
ENOUGH = 3
"""How many values must agree before a route is believed, if there are as many to compare."""
TOLERANCE, TOLERANCE_SHARE = 0.3, 0.05
"""Two runs of one server in half precision differ by less; a value that belongs to another token differs by more."""
UNHEARD = "the server gives no log-probabilities of what it generates, so nothing can be checked"


class Verdict(NamedTuple):
    """What is wrong with a route, or nothing; `is_open`: it could be neither proved nor disproved."""

    problem: str = ""
    is_open: bool = False


class Pair(NamedTuple):
    """The value of one token as generated and as scored."""

    name: str
    generated: float
    scored: float

    @property
    def agrees(self) -> bool:
        """Tell whether both are one value, computed twice."""
        return is_near(self.generated, self.scored)


async def judge_scores(calls: LogprobCalls, route: str) -> Verdict:
    """Test a route that scores continuations: the server's own words first, then rivals of the first of them."""
    text, words, tops = await calls.say(PROBE, route, PROBE_TOKENS)
    if not words or any(word.logprob is None for word in words):
        return Verdict(UNHEARD)
    prompt = await calls.prompt(PROBE, {}, route)
    spoken = compare(words, (await calls.continued(PROBE, {}, route, prompt, text)).tokens) if text else []
    firsts = spoken[:1]
    rivals = plain_rivals([token for top in tops[:1] for token in top if token.name != words[0].name], route)
    while not _is_decided(spoken, firsts) and rivals:
        rival = rivals.pop(0)
        firsts += compare([rival], (await calls.continued(PROBE, {}, route, prompt, rival.name + TAIL)).tokens)
    return _conclude(spoken, firsts, text)


def _is_decided(spoken: Sequence[Pair], firsts: Sequence[Pair]) -> bool:
    pairs = {*spoken, *firsts}
    return any(not pair.agrees for pair in pairs) or (len(pairs) >= ENOUGH and tells_apart(spoken, firsts))


def _conclude(spoken: Sequence[Pair], firsts: Sequence[Pair], text: str) -> Verdict:
    for pair in (*spoken, *firsts):
        if not pair.agrees:
            values = f"{pair.generated:.2f} as generated and {pair.scored:.2f} as scored"
            return Verdict(f"not aligned: {pair.name!r} has {values}")
    if tells_apart(spoken, firsts):
        return Verdict()
    if not spoken and not firsts:
        return Verdict(f"not to be tested: its own words {text!r} and their rivals are scored as other tokens", True)
    return Verdict(f"not to be tested: the values of {text!r} are too alike to tell a token from its neighbour", True)


def compare(generated: Sequence[Token], scored: Sequence[Token]) -> list[Pair]:
    """Return the values of the tokens both begin with; what follows a difference stands after other words."""
    pairs = []
    for token, again in zip(generated, scored, strict=False):
        if not token.is_same(again):
            break
        pairs.append(Pair(token.name, token.logprob or 0.0, again.logprob or 0.0))
    return pairs


def tells_apart(spoken: Sequence[Pair], firsts: Sequence[Pair]) -> bool:
    """Tell whether a server that is off by one would have been found out by these values.

    Each of its words would have the value of the one before, and all that stand in the first place the same value.
    """
    values = [pair.generated for pair in spoken]
    steps = any(not is_near(value, before) for before, value in pairwise(values))
    places = [pair.generated for pair in firsts]
    return steps or (len(places) > 1 and max(places) - min(places) > 2 * margin(min(places)))


def is_near(value: float, reference: float) -> bool:
    """Tell whether two log-probabilities may be one, computed twice."""
    return abs(value - reference) <= margin(min(value, reference))


def margin(value: float) -> float:
    """Return how far a log-probability may lie from its like: more for rare tokens, whose logits are cut coarser."""
    return TOLERANCE + TOLERANCE_SHARE * abs(value)


def plain_rivals(top: Sequence[Token], route: str) -> list[Token]:
    """Return tokens whose text should come back as that token: the least likely, the likeliest, the second least, …

    The farther their values lie apart, the more they prove.
    """
    names = [token.name for token in top]
    single = [token for token in top if _is_plain(token) and names.count(token.name) == 1]
    trimmed = [token for token in single if route == CHAT and token.name != token.name.strip()]  # a template may
    return [*_from_both_ends([token for token in single if token not in trimmed]), *_from_both_ends(trimmed)][:RIVALS]


def _from_both_ends(tokens: Sequence[Token]) -> list[Token]:
    rising = sorted(tokens, key=lambda token: token.logprob or 0.0)
    pairs = zip(rising, reversed(rising), strict=True)
    return list(dict.fromkeys(token for ends in pairs for token in ends))


def _is_plain(token: Token) -> bool:
    name, is_special = token.name, token.name.startswith(("<", "[", NUMBERED))
    has_value = token.logprob is not None and bool(name.strip())
    return has_value and name.isprintable() and "\ufffd" not in name and not is_special


async def judge_letters(calls: LogprobCalls) -> Verdict:
    """Test the first tokens of an answer: the first must begin the text and be the likeliest of its list."""
    text, tokens, tops = routes.read_generated(await calls.chat(routes.letters_request(PROBE), {}))
    if not tokens or not tops or not tops[0]:
        return Verdict("top_logprobs are ignored")
    best = max(tops[0], key=lambda token: token.logprob if token.logprob is not None else -1e9)
    first = tokens[0]
    is_likeliest = (best.logprob or 0.0) <= (first.logprob or 0.0) + TOLERANCE
    if text.strip().startswith(first.name.strip()) and is_likeliest:
        return Verdict()
    return Verdict(f"not aligned: {text!r} begins with {first.name!r}, likeliest is {best.name!r}")


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
        fitting = routes.fitting_routes(request, self._forced)
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
