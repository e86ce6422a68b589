"""`snellen contaminated`: whether a test was seen before, and what could have been found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.options import json_flag

if TYPE_CHECKING:
    from rich.table import Table

EPILOG = """
\b
Examples:
  snellen run my.jsonl --model openai/NAME --base-url URL -o runs/x --variant base \\
      --variant order=1 --variant order=2 --variant order=3 --variant control=recall
  snellen contaminated runs/x
  snellen contaminated runs/x --reference runs/older-model
"""


@click.command(epilog=EPILOG)
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--reference",
    "references",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A run of a model that cannot have seen the test; may be repeated.",
)
@json_flag()
def contaminated(run: Path, references: tuple[Path, ...], as_json: bool) -> None:
    """Say whether a test was seen before: the published form of each question against changed ones.

    Every verdict says what could have been found. A drop without references may also mean that the change is harder.
    """
    from ...core.types import to_json
    from ...report.console import WholeConsole
    from ...report.terminal import plain
    from .seen_before import contaminated as find
    from .seen_before import described

    found = described(find(run, references))
    if as_json:
        click.echo(to_json(found).decode())
        return
    console = WholeConsole()
    for task, tests in found.items():
        console.print(_seen_table(task, tests))
        for one in tests:
            console.print(plain(f"{one['test']}: {one['says']}"))
            for why, count in one["left_out"].items():
                console.print(plain(f"  {count:,} left out: {why}"))


def _seen_table(task: str, tests: Sequence[Mapping[str, Any]]) -> Table:
    """Return the tests of whether a task was seen before, each with what it could have found."""
    from rich.table import Table

    from ...report.terminal import count_text, plain, said_share

    table = Table(title=plain(f"{task}: seen before?"), title_justify="left", title_style="bold")
    table.add_column("test")
    for column in ("questions", "as published", "changed", "drop", "p", "detectable", "verdict"):
        table.add_column(column, justify="right")
    for one in tests:
        result = one["result"]
        cells = [_points(result[name]) for name in ("published", "changed")]
        drop = "–" if result["drop"] is None else said_share({"value": result["drop"], "ci95": result["ci95"]})
        p = "–" if one["p_holm"] is None else f"{one['p_holm']:.2g}"
        table.add_row(
            one["test"], count_text(result["questions"]), *cells, drop, p, _points(result["detectable"]), one["verdict"]
        )
    return table


def _points(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.1f}"
