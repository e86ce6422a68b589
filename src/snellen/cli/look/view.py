"""`snellen view`: look at runs in the browser."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="DIR...")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port on 127.0.0.1; 0 takes a free one."
)
@click.option(
    "--write",
    "may_write",
    is_flag=True,
    help="Allow scores of another profile to be kept in a run; otherwise nothing is ever written.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON on stdout.")
def view(folders: tuple[Path, ...], port: int, may_write: bool, open_it: bool, as_json: bool) -> None:
    """Look at one or many runs in the browser, also while they run.

    The address it prints carries a key; it answers on this machine only. End it with Ctrl-C.

    \b
    snellen view runs
    snellen view runs/demo --open
    """
    from ...api.view import view as serve
    from ...core.types import to_json

    def ready(address: str) -> None:
        if as_json:
            sys.stdout.write(to_json({"address": address}).decode() + "\n")
            sys.stdout.flush()
        else:
            click.echo(f"open {address}\nCtrl-C ends the viewer", err=True)
        if open_it:
            click.launch(address)

    serve(folders or (Path("runs"),), port=port, may_write=may_write, ready=ready)
