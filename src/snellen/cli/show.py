"""`snellen show`: a stored run, or one sample of it whole, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.text import plural
from .options import COUNT, MACHINE_STDOUT, PATH, flag, part_tables, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ..report.pages.gallery import Shown
    from ..scoring.aggregates.error_groups import ErrorGroup


NAMED = 6
"""So many parts of one state are named."""


@click.command()
@click.argument("run", type=PATH, metavar="RUN")
@click.option("--sample", help="Print every trial of this sample, whole.")
@click.option("--task", default="", help="Look at this task.  [default: the first that has the sample]")
@click.option("--variant", help="Only this variant.")
@click.option("--repeat", type=COUNT, help="Only the n-th inference, from 1.")
@click.option("--reading", help="The results of another reading that was kept (results-NAME.json).")
@flag("--errors", help="Group the answers that are not right by why, with examples.")
@flag("--no-image", help="Do not draw the picture.")
@MACHINE_STDOUT
def show(
    *, run: Path, sample: str | None, reading: str | None, errors: bool, no_image: bool, as_json: bool, **which: Any
) -> None:
    """Print the results of a run; with --sample, one sample: picture, messages, replies, scores.

    \b
    snellen show runs/demo
    snellen show runs/demo --errors
    snellen show runs/demo --sample base-0-letters-000
    """
    if errors:
        _show_errors(run, which["task"] or None, as_json)
        return
    if sample is None:
        _show_run(run, reading, as_json)
        return
    from ..api.outputs import read_sample
    from ..report.console import WholeConsole

    trials = read_sample(run, sample, **which)
    if as_json:
        print_json([trial._asdict() for trial in trials])
        return
    console = WholeConsole()
    for number, trial in enumerate(trials):
        _show_trial(console, trial, with_image=not no_image and number == 0)


def _show_run(run: Path, reading: str | None, as_json: bool) -> None:
    from ..api.stored_results import is_unfinished, results_of
    from ..report.console import WholeConsole
    from ..report.terminal import group_tables, plain, results_table
    from ..report.written import reading_name

    if reading is None and is_unfinished(run):
        _show_parts(run, as_json)
        if as_json or not (run / "run.db").exists():
            return
    results = results_of(run, reading)
    if as_json:
        print_json(results)
        return
    console = WholeConsole()
    about = (results["model"], f"run {results['run']['id']}", results["run"]["created"])
    console.print(plain(" · ".join([*about, f"read as {reading_name(results)}"])))
    for name, task in results["tasks"].items():
        console.print(results_table(name, task))
        for table in (*part_tables(task, of_axes=False), *group_tables(task)):
            console.print(table)
    console.print(plain(f"one sample whole: snellen show {run} --sample ID · in the browser: snellen view {run}"))


def _show_parts(run: Path, as_json: bool) -> None:
    """Say who works at a run in parts, who is lost and how far it is; only small files are read."""
    from ..api.stored_results import asked_in_parts

    found = asked_in_parts().summarize_parts(run)
    if as_json:
        print_json(found)
        return
    click.echo(
        f"{found.model} · run {found.run} in {plural(found.parts, 'part')} · not merged, every figure provisional"
    )
    share = f" ({100 * found.done / found.planned:.1f} %)" if found.planned else ""
    click.echo(f"{found.done:,} of {plural(found.planned, 'trial')} answered{share}, {found.failed:,} failed")
    for state, parts in found.states.items():
        named = ", ".join(parts[:NAMED]) + (f" and {len(parts) - NAMED} more" if len(parts) > NAMED else "")
        click.echo(f"{state:9} {len(parts):>5}  {named}")
    for line in (*found.figures, *found.notes):
        click.echo(line)
    click.echo(f"what there is, scored: snellen merge --partial {run} · in the browser: snellen view {run}")


def _show_errors(run: Path, task: str | None, as_json: bool) -> None:
    from ..api.stored_results import errors
    from ..report.console import WholeConsole
    from ..report.terminal import error_table, plain

    found = errors(run, task)
    if as_json:
        print_json({name: [_as_json(group) for group in groups] for name, groups in found.items()})
        return
    console = WholeConsole()
    for name, groups in found.items():
        console.print(error_table(name, groups) if groups else plain(f"{name}: every answer is right"))
    console.print(plain(f"one trial whole: snellen show {run} --sample ID · in the browser: snellen view {run}"))


def _as_json(group: ErrorGroup) -> dict[str, Any]:
    trials = [{"sample": one.key.sample, "variant": one.key.variant, "repeat": one.key.repeat} for one in group.trials]
    return {**group._asdict(), "trials": trials}


def _show_trial(console: Console, shown: Shown, *, with_image: bool) -> None:
    from rich.rule import Rule
    from rich.text import Text

    from ..core.message_parts import write_markers
    from ..report.terminal import plain
    from ..report.terminal_image import show_image

    key = shown.prediction.key
    console.print(Rule(plain(f"{key.task} · {key.sample} · {key.variant} · inference {key.repeat + 1}"), align="left"))
    image = next((image for turn in shown.seen.messages for image in turn.images), None)
    if with_image and image is not None:
        show_image(console, image)
    for turn in write_markers(shown.request.messages):
        pictures = f" ({plural(len(turn.images), 'picture')})" if turn.images else ""
        console.print(plain(f"{turn.role}{pictures}"), style="bold cyan")
        console.print(plain(turn.text))
    console.print(Text("reply", style="bold cyan"))
    console.print(_reply(shown))
    console.print(Text("expected ", style="bold cyan"), plain(" | ".join(shown.sample.answers)))
    for score in shown.scores:
        value = f"unscored ({score.reason})" if score.value is None else f"{score.value:.3g}"
        console.print(plain(f"{score.metric} {value} · read as {score.answer!r} · rule {score.rule}"))


def _reply(shown: Shown) -> Text:
    """Return what came back, the deciding part marked."""
    from ..report.terminal import plain

    prediction, failure = shown.prediction, shown.prediction.failure
    if failure is not None:
        return plain(f"none: {failure.kind.value} after {failure.attempts} attempts: {failure.message}")
    marked = plain(prediction.text if prediction.text is not None else str(prediction.loglikelihoods))
    if isinstance(shown.span, list) and len(shown.span) == 2:
        marked.stylize("reverse bold", *shown.span)
    return marked
