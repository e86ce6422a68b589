"""Every reply of catalog/servers/cases.toml, through the whole of its dialect and through the mock server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fake_clock import FakeClock
from snellen.api.chosen_model import create_model
from snellen.api.settings import RunSettings
from snellen.core.builtins import default_registry
from snellen.core.errors import ModelError, StopRun, UsageError
from snellen.core.secret import Secret
from snellen.core.types import Params, Prediction, Request, TrialKey, Turn, Usage
from snellen.kits.clouds.bedrock_model import Bedrock
from snellen.kits.mock.faults import ProviderCase, parse_fault, provider_cases
from snellen.kits.mock.server import MockOptions, start
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.gemini import Gemini
from snellen.model.served.http_client import HttpStream
from snellen.model.served.openai import OpenAI
from snellen.model.served.openai_responses import Responses
from snellen.model.served.post import HttpResponse
from snellen.model.served.served_model import ServedModel

CASES = list(provider_cases().values())
SENT = [case for case in CASES if case.dialect != "openai-responses" or not case.expect.change]
"""Cases of the mock server: that of the Responses dialect refuses the presence penalty before anything else."""
DIALECTS: dict[str, Any] = {
    "openai": OpenAI,
    "openai-responses": Responses,
    "anthropic": Anthropic,
    "gemini": Gemini,
    "bedrock": Bedrock,
}
SPOKEN = {"openai-responses": "openai"}
GOOD = {
    "openai": '{"choices":[{"index":0,"message":{"content":"good"},"finish_reason":"stop"}]}',
    "openai-responses": '{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"good"}]}]}',
    "anthropic": '{"content":[{"type":"text","text":"good"}],"stop_reason":"end_turn"}',
    "gemini": '{"candidates":[{"content":{"parts":[{"text":"good"}]},"finishReason":"STOP"}]}',
    "bedrock": '{"output":{"message":{"content":[{"text":"good"}]}},"stopReason":"end_turn"}',
}
KEY = "sk-canary-key"


class Scripted:
    """Answers with a case, then well; a request that is streamed after a refusal gets a good stream."""

    def __init__(self, case: ProviderCase) -> None:
        self.case = case
        self.sent = 0

    async def send(self, url, body, headers, timeout_s):
        self.sent += 1
        first = self.sent == 1
        text = self.case.body if first else GOOD[self.case.dialect]
        return HttpResponse(self.case.status if first else 200, self.case.headers if first else {}, text.encode())

    @asynccontextmanager
    async def stream(self, url, body, headers, timeout_s):
        self.sent += 1

        async def chunks() -> AsyncIterator[bytes]:
            for text in self.case.chunks:
                data = text.encode("utf-8", "surrogatepass")
                for start_at in range(0, len(data), 5):  # letters of several bytes are cut too
                    yield data[start_at : start_at + 5]
            if not self.case.chunks:
                yield b'data: {"choices":[{"index":0,"delta":{"content":"good"},"finish_reason":"stop"}]}\n\n'

        yield HttpStream(200, {}, chunks())

    async def close(self) -> None:
        pass


def asked_by(case: ProviderCase) -> Request:
    """Return a request that holds all that a server may refuse."""
    extra = {"presence_penalty": 0.5, "reasoning": {"effort": "low", "summary": "auto"}}
    params = Params(
        64, 0.0, 0.9, 3, stream=bool(case.chunks) or None, extra_body=extra if "openai" in case.dialect else None
    )
    return Request(TrialKey("t", "s"), (Turn("user", "hi"),), params)


def model_of(case: ProviderCase, http: Any = None, base_url: str = "http://x/v1") -> ServedModel:
    options = ModelOptions(base_url=base_url, api_key=Secret(KEY), clock=FakeClock(0.0))
    return ServedModel(DIALECTS[case.dialect](), "m", options, http)


def check(case: ProviderCase, outcome: Prediction | ModelError, adjusted: tuple[str, ...], warnings: Any = ()) -> None:
    expect = case.expect
    assert expect.warns is None or expect.warns in " ".join(warnings), warnings
    if expect.kind is not None:
        assert isinstance(outcome, ModelError), f"it must fail, and it is {outcome}"
        check_error(case, outcome)
        return
    assert isinstance(outcome, Prediction), f"it must not fail: {outcome}"
    if expect.change is not None:
        assert outcome.text == "good" and adjusted[-1].startswith(expect.change), adjusted
        return
    usage = outcome.usage or Usage()
    told = {
        "text": outcome.text,
        "reasoning": outcome.reasoning,
        "finish": outcome.finish,
        "model": outcome.detail.get("model"),
        "host": outcome.detail.get("host"),
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "thought": usage.reasoning_tokens,
        "cached": usage.cached_tokens,
        "visual": usage.visual_tokens,
    }
    wanted = {name: getattr(expect, name) for name in told if getattr(expect, name) is not None}
    assert {name: told[name] for name in wanted} == wanted


def check_error(case: ProviderCase, error: ModelError) -> None:
    expect = case.expect
    assert (error.kind.value, isinstance(error, StopRun)) == (expect.kind, expect.stop), str(error)
    assert expect.again is None or error.retryable == expect.again
    assert expect.wait is None or error.retry_after_s == expect.wait
    assert not expect.no_wait or not error.retry_after_s
    assert expect.says in str(error)
    assert not expect.hides or expect.hides not in str(error)
    assert expect.partial is None or error.detail["partial"] == expect.partial
    assert "\n" not in str(error)


async def outcome_of(model: ServedModel, request: Request) -> Prediction | ModelError:
    try:
        return await model.predict(request, {})
    except ModelError as error:
        return error
    finally:
        await model.close()


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_what_comes_of_it(case: ProviderCase) -> None:
    model = model_of(case, Scripted(case))
    check(case, asyncio.run(outcome_of(model, asked_by(case))), model.adjusted, model.warnings)


@pytest.mark.parametrize("case", SENT, ids=[case.id for case in SENT])
def test_the_mock_server_sends_it_too(case: ProviderCase) -> None:
    async def main() -> tuple[Any, ServedModel, int]:
        when = "@1" if case.expect.change else ""
        fault = parse_fault(f"case:name={case.id.replace(' ', '_')}{when}")
        dialect = SPOKEN.get(case.dialect, case.dialect)
        running = await start(MockOptions(dialect=dialect, faults=(fault,), answer="good"))
        model = model_of(case, base_url=running.base_url)
        try:
            return await outcome_of(model, asked_by(case)), model, running.server.stats["requests"]
        finally:
            await running.close()

    outcome, model, requests = asyncio.run(main())
    if case.id == "C40 204":
        assert isinstance(outcome, ModelError)  # a body where none may be: the connection breaks
        return
    check(case, outcome, model.adjusted, model.warnings)
    assert requests >= 1


def test_a_case_nobody_knows_is_named() -> None:
    with pytest.raises(UsageError, match="case:name=C99"):
        parse_fault("case:name=C99")


def test_the_list_of_cases_is_whole() -> None:
    """The ids of the specification; pilots and poll loops (below), ignored pictures (tests/integration/test_silent_servers.py)

    and batches and tokens that expire (test_batch_services.py, test_cloud_models.py) have tests of their own.
    """
    groups = {case.id.split()[0] for case in CASES}
    elsewhere = {"C3", "C6", "C44", "R10", "A17", "G13", "G14"}
    chat = {f"C{number}" for number in range(1, 45)}
    others = (
        {f"R{number}" for number in range(1, 13)} | {f"A{n}" for n in range(1, 18)} | {f"G{n}" for n in range(1, 15)}
    )
    assert (chat | others) - groups == elsewhere


def test_a_server_that_is_never_satisfied_is_given_up() -> None:
    """C6: at most six changes."""
    names = ["temperature", "top_p", "seed", "presence_penalty", "top_k", "min_p", "repetition_penalty", "stop"]

    class Never(Scripted):
        async def send(self, url, body, headers, timeout_s):
            self.sent += 1
            name = names[min(self.sent, len(names)) - 1]
            text = f'{{"error":{{"message":"Unsupported parameter: \'{name}\' is not supported with this model."}}}}'
            return HttpResponse(400, {}, text.encode())

    http = Never(CASES[0])
    extra = dict.fromkeys(names[3:7], 1)
    request = Request(TrialKey("t", "s"), (Turn("user", "hi"),), Params(64, 0.0, 0.9, 3, ("x",), extra_body=extra))
    outcome = asyncio.run(outcome_of(model_of(CASES[0], http), request))
    assert isinstance(outcome, ModelError) and http.sent == 7


def test_thirty_two_clients_learn_once() -> None:
    """C3: the pilot learns, the others know; a refusal on its way is simply sent again."""

    async def main() -> int:
        options = MockOptions(refuses=("max_tokens=max_completion_tokens", "temperature"), answer="good")
        running = await start(options)
        model = model_of(CASES[0], base_url=running.base_url)
        request = Request(TrialKey("t", "s"), (Turn("user", "hi"),), Params(64, 0.0))
        await model.predict(request, {})
        await asyncio.gather(*(model.predict(request, {}) for _ in range(32)))
        await model.close()
        await running.close()
        return running.server.stats["status_400"]

    assert asyncio.run(main()) == 2


def test_a_response_made_in_the_background_is_asked_after() -> None:
    """R10: queued, then completed."""

    states = iter(["queued", "in_progress", "completed"])

    class Background:
        def __init__(self) -> None:
            self.urls: list[str] = []

        async def send(self, url, body, headers, timeout_s):
            self.urls.append(url)
            state = next(states)
            body_text = GOOD["openai-responses"].replace("completed", state).replace("{", '{"id":"resp_1",', 1)
            return HttpResponse(200, {}, body_text.encode())

        async def close(self) -> None:
            pass

    http = Background()
    model = ServedModel(Responses(), "m", ModelOptions(base_url="http://x/v1", clock=FakeClock()), http)
    request = Request(TrialKey("t", "s"), (Turn("user", "hi"),), Params(extra_body={"background": True}))
    assert asyncio.run(model.predict(request, {})).text == "good"
    assert http.urls == ["http://x/v1/responses", *["http://x/v1/responses/resp_1"] * 2]


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/m", "OPENAI_BASE_URL"),
        ("openai-responses/m", "OPENAI_RESPONSES_BASE_URL"),
        ("vllm-server/m", "VLLM_SERVER_BASE_URL"),
    ],
)
def test_a_variable_says_where_a_provider_is(model: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "http://elsewhere/v1")
    made = create_model(RunSettings(tasks=(), model=model), default_registry())
    assert made.identity()["base_url"] == "http://elsewhere/v1"
