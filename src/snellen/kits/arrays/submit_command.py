"""`snellen submit`: a run's command to a Slurm array or a Kubernetes indexed job."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from ...cli.options import COUNT, Decorator, add_options, defaulted, flag, repeated
from ...cli.run import make_settings
from ...cli.run import run as run_command
from ...core.errors import UsageError

if TYPE_CHECKING:
    from ...api.settings import RunSettings

SERVED = "snellen.model.served"
PASSED_ON: dict[str, Any] = {"ignore_unknown_options": True}
ARGUMENTS = click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[--] TASK… --model … -o DIR")
SIZES: Decorator = add_options(
    click.option("--parts", type=COUNT, help="How many parts the run is cut into."),
    click.option("--parallel", type=COUNT, help="Parts at work at once: they share --rate and --max-workers."),
    click.option("--gpus", default="", help="GPUs of each part (or of the server): 1, a100:2."),
    click.option("--cpus", type=COUNT, help="Cores of each part."),
    click.option("--memory", default="", help="Memory of each part: 16G."),
)


@click.group(
    epilog="\b\nExample:\n  snellen submit slurm --parts 64 --parallel 16 my.jsonl --model openai/NAME -o shared/run"
)
def submit() -> None:
    """Write the script of a run in parts for a scheduler, and submit it with --go."""


@submit.command(context_settings=PASSED_ON)
@SIZES
@defaulted("--time", default="04:00:00", help="Time limit of a part; what is left goes on in the next.")
@click.option("--partition", default="", help="Slurm's partition.")
@click.option("--account", default="", help="Slurm's account.")
@defaulted("--warn", "warn_s", type=COUNT, default=120, help="Seconds before the limit in which a part drains.")
@repeated("--setup", metavar="LINE", help="A line before the command: module load …, source venv/bin/activate.")
@repeated("--option", "options", metavar="LINE", help="A further #SBATCH line: --constraint=a100.")
@click.option("--serve", default="", metavar="COMMAND", help="A server in a job of its own, which all parts ask.")
@defaulted("--port", type=COUNT, default=8000, help="Where --serve answers.")
@flag("--again", help="Only the parts that are not complete.")
@flag("--go", help="Submit it.")
@ARGUMENTS
def slurm(*, again: bool, go: bool, arguments: tuple[str, ...], parts: int | None, **how: Any) -> None:
    """Write array.sh and merge.sh below DIR/submit, for people to read and edit; --go submits them.

    What it does not know is an argument of `snellen run`, and checked as such.
    """
    from ...api.parts import check_submitted
    from .scripts import Submission, slurm_scripts, submit_commands, unfinished_parts, write_scripts
    from .scripts import submit as submit_now

    (settings, folder), only = checked_settings(arguments), tuple[int, ...]()
    if again:
        parts, only = unfinished_parts(folder)
    check_submitted(settings, _known(parts))
    if how["serve"]:
        check_served(settings)
    scripts = slurm_scripts(Submission(parts=_known(parts), only=only, **how), arguments, folder)
    for path in write_scripts(folder, scripts):
        click.echo(str(path))
    commands = submit_commands(folder, scripts)
    if go:
        click.echo(f"submitted as job {submit_now(commands).split()[-1]}")
    else:
        click.echo("to submit it (or add --go):")
        for line in commands:
            click.echo(f"  {line}")
    click.echo(f"how far it is: {shlex.join(['snellen', 'show', str(folder)])} · the queue: squeue --me")


@submit.command(context_settings=PASSED_ON)
@SIZES
@defaulted("--image", default="snellen", help="Container image that has Snellen.")
@defaulted("--claim", default="shared", help="Volume claim that all pods may write (ReadWriteMany).")
@defaulted("--mount", default="/shared", help="Where it is mounted: DIR lies below it.")
@click.option("--serve", hidden=True)
@flag("--go", help="Submit it: kubectl apply.")
@ARGUMENTS
def k8s(*, go: bool, arguments: tuple[str, ...], parts: int | None, serve: str | None, **how: Any) -> None:
    """Print the manifest of an indexed Job; --go applies it."""
    from ...api.parts import part_of
    from .scripts import Submission, apply_manifest, kubernetes_manifest

    if serve is not None:
        raise UsageError("--serve is for slurm: in Kubernetes give the server a Service, and --base-url its address")
    settings, folder = checked_settings(arguments)
    part_of(replace(settings, shard=f"0/{_known(parts)}"))  # data and plug-ins are where the pods are
    for task in settings.tasks:
        if Path(task).exists() and not Path(task).is_absolute():
            told = f"{task} is a path from this folder, and pods begin in another"
            raise UsageError(f"{told}: name it by where they see it, such as /shared/{Path(task).name}")
    manifest = kubernetes_manifest(Submission(parts=_known(parts), **how), arguments, folder)
    click.echo(apply_manifest(manifest) if go else manifest, nl=go)


def check_served(settings: RunSettings) -> None:
    """Refuse a run whose parts would not ask the server that is started for them."""
    from ...core.builtins import MODELS

    if settings.base_url:
        raise UsageError("--serve says where the parts find their server: leave --base-url out")
    provider = settings.model.partition("/")[0]
    if not MODELS.get(provider, SERVED).startswith(SERVED):
        told = f"--serve: {settings.model} asks no server, each part would answer by itself"
        raise UsageError(f"{told}; write --model openai/NAME, the name that the server gives it")


def _known(parts: int | None) -> int:
    if parts is None:
        raise UsageError("--parts says into how many parts the run is cut: --parts 64")
    return parts


def checked_settings(arguments: tuple[str, ...]) -> tuple[RunSettings, Path]:
    """Check the arguments of the run as `snellen run` would, and return them with its folder."""
    if any(argument.partition("=")[0] == "--api-key" for argument in arguments):
        raise UsageError("--api-key would stand in the script: use --api-key-env or --api-key-file")
    with run_command.make_context("snellen run", list(arguments)) as context:
        settings = make_settings("run", context.params)
    if settings.output_dir is None:
        raise UsageError("name the folder that all parts share: -o DIR")
    if settings.shard is not None:
        raise UsageError("--shard is what the script adds: leave it out")
    return settings, settings.output_dir
