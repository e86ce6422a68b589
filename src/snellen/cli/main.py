"""The command `snellen`: registered commands, imported when called; one place where errors become exit codes."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..core.builtins import COMMANDS, default_registry
from ..core.errors import EXIT_AGAIN, EnvironmentProblem, GroundLost, SnellenError, ToldToEnd, did_you_mean
from ..core.registry import Command, Registry, resolve_target
from ..core.secret import hide_passwords
from ..core.text import clean_text, show_text
from ..core.version import __version__

EXIT_INTERRUPTED = 130


class LazyGroup(click.Group):
    """A click group whose commands are imported when called, so `--help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, or return None if there is none of that name."""
        found = _registry().find("command", cmd_name)
        command: click.Command | None = found and resolve_target(found.target)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the table, without importing any."""
        every = _commands().items()
        named = [CompletionItem(name, help=each.help) for name, each in every if name.startswith(incomplete)]
        return named or click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say which command was probably meant when the name is unknown."""
        if args and not args[0].startswith("-") and _registry().find("command", args[0]) is None:
            near = did_you_mean(args[0], _commands())
            raise click.UsageError(f"no command {args[0]!r}{near}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the table without importing any command."""
        headings: dict[str, list[tuple[str, str]]] = {heading: [] for heading in COMMANDS}
        commands = _commands()
        for name, command in commands.items():
            headings.setdefault(command.group, []).append((name, command.help))
        widest = max(map(len, commands))
        for heading, rows in headings.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(widest), text) for name, text in rows])


def _commands() -> Mapping[str, Command]:
    """Return what stands at the top: a name of two words belongs to the group that is its first."""
    return {name: command for name, command in _registry().entries("command").items() if " " not in name}


@cache
def _registry() -> Registry:
    return default_registry()


def with_hyphens(name: str) -> str:
    """Return an option's or command's name as it is declared: `--max_tokens` is `--max-tokens`."""
    return name.replace("_", "-")


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "token_normalize_func": with_hyphens}
)
@click.version_option(__version__)
def cli() -> None:
    """Snellen, the eye chart for vision-language models.

    \b
    snellen run eyechart --model reader
    snellen run my.jsonl --model openai/NAME --base-url http://localhost:8000/v1
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every deliberate error is one line on stderr and an exit code."""
    for stream in (sys.stdout, sys.stderr):  # a letter that the terminal cannot write must not end a run
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run(arguments))


NOT_HERE = "Snellen does not run on Windows itself (file locks, polls and signals are POSIX): use WSL, `wsl --install`"


def _run(arguments: list[str] | None) -> int:
    if os.name == "nt":
        click.echo(f"error: {NOT_HERE}", err=True)
        return _refuse("EnvironmentProblem", NOT_HERE, EnvironmentProblem.exit_code, arguments)
    try:
        code: Any = cli.main(args=arguments, prog_name="snellen", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as mistake:
        _show(mistake)
        return _refuse("UsageError", mistake.format_message(), mistake.exit_code, arguments)
    except (click.Abort, KeyboardInterrupt) as stop:
        if isinstance(stop.__cause__ or stop, ToldToEnd):  # click turns every interrupt into an Abort
            return _refuse("Interrupted", "told to end; run the same command again to continue", EXIT_AGAIN, arguments)
        what_now = "interrupted; run the same command again to continue"
        return _refuse("Interrupted", what_now, EXIT_INTERRUPTED, arguments)
    except BrokenPipeError:  # whoever read our output has seen enough
        # The interpreter's last flush must go somewhere.
        code, sys.stdout = 0, open(os.devnull, "w")  # noqa: SIM115, PTH123
    except (SnellenError, OSError) as problem:
        error = _as_ours(problem)
        message = hide_passwords(str(error))
        click.echo(f"error: {show_text(message)}", err=True)
        code = _refuse(type(error).__name__, message, error.exit_code, arguments)
        if isinstance(error, GroundLost):
            _leave_at_once(code)
    return int(code or 0)


def _leave_at_once(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _show(mistake: click.ClickException) -> None:
    """Say what is wrong with the command line in one line, and where its options are told; no command: the help."""
    if isinstance(mistake, click.exceptions.NoArgsIsHelpError):
        mistake.show()
        return
    path = mistake.ctx.command_path if isinstance(mistake, click.UsageError) and mistake.ctx else "snellen"
    words = " ".join(mistake.format_message().removeprefix("Invalid value for ").split()).rstrip(".")
    click.echo(f"error: {show_text(words)}; see {path} --help", err=True)


def _as_ours(problem: SnellenError | OSError) -> SnellenError:
    if isinstance(problem, SnellenError):
        return problem
    return EnvironmentProblem(f"{problem.filename or 'the system'}: {problem.strerror or problem}")


def _refuse(kind: str, message: str, exit_code: int, arguments: list[str] | None) -> int:
    """Tell a program that reads our JSON what went wrong, in JSON; return the exit code."""
    if "--json" in (sys.argv[1:] if arguments is None else arguments):
        error = {"kind": kind, "message": clean_text(message), "exit_code": exit_code}
        click.echo(json.dumps({"error": error}))
    return exit_code
