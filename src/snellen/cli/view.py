"""`snellen view`: look at runs in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from .options import PATH, defaulted, flag, json_flag, print_json

WRITING = (
    "Allow marks, notes, labels, tags, the trash, and scores of another profile; otherwise nothing is ever written."
)


@click.command()
@click.argument("folders", nargs=-1, type=PATH, metavar="DIR...")
@defaulted("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0 takes a free one.")
@flag("--write", "may_write", help=WRITING)
@click.option("--plugin", "plugins", type=PATH, multiple=True, help="A Python file whose scorers the runs have.")
@click.option(
    "--export", type=PATH, metavar="DIR", help="Write the pages of one run to a folder instead of serving them."
)
@flag("--open", "open_it", help="Open the page in the browser.")
@json_flag(help="Print the address as JSON on stdout.")
def view(
    *,
    folders: tuple[Path, ...],
    port: int,
    may_write: bool,
    plugins: tuple[Path, ...],
    export: Path | None,
    open_it: bool,
    as_json: bool,
) -> None:
    """Look at one or many runs in the browser, also while they run.

    The address it prints carries a key; it answers on this machine only. End it with Ctrl-C.

    \b
    snellen view runs
    snellen view runs/demo --open
    snellen view runs/demo --export site/     # for a colleague, or any web server
    """
    if export is not None:
        _export(folders, export, plugins, as_json=as_json)
        if open_it:
            click.launch(str(export / "index.html"))
        return
    from ..api.view import view as serve

    def ready(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            click.echo(f"open {address}\nCtrl-C ends the viewer", err=True)
        if open_it:
            click.launch(address)

    serve(folders or (Path("runs"),), port=port, may_write=may_write, plugins=plugins, ready=ready)


def _export(folders: tuple[Path, ...], to: Path, plugins: tuple[Path, ...], *, as_json: bool) -> None:
    """Write the pages of one run, and say what was written and what was not."""
    from ..api.view import export_view

    if len(folders) != 1:
        raise click.UsageError("--export takes one run: snellen view RUN --export DIR")
    done = export_view(folders[0], to, plugins=plugins)
    if as_json:
        print_json(done._asdict() | {"folder": str(done.folder)})
        return
    trials = f"{done.trials:,} of {done.of_trials:,}" if done.trials < done.of_trials else f"{done.trials:,}"
    size = f"{done.pages:,} pages, {trials} trials, {done.pictures:,} pictures, {done.bytes / 1e6:.1f} MB"
    click.echo(f"{to / 'index.html'}: {size}", err=True)
    if done.left_out:
        click.echo(f"{done.left_out:,} pictures are not there; their places say why", err=True)
