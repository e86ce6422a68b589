"""A base and a tuned model to what was gained: the same tasks for both, compared in pairs, guarded, without a leak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...api.run import run_settings
from ...api.settings import RunSettings
from ...core.errors import UsageError
from .gains import WORSE, Gain, find_gains, guard_gain

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
    from .contamination import check_contamination
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
