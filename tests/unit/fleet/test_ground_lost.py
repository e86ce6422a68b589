"""A cluster that is gone ends the command with its own code, whatever its library does at the interpreter's end."""

from __future__ import annotations

import subprocess
import sys

CRASH = """
import atexit, os, signal, sys
from snellen.cli import main as command
from snellen.core.errors import EnvironmentProblem, GroundLost
def lose(*_, **__):
    raise {error}("the head is gone; all replies are kept")
command.cli.main = lose
atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
command.main(["run"])
"""


def ended_with(error: str) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, "-c", CRASH.format(error=error)], capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stderr


def test_the_exit_code_is_that_of_the_error() -> None:
    assert ended_with("GroundLost") == (3, "error: the head is gone; all replies are kept\n")


def test_other_errors_take_the_usual_way_out() -> None:
    assert ended_with("EnvironmentProblem")[0] == -11
