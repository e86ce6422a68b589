"""`snellen tasks`: which tasks there are, and what one of them says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from click import option

from ..core.errors import UsageError
from .options import CATALOGS, MACHINE, PATH, print_json


def print_card(name: str, catalogs: tuple[Path, ...], as_json: bool) -> None:
    """Print a card for people, or whole for programs."""
    from ..api.card_words import describe_card
    from ..api.listing import read_card_table

    if as_json:
        print_json(read_card_table(name, catalogs))
        return
    click.echo(describe_card(name, catalogs), nl=False)


def print_suite(name: str, catalogs: tuple[Path, ...], as_json: bool) -> None:
    """Print the members of a suite and how its one number is made."""
    from ..api.card_words import describe_suite

    suite = describe_suite(name, catalogs)
    if as_json:
        print_json(suite)
        return
    click.echo("\n".join(_suite_lines(suite)))


def _suite_lines(suite: Mapping[str, Any]) -> Iterator[str]:
    yield f"{suite['name']}: {suite['title']}"
    counted = {member["task"]: _counted(member) for member in suite["members"]}
    for task in suite["tasks"]:
        yield f"  {task}{counted.get(task, '')}"
    for task in suite["missing"]:
        yield f"  {task}: no card yet"
    if suite["headline"]:
        yield f"headline {suite['headline']}: the mean of all members; with one lacking it has no value"
    if suite["protocol"]:
        yield f"quoted in protocol {suite['protocol']}: snellen run {suite['name']} --protocol {suite['protocol']} …"
    if suite["notes"]:
        yield suite["notes"]
    if suite["from_memory"]:
        yield f"from memory, unchecked: {'; '.join(suite['from_memory'])}"


def _counted(member: Mapping[str, Any]) -> str:
    metric = f" by {member['metric']}" if member["metric"] else ""
    scale = f" × {member['scale']:g}" if member["scale"] != 1 else ""
    weight = f", weight {member['weight']:g}" if member["weight"] != 1 else ""
    return f"{metric}{scale}{weight}"


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
