"""The command `snellen` as tests call it: in this process by its public entry, or in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from snellen.cli.main import main

COMMAND = [sys.executable, "-c", "from snellen.cli.main import main; main()"]
"""What starts the command in a process of its own."""


def run_command(arguments: Sequence[object]) -> int:
    """Run the command line with these arguments and return its exit code, as a shell would see it."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    raise AssertionError("the command must end by an exit code")


def json_of(*arguments: object, codes: Sequence[int] = (0,)) -> Any:
    """Run a command with --json, which must end by one of these codes, and return what it printed."""
    with redirect_stdout(StringIO()) as said:
        code = run_command([*arguments, "--json"])
    assert code in codes, (code, said.getvalue()[-2000:])
    return json.loads(said.getvalue() or "{}")
