"""Which server answered belongs to a run; and every usual way to write its address works."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import snellen
from snellen.core.errors import RunMismatch
from snellen.model.served.served_model import trim_address
from snellen.store.servers import AskedServer


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"id": "1", "question": "Which?", "options": ["x", "y"], "answer": "A"}))
    return path


def run(task: Path, url: str, **settings: Any) -> Any:
    return snellen.run(str(task), "openai/mock", base_url=url, cache=False, **settings)


def test_another_server_never_reports_the_first_ones_numbers(task: Path, mock_server: Callable[..., Any]) -> None:
    first, second = mock_server("--answer", "A"), mock_server("--answer", "B")
    found = run(task, first.base_url)
    assert found.results["tasks"]["t"]["metrics"]["accuracy"]["value"] == 1.0
    assert [one["base_url"] for one in found.results["run"]["servers"]] == [first.base_url]
    with pytest.raises(RunMismatch, match=f"asked at {first.base_url}, and this is {second.base_url}.*--same-model"):
        run(task, second.base_url)
    again = run(task, second.base_url, same_model=True)
    assert again.state.resumed == 1
    assert [one["base_url"] for one in again.results["run"]["servers"]] == [first.base_url, second.base_url]
    assert run(task, second.base_url).state.resumed == 1


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/chat/completions"])
def test_every_usual_address_works_and_the_one_used_is_recorded(
    ending: str, task: Path, mock_server: Callable[..., Any]
) -> None:
    server = mock_server("--answer", "A")
    result = run(task, server.base_url.removesuffix("/v1") + ending)
    assert result.results["tasks"]["t"]["metrics"]["accuracy"]["n"] == 1
    assert [one["base_url"] for one in result.results["run"]["servers"]] == [server.base_url]
    assert run(task, server.base_url).state.resumed == 1


def test_what_is_no_service_stays_in_the_address() -> None:
    assert trim_address("http://h/v1/chat/completions/") == "http://h/v1"
    assert trim_address("http://h/models-of-mine") == "http://h/models-of-mine"


class Memory:
    """What a writer keeps."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def meta(self, key: str) -> Any:
        return self.kept.get(key)

    def put_meta(self, key: str, value: Any) -> None:
        self.kept[key] = value


def served(said: dict[str, Any], url: str | None = "http://u:secret@h/v1") -> Any:
    return SimpleNamespace(identity=lambda: {"base_url": url} if url else {}, said=said)


def test_another_checkpoint_under_one_name_is_refused(tmp_path: Path) -> None:
    writer: Any = Memory()
    AskedServer(tmp_path, served({"root": "/models/a"}), allowed=False).keep(writer)
    AskedServer(tmp_path, served({}), allowed=False).keep(writer)
    assert writer.kept == {"servers": [{"base_url": "http://h/v1", "says": {"root": "/models/a"}}]}
    with pytest.raises(RunMismatch, match="said root '/models/a' of its model; now '/models/b'"):
        AskedServer(tmp_path, served({"root": "/models/b"}), allowed=False).keep(writer)
    AskedServer(tmp_path, served({"root": "/models/b"}), allowed=True).keep(writer)
    assert len(writer.kept["servers"]) == 2


def test_a_model_without_a_server_has_none_to_keep(tmp_path: Path) -> None:
    writer: Any = Memory()
    server = AskedServer(tmp_path, served({}, None), allowed=False)
    server.check_address(writer)
    server.keep(writer)
    assert not writer.kept
