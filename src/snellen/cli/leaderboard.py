"""`snellen leaderboard`: many runs in one ranking that says which of them cannot be told apart."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .options import BOARD_FORM, MACHINE_STDOUT, PATH


@click.command()
@click.argument("folders", nargs=-1, required=True, type=PATH, metavar="DIR...")
@click.option("--reading", help="Rank by a reading that was kept (results-NAME.json), not by the runs' own.")
@BOARD_FORM
@MACHINE_STDOUT
def leaderboard(folders: tuple[Path, ...], reading: str | None, form: str, as_json: bool) -> None:
    """Rank all runs in or below DIR: average rank, means by dimension, intervals, bands.

    Only what can be compared is ranked together: the same questions, metric, way of asking and reading.

    \b
    snellen leaderboard runs
    snellen leaderboard runs --format latex > table.tex
    """
    from ..api.outputs import leaderboard as make
    from ..core.types import to_json
    from ..report.pages.ranking import board_sheets
    from ..report.pages.sheet import render

    board, problems = make(folders, reading)
    for folder, reason in problems.items():
        click.echo(f"left out {folder}: {reason}", err=True)
    sys.stdout.write(to_json(board).decode() + "\n" if as_json else render(board_sheets(board), form))
