"""`snellen compare A B [C…]`: which run is better, by how much, how surely, and where they part."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..score.compare import Comparison, Flip

SHOWN_FLIPS = 10


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--task", help="Compare this task only.")
@click.option("--metric", help="Compare this metric only.")
@click.option("--scored-only", is_flag=True, help="Leave out trials without a score instead of counting them as 0.")
@click.option("--flips", default=SHOWN_FLIPS, show_default=True, help="How many flipped samples to list each way.")
@click.option("--json", "as_json", is_flag=True, help="Machine output on stdout.")
def compare(runs: tuple[Path, ...], *, task: str | None, metric: str | None, scored_only: bool, flips: int, as_json: bool) -> None:
    """Compare runs on the samples they share.

    \b
    snellen compare runs/qwen runs/llava
    snellen compare runs/a runs/b runs/c --task docvqa --json
    """
    from ..api.compare import compare_runs
    from ..core.types import to_json

    results = compare_runs(runs, task=task, metric=metric, scored_only=scored_only)
    if as_json:
        sys.stdout.write(to_json({"tasks": results}).decode() + "\n")
        return
    for name, comparisons in results.items():
        show(name, comparisons, flips)


def show(task: str, comparisons: list[Comparison], flips: int) -> None:
    """Print one task: a table of all pairs, then who flipped and where the runs part."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=task, title_justify="left")
    for column, justify in (("metric", "left"), ("A", "left"), ("B", "left"), ("A %", "right"), ("B %", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for column in ("B - A", "95 % interval", "p", "p (Holm)", "paired", "unpaired"):
        table.add_column(column, justify="right")
    for one in comparisons:
        table.add_row(*_row(one))
    console.print(table)
    for one in comparisons:
        _show_details(one, flips)


def _row(one: Comparison) -> list[str]:
    interval = f"[{one.ci95[0] * 100:+.1f}, {one.ci95[1] * 100:+.1f}]" if one.ci95 else "–"
    shares = [_percent(one.first_value), _percent(one.second_value), _percent(one.difference, sign=True)]
    tests = [_p_value(one.p), _p_value(one.p_adjusted)]
    unpaired = f"{len(one.only_first)} + {len(one.only_second)}"
    return [one.metric, one.first, one.second, *shares, interval.replace("[", "\\["), *tests, str(one.paired), unpaired]


def _percent(value: float | None, *, sign: bool = False) -> str:
    return "–" if value is None else f"{value * 100:{'+' if sign else ''}.2f}"


def _p_value(value: float | None) -> str:
    return "–" if value is None else "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _show_details(one: Comparison, flips: int) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    counts = f"{len(one.better)} better, {len(one.worse)} worse"
    console.print(f"{one.metric}, {one.first} → {one.second}: {one.test}; {counts}.", soft_wrap=True, markup=False)
    for label, found in (("better", one.better), ("worse", one.worse)):
        if found and flips:
            console.print(f"  {label}: {_list(found, flips)}", markup=False, soft_wrap=True)
    if one.divergence:
        parts = ", ".join(f"{stage} {count}" for stage, count in one.divergence.items())
        console.print(f"  first divergence of the paired samples: {parts}", soft_wrap=True)
    if any(one.not_scored):
        console.print(f"  without a score: {one.not_scored[0]} and {one.not_scored[1]} trials")


def _list(found: tuple[Flip, ...], flips: int) -> str:
    shown = ", ".join(f"{flip.sample} ({flip.divergence})" if flip.divergence else flip.sample for flip in found[:flips])
    more = f", and {len(found) - flips} more (--json lists all)" if len(found) > flips else ""
    return shown + more
