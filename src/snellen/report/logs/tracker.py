"""What every tracker is told: which run, how far it is, its figures, and pictures of what it got wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ...core.errors import DataError
from ...data.images.decode import encode_png, open_image
from ...scoring.stored import read_columns
from ...store.reader import RunReader
from ..pages.gallery import Shown, pick_rows, read_trial

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
    """One place that hears of a run. Every call may fail: whoever calls keeps the run safe from it."""

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
