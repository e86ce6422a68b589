"""The names of trackers to one hub: it works in a thread of its own, and a tracker that fails never harms a run."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...core.errors import MissingExtra, UsageError, not_among
from ...engine.state import RunState
from .tracker import Tracker, result_figures, wrong_answers

TRACKERS = {
    "jsonl": ("json_lines:JsonLines", ()),
    "tensorboard": ("tensorboard_events:TensorBoard", ("tensorboard",)),
    "mlflow": ("mlflow_run:Mlflow", ("mlflow", "sqlalchemy", "alembic")),
    "otel": ("otel_spans:OtelSpans", ()),
    "wandb": ("wandb_run:Wandb", ("wandb",)),
}
"""Name -> (class, the packages it needs); the extra has the tracker's name."""
EVERY_S = 5.0


def check_trackers(names: Sequence[str]) -> None:
    """Refuse trackers that are not known or whose package is missing, before anything is asked."""
    for name in names:
        if name not in TRACKERS:
            raise UsageError(f"unknown tracker {not_among(name, sorted(TRACKERS))}")
        if any(importlib.util.find_spec(package) is None for package in TRACKERS[name][1]):
            raise MissingExtra(name, f"--log {name}")


class TrackerHub:
    """Tells all trackers of one run. What goes wrong is kept in `problems`, and that tracker hears no more."""

    def __init__(self, names: Sequence[str], folder: Path, run: str, settings: Mapping[str, Any]) -> None:
        self._folder, self._run, self._settings = folder, run, settings
        self._trackers: dict[str, Tracker | None] = dict.fromkeys(names)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="snellen-log")
        self.problems: dict[str, str] = {}

    @contextmanager
    def watch(self, state: RunState) -> Iterator[None]:
        """Tell how far the run is, now and then, during the block."""
        if not self._trackers:
            yield
            return
        task = asyncio.get_running_loop().create_task(self._follow(state))
        try:
            yield
        finally:
            task.cancel()

    async def _follow(self, state: RunState) -> None:
        while True:
            await asyncio.wrap_future(self._thread.submit(self.tell, state))
            await asyncio.sleep(EVERY_S)

    def tell(self, state: RunState) -> None:
        """Tell how far the run is."""
        step, figures = _progress(state)
        self._each(lambda tracker: tracker.tell(step, figures))

    def end(self, results: Mapping[str, Any], state: RunState) -> None:
        """Tell the figures and what was wrong; afterwards nobody listens any more."""
        if not self._trackers:
            return
        figures, wrong = result_figures(results), wrong_answers(self._folder)
        step = state.done + state.resumed
        self._thread.submit(self._each, lambda tracker: tracker.end(step, figures, wrong)).result()
        self._thread.shutdown()

    def _each(self, say: Callable[[Tracker], None]) -> None:
        for name in self._trackers:
            if name in self.problems:
                continue
            with ThreadPoolExecutor(1) as apart:  # whatever a tracker raises stays in its future
                error = apart.submit(self._say, name, say).exception()
            if error is not None:
                self.problems[name] = f"{type(error).__name__}: {error}"

    def _say(self, name: str, say: Callable[[Tracker], None]) -> None:
        tracker = self._trackers[name]
        if tracker is None:
            module, _, kind = TRACKERS[name][0].partition(":")
            made: Tracker = getattr(importlib.import_module(f"{__package__}.{module}"), kind)(self._folder)
            made.begin(self._run, self._settings)
            tracker = self._trackers[name] = made
        say(tracker)


def _progress(state: RunState) -> tuple[int, dict[str, float]]:
    figures = {"progress/stored": state.done + state.resumed, "progress/failed": state.failed}
    figures |= {"progress/retries": state.retries, "progress/output_tokens": state.output_tokens}
    told = {name: float(value) for name, value in figures.items()}
    cost = {} if state.limits.prices is None else {"progress/cost": state.limits.spent}
    return state.done + state.resumed, told | cost
