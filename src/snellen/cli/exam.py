"""`snellen exam`: examine how a model sees, and print what to send it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..core.errors import UsageError
from ..core.text import show_text
from . import options
from .options import PLAIN, QUIET, SettingsGroup, flag, json_flag, print_json, repeated, setting_options

if TYPE_CHECKING:
    from rich.console import Console

    from ..api.eye_exam import ExamListeners, ExamSettings
    from ..api.settings import RunSettings

EPILOG = """
\b
Examples:
  snellen exam --model openai/NAME --base-url http://localhost:8000/v1 --quick
  snellen exam --model reader --tests acuity,contrast --fine
  snellen exam compare runs/exam-a runs/exam-b
  snellen exam compare runs/low runs/high --price 2.5,10
"""
BUDGET = "What this command may ask: requests (2000), tokens (3e6 tokens) or money (5 euro, of --price or the card)."
DEADLINE = "Seconds for this command: then it stops cleanly, keeps everything and exits 3; run it again to continue."
TESTS = "Only these: acuity,contrast,resolution,… (what they need comes along)."
PRICES = "Price of a million input and output tokens: once for all exams, or once for each in their order."
UNTIL = "Half width of every interval in ln units: 0.15 is -14/+16 %.  [default: by mode]"
SAID_OTHERWISE = {
    "deadline_s": {"help": DEADLINE},
    "max_cost": {"help": "What this command may spend, as --budget in money."},
    "temperature": {"help": "Sent as given.  [default: 0]"},
    "max_tokens": {"help": "For every reply.  [default: 64; pages 128]"},
    "max_workers": {"help": "Requests in flight at most.  [default: 64]"},
    "plugins": {"help": "Python file with register(registry): models, eye tests."},
}


@click.group(cls=SettingsGroup, honours="exam", invoke_without_command=True, epilog=EPILOG)
@flag("--quick", help="About a third of the requests, intervals of ±25 %.")
@flag("--fine", help="Intervals of ±10 %, further tests; about three times the requests.")
@click.option("--tests", help=TESTS)
@click.option("--until", type=float, help=UNTIL)
@click.option("--budget", metavar="N[ tokens| euro]", help=BUDGET)
@setting_options("exam", **SAID_OTHERWISE)
@PLAIN
@QUIET
@json_flag(help="Print exam.json on stdout; all else goes to stderr.")
@click.pass_context
def exam(context: click.Context, /, quiet: bool, as_json: bool, as_lines: bool, **flags: Any) -> int:
    """Examine how a model sees: thresholds with intervals, and a prescription of what to send it.

    Stimuli are drawn for this run; levels are chosen where they tell most; every trial is stored.
    """
    if context.invoked_subcommand is not None:
        return 0
    from ..api.eye_exam import run_exam
    from ..report.pages.exam_terminal import summary_lines
    from .run_output import TerminalWatcher

    wanted, settings = make_exam_settings(flags)
    watcher = TerminalWatcher(quiet=quiet, as_lines=as_lines)
    heard = TestLines(watcher.console, quiet=quiet, every=as_lines)
    result = run_exam(wanted, settings, watcher, heard.listeners())
    if as_json:
        print_json(result.exam)
    if not quiet:
        for line in summary_lines(result.exam, result.state, result.seconds):
            click.echo(show_text(line), err=as_json)
        click.echo(f" page: {result.folder / 'prescription.html'} · {result.folder / 'exam.json'}", err=as_json)
    if result.state.overdue or (result.state.over_limit and settings.max_cost is not None):
        return 3
    if result.interrupted and "interrupted" in result.exam["ended"]:
        return 130
    counts = result.exam["counts"]
    return 1 if 0 < counts["trials"] == counts["failed"] else 0


class TestLines:
    """Prints a line a test when it ends, or after every round."""

    def __init__(self, console: Console, *, quiet: bool, every: bool) -> None:
        self._console, self._quiet, self._every = console, quiet, every

    def listeners(self) -> ExamListeners:
        """Return what the exam tells of itself."""
        from ..api.eye_exam import ExamListeners

        return ExamListeners(test=None if self._quiet else self._show)

    def _show(self, name: str, words: str) -> None:
        if self._every or not words.endswith(("trials", "so far")) or ":" in words:
            from ..report.terminal import plain

            self._console.print(plain(f"{name}: {words}"))


@exam.command("compare")
@click.argument("folders", nargs=-1, required=True, type=options.FOLDER)
@repeated("--price", "prices", metavar="IN,OUT", help=PRICES)
@options.MACHINE
def exam_compare(folders: tuple[Path, ...], prices: tuple[str, ...], as_json: bool) -> None:
    """Say which thresholds of two exams differ beyond noise: ratios with intervals, Holm over all tests.

    With --price, of two or more: the cheapest setting within a point of the best.
    """
    from ..api.exams import compare_exams, price_exams
    from ..report.pages.exam_terminal import comparison_lines, price_lines

    if len(folders) != 2 and not prices:
        raise UsageError(f"{len(folders)} exams: name two of them, or two and more with --price IN,OUT")
    priced = price_exams(folders, prices) if prices else None
    compared = compare_exams(folders[0], folders[1]) if len(folders) == 2 else {}
    if as_json:
        print_json(compared | ({"price": priced} if priced else {}))
        return
    for line in (*(comparison_lines(compared) if compared else ()), *(price_lines(priced) if priced else ())):
        click.echo(show_text(line))


def make_exam_settings(flags: Mapping[str, Any]) -> tuple[ExamSettings, RunSettings]:
    """Turn the flags into settings."""
    from ..api.eye_exam import ExamSettings
    from .run import make_settings

    if flags["quick"] and flags["fine"]:
        raise UsageError("--quick and --fine exclude each other")
    mode = "quick" if flags["quick"] else "fine" if flags["fine"] else "standard"
    settings, budget = make_settings("exam", flags), read_budget(flags["budget"])
    if (money := budget.pop("max_cost", None)) is not None:
        if settings.max_cost is not None:
            raise UsageError("--max-cost and --budget in money say the same: give one")
        settings = msgspec.structs.replace(settings, max_cost=money)
    return ExamSettings(mode=mode, tests=read_names(flags["tests"]), until=flags["until"], **budget), settings


def read_names(text: str | None) -> tuple[str, ...]:
    """Read `a,b`; a list that names nothing is refused, as it would mean all tests."""
    names = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    if text is not None and not names:
        raise UsageError(f"--tests {text!r} names no test: leave it out for all of them, or say acuity,contrast")
    return names


def read_budget(text: str | None) -> dict[str, Any]:
    """Read `2000`, `3e6 tokens` or `5 euro`."""
    if text is None:
        return {}
    number, _, unit = text.strip().partition(" ")
    kinds = {"": "requests", "requests": "requests", "tokens": "tokens", "euro": "max_cost"}
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    kind = kinds.get(unit.strip(), "")
    least = 0.0 if kind == "max_cost" else 1.0
    if not kind or not 0.0 < value < math.inf or value < least:
        raise UsageError(f"--budget {text!r} is not a number of requests, `N tokens` or `N euro`")
    return {kind: value if kind == "max_cost" else int(value)}
