"""`snellen serve-check`: what a server can do is found out by asking, and every wrong address is one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from command_line import run_command
from emulator import mock_thread
from snellen.model.served.served_model import ServedModel


def checked(capsys: pytest.CaptureFixture[str], server: list[str], *flags: str) -> tuple[int, dict[str, Any]]:
    with mock_thread(server) as running:
        code = run_command(["serve-check", running.base_url, "--json", *flags])
    return code, json.loads(capsys.readouterr().out)


def can(facts: dict[str, Any]) -> dict[str, bool]:
    return {probe["what"]: probe["ok"] for probe in facts["probes"]}


def told(facts: dict[str, Any], what: str) -> str:
    return next(probe["text"] for probe in facts["probes"] if probe["what"] == what)


def test_a_server_that_can_do_everything(capsys: pytest.CaptureFixture[str]) -> None:
    code, facts = checked(capsys, [])
    assert code == 0
    assert [what for what, holds in can(facts).items() if not holds] == ["tools"], facts
    assert "tools-ignored" in told(facts, "tools")  # as a chat template without tools does
    assert facts["model"] == "openai/mock"
    optional = {"[--infer-method likelihood]", "[--constrain options]"}
    assert {"--stream", "--model openai/mock"} | optional < set(facts["flags"])
    assert "input tokens more for 1 picture" in told(facts, "pictures")


def test_a_server_that_ignores_the_options_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, facts = checked(capsys, ["--answer", "yes"])
    assert (code, can(facts)["options"]) == (0, False)
    assert "does not keep to --constrain options" in told(facts, "options")
    assert "[--constrain options]" not in facts["flags"]


def test_log_probabilities_that_are_ignored_or_shifted_are_no_likelihood(capsys: pytest.CaptureFixture[str]) -> None:
    for way in ("none", "shifted", "error"):
        code, facts = checked(capsys, ["--logprobs", way])
        assert (code, can(facts)["likelihood"]) == (0, False), (way, facts)
        assert "[--infer-method likelihood]" not in facts["flags"]


def test_a_server_that_refuses_many_at_once_is_asked_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, facts = checked(capsys, ["--max-concurrency", "1", "--ttft-ms", "200"], "--within", "60")
    assert (code, can(facts)["at once"]) == (0, False), facts
    assert "--max-workers 1" in facts["flags"]


@pytest.mark.parametrize(("asked", "used"), [((), "vllm-server/mock"), (("--model", "openai/mock"), "openai/mock")])
def test_a_server_that_says_what_it_is_gets_its_card(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], used: str
) -> None:
    """vLLM does; by its card options are told as a choice, where JSON leaves small models to wander in white space."""

    async def listed(model: ServedModel) -> dict[str, dict[str, Any]]:
        return {"mock": {"owned_by": "vllm", "max_model_len": 512}}

    monkeypatch.setattr(ServedModel, "listed_models", listed)
    code, facts = checked(capsys, [], *asked)
    assert (code, facts["model"]) == (0, used)
    assert f"--model {used}" in facts["flags"]


def test_several_models_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with mock_thread(["--model-name", "one", "--model-name", "two"]) as running:
        assert run_command(["serve-check", running.base_url]) == 2
        assert "it serves one, two: add --model NAME" in capsys.readouterr().err
        assert run_command(["serve-check", running.base_url, "--model", "tow"]) == 2
        assert "did you mean 'two'?" in capsys.readouterr().err
        assert run_command(["serve-check", running.base_url, "--model", "two"]) == 0


def test_a_family_that_the_server_does_not_speak_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, facts = checked(capsys, [], "--model", "anthropic/mock")
    assert (code, can(facts)["chat"], facts["flags"]) == (3, False, [])


def test_a_silent_server_costs_the_time_that_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    code, facts = checked(capsys, ["--ttft-ms", "60000"], "--within", "1")
    assert code == 3
    assert "no answer in time" in told(facts, "chat")


def test_no_server_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["serve-check", "http://127.0.0.1:1/v1"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "is not reachable" in line
