"""`snellen judge`: people label a few replies that a judge saw, and its figure is corrected by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..core.errors import DataError, UsageError
from ..core.text import plural, show_text
from .options import COUNT, FILE, FOLDER, MACHINE_STDOUT, PATH, flag, print_json


@click.group(epilog="\b\nExample:\n  snellen judge label runs/demo --judge correctness --count 50 -o labels.jsonl")
def judge() -> None:
    """Look after judges: labels of people, and what they say of a judge."""


@judge.command()
@click.argument("run", type=FOLDER, metavar="RUN")
@click.option("--judge", "name", required=True, help="The judge that was asked about this run.")
@click.option("--count", type=COUNT, help="Draw so many judged replies of each task, to be labelled.")
@click.option("-o", "--output", type=PATH, help="Write them to this JSONL file; fill in `label` in each row.")
@flag("--ask", help="Show each drawn reply here and ask for its label; the file is kept after every answer, q stops.")
@flag("--view", "in_viewer", help="Show the drawn replies in the browser, pictures included, and keep labels there.")
@click.option("--labels", type=FILE, help="Take the labels of this JSONL file, and score the run with them.")
@click.option("--by", default="", metavar="NAME", help="Who labels: labels of several people are kept side by side.")
@MACHINE_STDOUT
def label(
    *,
    run: Path,
    name: str,
    count: int | None,
    output: Path | None,
    ask: bool,
    in_viewer: bool,
    labels: Path | None,
    by: str,
    as_json: bool,
) -> None:
    """Draw replies for people to label, or take their labels: a judge's figure corrected by them, with its interval.

    The order is drawn by the run; any number of labels from its beginning will do, ten at least. The judge's verdicts
    are not shown: they would sway whoever labels. Several people label the same replies under their names (--by):
    how far they agree is printed, and replies on which they do not are listed and not used.

    \b
    snellen judge label runs/demo --judge correctness --count 50 -o labels.jsonl
    snellen judge label runs/demo --judge correctness --labels labels.jsonl --by anna
    snellen judge label runs/demo --judge correctness --count 50 -o labels.jsonl --ask
    snellen judge label runs/demo --judge correctness --view
    """
    if in_viewer:
        _serve(run, name, by, alone=not (count or labels or output or ask), as_json=as_json)
        return
    if (count is None) == (labels is None):
        ways = "--count N -o FILE draws replies to label, --labels FILE takes the labels, --view asks in the browser"
        raise UsageError(f"say one: {ways}")
    if labels is not None:
        _take(run, name, labels, by=by, as_json=as_json)
    elif ask:
        _ask(run, name, count or 0, output, by=by, as_json=as_json)
    else:
        _draw(run, name, count or 0, output, by=by, as_json=as_json)


def _serve(run: Path, name: str, by: str, *, alone: bool, as_json: bool) -> None:
    from ..api.view import label_address, view

    if not alone:
        raise UsageError(
            "--view keeps labels beside the run and needs no other option than --by: leave --count, -o and --labels"
        )

    def ready(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            click.echo(f"open {address}\nCtrl-C ends the viewer", err=True)

    view([run], may_write=True, ready=ready, page=label_address(run, name, by))


def _draw(run: Path, name: str, count: int, output: Path | None, *, by: str, as_json: bool) -> None:
    from ..api.judges import draw_replies, write_drawn

    rows = draw_replies(run, name, count, by)
    if as_json:
        print_json(rows)
    elif output is None:
        raise UsageError("name the file to write: -o labels.jsonl (or --json)")
    if output is not None and output.exists():
        raise UsageError(f"{output} is there already, and may hold labels: take them (--labels), or name another file")
    if output is not None:
        write_drawn(rows, output)
        then = f"snellen judge label {run} --judge {name} --labels {output}"
        click.echo(f"{output}: {plural(len(rows), 'reply')}; fill in label, then: {then}", err=True)


def _ask(run: Path, name: str, count: int, output: Path | None, *, by: str, as_json: bool) -> None:
    """Ask for one label after another in the drawn order, so that stopping anywhere leaves a random sample."""
    from ..api.judges import continue_labels, write_drawn

    if output is None:
        raise UsageError("name the file that keeps the labels: -o labels.jsonl")
    rows = continue_labels(run, name, count, output, by)
    for number, row in enumerate(rows, 1):
        if row["label"] is None and not _ask_one(run, name, row, f"{number} of {len(rows)}"):
            break
        write_drawn(rows, output)
    _take(run, name, output, by=by, as_json=as_json)


def _ask_one(run: Path, name: str, row: dict[str, Any], place: str) -> bool:
    """Show a reply and take its label; False where the person stops."""
    from ..api.judges import check_label

    right = ["Right:", *row["answers"], "Reply:", str(row["reply"])]
    click.echo(show_text("\n".join([f"\n--- {place} ---", row["question"], *row["shown"], *right])), err=True)
    while True:
        said = click.prompt("label (a verdict word or a number; q stops)", err=True).strip()
        if said == "q":
            return False
        try:
            row["label"] = check_label(run, name, said)
        except DataError as mistake:
            click.echo(f"{mistake}", err=True)
        if row["label"] is not None:
            return True


def _take(run: Path, name: str, labels: Path, *, by: str, as_json: bool) -> None:
    from ..api.judges import take_labels
    from ..report.console import WholeConsole
    from ..report.terminal import plain, results_table

    results: dict[str, Any] = take_labels(run, name, labels, by)
    if as_json:
        print_json(results)
        return
    console = WholeConsole()
    for task, result in results["tasks"].items():
        console.print(results_table(task, result))
        for note in result["notes"]:
            console.print(plain(note))
