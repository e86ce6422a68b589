"""`snellen completion SHELL`: the lines that let a shell complete our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what a shell needs to complete commands and options; put it where the shell reads it at its start.

    \b
    snellen completion bash >> ~/.bashrc
    snellen completion fish > ~/.config/fish/completions/snellen.fish
    """
    kind = get_completion_class(shell)
    if kind is None:  # only if a later click forgets one it has today
        raise click.UsageError(f"click has no completion for {shell}")
    click.echo(_source(kind, context.find_root().command))


def _source(kind: type[click.shell_completion.ShellComplete], command: click.Command) -> str:
    """Return the script itself; click asks the installed bash for its version, which only its own users need."""
    made = kind(command, {}, "snellen", "_SNELLEN_COMPLETE")
    return made.source_template % made.source_vars()
