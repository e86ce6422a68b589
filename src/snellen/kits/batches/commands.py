"""`snellen batch`: how the batches of a run stand, or their end."""

from __future__ import annotations

from pathlib import Path

import click

from ...cli import options
from ...cli.options import FOLDER, MACHINE, print_either
from ...cli.run import read_key
from ...core.secret import Secret


@click.group()
def batch() -> None:
    """Look at the batches of a run (`snellen run … --batch`), or cancel them. The run's own command collects them."""


@batch.command(epilog="\b\nExample:\n  snellen batch status runs/mine")
@click.argument("run", type=FOLDER)
@options.KEYS
@options.API_KEY
@MACHINE
def status(run: Path, api_key: str | None, api_key_env: str | None, api_key_file: Path | None, as_json: bool) -> None:
    """Say how the batches of a run stand."""
    _print(run, read_key(api_key, api_key_env, api_key_file), as_json=as_json, cancel=False)


@batch.command(epilog="\b\nExample:\n  snellen batch cancel runs/mine")
@click.argument("run", type=FOLDER)
@options.KEYS
@options.API_KEY
@MACHINE
def cancel(run: Path, api_key: str | None, api_key_env: str | None, api_key_file: Path | None, as_json: bool) -> None:
    """Cancel the open batches of a run; what they had done is kept, and the run's command collects it."""
    _print(run, read_key(api_key, api_key_env, api_key_file), as_json=as_json, cancel=True)


def _print(run: Path, key: Secret | None, *, as_json: bool, cancel: bool) -> None:
    from .batch_look import describe_batches, look_at_batches

    told = look_at_batches(run, key, cancel=cancel)
    print_either(told, "\n".join(describe_batches(told)), as_json)
