"""What `snellen score FILE` prints: the number, what became of every row, and the tool's own beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ..options import print_json


def print_scored_file(result: Mapping[str, Any], as_json: bool) -> None:
    """Print the scores of a file for programs or for people."""
    if as_json:
        print_json(result)
        return
    from ...report.console import WholeConsole
    from ...report.terminal import results_table

    console = WholeConsole()
    how = result["protocol"] and f"protocol {result['protocol']}"
    how = how or (f"{result['formulation']}, profile {result['profile']}" if "formulation" in result else "")
    console.print(results_table(", ".join(filter(None, (result["task"], how))), result))
    reasons = ", ".join(f"{count} {reason}" for reason, count in result["reasons"].items())
    outside = f", {result['unscored']} not to be judged" if result["unscored"] else ""
    counts = f"{result['scored']} read, {result['unread']} unread{outside}, {result['failed']} failed of {result['n']}"
    click.echo(f"{counts} {result['unit']}{f' ({reasons})' if reasons else ''}")
    if result["peer"]:
        click.echo(result["peer"]["why"])
    for key, groups in result["groups"].items() if "formulation" in result else ():  # told by --detailed-keys
        for value, metrics in groups.items():
            console.print(results_table(f"{key} = {value}", {"metrics": metrics}))
    for note in result["notes"]:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{result['folder']}: snellen view, compare, score, second-opinion", err=True)
