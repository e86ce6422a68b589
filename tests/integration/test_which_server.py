"""Which server answered belongs to a run; and every usual way to write its address works."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import snellen
from snellen.core.errors import RunMismatch
from snellen.model.served.served_model import trim_address
from snellen.store.answerers import Answerers


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

    def __init__(self, **kept: Any) -> None:
        self.kept: dict[str, Any] = kept

    def meta(self, key: str) -> Any:
        return self.kept.get(key)

    def put_meta(self, key: str, value: Any) -> None:
        self.kept[key] = msgspec.to_builtins(value)


def served(said: dict[str, Any], url: str | None = "http://u:secret@h/v1") -> Any:
    return SimpleNamespace(name="openai/m", identity=lambda: {"base_url": url} if url else {}, said=said)


def keep(folder: Path, said: dict[str, Any], writer: Any, *, allowed: bool = False) -> None:
    Answerers(folder, served(said), writer, allowed=allowed).keep()


def test_another_checkpoint_under_one_name_is_refused(tmp_path: Path) -> None:
    writer: Any = Memory()
    keep(tmp_path, {"root": "/models/a"}, writer)
    keep(tmp_path, {}, writer)
    (row,) = writer.kept["answerers"]
    assert (row["who"]["address"], row["who"]["listed"]) == ("http://h/v1", {"root": "/models/a"})
    with pytest.raises(RunMismatch, match="said root '/models/a' of its model; now '/models/b'"):
        keep(tmp_path, {"root": "/models/b"}, writer)
    keep(tmp_path, {"root": "/models/b"}, writer, allowed=True)
    assert len(writer.kept["answerers"]) == 2


def test_a_run_of_an_earlier_version_goes_on_by_what_it_noted(tmp_path: Path) -> None:
    of_02 = [{"base_url": "http://h/v1", "says": {"root": "/models/a"}}]
    writer: Any = Memory(servers=of_02)
    keep(tmp_path, {"root": "/models/a", "id": "m", "created": 1_600_000_000}, writer)
    assert len(writer.kept["answerers"]) == 2, "what 0.2 noted, and who answers now"
    with pytest.raises(RunMismatch, match="'/models/b'"):
        keep(tmp_path, {"root": "/models/b"}, Memory(servers=of_02))
