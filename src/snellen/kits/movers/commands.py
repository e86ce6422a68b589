"""`snellen reform-eval`, `flagevalmm`, `aisbench` and `migrate`."""

from __future__ import annotations

from pathlib import Path

import click

from ...cli.options import PATH


def _mover(system: str) -> click.Command:
    """Return a command that takes the original's command line, prints ours and runs it."""

    def run(line: tuple[str, ...]) -> int:
        from ...cli.run import command_line
        from ...cli.run import run as our_run
        from .lines import translate

        if not line or line[0] in ("-h", "--help"):
            click.echo(f"{words}\n\nsnellen {system} <its own arguments> [-- <flags of snellen run>]")
            return 0
        found = translate(system, line)
        for note in found.notes:
            click.echo(f"note: {note}", err=True)
        click.echo(command_line(["snellen", "run", *found.arguments]), err=True)
        return (
            0 if found.dry else int(our_run.main(found.arguments, prog_name="snellen run", standalone_mode=False) or 0)
        )

    words = f"Run a command line of {system}: its own arguments, then after -- flags of `snellen run`."
    argument = click.Argument(["line"], nargs=-1, type=click.UNPROCESSED)
    return _Verbatim(system, params=[argument], callback=run, help=words, add_help_option=False)


class _Verbatim(click.Command):
    """A command that hands its arguments on as they were typed, `--` among them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take everything."""
        ctx.params["line"] = tuple(args)
        return []


reform_eval, flagevalmm, aisbench = map(_mover, ("reform-eval", "flagevalmm", "aisbench"))


@click.command()
@click.argument("file", type=PATH)
@click.option("--data-root", type=PATH, help="Folder that the data's path starts from.")
@click.option("--output", "-o", type=PATH, help="Task file to write.  [default: NAME.toml here]")
def migrate(file: Path, data_root: Path | None, output: Path | None) -> int:
    """Write a task file from a FlagEvalMM task, an AISBench dataset file or a ReForm-Eval YAML; nothing is run.

    \b
    snellen migrate tasks/blink/blink_val.py --data-root data -o blink.toml && snellen run blink.toml --model …
    """
    from ...core.errors import UsageError
    from .task_files import read_task_file, write_task_file

    found = read_task_file(file, data_root)
    if output is not None and len(found) > 1:
        raise UsageError(f"{file} holds {len(found)} tasks: leave out -o, each is written as NAME.toml")
    for moved in found:
        for what in moved.left:
            click.echo(f"note: {what} is not taken", err=True)
        if moved.card:
            click.echo(f"{file.name} is the card {moved.card}: snellen run {moved.card}")
            continue
        out = output or Path(f"{moved.name}.toml")
        if out.exists():
            raise UsageError(f"{out} exists: give another -o")
        write_task_file(moved, out)
        click.echo(f"{out}: snellen run {out} --model provider/name")
    return 0
