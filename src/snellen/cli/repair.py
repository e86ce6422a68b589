"""`snellen repair`: a damaged run to one that can be read and continued."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from ..core.text import plural
from .options import FOLDER, MACHINE


@click.command(epilog="\b\nExample:\n  snellen doctor runs/mine && snellen repair runs/mine")
@click.argument("run", type=FOLDER)
@MACHINE
def repair(run: Path, as_json: bool) -> None:
    """Save every readable row of a damaged run into a new run.db; the damaged file stays beside it.

    What was lost is asked again when the run's command is repeated. Scores are made again by `snellen score`.
    """
    from ..api.health import repair_run

    saved, lost, spare = repair_run(run)
    if as_json:
        click.echo(msgspec.json.encode({"saved": saved, "lost": lost, "damaged": str(spare)}).decode())
        return
    for table, count in saved.items():
        places = f", {lost[table]} places could not be read" if table in lost else ""
        click.echo(f"{table}: {plural(count, 'row')} saved{places}")
    click.echo(f"the damaged file is now {spare}; repeat the run's command to ask what was lost")
