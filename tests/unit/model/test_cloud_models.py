"""Models behind clouds: frames, signatures, tokens and addresses, without a network."""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from zlib import crc32

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.builtins import default_registry
from snellen.core.errors import EnvironmentProblem, MissingExtra, ModelError, UsageError
from snellen.core.secret import Secret
from snellen.core.types import Image, Params, Prediction, Request, TrialKey, Turn
from snellen.data.catalog import Catalog
from snellen.data.images.encode import ImageDoor
from snellen.kits.clouds.bedrock_model import SigningClient, aws_credentials, read_frames, take_frames
from snellen.kits.mock.bedrock_format import write_frame
from snellen.kits.mock.server import MockOptions
from snellen.kits.mock.server import start as serve
from snellen.model.options import ModelOptions
from snellen.model.served.access_tokens import command_token, google_token
from snellen.model.served.http_client import AiohttpClient
from snellen.model.served.post import ROUTES, HttpResponse
from snellen.model.served.served_model import ServedModel

ASKED = Request(TrialKey("t", "s"), (Turn("user", "hi"),))
REPLY = {
    "vertex/gemini": {"candidates": [{"content": {"parts": [{"text": "B"}]}, "finishReason": "STOP"}]},
    "vertex/claude": {"content": [{"type": "text", "text": "B"}], "stop_reason": "end_turn"},
    "bedrock": {"output": {"message": {"content": [{"text": "B"}]}}, "stopReason": "end_turn"},
}


class Answers:
    """An HTTP client that answers from a list and keeps what it was sent."""

    def __init__(self, *replies: tuple[int, Any]) -> None:
        self.replies = list(replies)
        self.urls: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[Any] = []

    async def send(self, url, body, headers, timeout_s):
        self.urls.append(url)
        self.headers.append(dict(headers))
        self.bodies.append(json.loads(b"".join(body)) if body else None)
        status, value = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return HttpResponse(status, {}, json.dumps(value).encode())

    async def close(self) -> None:
        pass


def make(name: str, http: Any, **options: Any) -> ServedModel:
    provider, _, rest = name.partition("/")
    model: ServedModel = default_registry().get("model", provider)(rest, ModelOptions(**options))
    model._http = http
    return model


def ask(model: ServedModel, request: Request = ASKED) -> Prediction:
    return asyncio.run(model.predict(request, {}))


