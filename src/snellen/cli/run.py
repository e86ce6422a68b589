"""`snellen run`: the main job."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..api.settings import NOTHING, RunSettings, Setting, perturbations, refusal, rows_of, table
from ..core.config import parse_assignment, read_config_file, set_by_path
from ..core.errors import EXIT_AGAIN, ConfigError, ServerLost, UsageError, not_among
from ..core.protocols import ImagePolicy
from ..core.secret import Secret, hide_passwords, names_a_key
from ..core.text import show_text
from .options import COUNT, PLAIN, QUIET, VERBOSE, SettingsCommand, json_flag, setting_options
from .project import find_project, read_project

FILE_ENDINGS = (".json", ".toml")
"""What ends so is a file; anything else may be the name of a ready one (`internvl-3.5`)."""
LAUNCHED = ("extra_args", "launch_model", "max_num_frames")
"""Keys of FlagEvalMM's model files for a server that it starts itself: here it is already running."""
NO_SETTING = ("backend", "chat_name", "output_dir", "retry_time")
"""Keys of these that say nothing about what is asked: which client, and where it keeps its own files."""


def read_model_file(path: Path | None, command: str, catalogs: Sequence[Path] = ()) -> dict[str, Any]:
    """Read a model file, or a ready one by its name, into settings by their names in the table.

    A key that means nothing here is refused, and so is one of a setting that the command does not honour.
    """
    if path is None:
        return {}
    by_name = not path.exists() and path.suffix not in FILE_ENDINGS and path.parent == Path()
    content = _ready(path.name, catalogs) if by_name else read_config_file(path)
    known = {key: name for name, row in rows_of("run").items() for key in row.file.split()}
    for key in content:
        if key not in known and key not in (*NO_SETTING, *LAUNCHED):
            raise ConfigError(f"{path}: unknown key {not_among(key, known)}")
    if launched := [key for key in LAUNCHED if key in content]:
        click.echo(f"{path}: {', '.join(launched)} not used: for a server that is started from this file", err=True)
    if content.get("url") and content.get("base_url"):
        raise ConfigError(f"{path}: `url` and `base_url` are the same: give one")
    settings = {known[key]: value for key, value in content.items() if key in known and value is not None}
    if others := settings.keys() - rows_of(command).keys():
        name = min(others)
        raise refusal(name, command, f"{path}: {name}")
    if "model" in settings:
        settings["model"] = f"openai/{settings['model']}"
    if "api_key" in settings:
        settings["api_key"] = Secret(str(settings["api_key"]))
    return settings


def _ready(name: str, catalogs: Sequence[Path]) -> dict[str, Any]:
    from ..api.listing import ready_config  # most commands name no model file

    return ready_config(name, catalogs)


EXAMPLE = """
\b
Examples:
  snellen run eyechart --model reader
  snellen run my.jsonl --model openai/NAME --base-url http://localhost:8000/v1
  snellen run my.csv --map question=prompt --model blind/longest --limit 100
  snellen init my.jsonl --model openai/NAME && snellen run
"""


@click.command(cls=SettingsCommand, honours="run", epilog=EXAMPLE)
@click.argument("tasks", nargs=-1, metavar="TASK|FILE...")
@setting_options("run")
@PLAIN
@VERBOSE
@click.option("--show-prompt", "show_prompts", type=COUNT, help="Print the first N prompts whole before asking.")
@QUIET
@json_flag(help="Print results.json on stdout; all else goes to stderr.")
def run(quiet: bool, as_json: bool, as_lines: bool, verbose: bool, show_prompts: int | None, **flags: Any) -> int:
    """Measure a model on tasks: plan, ask, store, score, report.

    TASK is a name from `snellen tasks`, a task file (.toml), or your own data (.jsonl .json .csv .tsv .parquet
    .arrow .xlsx .tar, a folder of them).
    The same command again continues where it stopped, and costs nothing when it is complete.
    """
    from ..api.run import run_settings
    from ..core.process import heeding_schedulers
    from .run_output import TerminalWatcher, print_part, print_result

    settings = make_settings("run", flags)
    if not settings.tasks:
        raise UsageError("name a task or a file: snellen run my.jsonl (see `snellen tasks`); `snellen init` keeps them")
    watcher = TerminalWatcher(quiet=quiet, as_lines=as_lines, prompts=show_prompts or 0, verbose=verbose)
    with heeding_schedulers() as heard:
        try:
            result = run_settings(settings, watcher)
        except ServerLost as error:
            if settings.shard is None:
                raise
            click.echo(f"error: {show_text(hide_passwords(str(error)))}", err=True)
            return EXIT_AGAIN
    if result.part is not None:
        return print_part(result, watcher, as_json=as_json, quiet=quiet)
    print_result(result, watcher, as_json=as_json, quiet=quiet)
    if result.interrupted and heard.again:
        return EXIT_AGAIN
    if result.interrupted:
        return 3 if result.state.overdue or result.state.over_limit or result.state.in_batches else 130
    return 1 if result.failed else 0


