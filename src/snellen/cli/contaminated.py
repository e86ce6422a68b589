"""`snellen contaminated`: whether a test was seen before, and what could have been found."""

from __future__ import annotations

from pathlib import Path

import click

from .options import json_flag

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
    from ..api.seen_before import contaminated as find
    from ..api.seen_before import described
    from ..core.types import to_json
    from ..report.console import WholeConsole
    from ..report.terminal import plain, seen_table

    found = described(find(run, references))
    if as_json:
        click.echo(to_json(found).decode())
        return
    console = WholeConsole()
    for task, tests in found.items():
        console.print(seen_table(task, tests))
        for one in tests:
            console.print(plain(f"{one['test']}: {one['says']}"))
            for why, count in one["left_out"].items():
                console.print(plain(f"  {count:,} left out: {why}"))
