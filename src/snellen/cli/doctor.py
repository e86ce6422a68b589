"""`snellen doctor`: what this machine has, and what to do about what it lacks."""

from __future__ import annotations

import click

from .options import MACHINE, print_json


@click.command(epilog="\b\nExample:\n  snellen doctor --json")
@MACHINE
def doctor(as_json: bool) -> int:
    """Look at this machine: versions, extras, disk, cache, keys. Exit 3 if something needed is missing."""
    from ..api.machine import look_around

    findings = look_around()
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            mark = "ok " if finding.ok else "BAD" if finding.needed else " – "
            click.echo(f"{mark} {finding.what:16} {finding.text}")
    return 3 if any(finding.needed and not finding.ok for finding in findings) else 0
