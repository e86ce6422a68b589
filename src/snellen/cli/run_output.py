"""What `snellen run` prints: the plan, the progress, the tables, and where the files went."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

import click
import msgspec
from rich.console import Console

from ..api.plan import Plan
from ..api.run import RunResult
from ..data.catalog import Catalog
from ..engine.policy import Policy
from ..engine.state import RunState
from ..report.boards.headline import dimension_means
from ..report.boards.published import comparison_table, published_for
from ..report.curves import plot_run
from ..report.progress import Price, Progressbar
from ..report.terminal import dimension_table, group_tables, plain, results_table

TOKENS_PER_CHARACTER = 0.3
TOKENS_PER_IMAGE = 1000


class TerminalWatcher:
    """Prints the plan and shows progress on stderr."""

    def __init__(self, *, quiet: bool, as_lines: bool = False, price: Price | None = None) -> None:
        self.console = Console(stderr=True)
        self._quiet = quiet
        self._as_lines = as_lines
        self._price = price

    def planned(self, plan: Plan, policy: Policy) -> None:
        """Print what is about to happen: counts, rough tokens, and the worst case."""
        if self._quiet:
            return
        for each in plan.tasks:
            shape = (
                f"{each.survey.samples} samples × {len(each.task.variants)} variants × {each.task.repeats} inferences"
            )
            self.console.print(plain(f"{each.task.name}: {each.trials} trials ({shape}), {each.survey.images} images"))
        asked = sum(
            each.trials
            / each.survey.samples
            * (each.survey.characters * TOKENS_PER_CHARACTER + each.survey.images * TOKENS_PER_IMAGE)
            for each in plan.tasks
        )
        worst = policy.worst_case_s(plan.trials)
        self.console.print(
            plain(
                f"model {plan.model.name}; about {asked:,.0f} input tokens; at worst {_duration(worst)}; run folder {plan.folder}"
            )
        )

    def watch(self, state: RunState) -> AbstractContextManager[None]:
        """Show progress."""
        return Progressbar(self.console, quiet=self._quiet, as_lines=self._as_lines, price=self._price).watch(state)


def print_result(result: RunResult, watcher: TerminalWatcher, *, as_json: bool, quiet: bool) -> None:
    """Print the tables (or JSON) and where everything is."""
    if as_json:
        sys.stdout.write(msgspec.json.encode(result.results).decode() + "\n")
    if not quiet:
        console = watcher.console if as_json else Console()
        _print_tables(result, console)
        for kind, count in result.state.failures.items():
            console.print(plain(f"{count} trials failed: {kind}"))
        if result.state.last_error and result.failed:
            console.print(plain(f"last error: {result.state.last_error}"))
        console.print(
            plain(f"results {result.folder / 'results.json'} · every trial {result.folder / 'records.jsonl'}")
        )
        page = f"page {result.folder / 'report.html'} · " if (result.folder / "report.html").exists() else ""
        console.print(plain(f"{page}every reply in the browser: snellen view {result.folder}"))
    if result.interrupted:
        done = result.state.done + result.state.resumed
        click.echo(
            f"interrupted after {done} of {result.state.planned} trials; run the same command again to continue",
            err=True,
        )


def _print_tables(result: RunResult, console: Console) -> None:
    for name, task in result.results["tasks"].items():
        console.print(results_table(name, task))
        for note in task.get("notes", ()):
            console.print(plain(note))
        for table in group_tables(task):
            console.print(table)
        card = published_for(Catalog(), name, task["metrics"])
        if card is not None:
            console.print(comparison_table(task["metrics"], card, result.results["model"]))
        if "acuity_px" in task["metrics"]:
            console.print(plain("\n".join(plot_run(result.folder, name))))
    means = dimension_means(result.results["tasks"], result.dimensions)
    if len(means) > 1:
        console.print(dimension_table(means))


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 5400 else f"{seconds / 60:.0f} min"