async def chunked(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def collected(data: bytes, size: int) -> list[Any]:
    return [json.loads(event) async for event in read_frames(chunked(data, size))]


@given(texts=st.lists(st.text(max_size=30), max_size=8), size=st.integers(1, 50))
def test_frames_are_read_however_they_are_cut(texts: list[str], size: int) -> None:
    data = b"".join(write_frame("contentBlockDelta", {"delta": {"text": text}}) for text in texts)
    assert [event["delta"]["text"] for event in asyncio.run(collected(data, size))] == texts


@given(texts=st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_botocore_reads_the_same_frames(texts: list[str]) -> None:
    eventstream = pytest.importorskip("botocore.eventstream")
    data = b"".join(write_frame("contentBlockDelta", {"delta": {"text": text}}) for text in texts)
    theirs = eventstream.EventStreamBuffer()
    theirs.add_data(data)
    ours = list(take_frames(bytearray(data)))
    assert [(message.headers, message.payload) for message in theirs] == ours


def test_a_frame_that_is_broken_or_cut_is_no_answer() -> None:
    frame = bytearray(write_frame("messageStop", {"stopReason": "end_turn"}))
    frame[40] ^= 1
    with pytest.raises(ModelError, match="checksum"):
        asyncio.run(collected(bytes(frame), 999))
    with pytest.raises(ModelError, match="cut in the middle"):
        asyncio.run(collected(write_frame("metadata", {})[:-3], 7))
    huge = struct.pack(">II", 2**31, 0)
    with pytest.raises(ModelError, match="checksum"):
        asyncio.run(collected(huge + struct.pack(">I", crc32(huge)), 12))


def test_an_exception_in_a_stream_is_an_error() -> None:
    data = write_frame("throttlingException", {"message": "Too many requests"}, exception=True)
    (event,) = asyncio.run(collected(data, 9))
    assert event == {"error": {"type": "throttlingException", "message": "Too many requests"}}


def test_a_request_is_signed_as_botocore_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example-secret-of-nobody")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    http = Answers((200, {}), (200, {}))
    client = SigningClient(aws_credentials(), "eu-west-1", http)  # type: ignore[arg-type]
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/a.b-v1%3A0/converse"
    asyncio.run(client.send(url, (b"{", b"}"), {"Content-Type": "application/json"}, None))
    sent = http.headers[0]
    assert sent["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/bedrock/aws4_request" in sent["Authorization"] and sent["X-Amz-Security-Token"] == "session"
    assert "x-amz-date" in sent["Authorization"] and "example-secret" not in str(sent)
    assert http.urls[0] == url
    monkeypatch.setenv("AWS_SESSION_TOKEN", "renewed")
    client._credentials = aws_credentials()
    asyncio.run(client.send(url, None, {}, None))
    assert http.headers[-1]["X-Amz-Security-Token"] == "renewed"


def test_signed_requests_share_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that is new for every request is no reason to shake hands anew, and none of them is kept."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example-secret-of-nobody")

    async def main() -> tuple[int, int]:
        running = await serve(MockOptions(dialect="bedrock", answer="B"))
        model = make("bedrock/a.b-v1:0", None, arguments={"region": "eu-west-1"}, base_url=running.base_url)
        inner = AiohttpClient()
        model._http = SigningClient(aws_credentials(), "eu-west-1", inner)
        for number in range(ROUTES + 5):
            asked = Request(TrialKey("t", "s"), (Turn("user", str(number)),))
            assert (await model.predict(asked, {})).text == "B"
        (target,) = inner._poster._copies
        connection = inner._poster._pool.idle(target)
        assert connection is not None
        connection.abort()
        await model.close()
        await running.close()
        return connection.used, len(inner._poster._routes)

    used, routes = asyncio.run(main())
    assert used == ROUTES + 5 and routes <= ROUTES


def test_bedrock_wants_a_region_and_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(UsageError, match="which region"):
        make("bedrock/a.b", None)
    with pytest.raises(UsageError, match="no AWS credentials were found"):
        make("bedrock/a.b", None, arguments={"region": "eu-west-1"})
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(MissingExtra, match=r"snellen\[bedrock\]"):
        make("bedrock/a.b", None, arguments={"region": "eu-west-1"})
    http = Answers((200, REPLY["bedrock"]))
    model = make("bedrock/a.b-v1:0", http, arguments={"region": "eu-west-1"}, api_key=Secret("bearer-token"))
    assert ask(model).text == "B"
    assert http.urls == ["https://bedrock-runtime.eu-west-1.amazonaws.com/model/a.b-v1%3A0/converse"]
    assert http.headers[0]["Authorization"] == "Bearer bearer-token"


@pytest.mark.parametrize(
    ("location", "host"),
    [("global", "aiplatform"), ("europe-west4", "europe-west4-aiplatform")],
    ids=["global", "region"],
)
@pytest.mark.parametrize("family", ["gemini", "claude"])
def test_vertex_has_an_address_for_each_family(
    family: str, location: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    with pytest.raises(UsageError, match="which project"):
        make(f"vertex/{family}-x", None, api_key=Secret("t"))
    http = Answers((200, REPLY[f"vertex/{family}"]))
    place = {"project": "p", "location": location}
    model = make(f"vertex/{family}-x", http, api_key=Secret("token-of-an-hour"), arguments=place)
    assert ask(model).text == "B"
    maker, method = ("google", "generateContent") if family == "gemini" else ("anthropic", "rawPredict")
    root = f"https://{host}.googleapis.com/v1/projects/p/locations/{location}"
    assert http.urls == [f"{root}/publishers/{maker}/models/{family}-x:{method}"]
    assert http.headers[0]["Authorization"] == "Bearer token-of-an-hour"
    if family == "claude":
        assert http.bodies[0]["anthropic_version"] == "vertex-2023-10-16" and "model" not in http.bodies[0]


def test_an_expired_token_is_fetched_again_and_the_run_goes_on() -> None:
    """G13: 401 with an expired token."""
    tokens = iter(["first-token", "second-token", "second-token"])
    http = Answers((401, {"error": {"code": 401, "status": "UNAUTHENTICATED"}}), (200, REPLY["vertex/gemini"]))
    model = make("vertex/gemini-x", http, renew_key=lambda: Secret(next(tokens)), arguments={"project": "p"})
    assert ask(model).text == "B"
    assert [headers["Authorization"][7:] for headers in http.headers] == ["first-token", "second-token"]
    http.replies = [(401, {"error": {"code": 401, "message": "no"}})]
    with pytest.raises(ModelError, match="401"):
        ask(model)


def test_one_token_is_fetched_for_all_that_are_in_flight() -> None:
    tokens = iter(f"token-{number}" for number in range(9))

    class Expired(Answers):
        async def send(self, url, body, headers, timeout_s):
            await asyncio.sleep(0)  # all are sent before the first is refused
            self.replies = [
                (401, {}) if headers["Authorization"] == "Bearer token-0" else (200, REPLY["vertex/gemini"])
            ]
            return await super().send(url, body, headers, timeout_s)

    http = Expired((401, {}))
    model = make("vertex/gemini-x", http, renew_key=lambda: Secret(next(tokens)), arguments={"project": "p"})

    async def all_at_once() -> list[Prediction]:
        return await asyncio.gather(*(model.predict(ASKED, {}) for _ in range(5)))

    assert [prediction.text for prediction in asyncio.run(all_at_once())] == ["B"] * 5
    sent = [headers["Authorization"] for headers in http.headers]
    assert (sent.count("Bearer token-0"), sent.count("Bearer token-1"), len(sent)) == (5, 5, 10)


def test_a_refused_parameter_of_bedrock_is_left_out_where_pictures_stand_between_the_words(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    turn = Turn("user", "Is  red?", (Image(str(tmp_path / "a.png")),), ("Is ", 0, " red?"))
    asked = Request(ASKED.key, (turn,), Params(temperature=0.5))
    http = Answers((400, {"message": "`temperature` is deprecated for this model."}), (200, REPLY["bedrock"]))
    model = make("bedrock/m", http, api_key=Secret("t"), arguments={"region": "us-east-1"})
    images = asyncio.run(ImageDoor().encode_all(asked, model.image_policy))
    assert asyncio.run(model.predict(asked, images)).text == "B"
    first, second = http.bodies
    assert first.pop("inferenceConfig") == {"temperature": 0.5} and second.pop("inferenceConfig", {}) == {}
    assert first == second


def test_a_command_gives_the_key() -> None:
    assert command_token(f"{sys.executable} -c \"print('tok-123')\"").reveal() == "tok-123"
    with pytest.raises(EnvironmentProblem, match=r"gave no key \(exit 3\): away"):
        command_token(f"{sys.executable} -c \"import sys; sys.stderr.write('away'); sys.exit(3)\"")
    with pytest.raises(UsageError, match="cannot be run"):
        command_token("no-such-program-anywhere")
    with pytest.raises(UsageError, match="nothing else"):
        command_token(f"{sys.executable} -c \"print('two words')\"")


def test_google_credentials_that_are_missing_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    google = pytest.importorskip("google.auth")
    from google.auth.exceptions import DefaultCredentialsError

    def nothing(scopes: Any) -> Any:
        raise DefaultCredentialsError("none here")

    monkeypatch.setattr(google, "default", nothing)
    with pytest.raises(EnvironmentProblem, match="gcloud auth login"):
        google_token()


@pytest.mark.parametrize(
    ("environment", "command", "header"),
    [
        ({"AZURE_OPENAI_API_KEY": "key-of-azure"}, None, ("api-key", "key-of-azure")),
        ({"AZURE_OPENAI_AD_TOKEN": "entra-token"}, None, ("Authorization", "Bearer entra-token")),
        ({"AZURE_OPENAI_API_KEY": "key-of-azure", "AZURE_OPENAI_AD_TOKEN": "x"}, None, ("api-key", "key-of-azure")),
        ({}, f"{sys.executable} -c \"print('from-az')\"", ("Authorization", "Bearer from-az")),
    ],
    ids=["key", "token", "both", "command"],
)
@pytest.mark.parametrize("form", ["/openai/v1", "/openai/deployments/d"])
def test_azure_takes_keys_and_entra_tokens_in_both_forms(
    environment: dict[str, str],
    command: str | None,
    header: tuple[str, str],
    form: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from snellen.core.config import convert
    from snellen.model.served.provider_card import ProviderCard, create_by_card

    for name in ("AZURE_OPENAI_API_KEY", "AZUREAI_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    card = convert(Catalog().card("providers", "azure"), ProviderCard, "azure")
    options = ModelOptions(
        base_url=f"https://r.openai.azure.com{form}", key_command=command, query={"api-version": "v"}
    )
    url, headers = create_by_card("azure", card, "d", options).endpoint(stream=False)
    assert url == f"https://r.openai.azure.com{form}/chat/completions?api-version=v"
    assert headers[header[0]] == header[1] and not ({"api-key", "Authorization"} - {header[0]}) & headers.keys()


def test_what_an_api_has_no_name_for_is_said_or_refused() -> None:
    http = Answers((200, REPLY["vertex/claude"]))
    seeded = Request(ASKED.key, ASKED.messages, Params(seed=7))
    model = make("vertex/claude-x", http, api_key=Secret("t"), arguments={"project": "p"})
    assert "seed has no name" in ask(model, seeded).detail["adjusted"][0]
    strict = make("vertex/claude-x", http, api_key=Secret("t"), arguments={"project": "p"}, strict_params=True)
    with pytest.raises(ModelError, match="--strict-params"):
        ask(strict, seeded)
    assert ask(strict).text == "B"
