"""`snellen follow`: every new checkpoint of a training measured once, as a learning curve."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import click

from ...cli.options import ABOVE_ZERO, FOLDER, FROM_ZERO, PATH, defaulted, flag, repeated
from ...cli.run import make_settings
from ...cli.run import run as run_command
from ...core.errors import UsageError
from ...core.signals import heeding_schedulers

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
    however many checkpoints come.
    """
    from .checkpoints import Watched
    from .checkpoints import follow as follow_now
    from .curve import curve_lines

    if not tasks:
        raise UsageError("name what is asked: --tasks quick.toml")
    given = [*tasks, "--model", f"{provider}/checkpoint", *arguments]
    with run_command.make_context("snellen run", given) as context:
        settings = make_settings("run", context.params)
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
    return 0


def _looks(most: int | None, every_s: float) -> Iterator[int]:
    """Count looks with a pause between two: another process writes, there is nothing to wait for."""
    for look in count():
        if look == most:
            return
        if look:
            time.sleep(every_s)
        yield look
