"""Short names for what many commands share: types of arguments, options they word alike, and how `--json` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.shell_completion import CompletionItem

from ..api.settings import COMMON, GROUPS, OUTPUT, Setting, refusal, rows_of
from ..core.builtins import parts_in
from ..core.errors import UsageError
from ..core.registry import Registry, resolve_target

if TYPE_CHECKING:
    from rich.table import Table


def take_workers(flags: dict[str, Any]) -> Any:
    """Take `--executor`, `--replicas` and `--ray-address` out of a command's flags and return who works."""
    from ..api.executors import Workers, mapper_for

    executor, replicas, address = (flags.pop(name) for name in ("executor", "replicas", "ray_address"))
    return mapper_for(Workers(executor or "local", replicas, address), lambda note: click.echo(note, err=True))


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
OWN = "Options"
"""The heading of what only one command has."""
ON_SCREEN = ("verbose", "show_prompts", "as_lines", "quiet", "as_json")
"""What is no setting, but said with those of the output."""


def add_options(*options: Decorator) -> Decorator:
    """Return a decorator that adds these options in order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


class RegisteredNames(click.ParamType[str]):
    """One of the names of a kind in the registry, which is asked when a name is given, or help is."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def _names(self) -> click.Choice[str]:
        from ..core.builtins import default_registry

        return click.Choice(tuple(default_registry().entries(self.name)))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a name that is registered."""
        return self._names().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return all of them, as help shows them."""
        return self._names().get_metavar(param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return those that begin so."""
        return self._names().shell_complete(ctx, param, incomplete)


class OpenGroup(click.Group):
    """A group whose commands kits may add to: what is registered as the command `GROUP NAME` is its NAME."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return its own commands and those of kits, sorted."""
        return sorted({*super().list_commands(ctx), *self._of_kits()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one command, imported where a kit brings it."""
        return super().get_command(ctx, cmd_name) or resolve_target(self._of_kits().get(cmd_name))

    def _of_kits(self) -> dict[str, Any]:
        from ..core.builtins import default_registry

        names, before = default_registry().entries("command"), f"{self.name} "
        return {name.removeprefix(before): one.target for name, one in names.items() if name.startswith(before)}


SEED = defaulted("--seed", type=int, default=0)
JSON = json_flag(help="Print a summary as JSON on stdout.")
MACHINE = json_flag(help="Machine output.")
MACHINE_STDOUT = json_flag(help="Machine output on stdout.")
BOARD_FORMS = click.Choice(["terminal", "markdown", "html", "csv", "latex"])
BOARD_FORM = defaulted("--format", "form", type=BOARD_FORMS, default="terminal")


def option_of(row: Setting, **changes: Any) -> Decorator:
    """Return a row of the table of settings as an option; `changes` are what a command words otherwise."""
    flags = row.flags
    what: dict[str, Any] = {"help": _help(row), "metavar": row.metavar, "default": None}
    if row.kind is bool and row.may_be_none:
        flags = (f"{flags[0]}/--no-{flags[0].removeprefix('--')}",)
    elif row.kind is bool:
        what["is_flag"] = True
    else:
        what |= {"type": _click_type(row), "multiple": row.several if row.many is None else row.many}
    return click.option(*flags, row.name, **(what | changes))


def _help(row: Setting) -> str:
    text = row.help.replace(" [default:", "  [default:")
    if isinstance(row.default, int | float | str) and not isinstance(row.default, bool) and "[default:" not in text:
        text += f"  [default: {row.default}]"
    return text


def _click_type(row: Setting) -> Any:
    if row.choices:
        return click.Choice(row.choices)
    if row.kind is Path:
        return FILE if row.exists else PATH
    if row.kind not in (int, float):
        return str
    low = row.least if row.above is None else row.above
    if low is None:
        return row.kind
    if row.kind is int:
        return click.IntRange(min=int(low))
    return click.FloatRange(low, row.below, min_open=row.above is not None, max_open=row.below is not None)


def setting_options(command: str, **changes: Mapping[str, Any]) -> Decorator:
    """Return the options of all settings that a command honours; what it words otherwise is given by name."""
    rows = [row for row in rows_of(command).values() if row.flags]
    return add_options(*(option_of(row, **changes.get(row.name, {})) for row in rows))


def shared(*names: str) -> Decorator:
    """Return options of single settings, for a command that takes no others."""
    rows = rows_of("run")
    return add_options(*(option_of(rows[name]) for name in names))


WHOLE_HELP = "snellen.help_all"


def _print_all(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        ctx.meta[WHOLE_HELP] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_all,
    help="Show every option: --help shows those that most people use.",
)


class SettingsCommand(click.Command):
    """A command that honours some settings: its help shows them in their groups, and it refuses the others by name."""

    def __init__(self, *arguments: Any, honours: str, **how: Any) -> None:
        super().__init__(*arguments, **how)
        self.honours = honours
        self.params.append(HELP_ALL)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say of a setting that is not honoured that it is one."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as mistake:
            flag = mistake.option_name.replace("_", "-")
            meant = {flag, f"--{flag.removeprefix('--no-')}"}
            for name, row in rows_of("run").items():
                if meant.intersection(row.flags):
                    place = f"`{ctx.command_path.removesuffix(' run')}`"
                    raise refusal(name, self.honours, flag, place) from None
            if self.honours == "run":
                from ..api.card_words import describe_option_of_others  # only a mistake needs it

                if theirs := describe_option_of_others(flag):
                    raise UsageError(f"no option {flag}: {theirs}") from None
            known = [name for parameter in self.params for name in parameter.opts if name.startswith("--")]
            begun = sorted(name for name in known if name.startswith(flag) and len(flag) > 3)
            raise click.NoSuchOption(
                mistake.option_name, possibilities=begun or mistake.possibilities, ctx=ctx
            ) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what is the command's own, then one list a group."""
        rows, whole = rows_of(self.honours), ctx.meta.get(WHOLE_HELP)
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (OWN, *GROUPS)}
        for parameter in self.get_params(ctx):
            record, name = parameter.get_help_record(ctx), parameter.name or ""
            hidden = name in rows and name not in COMMON and not whole
            if record is not None and isinstance(parameter, click.Option) and not hidden:
                group = OUTPUT if name in ON_SCREEN or {"--help", "--help-all"}.intersection(parameter.opts) else OWN
                groups[rows[name].group if name in rows else group].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class SettingsGroup(SettingsCommand, click.Group):
    """The same for a command that has commands below it."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


KEYS = shared("api_key_env", "api_key_file")
API_KEY = shared("api_key")
NO_CACHE = shared("no_cache")
CATALOGS = shared("catalogs")
OVERRIDES = shared("overrides")
PROTOCOL = shared("protocol")
EXECUTORS = rows_of("run")["executor"].choices
WORKER_WORDS = {
    "executor": "Who works: this process, processes of this machine, or actors of a Ray cluster.  [default: local]",
    "replicas": "Workers, for --executor processes and ray.  [default: 1]",
}
WORKERS = add_options(
    *(option_of(rows_of("run")[name], help=words) for name, words in WORKER_WORDS.items()), shared("ray_address")
)
"""Who does the work of a command that asks no model."""
QUIET = flag("--quiet", help="No progress, no tables.")
VERBOSE = flag("--verbose", help="The whole plan: how rows were read, what is sent where, what estimates rest on.")
PLAIN = flag("--plain", "as_lines", help="Progress as plain lines, for logs.")


def part_tables(
    result: Mapping[str, Any], registry: Registry | None = None, *, of_axes: bool = True
) -> Iterator[Table]:
    """Yield what kits say of a task; nothing is imported where they say nothing."""
    for tables, found in parts_in(result, "tables", registry, of_axes=of_axes):
        yield from tables(found)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout, at once."""
    click.echo(msgspec.json.encode(value, enc_hook=str).decode())


def print_either(value: Any, text: str, as_json: bool) -> None:
    """Print a value as JSON for programs, or a text for people."""
    if as_json:
        print_json(value)
    else:
        click.echo(text)
