"""How batch services are told and read: lines, states, results, for each of them, without a network."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import ModelError
from snellen.core.types import Request, TrialKey, Turn
from snellen.kits.batches.batch_service import UNANSWERED, LinesFile
from snellen.kits.batches.batch_services import MessageService, open_service, terms_of
from snellen.kits.batches.content_service import ContentService
from snellen.kits.batches.file_service import FileService, MistralService
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.gemini import Gemini
from snellen.model.served.openai import OpenAI
from snellen.model.served.prices import BatchTerms, batch_terms
from snellen.model.served.served_model import ServedModel

LINES = LinesFile("snellen-x.jsonl", Path("snellen-x.jsonl"), 2)
REQUEST = Request(TrialKey("t", "s"), (Turn("user", "hi"),))


class Http:
    """What a service asks of HTTP, answered from a table."""

    def __init__(self, **replies: Any) -> None:
        self.replies = {key.replace("_", "/"): value for key, value in replies.items()}
        self.asked: list[tuple[str, Any]] = []
        self.model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://x/v1"))

    async def get(self, path: str) -> Any:
        self.asked.append((path, None))
        return self.replies.get(path.partition("?")[0], {})

    async def post(self, path: str, value: Any = None) -> Any:
        self.asked.append((path, value))
        return {"id": "b", "name": "batches/b"}

    async def post_form(self, path: str, file: Path, name: str, fields: Any) -> Any:
        self.asked.append((path, name))
        return {"id": "file-1"}

    async def post_file(self, path: str, file: Path) -> Any:
        self.asked.append((path, file.name))
        return {"id": "b"}

    async def upload_in_steps(self, path: str, file: Path, name: str) -> Any:
        self.asked.append((path, name))
        return {"file": {"name": "files/1"}}


def looked(service: Any, ident: str = "b") -> Any:
    return asyncio.run(service.look(ident))


@pytest.mark.parametrize("dialect", [OpenAI(), Anthropic(), Gemini()])
def test_a_line_is_the_body_that_would_be_sent(dialect: Any) -> None:
    model = ServedModel(dialect, "m", ModelOptions(base_url="http://x/v1"))
    service = open_service(model)
    body = model.write_body(REQUEST, {}, service.left_out)
    row = json.loads(b"".join(service.line("i1", body)))
    assert row.get("custom_id", row.get("key")) == "i1"
    assert json.loads(b"".join(body)) in row.values()


def test_a_line_of_mistral_names_no_model() -> None:
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://x/v1"))
    service = MistralService(Http())  # type: ignore[arg-type]
    row = json.loads(b"".join(service.line("i1", model.write_body(REQUEST, {}, service.left_out))))
    assert "model" not in row["body"] and row["body"]["messages"]
    assert service.wish("f", "n")["model"] == "m"


def test_the_older_address_of_azure_has_its_batches_beside_the_deployments() -> None:
    address = "https://r.openai.azure.com/openai/deployments/d"
    model = ServedModel(OpenAI(), "d", ModelOptions(base_url=address, query={"api-version": "2024-10-21"}))
    assert model.reach("//openai/files")[0] == "https://r.openai.azure.com/openai/files?api-version=2024-10-21"
    assert vars(open_service(model))["_jobs"] == "//openai/batches"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ('{"custom_id":"i","response":{"status_code":200,"body":{"choices":[]}},"error":null}', 200),
        ('{"custom_id":"i","response":{"status_code":400,"body":{"error":{"message":"x"}}},"error":null}', 400),
        ('{"custom_id":"i","response":null,"error":{"code":"batch_expired","message":"late"}}', UNANSWERED),
        ('{"custom_id":"i","response":null,"error":{"code":"batch_cancelled","message":"gone"}}', UNANSWERED),
        ('{"custom_id":"i","response":null,"error":{"code":"content_filter","message":"no"}}', 400),
    ],
)
def test_results_of_files(line: str, status: int) -> None:
    assert FileService(Http()).read(line.encode()).status == status  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ({"type": "succeeded", "message": {"content": []}}, 200),
        ({"type": "errored", "error": {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}}, 429),
        ({"type": "errored", "error": {"type": "invalid_request_error", "message": "x"}}, 400),
        ({"type": "errored", "error": {"type": "error", "error": {"type": "new_error"}}}, 500),
        ({"type": "canceled"}, UNANSWERED),
        ({"type": "expired"}, UNANSWERED),
    ],
)
def test_results_of_message_batches(result: dict[str, Any], status: int) -> None:
    """A17: one each of succeeded, errored, canceled, expired."""
    line = json.dumps({"custom_id": "i", "result": result}).encode()
    assert MessageService(Http()).read(line).status == status  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        ({"response": {"candidates": []}}, 200),
        ({"error": {"code": 8, "message": "x"}}, 429),
        ({"error": {"code": 503}}, 503),
    ],
)
def test_results_of_content_batches(rest: dict[str, Any], status: int) -> None:
    """G14: lines with `error`."""
    assert ContentService(Http()).read(json.dumps({"key": "i", **rest}).encode()).status == status  # type: ignore[arg-type]


def test_an_error_of_a_line_is_typed_as_the_same_response_would_be() -> None:
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://x/v1"))
    with pytest.raises(ModelError, match="content_filter") as caught:
        model.read_body(REQUEST, {}, 400, b'{"error":{"code":"content_filter","message":"no"}}')
    assert caught.value.kind == "refused"
    filtered = {"choices": [{"index": 0, "message": {"content": ""}, "finish_reason": "content_filter"}]}
    with pytest.raises(ModelError) as caught:
        model.read_body(REQUEST, {}, 200, json.dumps(filtered).encode())
    assert caught.value.kind == "refused", "B8: a filter in a line of status 200"


@pytest.mark.parametrize(
    ("told", "state", "results"),
    [
        ({"status": "validating"}, "running", ()),
        ({"status": "finalizing"}, "running", ()),
        ({"status": "failed", "errors": {"data": [{"code": "invalid", "line": 7, "message": "bad"}]}}, "failed", ()),
        ({"status": "completed", "output_file_id": "o", "error_file_id": "e"}, "ended", ("o", "e")),
        ({"status": "completed", "error_file_id": "e"}, "ended", ("e",)),
        ({"status": "expired", "output_file_id": "o", "error_file_id": "e"}, "ended", ("o", "e")),
        ({"status": "cancelled", "output_file_id": "o"}, "ended", ("o",)),
        ({"status": "failed", "error_file_id": "e"}, "ended", ("e",)),
    ],
)
def test_states_of_files(told: dict[str, Any], state: str, results: tuple[str, ...]) -> None:
    """B1, B2, B3, B4, B6: both files are read, whatever a batch ended as."""
    found = looked(FileService(Http(_batches_b=told)))  # type: ignore[arg-type]
    assert (found.state, found.results) == (state, results)
    if state == "failed":
        assert found.problem == "invalid bad (line 7)"


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("QUEUED", "running"),
        ("CANCELLATION_REQUESTED", "running"),
        ("SUCCESS", "ended"),
        ("TIMEOUT_EXCEEDED", "ended"),
        ("CANCELLED", "ended"),
        ("FAILED", "failed"),
    ],
)
def test_states_of_mistral(word: str, state: str) -> None:
    http = Http()
    http.replies["/batch/jobs/b"] = {"status": word}
    assert looked(MistralService(http)).state == state  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "done", "state"),
    [
        ("BATCH_STATE_PENDING", False, "running"),
        ("JOB_STATE_UPDATING", False, "running"),
        ("BATCH_STATE_SUCCEEDED", True, "ended"),
        ("JOB_STATE_PARTIALLY_SUCCEEDED", True, "ended"),
        ("BATCH_STATE_EXPIRED", True, "ended"),
        ("BATCH_STATE_FAILED", True, "failed"),
    ],
)
def test_states_of_gemini(word: str, done: bool, state: str) -> None:
    """G14: EXPIRED and PARTIALLY_SUCCEEDED end the waiting."""
    http = Http()
    http.replies["/batches/b"] = {"metadata": {"state": word}, "done": done}
    assert looked(ContentService(http), "batches/b").state == state  # type: ignore[arg-type]


def test_a_file_left_by_a_crash_is_taken_by_its_name() -> None:
    """B10: a crash between upload and creation."""
    http = Http(_files={"data": [{"id": "file-old", "filename": LINES.name}]})
    asyncio.run(FileService(http).submit(LINES))  # type: ignore[arg-type]
    assert http.asked[-1][1]["input_file_id"] == "file-old"
    assert len(http.asked) == 2, "nothing was uploaded"


def test_a_batch_of_anothers_is_not_taken_for_ours() -> None:
    rows = [{"id": "known", "request_counts": {"processing": 2}}, {"id": "other", "request_counts": {"processing": 3}}]
    http = Http(_messages_batches={"data": [*rows, {"id": "ours", "request_counts": {"succeeded": 2}}]})
    assert asyncio.run(MessageService(http).find(LINES, frozenset({"known"}))) == "ours"  # type: ignore[arg-type]


def test_the_terms_are_data() -> None:
    assert all(isinstance(terms, BatchTerms) and terms.share == 0.5 for terms in batch_terms().values())
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://x/v1"))
    assert (terms_of(model).requests, terms_of(model).most_bytes) == (50_000, 190_000_000)


def test_an_upload_goes_nowhere_else() -> None:
    model = ServedModel(Gemini(), "m", ModelOptions(base_url="http://x/v1beta"))
    assert model.is_here("http://x/upload/1") and not model.is_here("http://x.evil/upload/1")
    assert not model.is_here("")
