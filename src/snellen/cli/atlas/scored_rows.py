"""What `snellen score FILE --task NAME` prints: the number, what became of every row, and the tool's own beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ..options import print_json


def print_scored_rows(result: Mapping[str, Any], as_json: bool) -> None:
    """Print the scores of rows for programs or for people."""
    if as_json:
        print_json(result)
        return
    from ...report.console import WholeConsole
    from ...report.terminal import results_table

    console = WholeConsole()
    console.print(results_table(f"{result['task']}, protocol {result['protocol']}", result))
    reasons = ", ".join(f"{count} {reason}" for reason, count in result["reasons"].items())
    outside = f", {result['unscored']} not to be judged" if result["unscored"] else ""
    counts = f"{result['scored']} read, {result['unread']} unread{outside}, {result['failed']} failed of {result['n']}"
    click.echo(f"{counts} {result['unit']}{f' ({reasons})' if reasons else ''}")
    if result["peer"]:
        click.echo(result["peer"]["why"])
    for note in result["notes"]:
        click.echo(f"note: {note}", err=True)
