"""A base and a tuned model to what was gained: the same tasks for both, compared in pairs, guarded, without a leak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...api.run import run_settings
from ...api.settings import RunSettings
from ...core.errors import UsageError
from ...scoring.aggregates.consistency import chains_from_table
from ...scoring.aggregates.headline import main_metric, quoted_metric
from ...scoring.compare.run_pairs import compare_runs
from ...scoring.stored import stored_tables
from ...scoring.tables.table import ScoreTable, lower_is_better
from ...stats.bootstrap import bootstrap_interval
from ...stats.intervals import unseen_interval
from ...store.reader import RunReader

# Two runs of the same task, before and after, to what was gained: paired differences with intervals, and a guard.
#
# What was not read or has no reply is wrong on both sides: a model that stops answering must not look better for it.

Matrix = NDArray[np.float64]
HOLDS, OPEN, WORSE = "holds", "open", "worse"
CHAINED = "accuracy"


class Gain(Struct, frozen=True):
    """One figure before and after."""

    task: str
    figure: str
    before: float | None
    after: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    n: int
    guarded: bool = False
    verdict: str = ""
    """Of a guarded figure: `holds`, `worse` (the interval lies below nothing), `open` (a drop cannot be excluded)."""


class Figure(NamedTuple):
    """A figure of chains as a function of the totals of h, s and h·s before and after, and the count."""

    name: str
    before: Callable[[Matrix], Matrix]
    after: Callable[[Matrix], Matrix]

    def difference(self, totals: Matrix) -> Matrix:
        """Return after less before, of every draw."""
        return self.after(totals) - self.before(totals)


def _share(above: int, below: int) -> Callable[[Matrix], Matrix]:
    def share(totals: Matrix) -> Matrix:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(totals[:, above] / totals[:, below], dtype=np.float64)

    return share


FIGURES = (
    Figure("Rh", _share(0, 6), _share(3, 6)),
    Figure("Rcot", _share(1, 6), _share(4, 6)),
    Figure("Ro", _share(2, 6), _share(5, 6)),
    Figure("Cf", _share(2, 1), _share(5, 4)),
    Figure("Cb", _share(2, 0), _share(5, 3)),
)


def chain_columns(table: ScoreTable) -> dict[str, tuple[float, float, float]]:
    """Return h, s and h·s of every chain by its name, what was not read or failed counted as wrong."""
    chains = chains_from_table(table).counted_as(right=False)
    names = dict(zip(table.cluster_of_sample.tolist(), (name.partition(".")[0] for name in table.samples), strict=True))
    right, whole = chains.inference.astype(float), chains.whole.astype(float)
    rows = zip(chains.clusters.tolist(), right.tolist(), whole.tolist(), strict=True)
    return {names[cluster]: (h, s, h * s) for cluster, h, s in rows}


def chain_gains(before: ScoreTable, after: ScoreTable, task: str) -> list[Gain]:
    """Return the paired gains of Rh, Rcot, Ro, Cf and Cb, chains drawn together."""
    old, new = chain_columns(before), chain_columns(after)
    if set(old) != set(new):
        raise UsageError(
            f"task {task!r}: the runs have different chains ({len(old)} and {len(new)}): finish both first"
        )
    columns = np.asarray([[*old[name], *new[name], 1.0] for name in sorted(old)], dtype=np.float64)
    whole = columns.sum(axis=0, keepdims=True)
    return [_chain_gain(figure, columns, whole, task) for figure in FIGURES]


def _chain_gain(figure: Figure, columns: Matrix, whole: Matrix, task: str) -> Gain:
    first, second = _finite(float(figure.before(whole)[0])), _finite(float(figure.after(whole)[0]))
    if first is None or second is None:
        return Gain(task, figure.name, first, second, None, None, len(columns))
    interval = bootstrap_interval(columns, figure.difference, task, figure.name)
    if interval is None and len(columns) > 1:  # every chain changed alike: no draw can differ, others still may
        interval = unseen_interval(second - first, len(columns))
    return Gain(task, figure.name, first, second, second - first, interval, len(columns))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def find_gains(before: Path, after: Path) -> list[Gain]:
    """Return all gains of two run folders: of chains their figures, of other tasks the metric they stand for."""
    gains: list[Gain] = []
    with ExitStack() as stack:
        readers = [stack.enter_context(RunReader(folder)) for folder in (before, after)]
        for task in readers[0].header().tasks:
            tables = [stored_tables(reader, task.name) for reader in readers]
            if "cure" in task.aggregates and _has_chains(tables[0][CHAINED]):
                gains += chain_gains(tables[0][CHAINED], tables[1][CHAINED], task.name)
            else:
                metric = main_metric(tuple(tables[0]), quoted_metric(task)) or ""
                gains.append(_plain_gain(before, after, task.name, metric))
    return gains


def _has_chains(table: ScoreTable) -> bool:
    codes, names = table.tags.get("role", (np.zeros(0, dtype=np.int64), ()))
    return {names[code] for code in np.unique(codes)} >= {"inference", "step"}


def _plain_gain(before: Path, after: Path, task: str, metric: str) -> Gain:
    (found,) = compare_runs([before, after], task=task, metric=metric)[task]
    return Gain(task, metric, found.first_value, found.second_value, found.difference, found.ci95, found.paired)


def guard_gain(gain: Gain, margin: float) -> Gain:
    """Return the gain with the guard's verdict: it may not get worse, and a drop beyond the margin must be excluded."""
    verdict = OPEN
    if gain.ci95 is not None:
        low, high = (-gain.ci95[1], -gain.ci95[0]) if lower_is_better(gain.figure) else gain.ci95
        verdict = WORSE if high < 0 else HOLDS if low >= -margin else OPEN
    values = (gain.before, gain.after, gain.difference, gain.ci95, gain.n)
    return Gain(gain.task, gain.figure, *values, guarded=True, verdict=verdict)


