"""`snellen init`, and the file it writes: snellen.toml, the settings that commands below its folder begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..api.settings import rows_of
from ..core.config import read_config_file
from ..core.errors import ConfigError, UsageError, did_you_mean
from .options import flag

FILE_NAME = "snellen.toml"
LISTS = ("tasks", "base_url")
"""Keys that may hold one text or a list of them."""

TEMPLATE = """\
# Settings of every `snellen` command in this folder and below; a flag on the command line wins.
# The names are those of the options (`snellen run --help-all`), with _ for -. What a command does not use is skipped.

model = "{model}"            # provider/name; see `snellen models`
{base_url}
{api_key_env}

# What `snellen run` asks when no task is named: your own files, or names from `snellen tasks`.
tasks = {tasks}

temperature = 0
# max_tokens = 1024
# max_workers = 32            # requests in flight at most
# max_cost = 5.0              # stop before this is spent
"""


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK|FILE...]")
@click.option("--model", default="openai/NAME", help="provider/name of the model to measure.")
@click.option("--base-url", help="Where its server answers: http://localhost:8000/v1")
@click.option("--api-key-env", help="The environment variable that holds the key.")
@flag("--force", help="Replace a snellen.toml that is there.")
def init(tasks: tuple[str, ...], *, model: str, base_url: str | None, api_key_env: str | None, force: bool) -> None:
    """Write snellen.toml: model, address and tasks, so that `snellen run` alone works in this folder.

    \b
    snellen init my.jsonl --model openai/NAME --base-url http://localhost:8000/v1
    snellen run
    """
    path = Path(FILE_NAME)
    if path.exists() and not force:
        raise UsageError(f"{path} is there already: edit it, or --force replaces it")
    text = TEMPLATE.format(
        model=model,
        base_url=_line("base_url", base_url, "http://localhost:8000/v1"),
        api_key_env=_line("api_key_env", api_key_env, "OPENAI_API_KEY"),
        tasks="[" + ", ".join(f'"{task}"' for task in tasks or ("my.jsonl",)) + "]",
    )
    path.write_text(text, encoding="utf-8")
    click.echo(f"wrote {path}: look at it, then `snellen run`")


def _line(name: str, value: str | None, example: str) -> str:
    return f'{name} = "{value}"' if value else f'# {name} = "{example}"'


def find_project(folder: Path | None = None) -> Path | None:
    """Return the snellen.toml of a folder or of the nearest one above it."""
    here = (folder or Path.cwd()).absolute()
    return next((file for one in (here, *here.parents) if (file := one / FILE_NAME).is_file()), None)


def read_project(command: str, path: Path | None) -> dict[str, Any]:
    """Return the settings in a snellen.toml that a command honours, by their names in the table.

    Files that it names lie beside it. A key that is no setting is refused, and so is a key's own text.
    """
    if path is None:
        return {}
    every, own = rows_of("run"), rows_of(command)
    settings: dict[str, Any] = {}
    for key, value in read_config_file(path).items():
        if key not in every:
            raise ConfigError(f"{path}: no setting {key!r}{did_you_mean(key, every)}; see `snellen run --help-all`")
        if every[key].secret:
            raise ConfigError(f"{path}: {key} does not belong in a file; name the variable that holds it: api_key_env")
        if key in own:
            settings[key] = _settled(key, value, path)
    return settings


def _settled(key: str, value: Any, path: Path) -> Any:
    if isinstance(value, list):
        value = tuple(value)
    elif isinstance(value, dict) and key in ("query", "columns", "model_arguments"):
        value = tuple(f"{name}={one}" for name, one in value.items())
    if key in LISTS and isinstance(value, str):
        value = (value,)
    if key == "tasks":
        return tuple(str(path.parent / one) if (path.parent / one).exists() else one for one in value)
    row = rows_of("run")[key]
    if row.kind is Path:
        return tuple(path.parent / one for one in value) if isinstance(value, tuple) else path.parent / value
    return value
