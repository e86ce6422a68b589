"""`snellen leaderboard`: many runs in one ranking that says which of them cannot be told apart."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "markdown", "html", "csv", "latex"]),
    default="terminal",
    show_default=True,
)
@click.option("--json", "as_json", is_flag=True, help="Machine output on stdout.")
def leaderboard(folders: tuple[Path, ...], form: str, as_json: bool) -> None:
    """Rank all runs in or below DIR: average rank, means by dimension, intervals, bands.

    \b
    snellen leaderboard runs
    snellen leaderboard runs --format latex > table.tex
    """
    from ...api.outputs import leaderboard as make
    from ...core.types import to_json
    from ...report.boards.ranking import board_sheet
    from ...report.boards.sheet import render

    board, problems = make(folders)
    for folder, reason in problems.items():
        click.echo(f"left out {folder}: {reason}", err=True)
    sys.stdout.write(to_json(board).decode() + "\n" if as_json else render([board_sheet(board)], form))
