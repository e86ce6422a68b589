"""What every tracker is told: which run, how far it is, its figures, and pictures of what it got wrong.

A tracker is registered as `tracker`: a class that is made with the run's folder when it is first told something.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ..core.errors import DataError, MissingExtra
from ..core.registry import Registry
from ..data.images.decode import encode_png, open_image
from ..engine.state import RunState
from ..report.pages.gallery import Shown, pick_rows, read_trial
from ..scoring.stored import read_columns
from ..store.reader import RunReader

MOST_WRONG = 16
"""Wrong answers of a task that are sent with their pictures."""
SIDE_PX = 512


class Wrong(NamedTuple):
    """A wrong answer worth looking at."""

    task: str
    sample: str
    words: str
    png: bytes
    size: tuple[int, int]


class Tracker(Protocol):
    """One place that hears of a run. Every call may fail: whoever calls keeps the run safe from it.

    A class whose packages are an extra names them as `needs`; the extra has the tracker's name.
    """

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        """Called once, before the first figure."""
        ...

    def tell(self, step: int, figures: Mapping[str, float]) -> None:
        """Called now and then; `step` is how many trials are stored."""
        ...

    def end(self, step: int, figures: Mapping[str, float], wrong: Sequence[Wrong]) -> None:
        """Called once, after scoring."""
        ...


def result_figures(results: Mapping[str, Any]) -> dict[str, float]:
    """Return every metric of every task by `task/metric`, with the ends of its interval and its number of trials."""
    figures: dict[str, float] = {}
    for task, result in results["tasks"].items():
        for name, estimate in result["metrics"].items():
            if estimate["value"] is None:
                continue
            figures[f"{task}/{name}"] = float(estimate["value"])
            figures[f"{task}/{name}.n"] = float(estimate["n"])
            for end, bound in zip(("low", "high"), estimate.get("ci95") or (), strict=False):
                figures[f"{task}/{name}.{end}"] = float(bound)
    return figures


def wrong_answers(folder: Path) -> list[Wrong]:
    """Return the worst trials of every task with their pictures; one without a picture is left to the report."""
    found: list[Wrong] = []
    with RunReader(folder) as reader:
        for task in reader.header().tasks:
            columns = read_columns(reader, task)
            keys = [columns.key(row) for row in pick_rows(columns, MOST_WRONG)]
            trials = [trial for trial in (read_trial(reader, key) for key in keys) if trial is not None]
            found += [wrong for wrong in map(_wrong, trials) if wrong is not None]
    return found


def _wrong(trial: Shown) -> Wrong | None:
    images = [image for turn in trial.request.messages for image in turn.images]
    if not images:
        return None
    try:
        picture = open_image(images[0])
    except DataError:
        return None
    picture.thumbnail((SIDE_PX, SIDE_PX))
    picture = picture.convert("RGB")
    read = trial.scores[0].answer if trial.scores else None
    words = (
        f"{trial.sample.question} | expected: {', '.join(trial.sample.answers)} | read: {read} | reply: {trial.text}"
    )
    key = trial.prediction.key
    return Wrong(key.task, key.sample, words[:1000], encode_png(picture), picture.size)


def plain_settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Return nested settings as flat texts, for trackers that know no others."""
    flat: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{name}": text for name, text in plain_settings(value).items()}
        else:
            flat[key] = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return flat


MakeTracker = Callable[[Path], Tracker]
EVERY_S = 5.0


def find_trackers(names: Sequence[str], registry: Registry) -> dict[str, MakeTracker]:
    """Return registered trackers by name; one that is not known or lacks its package is refused, before anything."""
    found: dict[str, MakeTracker] = {}
    for name in names:
        found[name] = registry.get("tracker", name)
        if any(importlib.util.find_spec(package) is None for package in getattr(found[name], "needs", ())):
            raise MissingExtra(name, f"--log {name}")
    return found


class TrackerHub:
    """Tells all trackers of one run. What goes wrong is kept in `problems`, and that tracker hears no more."""

    def __init__(self, kinds: Mapping[str, MakeTracker], folder: Path, settings: Mapping[str, Any]) -> None:
        self._kinds, self._folder, self._settings = kinds, folder, settings
        self._trackers: dict[str, Tracker] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="snellen-log")
        self.problems: dict[str, str] = {}

    @contextmanager
    def watch(self, state: RunState) -> Iterator[None]:
        """Tell how far the run is, now and then, during the block."""
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
        figures, wrong = result_figures(results), wrong_answers(self._folder)
        step = state.done + state.resumed
        self._thread.submit(self._each, lambda tracker: tracker.end(step, figures, wrong)).result()
        self._thread.shutdown()

    def _each(self, say: Callable[[Tracker], None]) -> None:
        for name in self._kinds:
            if name in self.problems:
                continue
            with ThreadPoolExecutor(1) as apart:  # whatever a tracker raises stays in its future
                error = apart.submit(self._say, name, say).exception()
            if error is not None:
                self.problems[name] = f"{type(error).__name__}: {error}"

    def _say(self, name: str, say: Callable[[Tracker], None]) -> None:
        if name not in self._trackers:
            made = self._kinds[name](self._folder)
            made.begin(self._folder.name, self._settings)
            self._trackers[name] = made
        say(self._trackers[name])


def _progress(state: RunState) -> tuple[int, dict[str, float]]:
    figures = {"progress/stored": state.done + state.resumed, "progress/failed": state.failed}
    figures |= {"progress/retries": state.retries, "progress/output_tokens": state.output_tokens}
    told = {name: float(value) for name, value in figures.items()}
    cost = {} if state.limits.prices is None else {"progress/cost": state.limits.spent}
    return state.done + state.resumed, told | cost
