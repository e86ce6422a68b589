"""`snellen doctor`: what this machine has, what is left of a run, and what to do about what is missing."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from ..core.text import plural
from .options import FOLDER, MACHINE, print_json


@click.command(epilog="\b\nExample:\n  snellen doctor runs/mine && snellen repair runs/mine")
@click.argument("run", type=FOLDER)
@MACHINE
def repair(run: Path, as_json: bool) -> None:
    """Save every readable row of a damaged run into a new run.db; the damaged file stays beside it.

    What was lost is asked again when the run's command is repeated. Scores are made again by `snellen score`.
    """
    from ..api.machine import repair_run

    saved, lost, spare = repair_run(run)
    if as_json:
        click.echo(msgspec.json.encode({"saved": saved, "lost": lost, "damaged": str(spare)}).decode())
        return
    for table, count in saved.items():
        places = f", {lost[table]} places could not be read" if table in lost else ""
        click.echo(f"{table}: {plural(count, 'row')} saved{places}")
    click.echo(f"the damaged file is now {spare}; repeat the run's command to ask what was lost")


@click.command(epilog="\b\nExamples:\n  snellen doctor --json\n  snellen doctor runs/mine")
@click.argument("run", type=FOLDER, required=False)
@MACHINE
def doctor(run: Path | None, as_json: bool) -> int:
    """Look at this machine: versions, extras, disk, cache, keys; or at a RUN: is its database sound, what is left.

    Exit 3 if something needed is missing, or the run is damaged.
    """
    if run is not None:
        return _look_at(run, as_json)
    from ..api.machine import look_around

    findings = look_around()
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            mark = "ok " if finding.ok else "BAD" if finding.needed else " – "
            click.echo(f"{mark} {finding.what:16} {finding.text}")
    return 3 if any(finding.needed and not finding.ok for finding in findings) else 0


def _look_at(run: Path, as_json: bool) -> int:
    from ..api.machine import look_at_run

    health = look_at_run(run)
    if as_json:
        tables = [table._asdict() for table in health.tables]
        content = health._asdict() | {"folder": str(run), "tables": tables}
        print_json(content)
        return 0 if health.sound else 3
    click.echo(f"{run}: {'sound' if health.sound else 'damaged'} (SQLite: {health.verdict.splitlines()[0]})")
    for table in health.tables:
        click.echo(_table_line(*table))
    if not health.sound:
        saves = f"snellen repair {run} saves what can be read" if health.has_header else "its header is lost"
        click.echo(f"{'BAD' if not health.has_header else ' – '} {saves}")
    return 0 if health.sound else 3


def _table_line(table: str, readable: int, unreadable: int) -> str:
    mark = "BAD" if unreadable else "ok "
    return f"{mark} {table:12} {readable} rows can be read, {unreadable} places cannot"
