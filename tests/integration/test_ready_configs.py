"""Configurations that come with the catalog: taken by name, asked as they say, and told from files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import run_command
from snellen.api.load import load_run
from snellen.cli.run import make_settings, run

READY = {
    "qwen3-vl": "Qwen/Qwen3-VL-8B-Instruct",
    "internvl-3.5": "OpenGVLab/InternVL3_5-8B",
    "kimi-vl": "moonshotai/Kimi-VL-A3B-Instruct",
    "glm-4.1v": "zai-org/GLM-4.1V-9B-Thinking",
    "glm-4.5v": "zai-org/GLM-4.5V",
}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "Which?", "options": ["cat", "dog"], "answer": "A"}) + "\n")
    return path


@pytest.mark.parametrize("name", READY)
def test_a_ready_configuration_is_taken_by_its_name(
    name: str, rows: Path, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    server = mock_server("--answer", "A", "--model-name", READY[name])
    flags = ["--base-url", server.base_url, "-o", tmp_path / "run", "--no-cache", "--quiet"]
    assert run_command(["run", rows, "--config", name, *flags]) == 0
    with load_run(tmp_path / "run") as stored:
        ((trial,), config) = list(stored.trials("rows")), stored.header().model
    assert config == f"openai/{READY[name]}"
    assert trial.request.params.temperature == 0.0 and trial.request.params.max_tokens in (512, 8192)


def test_a_flag_has_the_last_word_on_the_cache(rows: Path, tmp_path: Path) -> None:
    def wanted(*flags: str) -> bool:
        return bool(make_settings("run", with_defaults(run, ["rows.jsonl", "--config", str(file), *flags])).cache)

    file = tmp_path / "model.json"
    file.write_text(json.dumps({"model_name": "m", "use_cache": False}))
    assert (wanted(), wanted("--use-cache")) == (False, True)
    file.write_text(json.dumps({"model_name": "m"}))
    assert (wanted(), wanted("--no-cache")) == (True, False)
    assert run_command(["run", rows, "--use-cache", "--no-cache", "--model", "blind/first"]) == 2


def with_defaults(command: Any, arguments: list[str]) -> dict[str, Any]:
    """Return the parameters of a command as it would be called with these arguments."""
    given = dict(command.make_context("run", arguments).params)
    for name in ("quiet", "as_json", "as_lines", "price", "show_prompts"):
        given.pop(name, None)
    return given


def test_a_name_that_is_none_is_refused_with_the_near_ones_and_a_file_comes_first(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for told, message in (("qwen3vl", "did you mean 'qwen3-vl'"), ("qwen3-vl.json", "cannot read qwen3-vl.json")):
        assert run_command(["run", rows, "--config", told, "-o", "none"]) == 2
        assert message in capfd.readouterr().err
    (tmp_path / "kimi-vl").write_text('model_name = "mine"\ntemprature = 1\n')
    assert run_command(["run", rows, "--config", "kimi-vl", "-o", "none"]) == 2
    assert "unknown key 'temprature' (did you mean 'temperature'?)" in capfd.readouterr().err
