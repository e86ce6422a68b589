"""What `snellen run` prints: the plan, the progress, the tables, and where the files went."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from ..api.listing import published_card
from ..api.plan import Plan
from ..api.plan_words import (
    describe_leaving,
    describe_params,
    describe_rows,
    describe_videos,
    short_plan,
    show_prompts,
)
from ..api.run import RunResult, RunState
from ..api.run_cost import CostEstimate, describe_cost, describe_stop
from ..api.stored_results import errors
from ..core.errors import EXIT_AGAIN
from ..core.text import ago, plural
from ..report.console import WholeConsole
from ..report.pages.notebook import headline_words
from ..report.pages.parts import cost_lines
from ..report.progress import Progressbar
from ..report.terminal import (
    comparison_table,
    dimension_means,
    dimension_table,
    error_line,
    group_tables,
    next_step,
    plain,
    results_table,
    summary_table,
    sureness_tables,
)
from ..report.written import protocol_lines, suite_lines
from .options import part_tables, print_json

MOST_NUMBERS = 3
"""Tasks whose numbers are said again under the tables."""


class TerminalWatcher:
    """Prints the plan and shows progress on stderr."""

    def __init__(self, *, quiet: bool, as_lines: bool = False, prompts: int = 0, verbose: bool = False) -> None:
        self.console = WholeConsole(stderr=True)
        self._whole = verbose or not self.console.is_terminal  # a log keeps everything
        self._progress = Progressbar(self.console, quiet=quiet, as_lines=as_lines)
        self._quiet = quiet
        self._prompts = prompts

    @contextmanager
    def watch(self, state: RunState) -> Iterator[None]:
        """Show progress during the block; then tell, quiet or not, of replies that the cache has lost."""
        with self._progress.watch(state):
            yield
        if state.not_kept:
            lost = f"{state.not_kept:,} of the replies could not be kept in the cache ({state.why_not_kept})"
            click.echo(f"warning: {lost}; this run has them, another one would ask for them again", err=True)

    def planned(self, plan: Plan, estimate: CostEstimate) -> None:
        """Print what is about to happen: counts, tokens and money. How long it takes is known once replies come."""
        if self._quiet:
            return
        if not self._whole:
            prompts = (line for planned in plan.tasks for line in show_prompts(planned, self._prompts))
            for line in (*prompts, *short_plan(plan, estimate)):
                self.console.print(plain(line))
            return
        for planned in plan.tasks:
            task, content = planned.task, planned.survey
            counts = ((content.samples, "sample"), (len(task.variants), "variant"), (task.repeats, "inference"))
            shape = " × ".join(plural(*pair) for pair in counts)
            trials, images = plural(planned.trials, "trial"), plural(content.images, "image")
            videos = f", {plural(content.videos, 'video')}" if content.videos else ""
            self.console.print(plain(f"{task.name}: {trials} ({shape}), {images}{videos}"))
            lines = (*describe_videos(planned), *describe_rows(planned), *describe_params(planned, plan))
            lines += tuple(show_prompts(planned, self._prompts))
            for line in lines:
                self.console.print(plain(line))
        for line in (*describe_leaving(plan), *describe_cost(plan, estimate)):
            self.console.print(plain(line))

    def notify(self, line: str) -> None:
        """Print something that happened while the run waits."""
        if not self._quiet:
            self.console.print(plain(line))

    def agrees(self, question: str) -> bool:
        """Ask whoever sits at the terminal; where nobody does, the answer is no."""
        if self._quiet or not (sys.stdin.isatty() and self.console.is_terminal):
            return False
        return click.confirm(
            question if question.endswith("?") else f"{question}. Start, and stop at the limit?", err=True
        )


def print_result(result: RunResult, watcher: TerminalWatcher, *, as_json: bool, quiet: bool) -> None:
    """Print the tables (or JSON) and where everything is."""
    if as_json:
        print_json(result.results)
    if not quiet:
        console = watcher.console if as_json else WholeConsole()
        if not _all_failed(result):  # screens of "–" would hide the one line that matters
            _print_tables(result, console)
        for line in (
            *_how_it_went(result),
            *_number(result),
            *_why_not_right(result),
            *_where_to_look(result.folder),
        ):
            console.print(plain(line))
    if result.interrupted:
        progress = f"{result.state.done + result.state.resumed} of {result.state.planned} trials"
        why = _why_stopped(result.state)
        click.echo(f"{why} after {progress}; run the same command again to continue", err=True)


def print_part(result: RunResult, watcher: TerminalWatcher, *, as_json: bool, quiet: bool) -> int:
    """Say how one part of a run ended, and show the whole run where it was the last; return the exit code."""
    end, state = result.part, result.state
    if end is None:
        raise AssertionError("only of a part")
    if end.merged:
        print_result(replace(result, interrupted=False), watcher, as_json=as_json, quiet=quiet)
    elif as_json:
        print_json({"part": end, "done": state.done + state.resumed, "failed": state.failed})
    words = (
        f"part {end.part.index} of {end.part.count}: {state.done + state.resumed:,} of {plural(end.trials, 'trial')}"
    )
    words += f"; {plural(end.taken, 'trial')} taken from other parts" if end.taken else ""
    words += f"; {plural(end.given, 'trial')} left to other parts" if end.given else ""
    if state.unfinished:
        click.echo(f"{words}; {end.why}" + f" (exit {EXIT_AGAIN}: start it again)" * end.again, err=True)
        if end.again:
            return EXIT_AGAIN
        return 3 if state.over_limit else 130
    if not quiet:
        failed = f", {state.failed:,} failed" if state.failed else ""
        watcher.console.print(plain(f"{words}{failed}; complete. How far the others are: snellen show {result.folder}"))
        if end.note:
            watcher.console.print(plain(end.note))
    return 1 if state.failed else 0


def _why_not_right(result: RunResult) -> Iterator[str]:
    """Say why answers are not right, in a line a task, and what can be done about the largest group."""
    several = len(result.results["tasks"]) > 1
    for task, groups in errors(result.folder, quick=True).items():
        if not groups:
            continue
        if line := error_line(groups):
            yield f"{f'{task}: ' * several}{line} (snellen show {result.folder} --errors)"
        if step := next_step(groups):
            yield f"Next: {step}"


def _where_to_look(folder: Path) -> Iterator[str]:
    page = f" · Share: {folder / 'report.html'}" if (folder / "report.html").exists() else ""
    yield f"Browse: snellen view {folder}{page}"
    yield f"Files: results.json and records.jsonl in {folder}"


def _number(result: RunResult) -> Iterator[str]:
    """Say the number of each task with its interval and bounds; of many tasks the tables do."""
    if len(result.results["tasks"]) <= MOST_NUMBERS and not _all_failed(result):
        words = list(headline_words(result.results))
        if len(words) == 1:  # of several tasks the table of all of them says it
            yield f"Result: {words[0]}"


def _why_stopped(state: RunState) -> str:
    if state.over_limit:
        return describe_stop(state)
    if state.in_batches:
        return f"left {plural(state.in_batches, 'request')} in batches"
    return "stopped by --deadline" if state.overdue else "interrupted"


def _all_failed(result: RunResult) -> bool:
    state = result.state
    return state.done > 0 and state.failed == state.done and not state.resumed


def _how_it_went(result: RunResult) -> Iterator[str]:
    """Say what was asked and what was not: failures, replies that were there already, an early stop."""
    state = result.state
    for kind, count in state.failures.items():
        yield f"{plural(count, 'trial')} failed: {kind}"
    if state.last_error and result.failed:
        yield f"last error: {state.last_error}"
    yield from cost_lines(result.results)
    yield from _not_logged(result)
    yield from _who_answered(result)
    yield from _what_the_server_did(result)
    if state.resumed and not state.done:
        yield f"nothing was asked: the replies of all {plural(state.resumed, 'trial')} were stored before"
    elif state.resumed or state.cached:
        counts = {"asked now": state.done - state.cached, "stored before": state.resumed}
        counts["from the cache"] = state.cached
        yield ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) + _age_of_cache(result)
    if result.early_stop and result.early_stop.get("whole"):
        asked = result.early_stop["questions"]
        yield f"stopped after {asked:,} questions in drawn order; replies that came later are stored and not counted"
    elif result.early_stop:
        points, (low, high) = result.early_stop["points"], result.early_stop["interval"]
        asked, planned = state.done + state.resumed, state.planned
        yield (
            f"stopped by --until-ci {points:g} after {asked:,} of {planned:,} trials: "
            f"the interval [{low * 100:.1f}, {high * 100:.1f}] % is narrow enough"
        )


def _age_of_cache(result: RunResult) -> str:
    """Say how old replies of the cache are, and what their server said of its model; both are part of their key."""
    made = result.state.cached_from
    if made is None or not result.state.cached:
        return ""
    rows = result.results["run"].get("answerers") or [{"who": {}}]
    listed = rows[-1]["who"].get("listed", {})
    said = listed.get("root") or listed.get("id")
    return f" (the oldest {ago(time.time() - made)}{f'; the server then said {said}' if said else ''})"


def _what_the_server_did(result: RunResult) -> Iterator[str]:
    """Say what it refused, and what it did in silence."""
    for change in result.results["run"].get("adjusted", ()):
        yield f"sent otherwise than asked: {change}"
    for warning in result.results["run"].get("warnings", ()):
        yield f"warning: {warning}"


def _who_answered(result: RunResult) -> Iterator[str]:
    """Say how much each replica did, and what became of those that were lost."""
    if result.state.replicas():
        yield result.state.replicas()
        yield from result.results["run"]["replicas"][-1]["notes"]


def _not_logged(result: RunResult) -> Iterator[str]:
    for name, problem in result.not_logged.items():
        yield f"{name} did not get this run ({problem}); the run itself is whole"


def _print_tables(result: RunResult, console: WholeConsole) -> None:
    for name, task in result.results["tasks"].items():
        console.print(results_table(name, task))
        for note in (*protocol_lines(task), *task.get("notes", ())):
            console.print(plain(note))
        for table in (*part_tables(task, result.registry), *sureness_tables(task), *group_tables(task)):
            console.print(table)
        card = published_card(name, task["metrics"])
        if card is not None:
            console.print(comparison_table(task["metrics"], card, result.results["model"]))
        if "acuity_px" in task["metrics"]:
            from ..report.curves import plot_run

            console.print(plain("\n".join(plot_run(result.folder, name))))
    for line in suite_lines(result.results):
        console.print(plain(line))
    if len(result.results["tasks"]) > 1:
        console.print(summary_table(result.results))
        means = dimension_means(result.results["tasks"], result.dimensions)
        if len(means) > 1:
            console.print(dimension_table(means))
