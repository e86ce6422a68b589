"""`snellen submit`, `merge` and `follow`: a run in parts from script to result, and checkpoints as they appear."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from ...cli.options import (
    ABOVE_ZERO,
    COUNT,
    FOLDER,
    FROM_ZERO,
    MACHINE_STDOUT,
    PATH,
    Decorator,
    add_options,
    defaulted,
    flag,
    print_json,
    repeated,
    shared,
)
from ...cli.run import make_settings
from ...cli.run import run as run_command
from ...core.errors import UsageError
from ...core.process import heeding_schedulers
from ...core.text import plural

if TYPE_CHECKING:
    from ...api.settings import RunSettings
    from .parts import Merged, PartState


EXIT_ALARM = 4


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="\b\nExample:\n  snellen follow training/ --tasks quick.toml -o curve/ --once",
)
@click.argument("source", type=FOLDER, metavar="CHECKPOINTS")
@repeated("--tasks", "tasks", metavar="TASK|FILE", help="What every checkpoint is asked; may be repeated.")
@click.option("-o", "output", type=PATH, required=True, help="Folder of the runs and of the curve.")
@defaulted("--provider", default="hf", help="How checkpoints are loaded: hf, vllm, a plug-in's.")
@click.option("--gate", type=FOLDER, help="A run that no checkpoint may fall below: each is compared with it.")
@defaulted("--drop", type=FROM_ZERO, default=0.0, help="Points that a checkpoint may be below the best before it.")
@click.option("--marker", default="", help="A checkpoint is whole when it has this file.")
@defaulted("--every", "every_s", type=ABOVE_ZERO, default=30.0, help="Seconds between two looks.")
@click.option("--on-alarm", metavar="COMMAND", help="Run this when the curve falls, and go on.")
@flag("--once", help="Measure what is there and end.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS of snellen run]")
def follow(
    *,
    source: Path,
    tasks: tuple[str, ...],
    output: Path,
    provider: str,
    gate: Path | None,
    drop: float,
    marker: str,
    every_s: float,
    on_alarm: str | None,
    once: bool,
    arguments: tuple[str, ...],
) -> int:
    """Measure each new checkpoint below CHECKPOINTS once, on the same questions, and draw its learning curve.

    The band holds all checkpoints at once. The alarm (exit 4, or --on-alarm) has a chance of 5 % to be false ever,
    however many checkpoints come. With --once it exits 1 if a checkpoint could not be measured.
    """
    from .checkpoints import Watched
    from .checkpoints import follow as follow_now
    from .curve import curve_lines

    if not tasks:
        raise UsageError("name what is asked: --tasks quick.toml")
    given = [*tasks, "--model", f"{provider}/checkpoint", *arguments]
    with run_command.make_context("snellen run", given) as context:
        settings = make_settings("run", context.params)
    check_followed(settings, f"{provider}/checkpoint", gate)
    watched, told = Watched(source, output, marker), set[str]()
    with heeding_schedulers():
        for _ in _looks(2 if once else None, min(every_s, 1.0) if once else every_s):
            for curves in follow_now(watched, settings, provider=provider, drop=drop / 100, gate=gate, say=click.echo):
                for curve in curves:
                    click.echo("\n".join(curve_lines(curve)))
                fallen = {f"{curve.task} {one.name}" for curve in curves for one in curve.alarms} - told
                told |= fallen
                if fallen and on_alarm:
                    subprocess.run(on_alarm, shell=True, check=False)  # noqa: S602 - the user's own command
            if told and not on_alarm:  # what waited with it was measured first
                return EXIT_ALARM
    return 1 if watched.failures else 0


def check_followed(settings: RunSettings, model: str, gate: Path | None) -> None:
    """Refuse what no checkpoint could be asked with, before the first is loaded."""
    from .curve import check_gate
    from .parts import check_asked

    if settings.model != model:
        raise UsageError("--model is what follow gives each checkpoint: leave it out; --provider says how it is loaded")
    if settings.shard is not None:
        raise UsageError("--shard is not for follow: every checkpoint is asked whole")
    names = check_asked(settings)
    if gate is not None:
        check_gate(gate, names)


def _looks(most: int | None, every_s: float) -> Iterator[int]:
    """Count looks with a pause between two: another process writes, there is nothing to wait for."""
    for look in count():
        if look == most:
            return
        if look:
            time.sleep(every_s)
        yield look


NAMED = 8
"""So many parts are named one by one."""


@click.command(epilog="\b\nExamples:\n  snellen merge shared/run\n  snellen merge --partial shared/run")
@click.argument("run", type=FOLDER)
@flag("--partial", help="Although parts are missing: their trials count as not yet asked.")
@flag("--tidy", help="Remove the parts' logs once the run is whole: run.db has all of it.")
@flag("--same-model", help="Although parts were asked at other servers: they serve the same model.")
@shared("plugins")
@MACHINE_STDOUT
def merge(run: Path, *, partial: bool, tidy: bool, same_model: bool, plugins: tuple[Path, ...], as_json: bool) -> int:
    """Join the parts of a run (`snellen run --shard 3/64`) into run.db, score it and write its files.

    It may be repeated at any time, also while parts still run: what is new is added. Exit 1, and nothing is written,
    if trials are missing and --partial was not said.
    """
    from ...core.builtins import default_registry
    from .parts import look_at_parts
    from .parts import merge as merge_parts

    found, results = merge_parts(
        run, partial=partial, tidy=tidy, same_model=same_model, registry=default_registry(plugins)
    )
    states = look_at_parts(run) if found.missing else []
    if as_json:
        left = {str(one.part.index): one.state for one in states if one.state != "complete"}
        told = {name: value for name, value in found._asdict().items() if name != "header"}
        print_json(told | {"missing": found.missing, "parts_left": left, "results": results or None})
    else:
        for line in merge_lines(run, found, states, partial=partial):
            click.echo(line)
    return 1 if found.missing and not partial else 0


def merge_lines(run: Path, found: Merged, states: list[PartState], *, partial: bool) -> list[str]:
    """Return what a merge found, in words."""
    lines = [f"{found.stored:,} of {plural(found.planned, 'trial')} are there"]
    if found.asked_twice:
        differ = f", {found.differ:,} of them answered differently" if found.differ else ""
        lines.append(f"{plural(found.asked_twice, 'trial')} asked twice{differ}: the first reply counts")
    if found.damaged:
        lines.append(f"{plural(found.damaged, 'place')} of the logs could not be read; what stood there is asked again")
    lines += [f"{name} has no readable head: nothing of it was taken" for name in found.unreadable]
    left = [one for one in states if one.state != "complete"]
    if left:
        named = ", ".join(f"{one.part.index} {one.state}" for one in left[:NAMED])
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        lines.append(f"parts of {left[0].part.count} that are not complete: {named}{more}")
    if found.missing:
        say = "not yet asked" if partial else "missing: nothing was written; --partial merges what is there"
        lines.append(f"{plural(found.missing, 'trial')} {say}")
    if partial or not found.missing:
        lines.append(f"results {run / 'results.json'} · every trial {run / 'records.jsonl'} · snellen show {run}")
    return lines


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
    from .parts import check_submitted
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
    from .parts import check_part
    from .scripts import Submission, apply_manifest, kubernetes_manifest

    if serve is not None:
        raise UsageError("--serve is for slurm: in Kubernetes give the server a Service, and --base-url its address")
    settings, folder = checked_settings(arguments)
    check_part(replace(settings, shard=f"0/{_known(parts)}"))  # data and plug-ins are where the pods are
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
