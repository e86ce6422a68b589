"""`snellen tasks`: which tasks there are, and what one of them says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec
from click import option

from ..core.errors import UsageError
from .atlas.card_pages import print_card, print_suite
from .options import CATALOGS, MACHINE, PATH, print_json

EXAMPLE = """
\b
Examples:
  snellen tasks
  snellen tasks eyechart
  snellen tasks show mmmu-pro
  snellen tasks --suite openvlm
  snellen tasks --dimension "scene text" --json
"""


@click.command(epilog=EXAMPLE)
@click.argument("names", nargs=-1, metavar="[show] [NAME]")
@option("--suite", help="The members of a suite, and how its one number is made of theirs.")
@option("--dimension", help="Only tasks whose dimension holds this text.")
@option("--data-root", type=PATH, help="Where to look for data.  [default: $SNELLEN_DATA or ./data]")
@CATALOGS
@MACHINE
def tasks(
    names: tuple[str, ...],
    *,
    suite: str | None,
    dimension: str | None,
    data_root: Path | None,
    catalogs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """List the tasks and suites with the data there is for them, or show one task whole.

    `show NAME` prints the card of a published benchmark for people: protocols, pitfalls, where its data lies.
    """
    from ..api import listing

    if suite:
        print_suite(suite, catalogs, as_json)
        return
    if len(names) == 2 and names[0] == "show":
        print_card(names[1], catalogs, as_json)
        return
    if len(names) > 1:
        raise UsageError(f"snellen tasks takes one name, or `show NAME`, not {len(names)}: {' '.join(names)}")
    for name in names:
        click.echo(msgspec.json.format(msgspec.json.encode(listing.read_task(name, catalogs))).decode())
        return
    rows = listing.list_tasks(catalogs, data_root)
    rows = [row for row in rows if dimension is None or dimension.casefold() in row["dimension"].casefold()]
    suites = listing.list_suites(catalogs) if dimension is None else {}
    if as_json:
        print_json({"tasks": rows, "suites": suites})
        return
    _print(rows, suites)


def _print(rows: list[dict[str, Any]], suites: dict[str, list[str]]) -> None:
    from rich.table import Table

    from ..report.console import WholeConsole

    table = Table("task", "form", "dimension", "what it measures", "data here")
    for row in rows:
        table.add_row(row["name"], row["form"], row["dimension"], row["title"], ", ".join(row["data"]) or "–")
    console = WholeConsole()
    console.print(table)
    for suite, names in suites.items():
        console.print(f"suite {suite}: {len(names)} tasks")
    console.print("your own data works too: snellen run my.jsonl --model …", style="dim")
