"""`snellen data fetch NAME` and `snellen data verify NAME --path DIR`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from ..options import CATALOGS, MACHINE, PATH, flag, print_either

FETCH_EXAMPLE = """
\b
Examples:
  snellen data fetch mmmu-pro
  snellen data fetch mmbench-en --source tsv --data-root ~/data
"""
VERIFY_EXAMPLE = """
\b
Examples:
  snellen data verify mmmu-pro --path data/mmmu-pro
  snellen data verify mmbench-en --path ~/LMUData/MMBench_DEV_EN.tsv --json
"""
SAID_EVERY = 64 << 20
"""Bytes after which progress is said again."""


@click.command("fetch", epilog=FETCH_EXAMPLE)
@click.argument("name")
@click.option("--source", help="hub, tsv or official.  [default: the first the card knows a place of]")
@click.option("--data-root", type=PATH, help="Folder that holds the datasets.  [default: $SNELLEN_DATA or ./data]")
@flag("--again", help="Fetch although everything is here.")
@CATALOGS
@MACHINE
def fetch(name: str, as_json: bool, **flags: Any) -> None:
    """Bring the data of a benchmark's card: checked, continued where it stopped, offline afterwards."""
    from ...api.atlas.card_data import fetch_card_data

    fetched, folder = fetch_card_data(name, progress=_say_progress(), **flags)
    table = {**msgspec.to_builtins(fetched), "folder": str(folder)}
    state = "is here already, unchanged" if fetched.already else "is here"
    revision = f" at {fetched.revision}" if fetched.revision else ""
    text = f"{name} {state}: {folder} ({len(fetched.files)} files of {fetched.origin}{revision})"
    print_either(table, text, as_json)


def _say_progress() -> Any:
    said: dict[str, int] = {}

    def progress(file: str, have: int, total: int | None) -> None:
        if have != total and have - said.get(file, 0) < SAID_EVERY:
            return
        said[file] = have
        of = f" of {total:,}" if total else ""
        click.echo(f"{file}: {have:,}{of} bytes", err=True)

    return progress


@click.command("verify", epilog=VERIFY_EXAMPLE)
@click.argument("name")
@click.option("--path", required=True, type=PATH, help="The table, or the folder it lies in.")
@CATALOGS
@MACHINE
def verify(name: str, path: Path, catalogs: tuple[Path, ...], as_json: bool) -> int:
    """Compare data with a benchmark's card: shape, rows, columns, checksums. Exit 1 where something differs."""
    from ...api.atlas.card_data import verify_card_data

    found = verify_card_data(name, path, catalogs)
    print_either(msgspec.to_builtins(found), "\n".join(_verified_lines(found)), as_json)
    return 1 if found.problems else 0


def _verified_lines(found: Any) -> Iterator[str]:
    if found.shape:
        expected = "" if found.expected_rows is None else f" of {found.expected_rows:,}"
        yield f"{found.card}: the {found.shape} form in {', '.join(found.files)}, {found.rows:,}{expected} rows"
    for file, by in found.checked.items():
        yield f"{file}: the checksum is that of {by}"
    yield from (f"note: {note}" for note in found.notes)
    yield from (f"problem: {problem}" for problem in found.problems)
    if not found.problems:
        yield "nothing differs from the card"
