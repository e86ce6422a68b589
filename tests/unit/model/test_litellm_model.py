"""litellm/…: asked as a chat server, its errors typed, never imported unless used, malicious releases refused."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from snellen.core.answerer import answerer_of
from snellen.core.errors import EnvironmentProblem, MissingExtra, ModelError, UsageError
from snellen.core.secret import Secret
from snellen.core.types import Params, Request, TrialKey, Turn
from snellen.kits.clouds.litellm_model import create
from snellen.model.options import ModelOptions

ASKED = Request(TrialKey("t", "s"), (Turn("user", "hi"),), Params(temperature=0.0))
WHOLE = {"model": "m", "choices": [{"index": 0, "message": {"content": "B"}, "finish_reason": "stop"}]}


class Answer:
    """What LiteLLM returns: something that can be dumped."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def model_dump_json(self) -> str:
        return json.dumps(self.value)


class Standin:
    """LiteLLM's surface: `acompletion` and its root of errors."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.calls: list[dict[str, Any]] = []
        self.exceptions = SimpleNamespace(openai=SimpleNamespace(OpenAIError=Refused))

    async def acompletion(self, **asked: Any) -> Any:
        self.calls.append(asked)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return self._stream(outcome) if asked.get("stream") else Answer(outcome)

    async def _stream(self, chunks: Any) -> AsyncIterator[Answer]:
        for chunk in chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield Answer(chunk)


class Refused(Exception):
    """The root of its errors."""

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.message, self.status_code = message, status_code


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(standin: Any, version: str = "1.106.2") -> None:
        monkeypatch.setitem(sys.modules, "litellm", standin)
        monkeypatch.setattr(metadata, "version", lambda name: version)
        monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)

    return put


def ask(standin: Standin, request: Request = ASKED, **options: Any) -> Any:
    return asyncio.run(create("oci/x", ModelOptions(api_key=Secret("sk-secret-key"), **options)).predict(request, {}))


def test_it_is_asked_as_a_chat_and_neither_retries_nor_drops(installed: Any) -> None:
    standin = Standin(WHOLE)
    installed(standin)
    prediction = ask(standin, base_url="http://x/v1")
    (call,) = standin.calls
    assert (prediction.text, prediction.finish) == ("B", "stop")
    assert call["model"] == "oci/x" and call["messages"][0]["content"] == "hi" and call["temperature"] == 0.0
    assert (call["num_retries"], call["drop_params"], call["api_base"]) == (0, False, "http://x/v1")
    assert call["api_key"] == "sk-secret-key"


@pytest.mark.parametrize("stream", [None, True])
def test_a_token_of_a_command_is_passed_on_and_fetched_again(installed: Any, stream: bool | None) -> None:
    piece = {"choices": [{"index": 0, "delta": {"content": "B"}, "finish_reason": "stop"}]}
    standin = Standin(Refused("token expired", 401), [piece] if stream else WHOLE)
    installed(standin)
    tokens = iter(["first-token", "second-token"])
    request = Request(ASKED.key, ASKED.messages, Params(stream=stream))
    model = create("oci/x", ModelOptions(renew_key=lambda: Secret(next(tokens))))
    assert asyncio.run(model.predict(request, {})).text == "B"
    assert [call["api_key"] for call in standin.calls] == ["first-token", "second-token"]


def test_where_and_by_which_version_it_asks_is_part_of_who_answers(
    installed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(Standin())
    monkeypatch.delenv("OCI_API_BASE", raising=False)
    plain = answerer_of(create("oci/x", ModelOptions()))
    assert plain.packages["litellm"] and plain.address == "litellm://oci"
    monkeypatch.setenv("OCI_API_BASE", "http://other/v1")
    assert answerer_of(create("oci/x", ModelOptions())).key != plain.key


def test_streams_come_in_events(installed: Any) -> None:
    deltas = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("It", " is B")]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    standin = Standin([*deltas, last])
    installed(standin)
    streamed = Request(ASKED.key, ASKED.messages, Params(stream=True))
    assert ask(standin, streamed).text == "It is B"
    installed(broken := Standin([deltas[0], Refused("overloaded", 529)]))
    with pytest.raises(ModelError, match="overloaded") as caught:
        ask(broken, streamed)
    assert caught.value.retryable and caught.value.detail["partial"] == "It"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Refused("litellm.RateLimitError: slow down", 429), "rate"),
        (Refused("litellm.AuthenticationError: wrong key sk-secret-key", 401), "auth"),
        (Refused("litellm.ContextWindowExceededError: maximum context length is 8192", 400), "too_long"),
        (Refused('litellm.BadRequestError: XException - {"error":{"code":"content_filter"}}', 400), "refused"),
        (Refused("litellm.APIConnectionError: gone", 0), "server"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors_are_typed_and_hold_no_key(error: Refused, kind: str, installed: Any) -> None:
    installed(standin := Standin(error))
    with pytest.raises(ModelError) as caught:
        ask(standin)
    assert caught.value.kind == kind and "sk-secret-key" not in str(caught.value)


def test_a_parameter_it_refuses_is_left_out_and_said(installed: Any) -> None:
    refusal = "litellm.UnsupportedParamsError: gpt-5 models don't support temperature=0.0. Only temperature=1"
    installed(standin := Standin(Refused(refusal, 400), WHOLE))
    assert "drop temperature" in ask(standin).detail["adjusted"][0]
    assert "temperature" not in standin.calls[1]


def test_no_table_of_prices_is_fetched(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    installed(standin := Standin(WHOLE))
    ask(standin)
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert standin.telemetry is False  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8"])
def test_a_malicious_release_is_not_even_imported(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: version)
    monkeypatch.setitem(sys.modules, "litellm", None)  # an import would fail otherwise
    with pytest.raises(EnvironmentProblem, match="steals credentials"):
        create("oci/x", ModelOptions())


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="litellm/PROVIDER/NAME"):
        create("x", ModelOptions())

    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(MissingExtra, match=r"snellen\[litellm\]"):
        create("oci/x", ModelOptions())


def test_it_is_never_imported_unless_used() -> None:
    program = (
        "import sys; from snellen.core.builtins import default_registry; import snellen.cli.run, snellen.api.run;"
        "registry = default_registry(); registry.names('model'); registry.get('model', 'openai');"
        "print([name for name in ('litellm', 'botocore', 'google.auth') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
