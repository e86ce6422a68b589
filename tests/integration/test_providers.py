"""Providers as data, against a real server that refuses as they do: what goes over the wire, and what is told of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import snellen
from snellen.api.chosen_model import create_model
from snellen.api.load import load_run
from snellen.api.session import ModelJobs, ask_jobs, limits_for
from snellen.core.builtins import default_registry
from snellen.core.config import convert
from snellen.core.errors import StopRun, UsageError
from snellen.core.jobs import Item, ReadyRequests
from snellen.core.protocols import ImagePolicy
from snellen.core.secret import Secret
from snellen.core.types import Form, TrialKey, Turn
from snellen.data.catalog import Catalog
from snellen.model.options import ModelOptions
from snellen.model.served.provider_card import ProviderCard, create_by_card
from snellen.model.served.server_fields import merge_fields, reasoning_fields

CATALOG = Catalog()
CARDS = {name: convert(CATALOG.card("providers", name), ProviderCard, name) for name in CATALOG.names("providers")}


class Seen:
    """A chat server on loopback: `refuse` looks at a body and returns (status, error) or None."""

    def __init__(self, refuse: Callable[[dict[str, Any]], tuple[int, dict[str, Any]] | None]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        seen = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._reply(200, {"data": []})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                seen.bodies.append(body)
                seen.headers.append({name.lower(): value for name, value in self.headers.items()})
                seen.paths.append(self.path)
                refusal = refuse(body)
                message = {"message": {"content": "A"}, "finish_reason": "stop"}
                status, answer = refusal or (
                    200,
                    {"choices": [message], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
                )
                self._reply(status, answer)

            def _reply(self, status: int, value: object) -> None:
                content = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Seen]]:
    servers: list[Seen] = []

    def start(refuse: Callable[[dict[str, Any]], Any] = lambda body: None) -> Seen:
        servers.append(Seen(refuse))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "my.jsonl"
    records = [{"id": str(n), "question": f"Which {n}?", "options": ["one", "two"], "answer": "A"} for n in range(12)]
    path.write_text("\n".join(map(json.dumps, records)))
    return str(path)


def refuses_old_parameters(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """As reasoning models do: the limit by its new name only, no temperature."""
    if "max_tokens" in body:
        text = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return 400, {"error": {"message": text, "param": "max_tokens", "code": "unsupported_parameter"}}
    if body.get("temperature") not in (None, 1):
        text = "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported."
        return 400, {"error": {"message": text, "param": "temperature", "code": "unsupported_value"}}
    return None


def test_a_model_that_refuses_parameters_is_asked_as_it_wants_and_it_is_said(
    serve: Callable[..., Seen], rows: str, tmp_path: Path
) -> None:
    server = serve(refuses_old_parameters)
    settings = {"base_url": server.url, "max_tokens": 50, "temperature": 0.0, "output_dir": tmp_path / "run"}
    result = snellen.run(rows, "openai/new", **settings)
    assert result.failed == 0
    assert len(server.bodies) == 12 + 2, "what was refused is learned once, not by every worker"
    assert server.bodies[-1]["max_completion_tokens"] == 50
    assert "temperature" not in server.bodies[-1]
    adjusted = json.loads((tmp_path / "run" / "results.json").read_text())["run"]["adjusted"]
    assert [line.partition(": HTTP 400")[0] for line in adjusted] == [
        "max_tokens -> max_completion_tokens",
        "drop temperature",
    ]
    with load_run(tmp_path / "run") as run:
        assert all(len(trial.prediction.detail["adjusted"]) == 2 for trial in list(run.trials("my"))[1:])


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_requests_sent_again_after_a_refusal_are_counted_in_the_budget(
    serve: Callable[..., Seen], rows: str, tmp_path: Path, budget: int
) -> None:
    server = serve(refuses_old_parameters)
    settings = snellen.RunSettings(tasks=(), model="openai/new", base_url=server.url)
    model = create_model(settings, default_registry())
    params = snellen.Params(max_tokens=50, temperature=0.0)
    keys = [TrialKey("t", str(number)) for number in range(6)]
    requests = [snellen.Request(key, (Turn("user", f"Which {key.sample}?"),), params) for key in keys]
    jobs = [ReadyRequests(Item(0, snellen.Sample(one.key.sample, "t", Form.OPEN, "")), (one,)) for one in requests]
    limits = limits_for(model, settings, requests=budget)
    state = ask_jobs(ModelJobs(tmp_path / "jobs", model, jobs, {"t": 6}, {}), settings, limits=limits)
    assert len(server.bodies) == limits.sent == budget
    assert state.over_limit and state.unfinished


def test_with_strict_params_it_stops_instead(serve: Callable[..., Seen], rows: str, tmp_path: Path) -> None:
    server = serve(refuses_old_parameters)
    with pytest.raises(StopRun, match="--strict-params"):
        snellen.run(
            rows, "openai/new", base_url=server.url, max_tokens=5, strict_params=True, output_dir=tmp_path / "r"
        )
    assert len(server.bodies) == 1


def test_stop_strings_that_a_server_refuses_are_kept_by_us(
    serve: Callable[..., Seen], rows: str, tmp_path: Path
) -> None:
    def refuse(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if "stop" in body:
            return 400, {"error": {"message": "Unsupported parameter: 'stop' is not supported with this model."}}
        long = {"message": {"content": "A\nQ: and then?"}, "finish_reason": "stop"}
        return 200, {"choices": [long]}

    server = serve(refuse)
    overrides = (("params.stop", ["\nQ:"]),)
    result = snellen.run(rows, "openai/new", base_url=server.url, overrides=overrides, output_dir=tmp_path / "r")
    assert result.failed == 0
    with load_run(tmp_path / "r") as run:
        assert {trial.prediction.text for trial in run.trials("my")} == {"A"}


def test_a_quota_that_is_spent_stops_the_run_at_once(serve: Callable[..., Seen], rows: str, tmp_path: Path) -> None:
    spent = {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}
    server = serve(lambda body: (429, spent))
    with pytest.raises(StopRun, match="quota is spent"):
        snellen.run(rows, "openai/m", base_url=server.url, output_dir=tmp_path / "r")
    assert len(server.bodies) == 1


@pytest.mark.parametrize("name", CARDS)
def test_every_card_makes_a_model_and_is_asked_as_it_says(
    name: str, serve: Callable[..., Seen], rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, server = CARDS[name], serve()
    for variable in card.key_env[:1]:
        monkeypatch.setenv(variable, "sk-canary-0123456789abcdef")
    settings = {"base_url": server.url, "sampling_seed": 3, "max_tokens": 9, "limit": 2, "output_dir": tmp_path / "r"}
    result = snellen.run(rows, f"{name}/{card.example}", **settings)
    assert result.failed == 0
    body, headers = server.bodies[0], server.headers[0]
    assert body["model"] == card.example
    assert not set(card.quirks.drop) & set(body)
    assert all(theirs in body for ours, theirs in card.quirks.rename.items() if ours == "seed")
    if card.key_env:
        assert "sk-canary-0123456789abcdef" in headers[card.key_header or "authorization"]
    else:
        assert "authorization" not in headers
    files = [path for path in (tmp_path / "r").rglob("*") if path.is_file()]
    assert not [path for path in files if b"sk-canary" in path.read_bytes()]


@pytest.mark.parametrize("name", CARDS)
def test_cards_have_an_address_and_an_example(name: str) -> None:
    card = CARDS[name]
    assert card.base_url.startswith(("https://", "http://localhost")) or card.base_url_env
    assert card.example
    assert not card.base_url.startswith("https://") or card.key_env


def test_a_provider_of_ones_own_is_a_file(serve: Callable[..., Seen], rows: str, tmp_path: Path) -> None:
    server = serve()
    folder = tmp_path / "mine" / "providers"
    folder.mkdir(parents=True)
    lines = ['title = "ours"', f'base_url = "{server.url}"', 'headers = { "X-Team" = "vision" }', "[quirks]"]
    (folder / "ours.toml").write_text("\n".join([*lines, 'add = { service_tier = "flex" }']))
    result = snellen.run(rows, "ours/m", catalogs=(tmp_path / "mine",), limit=1, output_dir=tmp_path / "r")
    assert result.failed == 0
    assert server.headers[0]["x-team"] == "vision"
    assert server.bodies[0]["service_tier"] == "flex"


def test_headers_and_query_go_along_and_nowhere_else(serve: Callable[..., Seen], rows: str, tmp_path: Path) -> None:
    server = serve()
    headers = {"X-Gateway": Secret("canary-header-0123456789")}
    settings = {"headers": headers, "query": {"api-version": "2025-01-01"}, "limit": 1, "output_dir": tmp_path / "r"}
    snellen.run(rows, "openai/m", base_url=server.url, **settings)
    assert server.headers[0]["x-gateway"] == "canary-header-0123456789"
    assert server.paths[0] == "/v1/chat/completions?api-version=2025-01-01"
    files = [path for path in (tmp_path / "r").rglob("*") if path.is_file()]
    assert not [path for path in files if b"canary-header" in path.read_bytes()]


@pytest.mark.parametrize(
    ("provider", "wish", "fields"),
    [
        ("openai", "low", {"reasoning_effort": "low"}),
        ("openai", "off", {"reasoning_effort": "none"}),
        ("dashscope", "512", {"enable_thinking": True, "thinking_budget": 512}),
        ("zhipu", "off", {"thinking": {"type": "disabled"}}),
        ("vllm-server", "off", {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}),
        ("openrouter", "2000", {"reasoning": {"max_tokens": 2000}}),
    ],
)
def test_reasoning_is_told_as_each_server_knows_it(
    provider: str, wish: str, fields: dict[str, Any], serve: Callable[..., Seen], rows: str, tmp_path: Path
) -> None:
    server = serve()
    settings = {"base_url": server.url, "reasoning": wish, "max_tokens": 100, "limit": 1, "output_dir": tmp_path / "r"}
    snellen.run(rows, f"{provider}/m", **settings)
    body = server.bodies[0]
    assert {name: body[name] for name in fields} == fields
    assert body["max_tokens"] >= 100 + (int(wish) if wish.isdigit() else 0)


@pytest.mark.parametrize(
    ("wish", "style", "words"),
    [
        ("512", "effort", "takes no number of tokens"),
        ("high", "type", "has no levels"),
        ("much", "effort", "none of off, low"),
        ("low", "", "it is not known how to ask x for it"),
        ("0", "gemini", "no number of tokens"),
    ],
)
def test_a_wish_that_cannot_be_said_is_refused(wish: str, style: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        reasoning_fields(wish, style, "x")


def test_fields_are_merged_table_by_table_and_the_body_has_the_last_word() -> None:
    body = {"generationConfig": {"maxOutputTokens": 5, "thinkingConfig": {"thinkingBudget": 7}}}
    fields = {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": True}}, "x": 1}
    assert merge_fields(body, fields) == {
        "generationConfig": {"maxOutputTokens": 5, "thinkingConfig": {"thinkingBudget": 7, "includeThoughts": True}},
        "x": 1,
    }


def test_a_card_without_an_address_asks_for_one() -> None:
    with pytest.raises(UsageError, match="--base-url"):
        create_by_card("azure", CARDS["azure"], "d", ModelOptions())


def test_pictures_of_a_card_are_its_policy() -> None:
    model = create_by_card("xai", CARDS["xai"], "grok", ModelOptions())
    assert model.image_policy == ImagePolicy(max_side=8000, max_bytes=20_000_000, formats=("image/png", "image/jpeg"))


def test_a_load_knows_the_dialect_of_a_card(serve: Callable[..., Seen], rows: str, tmp_path: Path) -> None:
    from snellen.api.perf import LoadPlan, PerfSettings, run_perf
    from snellen.api.settings import RunSettings

    server = serve()
    run = RunSettings(tasks=(rows,), model="ollama/m", base_url=server.url, stream=False, output_dir=tmp_path / "p")
    report = run_perf(PerfSettings(run=run, levels=(LoadPlan(concurrency=1, count=3, warmup=0),)))
    assert report.levels[0]["total"]["common"]["Success Requests"] == 3
