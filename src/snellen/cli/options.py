"""Short names for what many commands share: types of arguments, options they word alike, and how `--json` prints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PATH = click.Path(path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
COUNT = click.IntRange(min=1)
NOT_NEGATIVE = click.IntRange(min=0)
ABOVE_ZERO = click.FloatRange(min=0, min_open=True)
FROM_ZERO = click.FloatRange(min=0)

defaulted = partial(click.option, show_default=True)
"""An option whose help shows its default."""
flag = partial(click.option, is_flag=True)
repeated = partial(click.option, multiple=True)
json_flag = partial(flag, "--json", "as_json")


def add_options(*options: Decorator) -> Decorator:
    """Return a decorator that adds these options in order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


SEED = defaulted("--seed", type=int, default=0)
JSON = json_flag(help="Print a summary as JSON on stdout.")
MACHINE = json_flag(help="Machine output.")
MACHINE_STDOUT = json_flag(help="Machine output on stdout.")
BOARD_FORMS = click.Choice(["terminal", "markdown", "html", "csv", "latex"])
BOARD_FORM = defaulted("--format", "form", type=BOARD_FORMS, default="terminal")
KEYS = add_options(
    click.option("--api-key-env", help="Environment variable that holds the key."),
    click.option("--api-key-file", type=FILE, help="File that holds the key."),
)
API_KEY = click.option("--api-key", help="The key itself (visible in process lists: prefer --api-key-env).")
ADDRESSING = add_options(
    repeated(
        "--header", "headers", metavar="NAME=VALUE", help="Send this header too; VALUE may be env:NAME. Never stored."
    ),
    repeated("--query", metavar="NAME=VALUE", help="Put this behind every address: api-version=2025-01-01."),
    click.option(
        "--api-key-command",
        "key_command",
        metavar="COMMAND",
        help="Prints the key or a token; run again when it expires.",
    ),
    flag("--strict-params", help="Stop where a server refuses a parameter, instead of sending it otherwise."),
)
EXECUTORS = ["local", "processes", "ray"]
EXECUTOR = "Who answers: this process (local, default), processes of this machine, or actors of a Ray cluster."
PATIENCE = "How long a copy may be silent at least, beside ten times the slowest answer.  [default: 60]"
REPLICAS = add_options(
    click.option("--executor", type=click.Choice(EXECUTORS), default=None, help=EXECUTOR),
    click.option("--replicas", type=COUNT, help="Copies of the model, for --executor processes and ray.  [default: 1]"),
    click.option(
        "--gpus-per-replica", type=ABOVE_ZERO, help="GPUs that each copy has to itself; for ray also a share."
    ),
    click.option("--replica-patience", "replica_patience_s", type=ABOVE_ZERO, metavar="SECONDS", help=PATIENCE),
    click.option(
        "--ray-address", help="The cluster's head: auto, HOST:PORT.  [default: $RAY_ADDRESS, or this machine]"
    ),
)
WORKERS = add_options(
    click.option("--executor", type=click.Choice(EXECUTORS), default=None, help=EXECUTOR.replace("answers", "works")),
    click.option("--replicas", type=COUNT, help="Workers, for --executor processes and ray.  [default: 1]"),
    click.option(
        "--ray-address", help="The cluster's head: auto, HOST:PORT.  [default: $RAY_ADDRESS, or this machine]"
    ),
)
"""Who does the work of a command that asks no model."""
NO_CACHE = flag("--no-cache", help="Neither read nor write the response cache.")
CATALOGS = repeated("--catalog", "catalogs", type=PATH, help="Folder with further cards.")
ALLOW_OUTSIDE = flag("--allow-outside", help="Send pictures that lie outside the data's folder, too.")
OVERRIDES = repeated("-p", "overrides", metavar="KEY=VALUE", help="Override any field of the task.")
PROTOCOL = click.option("--protocol", help="Ask, read and count as this protocol of the card: official, lmms-eval …")
QUIET = flag("--quiet", help="No progress, no tables.")


def print_json(value: Any) -> None:
    """Print one JSON document on stdout, at once."""
    click.echo(msgspec.json.encode(value, enc_hook=str).decode())


def print_either(value: Any, text: str, as_json: bool) -> None:
    """Print a value as JSON for programs, or a text for people."""
    if as_json:
        print_json(value)
    else:
        click.echo(text)
