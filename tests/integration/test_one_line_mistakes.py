"""A mistake on the command line is one line of ours: what, where, how to fix; and no guess where none is near."""

from __future__ import annotations

import pytest

from command_line import run_command
from snellen.core.errors import did_you_mean
from snellen.kits.bridges import second_opinions

MISTAKES = [
    (["serve-check", "notaurl"], "'notaurl' is not the address of a server: write http://HOST:PORT/v1"),
    (["serve-check", "http://127.0.0.1:9/v1"], "http://127.0.0.1:9/v1 is not reachable: cannot connect"),
    (["batch", "status", "/nowhere"], "'RUN': Directory '/nowhere' does not exist; see snellen batch status --help"),
    (["train", "run", "/nowhere"], "'RECIPE.toml': File '/nowhere' does not exist; see snellen train run --help"),
    (["run", "eyechart", "--modle", "x"], "No such option '--modle'"),
    (["plan", "--no-such-thing"], "see snellen plan --help"),
    (["rnu"], "no command 'rnu' (did you mean 'run'?); see snellen --help"),
]


@pytest.mark.parametrize(("command", "told"), MISTAKES, ids=[" ".join(command) for command, _ in MISTAKES])
def test_a_mistake_is_one_line(command: list[str], told: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(command) in (2, 3)
    line = capfd.readouterr().err
    assert line.startswith("error: ") and line.count("\n") == 1
    assert told in line and "--base-url" not in line


def test_a_group_without_a_command_shows_its_help(capfd: pytest.CaptureFixture[str]) -> None:
    run_command(["batch"])
    told = capfd.readouterr()
    assert "status" in told.out + told.err and "cancel" in told.out + told.err


def test_one_call_was_and_two_were() -> None:
    told = [line.strip() for count in (0, 1, 2) for line in second_opinions._flattered(count)]
    assert told == ["1 of the failed calls was counted as right", "2 of the failed calls were counted as right"]


@pytest.mark.parametrize(
    ("name", "known", "guess"),
    [
        ("serve", ["score", "show"], ""),
        ("video", ["dev", "index"], ""),
        ("openai", ["panoptic", "opinion"], ""),
        ("gold", ["bold-text", "model"], ""),
        ("EyeChart", ["eyechart", "search"], "eyechart"),
        ("rnu", ["run", "ruin"], "run"),
        ("jpg", ["jpeg", "png"], "jpeg"),
        ("vlm", ["vlmevalkit", "lmms-eval"], "vlmevalkit"),
        ("gpt5mini", ["gpt-5-mini", "gpt-5"], "gpt-5-mini"),
        ("", ["a"], ""),
    ],
)
def test_only_a_near_name_is_guessed(name: str, known: list[str], guess: str) -> None:
    assert did_you_mean(name, known) == (f" (did you mean {guess!r}?)" if guess else "")
