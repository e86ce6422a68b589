"""`snellen show`: a stored run, or one sample of it whole, in the terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from ...core.types import TrialKey
    from ...report.pages.gallery import Shown
    from ...store.reader import RunReader


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--sample", help="Print every trial of this sample, whole.")
@click.option("--task", default="", help="Look at this task.  [default: the first that has the sample]")
@click.option("--variant", help="Only this variant.")
@click.option("--repeat", type=click.IntRange(min=1), help="Only the n-th inference, from 1.")
@click.option("--no-image", is_flag=True, help="Do not draw the picture.")
@click.option("--json", "as_json", is_flag=True, help="Machine output on stdout.")
def show(
    *, run: Path, sample: str | None, task: str, variant: str | None, repeat: int | None, no_image: bool, as_json: bool
) -> None:
    """Print the results of a run; with --sample, one sample: picture, messages, replies, scores.

    \b
    snellen show runs/demo
    snellen show runs/demo --sample base-0-letters-000
    """
    from rich.console import Console

    from ...core.types import to_json
    from ...report.pages.gallery import read_trial
    from ...store.reader import RunReader

    with RunReader(run) as reader:
        if sample is None:
            _show_run(reader, as_json)
            return
        shown = [read_trial(reader, key) for key in _keys(reader, sample, task, variant, repeat)]
        trials = [each for each in shown if each is not None]
        if as_json:
            sys.stdout.write(to_json([each._asdict() for each in trials]).decode() + "\n")
            return
        console = Console(highlight=False)
        for number, each in enumerate(trials):
            _show_trial(console, each, with_image=not no_image and number == 0)


def _keys(reader: RunReader, sample: str, task: str, variant: str | None, repeat: int | None) -> list[TrialKey]:
    from ...core.errors import UsageError, did_you_mean
    from ...core.types import TrialKey

    query = "SELECT task, variant, repeat FROM predictions WHERE sample = ?"
    rows = reader.rows(f"{query} ORDER BY task, variant <> 'base', variant, repeat", (sample,))
    keys = [TrialKey(name, sample, kind, number) for name, kind, number in rows if not task or name == task]
    chosen = [
        key
        for key in keys
        if (variant is None or key.variant == variant) and (repeat is None or key.repeat == repeat - 1)
    ]
    if not chosen:
        known = [row[0] for row in reader.rows("SELECT DISTINCT sample FROM predictions LIMIT 100000")]
        raise UsageError(
            f"{reader.folder} has no such trial of sample {sample!r}{did_you_mean(sample, known) if not keys else ''}"
        )
    return chosen


def _show_run(reader: RunReader, as_json: bool) -> None:
    from rich.console import Console

    from ...core.types import to_json
    from ...report.pages.overview import read_results
    from ...report.terminal import group_tables, plain, results_table

    results = read_results(reader, reader.header())
    if as_json:
        sys.stdout.write(to_json(results).decode() + "\n")
        return
    console = Console(highlight=False)
    console.print(plain(f"{results['model']} · run {results['run']['id']} · {results['run']['created']}"))
    for name, task in results["tasks"].items():
        console.print(results_table(name, task))
        for table in group_tables(task):
            console.print(table)
    folder = reader.folder
    console.print(plain(f"one sample whole: snellen show {folder} --sample ID · in the browser: snellen view {folder}"))


def _show_trial(console: Console, shown: Shown, *, with_image: bool) -> None:
    from rich.rule import Rule
    from rich.text import Text

    from ...report.terminal import plain

    key, prediction = shown.prediction.key, shown.prediction
    console.print(Rule(plain(f"{key.task} · {key.sample} · {key.variant} · inference {key.repeat + 1}"), align="left"))
    if with_image:
        _show_picture(console, shown)
    for turn in shown.request.messages:
        pictures = f" ({len(turn.images)} pictures)" if turn.images else ""
        console.print(plain(f"{turn.role}{pictures}"), style="bold cyan")
        console.print(plain(turn.text))
    console.print(Text("reply", style="bold cyan"))
    if prediction.failure is not None:
        failure = prediction.failure
        console.print(plain(f"none: {failure.kind.value} after {failure.attempts} attempts: {failure.message}"))
    else:
        text = prediction.text if prediction.text is not None else str(prediction.loglikelihoods)
        console.print(_marked(text, shown))
    console.print(Text("expected ", style="bold cyan"), plain(" | ".join(shown.sample.answers)))
    for score in shown.scores:
        value = f"unscored ({score.reason})" if score.value is None else f"{score.value:.3g}"
        console.print(plain(f"{score.metric} {value} · read as {score.answer!r} · rule {score.rule}"))


def _marked(text: str, shown: Shown) -> object:
    from ...report.terminal import plain

    marked = plain(text)
    if isinstance(shown.span, list) and len(shown.span) == 2:
        marked.stylize("reverse bold", *shown.span)
    return marked


def _show_picture(console: Console, shown: Shown) -> None:
    from ...core.errors import DataError
    from ...data.images.decode import open_image
    from ...report.terminal import plain
    from ...report.terminal_image import blocks, escape_sequence, protocol_of

    image = next((image for turn in shown.request.messages for image in turn.images), None)
    if image is None:
        return
    if not console.is_terminal:
        console.print(plain(f"picture {image.ref[:200]}"))
        return
    try:
        picture = open_image(image)
    except DataError as error:
        console.print(plain(str(error)))
        return
    protocol = protocol_of(os.environ)
    if protocol == "blocks":
        console.print(blocks(picture))
    else:
        console.file.write(escape_sequence(picture, protocol))
