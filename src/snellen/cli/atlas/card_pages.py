"""What `snellen tasks show NAME` and `snellen tasks --suite NAME` print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from ..options import print_json


def print_card(name: str, catalogs: tuple[Path, ...], as_json: bool) -> None:
    """Print a card for people, or whole for programs."""
    from ...api.atlas.card_words import describe_card
    from ...api.listing import read_card_table

    if as_json:
        print_json(read_card_table(name, catalogs))
        return
    click.echo(describe_card(name, catalogs), nl=False)


def print_suite(name: str, catalogs: tuple[Path, ...], as_json: bool) -> None:
    """Print the members of a suite and how its one number is made."""
    from ...api.atlas.card_words import describe_suite

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
