"""Short names for what many commands declare: the types of their arguments, and the options they all word alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PATH = click.Path(path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
COUNT = click.IntRange(min=1)
ABOVE_ZERO = click.FloatRange(min=0, min_open=True)

defaulted = partial(click.option, show_default=True)
"""An option whose help shows its default."""

SEED = defaulted("--seed", type=int, default=0)
JSON = click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
KEY_ENV = click.option("--api-key-env", help="Environment variable that holds the key.")
KEY_FILE = click.option("--api-key-file", type=FILE, help="File that holds the key.")
NO_CACHE = click.option("--no-cache", is_flag=True, help="Neither read nor write the response cache.")
CATALOGS = click.option("--catalog", "catalogs", multiple=True, type=PATH, help="Folder with further cards.")


def add_options(*groups: tuple[Decorator, ...]) -> Decorator:
    """Return a decorator that adds groups of options in order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return add
