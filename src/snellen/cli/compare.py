"""`snellen compare A B [C…]`: which run is better, by how much, how surely, and where they differ."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import BOARD_FORM, MACHINE_STDOUT, PATH, defaulted, flag, print_json

if TYPE_CHECKING:
    from ..scoring.compare.paired import Comparison, Flip
    from ..scoring.compare.run_pairs import ComparedPart


def moved_lines(moved: Mapping[str, Any]) -> Iterator[str]:
    """Yield, for tasks asked in two protocols, what each part of the protocol did to the number."""
    for task, one in moved.items():
        values = (one.first_value, one.second_value)
        factor = 1.0 if any(value is not None and abs(value) > 1 for value in values) else 100.0
        numbers = " → ".join(_times(factor, value) for value in values)
        yield f"{task}: protocol {one.first} → {one.second}, as their tools print it {numbers} ({one.samples} samples)"
        parts = ", ".join(f"{part} {_times(factor, change, '+')}" for part, change in one.parts.items())
        yield f"  moved by: {parts}{f'; most by the {one.most}' if one.most else ''}"


def _times(factor: float, value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value * factor:{sign}.2f}"


SHOWN_FLIPS = 10


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH)
@click.option("--task", help="Compare this task only.")
@click.option("--metric", help="Compare this metric only.")
@click.option("--reading", help="Read all runs this way: a profile, or a reading that was kept.")
@flag("--scored-only", help="Leave out replies without a readable answer instead of counting them as not right.")
@defaulted("--flips", default=SHOWN_FLIPS, help="How many flipped samples to list each way.")
@BOARD_FORM
@MACHINE_STDOUT
def compare(runs: tuple[Path, ...], *, flips: int, form: str, as_json: bool, **which: Any) -> None:
    """Compare runs on the samples they share.

    \b
    snellen compare runs/qwen runs/llava
    snellen compare runs/a runs/b runs/c --task docvqa --json
    """
    from ..api import outputs

    results = outputs.compare(*runs, **which)
    moved = outputs.moved_by_protocol(*runs)
    parts = outputs.compare_beside(*runs, task=which["task"])
    if as_json:
        beside = {"protocols": moved} | {part.name: part.found for part in parts}
        print_json({"tasks": results} | {name: found for name, found in beside.items() if found})
        return
    if form != "terminal":
        sys.stdout.write(_in_form(results, parts, form))
        return
    for name, comparisons in results.items():
        show(name, comparisons, flips, scored_only=which["scored_only"])
    if parts:
        from ..report.pages.comparison import part_sheets
        from ..report.pages.sheet import render

        sys.stdout.write(render([sheet for _, sheet in part_sheets(parts)], "terminal"))
    for line in moved_lines(moved):
        click.echo(line)


def _in_form(results: Mapping[str, Sequence[Comparison]], parts: Sequence[ComparedPart], form: str) -> str:
    from ..report.pages.comparison import part_sheets, sheets_of
    from ..report.pages.sheet import render

    names = list(dict.fromkeys(name for found in results.values() for one in found for name in (one.first, one.second)))
    return render([*sheets_of(results, names), *(sheet for _, sheet in part_sheets(parts))], form)


def show(task: str, comparisons: list[Comparison], flips: int, *, scored_only: bool = False) -> None:
    """Print one task: for each metric a table of all pairs, then who flipped, where they differ, and a verdict."""
    from rich import box
    from rich.table import Table

    from ..report.console import WholeConsole
    from ..report.pages.comparison import verdict_line

    console = WholeConsole()
    for metric in dict.fromkeys(one.metric for one in comparisons):
        table = Table(title=f"{task} · {metric}", title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column("A → B", overflow="fold")
        for column in ("A %", "B %", "B - A \\[95 %]", "p", "Holm", "paired"):
            table.add_column(column, justify="right", no_wrap=True)
        chosen = [one for one in comparisons if one.metric == metric]
        for one in chosen:
            table.add_row(*_row(one))
        console.print(table)
        for one in chosen:
            for line in (*_details(one, flips), *_unscored(one, scored_only), verdict_line(one)):
                console.print(line, markup=False)


def _row(one: Comparison) -> list[str]:
    from ..report.pages.comparison import figure_as_it_is, reads_in_percent

    if reads_in_percent(one):
        interval = f" \\[{one.ci95[0] * 100:+.1f}, {one.ci95[1] * 100:+.1f}]" if one.ci95 else ""
        show = _percent
    else:
        interval = " \\[{}, {}] (not in %)".format(
            *(figure_as_it_is(end, sign=True) for end in one.ci95 or (None, None))
        )
        show = figure_as_it_is
    change = show(one.difference, sign=True) + interval
    shares = [show(one.first_value), show(one.second_value)]
    return [f"{one.first} → {one.second}", *shares, change, _p_value(one.p), _p_value(one.p_adjusted), str(one.paired)]


def _percent(value: float | None, *, sign: bool = False) -> str:
    return "–" if value is None else f"{value * 100:{'+' if sign else ''}.2f}"


def _p_value(value: float | None) -> str:
    return "–" if value is None else "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _details(one: Comparison, flips: int) -> Iterator[str]:
    yield f"{one.first} → {one.second}: {one.test}; {len(one.better)} better, {len(one.worse)} worse."
    for label, found in (("better", one.better), ("worse", one.worse)):
        if found and flips:
            yield f"  {label}: {_list(found, flips)}"
    if one.divergence:
        yield f"  paired samples by where the runs first differ: {_stages(one.divergence)}"
    if one.only_first or one.only_second:
        first, second = len(one.only_first), len(one.only_second)
        yield f"  unpaired samples: {first} only in {one.first}, {second} only in {one.second} (--json lists them)"


def _stages(divergence: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {'the same' if stage == 'same' else stage}" for stage, count in divergence.items())


def _unscored(one: Comparison, scored_only: bool) -> Iterator[str]:
    """Say how trials without a score were counted."""
    if any(one.not_scored):
        counted = "left out" if scored_only else "counted as not right (--scored-only leaves them out)"
        yield f"  replies without a readable answer: {one.not_scored[0]} and {one.not_scored[1]}, {counted}"
    if any(one.outside):
        yield f"  failed, or not to be judged: {one.outside[0]} and {one.outside[1]}, left out of both"


def _list(flipped: tuple[Flip, ...], most: int) -> str:
    shown = [f"{flip.sample} ({flip.divergence})" if flip.divergence else flip.sample for flip in flipped[:most]]
    more = f", and {len(flipped) - most} more (--json lists all)" if len(flipped) > most else ""
    return ", ".join(shown) + more
