"""The command `snellen` as tests call it: in this process by its public entry, or in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence

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