def make_settings(command: str, flags: Mapping[str, Any], **defaults: Any) -> RunSettings:
    """Turn the flags of a command into settings; a model file stands between the defaults and the flags."""
    rows = rows_of(command)
    told = {name: value for name, value in flags.items() if name in rows and not _is_untold(rows[name], value)}
    told = _with_project(command, told, flags)
    file = read_model_file(told.pop("config_file", None), command, told.get("catalogs", ()))
    key = read_key(*(told.pop(name, None) for name in ("api_key", "api_key_env", "api_key_file")))
    given = _fold({**defaults, **file, **told, **({"api_key": key} if key else {})}, command)
    if not given.get("model"):
        raise UsageError("name the model: --model provider/name (see `snellen models`), or `snellen init` keeps it")
    settings: dict[str, Any] = {"tasks": (), "command": command_line(sys.argv)}
    for name, row in rows.items():  # a table comes before its parts
        if name in given:
            value = row.value or given[name]
            if name in READERS:
                value = READERS[name](value)
            set_by_path(settings, name if name in table(RunSettings) else row.to, value)
    if "image_policy" in settings:
        settings["image_policy"] = ImagePolicy(**settings["image_policy"])
    return RunSettings(**settings)


def _with_project(command: str, told: dict[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Put the settings of the nearest snellen.toml before the flags, and say which of them hold."""
    path = find_project()
    own = {name: value for name, value in read_project(command, path).items() if name != "tasks" or name in flags}
    kept = {name: value for name, value in own.items() if name not in told}
    if kept and not flags.get("quiet"):
        click.echo(f"settings from {path}: {', '.join(kept)}", err=True)
    return {**kept, **told}


def _is_untold(row: Setting, value: Any) -> bool:
    return value in NOTHING or (value is False and not row.may_be_none)


def _fold(given: dict[str, Any], command: str) -> dict[str, Any]:
    """Put what is short for a whole setting into that setting."""
    rows, folded = rows_of(command), dict(given)
    for setting, fold in FOLDS.items():
        parts = (setting, *(name for name, row in rows.items() if row.to == setting and name != setting))
        if any(name in given for name in parts):
            value = fold(*(folded.pop(name, None) for name in parts))
            folded |= {} if value in NOTHING else {setting: value}
    if not isinstance(urls := folded.get("base_url"), str | None):
        folded["base_url"], *more = urls
        folded["more_urls"] = tuple(more)
    return folded


def _wants_cache(in_file: bool | None, never: bool | None, always: bool | None) -> bool:
    """Tell whether known replies are taken from the cache: as a flag says, else the model file, else yes."""
    if never and always:
        raise UsageError("--use-cache and --no-cache say the opposite: give one")
    return bool(always) or (in_file is not False and not never)


def _one_folder(folder: Path | None, name: str | None) -> Path | None:
    if folder is not None and name:
        raise UsageError("--name and -o both name the run's folder: give one")
    if name and (Path(name).name != name or name.startswith(".")):
        raise UsageError(f"--name {name!r} must be a plain name; -o takes a path")
    return Path("runs") / name if name else folder


def _one_subset(named: str | None, core: bool | None, debug: bool | None) -> str | None:
    chosen = [name for name in (named, "core" if core else None, "debug" if debug else None) if name]
    if len(chosen) > 1:
        raise UsageError(f"--subset {' and '.join(chosen)}: choose one")
    return chosen[0] if chosen else None


def read_ids(text: str | None, file: Path | None) -> tuple[str, ...]:
    """Return the ids of `--ids a,b` and of a file with one a line, each once."""
    ids = [part.strip() for part in (text or "").split(",")]
    if file is not None:
        try:
            ids += [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--ids-file {file} cannot be read as text: {error}") from None
    named = tuple(dict.fromkeys(filter(None, ids)))
    if not named and (text is not None or file is not None):
        raise UsageError(f"{'--ids' if file is None else f'--ids-file {file}'} names no sample")
    return named


def read_shots(spec: str) -> dict[str, Any]:
    """Read `2`, `random:2` or `fixed:id1,id2`."""
    if spec.isdigit():
        spec = f"random:{spec}"
    retriever, _, rest = spec.partition(":")
    if retriever == "fixed":
        return {"retriever": retriever, "ids": rest.split(",")}
    if not rest.isdigit():
        raise UsageError(f"--shots {spec!r} is not N, RETRIEVER:N (random:2, similar:3, bm25:3) or fixed:id1,id2")
    return {"retriever": retriever, "count": int(rest)}


def _read_arguments(given: tuple[str, ...]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for key, value in map(parse_assignment, given):
        set_by_path(arguments, key, value)  # `engine.enforce_eager=true` is a field of the table `engine`
    return arguments


def read_headers(given: tuple[str, ...]) -> dict[str, Secret]:
    """Return the headers of `--header NAME=VALUE`; a VALUE `env:NAME` is taken from the environment."""
    headers = {}
    for name, value in read_pairs("--header", given).items():
        variable = value.removeprefix("env:") if value.startswith("env:") else None
        if variable is not None and variable not in os.environ:
            raise UsageError(f"--header {name}=env:{variable}: that variable is not set")
        text = value if variable is None else os.environ[variable]
        if not text.isprintable() or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise UsageError(f"--header {name}: no line ends or control characters in a header")
        headers[name] = Secret(text)
    return headers


def read_pairs(flag_name: str, given: tuple[str, ...]) -> dict[str, str]:
    """Return NAME=VALUE pairs as texts."""
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{flag_name} takes NAME=VALUE")
        pairs[name.strip()] = value
    return pairs


FOLDS: Mapping[str, Callable[..., Any]] = {
    "cache": _wants_cache,
    "limit": lambda limit, try_run: limit or (8 if try_run else None),
    "ids": read_ids,
    "variants": lambda named, spec: tuple(dict.fromkeys((*(named or ()), *perturbations(spec)))),
    "subset": _one_subset,
    "output_dir": _one_folder,
    "overrides": lambda told, capitalize: (*(["dataset.capitalise=true"] if capitalize else ()), *(told or ())),
    "infer_method": lambda method, own: ("every_likelihood" if method == "likelihood" else "every") if own else method,
    "num_infers": lambda count, _: count,  # instability is reported whenever there is something to see
}
"""Setting -> its value, made of what was told of it and of each row that is short for it, in the order of the table."""

READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("arms", "tools", "tool_arms"),
        lambda text: tuple(filter(None, (name.strip() for name in text.split(",")))),
    ),
    "headers": read_headers,
    "query": partial(read_pairs, "--query"),
    "columns": lambda given: {field: str(column) for field, column in map(parse_assignment, given)},
    "model_arguments": _read_arguments,
    "extractor_settings": lambda given: dict(map(parse_assignment, given)),
    "overrides": lambda given: tuple(map(parse_assignment, given)),
    "shots": read_shots,
    "post_prompt": lambda text: [text],
}
"""Row -> how what stands on the command line becomes its value, where it is not taken as it is."""


def command_line(arguments: list[str]) -> str:
    """Return the command as typed, without keys, however they are spelled, and without what headers hold.

    All parts of a run have one command: that of the whole run.
    """
    secret = {flag for row in rows_of("run").values() if row.secret for flag in row.flags}
    shown = ["snellen", *_without_shard(arguments[1:])]
    for index, argument in enumerate(shown):
        name, equals, _ = argument.partition("=")
        if name.replace("_", "-") not in secret and not names_a_key(name):
            continue
        if equals:
            shown[index] = f"{name}=****"
        elif name.startswith("-") and index + 1 < len(shown):
            shown[index + 1] = "****"
    return hide_passwords(shlex.join(shown))  # a password in an address is a key too


def _without_shard(arguments: Sequence[str]) -> list[str]:
    kept, skip = [], False
    for argument in arguments:
        if not skip and argument not in ("--shard", "--steal") and not argument.startswith("--shard="):
            kept.append(argument)
        skip = not skip and argument == "--shard"
    return kept


def read_key(value: str | None, variable: str | None, file: Path | None) -> Secret | None:
    """Return the key from a flag, an environment variable or a file; None for a server that asks for none."""
    if value:
        better = "prefer --api-key-env NAME or --api-key-file FILE"
        click.echo(f"warning: --api-key is visible in process lists; {better}", err=True)
        return Secret(value)
    if variable:
        if not os.environ.get(variable):
            raise UsageError(f"--api-key-env {variable}: that variable is not set")
        return Secret(os.environ[variable])
    if file is None:
        return None
    try:
        key = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--api-key-file {file} cannot be read as text: {error}") from None
    if not key:
        raise UsageError(f"--api-key-file {file} is empty")
    return Secret(key)
