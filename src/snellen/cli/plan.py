"""`snellen plan`: how many questions and repeats detect a gap, or what gap the questions at hand detect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import option

from .options import MACHINE_STDOUT, PATH, defaulted, print_either, print_json

if TYPE_CHECKING:
    from ..api.plan_assumptions import Sizing


@click.command()
@option("--gap", type=float, help="The difference to detect, in points (2.0 = two percentage points).")
@option("--questions", type=int, help="The questions at hand; says which gap they can detect.")
@defaulted("--repeats", default="1,2,4,8", help="Numbers of inferences a question to consider.")
@defaulted("--accuracy", type=float, default=70.0, help="The accuracy you expect, in percent.")
@defaulted("--question-share", type=float, default=0.7, help="Share of the variance that is the question's.")
@defaulted("--likeness", type=float, default=0.5, help="Correlation of the two models' scores, 0…1.")
@defaulted("--power", type=float, default=0.8, help="Power: the chance to find the gap if it is there.")
@defaulted("--alpha", type=float, default=0.05, help="False-positive rate.")
@option("--from-run", type=PATH, help="Take accuracy and variance shares from a run with repeats.")
@option("--bank", type=PATH, help="A bank: how many of its questions --until-ci, --gate or --gap need.")
@option("--until-ci", type=float, help="With --bank: the half-width wanted, in points.")
@option("--gate", type=float, help="With --bank: the margin of a gate, in points.")
@option("--against", type=PATH, help="With --bank: the base run of the gate.")
@MACHINE_STDOUT
def plan(
    *, gap: float | None, questions: int | None, repeats: str, from_run: Path | None, as_json: bool, **assumed: Any
) -> None:
    """Say how much to measure before measuring.

    \b
    snellen plan --gap 2.0 --accuracy 70
    snellen plan --questions 500 --from-run runs/pilot
    snellen plan --bank mmmu.bank --until-ci 2
    snellen plan --bank mmmu.bank --gate 1.5 --against runs/base
    """
    banked = {name: assumed.pop(name) for name in ("bank", "until_ci", "gate", "against")}
    if banked["bank"] is not None:
        from ..core.builtins import default_registry

        lines = default_registry().get("stop", "bank").plan_with_bank(banked.pop("bank"), gap=gap, **banked)
        print_either({"plan": lines}, "\n".join(lines), as_json)
        return
    from ..api.plan_assumptions import plan_size

    sizing = plan_size(
        assumed | {"accuracy": assumed["accuracy"] / 100.0},
        gap=None if gap is None else gap / 100.0,
        questions=questions,
        repeats=_numbers(repeats),
        pilot=from_run,
    )
    if as_json:
        print_json(sizing)
    else:
        _show(sizing)


def _numbers(text: str) -> list[int]:
    from ..core.errors import UsageError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--repeats {text!r} is not a list of numbers like 1,2,4") from None


def _show(sizing: Sizing) -> None:
    from rich.table import Table

    from ..report.console import WholeConsole

    console = WholeConsole()
    table = Table(title="Two models, the same questions", title_justify="left")
    for column in ("questions", "repeats", "calls a model", "smallest gap found", "interval of one model"):
        table.add_column(column, justify="right")
    for design in sizing.designs:
        counts = f"{design.questions:,}", str(design.repeats), f"{design.calls:,}"
        table.add_row(*counts, f"{design.gap * 100:.2f}", f"± {design.half_width * 100:.2f}")
    console.print(table)
    assumed = sizing.assumptions
    console.print(
        f"Assumed: accuracy {assumed.accuracy:.1%}, {assumed.question_share:.0%} of the variance between questions, "
        f"likeness {assumed.likeness:g}, power {assumed.power:.0%}, alpha {assumed.alpha:g}.",
        soft_wrap=True,
    )
    for line in filter(None, (sizing.verdict, sizing.advice)):
        console.print(line)
