"""`snellen doctor`: what this machine has, and what to do about what it lacks."""

from __future__ import annotations

import click
import msgspec


@click.command(epilog="\b\nExample:\n  snellen doctor --json")
@click.option("--json", "as_json", is_flag=True, help="Machine output.")
def doctor(as_json: bool) -> int:
    """Look at this machine: versions, extras, disk, cache, keys. Exit 3 if something needed is missing."""
    from ..api.machine import look_around

    findings = look_around()
    if as_json:
        click.echo(msgspec.json.encode([finding._asdict() for finding in findings]).decode())
    else:
        for finding in findings:
            mark = "ok " if finding.ok else "BAD" if finding.needed else " – "
            click.echo(f"{mark} {finding.what:16} {finding.text}")
    return 3 if any(finding.needed and not finding.ok for finding in findings) else 0
