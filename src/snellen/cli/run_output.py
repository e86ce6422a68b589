"""What `snellen run` prints: the plan, the progress, the tables, and where the files went."""

from __future__ import annotations

import click
from rich.console import Console

from ..api.listing import published_card
from ..api.plan import Plan
from ..api.plan_words import describe_params, describe_rows, show_prompts
from ..api.run import RunResult
from ..report.boards.headline import dimension_means
from ..report.boards.published import comparison_table
from ..report.curves import plot_run
from ..report.progress import Price, Progressbar
from ..report.terminal import dimension_table, group_tables, plain, results_table
from .options import print_json

TOKENS_PER_CHARACTER = 0.3
TOKENS_PER_IMAGE = 1000


class TerminalWatcher:
    """Prints the plan and shows progress on stderr."""

    def __init__(self, *, quiet: bool, as_lines: bool = False, price: Price | None = None, prompts: int = 0) -> None:
        self.console = Console(stderr=True)
        self.watch = Progressbar(self.console, quiet=quiet, as_lines=as_lines, price=price).watch
        self._quiet = quiet
        self._prompts = prompts

    def planned(self, plan: Plan, worst_case_s: float) -> None:
        """Print what is about to happen: counts, rough tokens, and the worst case."""
        if self._quiet:
            return
        tokens = 0.0
        for planned in plan.tasks:
            task, content = planned.task, planned.survey
            shape = f"{content.samples} samples × {len(task.variants)} variants × {task.repeats} inferences"
            self.console.print(plain(f"{task.name}: {planned.trials} trials ({shape}), {content.images} images"))
            lines = (*describe_rows(planned), *describe_params(planned, plan), *show_prompts(planned, self._prompts))
            for line in lines:
                self.console.print(plain(line))
            once = content.characters * TOKENS_PER_CHARACTER + content.images * TOKENS_PER_IMAGE
            tokens += planned.trials / content.samples * once
        cost = f"about {tokens:,.0f} input tokens; at worst {_duration(worst_case_s)}"
        self.console.print(plain(f"model {plan.model.name}; {cost}; run folder {plan.folder}"))


def print_result(result: RunResult, watcher: TerminalWatcher, *, as_json: bool, quiet: bool) -> None:
    """Print the tables (or JSON) and where everything is."""
    if as_json:
        print_json(result.results)
    if not quiet:
        console = watcher.console if as_json else Console()
        _print_tables(result, console)
        for kind, count in result.state.failures.items():
            console.print(plain(f"{count} trials failed: {kind}"))
        if result.state.last_error and result.failed:
            console.print(plain(f"last error: {result.state.last_error}"))
        folder = result.folder
        console.print(plain(f"results {folder / 'results.json'} · every trial {folder / 'records.jsonl'}"))
        page = f"page {folder / 'report.html'} · " if (folder / "report.html").exists() else ""
        console.print(plain(f"{page}every reply in the browser: snellen view {folder}"))
    if result.interrupted:
        progress = f"{result.state.done + result.state.resumed} of {result.state.planned} trials"
        why = "stopped by --deadline" if result.state.overdue else "interrupted"
        click.echo(f"{why} after {progress}; run the same command again to continue", err=True)


def _print_tables(result: RunResult, console: Console) -> None:
    for name, task in result.results["tasks"].items():
        console.print(results_table(name, task))
        for note in task.get("notes", ()):
            console.print(plain(note))
        for table in group_tables(task):
            console.print(table)
        card = published_card(name, task["metrics"])
        if card is not None:
            console.print(comparison_table(task["metrics"], card, result.results["model"]))
        if "acuity_px" in task["metrics"]:
            console.print(plain("\n".join(plot_run(result.folder, name))))
    means = dimension_means(result.results["tasks"], result.dimensions)
    if len(means) > 1:
        console.print(dimension_table(means))


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 5400 else f"{seconds / 60:.0f} min"
