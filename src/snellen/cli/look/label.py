"""`snellen judge`: people label a few replies that a judge saw, and its figure is corrected by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...core.errors import UsageError
from ..options import COUNT, FILE, FOLDER, MACHINE_STDOUT, PATH, print_json


@click.group(epilog="\b\nExample:\n  snellen judge label runs/demo --judge correctness --count 50 -o labels.jsonl")
def judge() -> None:
    """Look after judges: labels of people, and what they say of a judge."""


@judge.command()
@click.argument("run", type=FOLDER, metavar="RUN")
@click.option("--judge", "name", required=True, help="The judge that was asked about this run.")
@click.option("--count", type=COUNT, help="Draw so many judged replies of each task, to be labelled.")
@click.option("-o", "--output", type=PATH, help="Write them to this JSONL file; fill in `label` in each row.")
@click.option("--labels", type=FILE, help="Take the labels of this JSONL file, and score the run with them.")
@MACHINE_STDOUT
def label(*, run: Path, name: str, count: int | None, output: Path | None, labels: Path | None, as_json: bool) -> None:
    """Draw replies for people to label, or take their labels: a judge's figure corrected by them, with its interval.

    The order is drawn by the run; any number of labels from its beginning will do, ten at least. The judge's verdicts
    are not shown: they would sway whoever labels.

    \b
    snellen judge label runs/demo --judge correctness --count 50 -o labels.jsonl
    snellen judge label runs/demo --judge correctness --labels labels.jsonl
    """
    if (count is None) == (labels is None):
        raise UsageError("say one: --count N -o FILE draws replies to label, --labels FILE takes the labels")
    if labels is not None:
        _take(run, name, labels, as_json)
    else:
        _draw(run, name, count or 0, output, as_json)


def _draw(run: Path, name: str, count: int, output: Path | None, as_json: bool) -> None:
    from ...api.look.drawn_replies import draw_replies, write_drawn

    rows = draw_replies(run, name, count)
    if as_json:
        print_json(rows)
    elif output is None:
        raise UsageError("name the file to write: -o labels.jsonl (or --json)")
    if output is not None:
        write_drawn(rows, output)
        then = f"snellen judge label {run} --judge {name} --labels {output}"
        click.echo(f"{output}: {len(rows)} replies; fill in label, then: {then}", err=True)


def _take(run: Path, name: str, labels: Path, as_json: bool) -> None:
    from ...api.look.drawn_replies import take_labels
    from ...report.console import WholeConsole
    from ...report.terminal import plain, results_table

    results: dict[str, Any] = take_labels(run, name, labels)
    if as_json:
        print_json(results)
        return
    console = WholeConsole()
    for task, result in results["tasks"].items():
        console.print(results_table(task, result))
        for note in result["notes"]:
            console.print(plain(note))
