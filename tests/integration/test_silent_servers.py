"""Whole runs against servers that are odd in silence: what they do must be said, or no number be made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from command_line import run_command
from emulator import emulator
from snellen.core.types import Prediction
from snellen.kits.mock.ask import IGNORED
from snellen.kits.mock.commands import IGNORED as COMMAND_KNOWS
from snellen.kits.mock.faults import ProviderCase, parse_fault, provider_cases
from snellen.kits.mock.server import MockOptions
from snellen.store.reader import RunReader

ROWS = 4


@pytest.fixture(autouse=True)
def own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNELLEN_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    PIL.Image.new("RGB", (300, 200), (9, 0, 0)).save(tmp_path / "0.png")
    shown = {"options": ["one", "two"], "answer": "B", "images": ["0.png"]}
    lines = [{"id": str(n), "question": f"What is {n}?", **shown} for n in range(ROWS)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def run(rows: Path, server: MockOptions, **more: Any) -> tuple[dict[str, Any], list[Prediction], int]:
    """Return results, stored replies, and how many requests the server saw."""
    folder = rows.parent / "run"
    with emulator(server) as running:
        settings = {"tasks": (str(rows),), "model": "openai/mock", "base_url": running.base_url, "cache": False}
        results = snellen.run(snellen.RunSettings(**{**settings, **more}, output_dir=folder)).results
        requests = running.server.stats["requests"]
    with RunReader(folder) as reader:
        stored = sorted((trial.prediction for trial in reader.trials("rows")), key=lambda one: one.key.sample)
    return results, stored, requests


def always(case: str, when: str = "1-") -> Any:
    return parse_fault(f"case:name={case}@{when}")


def test_a_server_that_keeps_every_limit_and_counts_pictures_is_not_warned_of(rows: Path) -> None:
    results, stored, _ = run(rows, MockOptions(answer="B"), max_tokens=64)
    assert results["run"]["warnings"] == [] and [one.text for one in stored] == ["B"] * ROWS


def test_a_limit_that_is_ignored_under_its_new_name_is_sent_by_its_old_one(rows: Path, tmp_path: Path) -> None:
    """C33: a card says `max_completion_tokens`, and the server knows only `max_tokens` (Ollama)."""
    (tmp_path / "cards" / "providers").mkdir(parents=True)
    card = {"title": '"Odd"', "dialect": '"openai"', "base_url": '"http://127.0.0.1:1/v1"', "key_env": "[]"}
    card |= {"example": '"mock"', "quirks": '{ rename = { max_tokens = "max_completion_tokens" } }'}
    lines = [f"{name} = {value}" for name, value in card.items()]
    (tmp_path / "cards" / "providers" / "odd.toml").write_text("\n".join(lines))
    server = MockOptions(ignores=("max_completion_tokens",), tokens=4000)
    how = {"model": "odd/mock", "catalogs": (tmp_path / "cards",), "max_tokens": 64, "max_workers": 1}
    results, stored, _ = run(rows, server, **how)
    lengths = sorted((one.usage.output_tokens or 0) if one.usage else 0 for one in stored)
    assert lengths == [64] * (ROWS - 1) + [4000], "one reply was too long, the others are limited"
    (warning,) = results["run"]["warnings"]
    assert "4,000 tokens though 64" in warning
    assert results["run"]["adjusted"][0].startswith("max_completion_tokens -> max_tokens: the limit of 64")


def test_a_limit_that_is_ignored_altogether_is_said(rows: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with emulator(MockOptions(ignores=("max_tokens",), tokens=300)) as running:
        command = ["run", rows, "--model", "openai/mock", "--base-url", running.base_url, "-o", rows.parent / "run"]
        assert run_command([*command, "--max-tokens", 64, "--no-cache"]) == 0
    assert "warning: the limit of replies is not respected" in " ".join(capfd.readouterr().out.split())


@pytest.mark.parametrize(("case", "right"), [("C37_closed", 1.0), ("C37_unclosed", None)])
def test_thoughts_between_tags_are_never_the_answer(case: str, right: float | None, rows: Path) -> None:
    """C37: read after they end; where they never end nothing is read."""
    results, stored, _ = run(rows, MockOptions(faults=(always(case),)))
    assert all(one.text and "<think>" in one.text for one in stored), "the reply is kept as it came"
    accuracy = results["tasks"]["rows"]["metrics"]["accuracy"]
    assert accuracy["read"] == {"value": right, "n": ROWS if right else 0}


def test_replies_of_several_hosts_are_said(rows: Path) -> None:
    """C38: a gateway sends requests where it likes; hosts of one model are not one model."""
    server = MockOptions(faults=(always("C38_one_host", "1"), always("C38_another", "2-")))
    results, stored, _ = run(rows, server)
    assert {one.detail["host"] for one in stored} == {"Parasail", "Together"}
    (warning,) = results["run"]["warnings"]
    assert "several hosts (Parasail, Together)" in warning
    assert "several hosts (Parasail, Together)" in (rows.parent / "run" / "report.html").read_text()


@pytest.mark.parametrize("stream", [False, True])
def test_a_page_to_log_in_stops_the_run_at_once(stream: bool, rows: Path) -> None:
    """C42: asked five times, a proxy sends the same page five times."""
    with (
        emulator(MockOptions(faults=(always("C42"),))) as running,
        pytest.raises(snellen.SnellenError, match="log in to the network or the proxy"),
    ):
        settings = {"tasks": (str(rows),), "model": "openai/mock", "base_url": running.base_url, "cache": False}
        snellen.run(snellen.RunSettings(**settings, stream=stream, output_dir=rows.parent / "run"))
    assert running.server.stats["requests"] == 1


STOPPING = [case for case in provider_cases().values() if case.expect.stop]
ASKED = {"bedrock": "bedrock/maker.mock-v1:0"}


@pytest.mark.parametrize("case", STOPPING, ids=[case.id for case in STOPPING])
def test_what_dooms_every_request_ends_the_run_at_the_first(
    case: ProviderCase, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong key, wrong region, no access, quota spent, country, a model that is gone, a wrong clock: one line, its fix."""
    for name, value in {"AWS_REGION": "x", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "of-nobody"}.items():
        monkeypatch.setenv(name, value)
    spoken = "openai" if case.dialect == "openai-responses" else case.dialect
    server = MockOptions(dialect=spoken, faults=(always(case.id.replace(" ", "_")),))
    model = ASKED.get(case.dialect, f"{case.dialect}/mock")
    with emulator(server) as running, pytest.raises(snellen.SnellenError) as caught:
        settings = {"tasks": (str(rows),), "model": model, "base_url": running.base_url, "cache": False}
        snellen.run(snellen.RunSettings(**settings, output_dir=rows.parent / "run"))
    assert running.server.stats["requests"] == 1
    assert case.expect.says in str(caught.value) and "\n" not in str(caught.value)


def test_the_command_knows_what_a_server_may_ignore() -> None:
    assert COMMAND_KNOWS == IGNORED


def test_pictures_that_are_ignored_are_asked_about(rows: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """C44: as many tokens with as without; the run says so, and serve-check finds it out."""
    results, _, _ = run(rows, MockOptions(ignores=("pictures",), answer="B"))
    (warning,) = results["run"]["warnings"]
    assert "are the pictures looked at?" in warning
    with emulator(MockOptions(ignores=("pictures",))) as running:
        run_command(["serve-check", running.base_url])
    told = " ".join(capfd.readouterr().out.split())
    assert "taken, and ignored" in told
