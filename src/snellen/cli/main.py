"""The command `snellen`: a lazy table of commands and one place where errors become exit codes."""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..core.errors import EXIT_AGAIN, EnvironmentProblem, GroundLost, SnellenError, ToldToEnd, did_you_mean
from ..core.secret import hide_passwords
from ..core.text import clean_text, show_text
from ..core.version import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run:run", "Measure a model on tasks: plan, ask, store, score, report."),
    "submit": ("submit_command:submit", "Write a Slurm array or a Kubernetes job of a run in parts, and submit it."),
    "merge": ("merge_command:merge", "Join the parts of a run (--shard) to the run that one process leaves."),
    "batch": ("queued_batches:batch", "Look at the batches of a run, or cancel them."),
    "exam": ("exam:exam", "Examine how a model sees: thresholds, and a prescription of what to send it."),
    "perf": ("perf.command:perf", "Measure serving performance: load, objectives, timelines."),
    "data": ("data:data", "Build, check and export datasets."),
    "compare": (
        "compare:compare",
        "Compare runs sample by sample: difference, interval, exact test, first divergence.",
    ),
    "plan": ("plan:plan", "Say how many questions and repeats detect a gap."),
    "view": ("view:view", "Look at runs in the browser, also while they run."),
    "score": ("score:score", "Score predictions made elsewhere, or score a run again."),
    "judge": ("label:judge", "Label a few judged replies, and correct a judge's figure by them."),
    "import": ("import_command:import_command", "Read predictions of another harness into a run."),
    "second-opinion": (
        "opinion_command:second_opinion_command",
        "Read another harness's predictions again: its number, ours, and where they part.",
    ),
    "extract": ("extract:extract", "Read one reply: the option, the rule that decided, and why."),
    "report": ("report:report", "Write report.html of a run, its plots, or files for other programs."),
    "show": ("show:show", "Print a run, or one sample of it whole."),
    "leaderboard": ("leaderboard:leaderboard", "Rank many runs, and say which cannot be told apart."),
    "tasks": ("tasks:tasks", "List tasks and suites, or show one."),
    "models": ("models:models", "List model providers, or check one model."),
    "serve-check": (
        "serve_check_command:serve_check",
        "Say in ten seconds what a server can do and which flags to use.",
    ),
    "cluster": ("cluster_command:cluster", "Look at a Ray cluster before a run does: nodes, versions, model."),
    "doctor": ("doctor:doctor", "Look at this machine, or at a run, and say what is missing."),
    "repair": ("repair:repair", "Save every readable row of a damaged run into a new run.db."),
    "completion": ("completion:completion", "Print what a shell needs to complete commands and options."),
    "cache": ("cache:cache", "Look at or prune the response cache."),
    "curate": ("curate:curate", "Build a dataset with an LLM and people: draft, gates, review, publish."),
    "train": ("train_commands:train", "Tune a model's rationales, and measure what that gained."),
    "docs": ("docs:docs", "Render texts as pages, degrade pages, plant needles."),
    "mc": ("mc:mc", "Multiple choice over page images, with the scripts' own arguments and files."),
    "niah": ("mc:niah", "Needle questions over page images, with the scripts' own arguments and file."),
    "mock-server": ("mock_server:mock_server", "Serve simulated readers and scripted faults, OpenAI-compatible."),
}
"""Command name -> (`module:attribute` in here, one-line help); a command's module is imported only when it runs."""

EXIT_INTERRUPTED = 130


class LazyGroup(click.Group):
    """A click group whose commands are imported when called, so `--help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, or return None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = f"snellen.cli.{COMMANDS[cmd_name][0]}".partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the table, without importing any."""
        named = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return named or click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say which command was probably meant when the name is unknown."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0]!r}{did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the table without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


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


def _run(arguments: list[str] | None) -> int:
    try:
        code: Any = cli.main(args=arguments, prog_name="snellen", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as mistake:
        _show(mistake)
        return _refuse("UsageError", mistake.format_message(), mistake.exit_code, arguments)
    except ToldToEnd:
        return _refuse("Interrupted", "told to end; run the same command again to continue", EXIT_AGAIN, arguments)
    except (click.Abort, KeyboardInterrupt):
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