BEFORE, AFTER, GAINS = "before", "after", "gains.json"
RECORD = "training.json"
MARGIN = 0.02
"""How far a guarded figure may have dropped at most, as far as the interval can tell."""


class Evaluated(Struct, frozen=True):
    """What a training gained; `worse` names the guarded tasks that got worse."""

    gains: tuple[Gain, ...]
    worse: tuple[str, ...]
    folder: str


class EvaluateSettings(Struct, frozen=True, kw_only=True):
    """How both models are measured."""

    tasks: tuple[str, ...]
    guards: tuple[str, ...] = ()
    margin: float = MARGIN
    overrides: tuple[tuple[str, Any], ...] = ()
    limit: int | None = None
    model_arguments: dict[str, Any] = {}
    catalogs: tuple[Path, ...] = ()
    seed: int = 0
    allow_overlap: bool = False
    prompt: dict[str, Any] = {}


def evaluate_tuned(
    base: str, tuned: str, output: Path, settings: EvaluateSettings, say: Callable[[str], None] = lambda _: None
) -> Evaluated:
    """Measure both models on the same tasks and return the paired gains; the same call again continues."""
    if not settings.tasks:
        raise UsageError("nothing to measure: name at least one task (--task cure)")
    training = Path(tuned) if (Path(tuned) / RECORD).is_file() else None
    if training is not None:
        check_leak(training, settings, say)
    else:
        say(f"{tuned} is no folder of a training: its data cannot be compared with the tasks")
    sides = [(BEFORE, *model_of(base)), (AFTER, *model_of(tuned))]
    names = tuple(dict.fromkeys((*settings.tasks, *settings.guards)))
    guarded: set[str] = set()
    for side, model, arguments in sides:
        result = run_settings(_settings(model, arguments, names, output / side, settings), None)
        if result.interrupted:
            raise KeyboardInterrupt
        guarded |= _guarded_names(result.results["tasks"], settings.guards)
        say(f"{side}: {model} measured in {output / side}, {result.failed} failed")
    gains = find_gains(output / BEFORE, output / AFTER)
    gains = [guard_gain(gain, settings.margin) if gain.task in guarded else gain for gain in gains]
    worse = tuple(dict.fromkeys(gain.task for gain in gains if gain.verdict == WORSE))
    done = Evaluated(tuple(gains), worse, str(output))
    _keep(done, output, training)
    return done


def _guarded_names(tasks: dict[str, Any], guards: Sequence[str]) -> set[str]:
    """Return the names under which the guarded tasks ran: a file's task has a name of its own."""
    stems = {Path(guard).stem for guard in guards} | set(guards)
    return {name for name in tasks if name in stems} | (set(tasks) if set(guards) and len(tasks) == 1 else set())


def _settings(
    model: str, arguments: dict[str, Any], names: tuple[str, ...], folder: Path, settings: EvaluateSettings
) -> RunSettings:
    return RunSettings(
        tasks=names,
        model=model,
        model_arguments={**settings.model_arguments, **arguments},
        overrides=settings.overrides,
        limit=settings.limit,
        seed=settings.seed,
        prompt=settings.prompt,
        catalogs=settings.catalogs,
        output_dir=folder,
    )


def model_of(name: str) -> tuple[str, dict[str, Any]]:
    """Return how a model is named and loaded: by provider/name, or the folder of a training or of its model."""
    folder = Path(name)
    if not (folder / RECORD).is_file():
        if folder.is_dir() and "/" not in name.rstrip("/"):
            raise UsageError(f"{name} is a folder without {RECORD}: write hf/{name} for weights")
        return name, {}
    from .tuning import stored_recipe

    recipe = stored_recipe(folder)
    if not (folder / "model").is_dir():
        raise UsageError(f"{name} holds a training that is not finished: run its command again")
    if recipe.training.weights == "lora":
        return recipe.model, {"adapter": str(folder / "model")}
    return f"hf/{folder / 'model'}", {}


def check_leak(training: Path, settings: EvaluateSettings, say: Callable[[str], None]) -> None:
    """Refuse to measure a model on what it was trained on, unless that was allowed."""
    from .blend import PreparedChains
    from .overlap import check_contamination
    from .tuning import stored_recipe

    asked = msgspec.structs.replace(
        stored_recipe(training),
        output=str(training),
        against=settings.tasks,
        against_overrides=settings.overrides,
        allow_overlap=settings.allow_overlap,
        catalogs=tuple(map(str, settings.catalogs)),
    )
    check_contamination(asked, PreparedChains(training / "data"), say)


def _keep(done: Evaluated, output: Path, training: Path | None) -> None:
    written = msgspec.json.format(msgspec.json.encode(done), indent=1) + b"\n"
    (output / GAINS).write_bytes(written)
    if training is not None:
        from .tuned_card import write_training_card

        (training / GAINS).write_bytes(written)
        write_training_card(training)
