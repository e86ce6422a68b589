"""One training from prepared chains to a tuned model: identity, resuming, memory that runs out, whole files."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from safetensors import SafetensorError
from transformers import TrainerCallback

from ...core.config import convert
from ...core.errors import EnvironmentProblem, RunMismatch
from ...core.ids import content_hash
from ...core.version import __version__
from ...model.local.batch_size import is_out_of_memory
from ...model.local.checkpoint import BASE, Checkpoint, first_line
from ...store.owner import RunLock
from . import tuned_weights as weights
from .blend import BlendCounts, PreparedChains
from .recipe import DPO, Recipe
from .trl_door import Parts, adapter_state, listener_errors, make_arguments, make_trainer, open_dataset, versions_used

METRICS = "metrics.jsonl"
LOSSES = ("loss", "grad_norm")
TOKENS, MEAN_LOSS, SINCE = "num_tokens", "train_loss", "since_step"


class TrainingMonitor(TrainerCallback):  # type: ignore[misc]
    """One training's callbacks."""

    def __init__(
        self, folder: Path, say: Callable[[str], None], planned: Callable[[int], None] = lambda _: None
    ) -> None:
        self._path = folder / METRICS
        self._say, self._planned = say, planned
        self._begun = time.monotonic()
        self.stopping = False
        self.check_weights: Callable[[Any], None] | None = None
        """Called with the model when training begins, after the trainer loaded what it loads."""
        self.steps = 0
        self.since = 0
        """The step of the checkpoint this process went on from."""
        self._tokens_before: float | None = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        """Compare the weights with the checkpoint's, before the first step."""
        self.steps, self.since = state.max_steps, state.global_step
        self._tokens_before = self._tokens_until(self.since) if self.since else 0.0
        if self.check_weights is not None:
            self.check_weights(model)
        self._planned(self.steps)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
        """Write one line; a loss that is no number ends the training."""
        values = {name: value for name, value in (logs or {}).items() if isinstance(value, int | float)}
        if not state.is_world_process_zero or not values:
            return
        values = self._of_whole_training(values, state.global_step)
        bad = [name for name in LOSSES if not math.isfinite(values.get(name, 0.0))]
        named = {**values, **{name: str(values[name]) for name in bad}}
        self.write({"step": state.global_step, **named, "seconds": round(time.monotonic() - self._begun, 3)})
        if bad:
            fix = "lower the learning rate, or look at the rows of this step; the last checkpoint is whole"
            raise EnvironmentProblem(f"step {state.global_step}: {bad[0]} is {values[bad[0]]}: training ended; {fix}")
        if "loss" in values:
            self._say(f"step {state.global_step} of {state.max_steps}: loss {values['loss']:.4f}")

    def _tokens_until(self, step: int) -> float | None:
        """Return the tokens up to a step by its own line; None where it has none."""
        lines = self._path.read_text("utf-8").splitlines() if self._path.is_file() else []
        told = (json.loads(line) for line in lines if _step_of(line) == step)
        return next((float(line[TOKENS]) for line in told if TOKENS in line), None)

    def _of_whole_training(self, values: dict[str, float], step: int) -> dict[str, float]:
        """Return what stays true after a resume: a trainer counts tokens and its mean loss from zero again."""
        if not self.since:
            return values
        if TOKENS in values:
            before, made = self._tokens_before, values[TOKENS]
            values = {name: value for name, value in values.items() if name != TOKENS}
            values |= {} if before is None else {TOKENS: before + made}
        if MEAN_LOSS in values:
            values = {**values, SINCE: self.since}
            if step == self.since:
                del values[MEAN_LOSS]  # the mean over no step: a trainer says 0
        return values

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> Any:
        """Save and end where somebody asked for it."""
        if self.stopping:
            control.should_save = True
            control.should_training_stop = True
        return control

    def write(self, line: dict[str, Any]) -> None:
        """Append one line to the metrics."""
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    @contextmanager
    def stop_on_interrupt(self) -> Iterator[None]:
        """First Ctrl-C: finish the step, save, end; the second leaves at once, as Python does."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def ask(number: int, frame: Any) -> None:
            if self.stopping:
                raise KeyboardInterrupt
            self.stopping = True

        for number in before:
            signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def cut_metrics(folder: Path, step: int) -> int:
    """Take the lines after a step away, as those steps are trained again; return how many they were."""
    path = folder / METRICS
    if not path.is_file():
        return 0
    lines = path.read_text("utf-8").splitlines()
    kept = [line for line in lines if _step_of(line) <= step]
    part = path.with_name(f".{METRICS}.part")
    part.write_text("".join(f"{line}\n" for line in kept), "utf-8")
    part.replace(path)
    return len(lines) - len(kept)


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # the last line of a killed process may be half
        return math.inf


CHECKPOINTS, TUNED, RECORD = "checkpoints", "model", "training.json"
DISK_SIGNS = ("No space left on device", "os error 28", "Disk quota exceeded", "PytorchStreamWriter", "unexpected pos")
NOT_IDENTITY = ("model", "data", "output", "against", "against_overrides", "allow_overlap", "catalogs")
"""What may change on resume: places, since base and data are known by their content, and what was compared."""


class TrainingRecord(Struct, frozen=True):
    """What a training is, kept beside its checkpoints: another data, model or recipe is another training."""

    recipe: dict[str, Any]
    base: dict[str, Any]
    data: dict[str, Any]
    versions: dict[str, str]
    snellen: str
    events: tuple[str, ...] = ()
    """What happened on the way that a reader of the figures should know: resumed, batch halved …"""
    finished: bool = False
    final: dict[str, float] = {}
    planned: int | None = None
    """Steps in all, as the trainer counts them; known when the first begins."""

    @property
    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a checkpoint to be continued; who listens is no part of it."""
        recipe = {k: v for k, v in self.recipe.items() if k not in NOT_IDENTITY}
        recipe["training"] = {k: v for k, v in recipe.get("training", {}).items() if k != "report_to"}
        return {"recipe": recipe, "base": self.base, "data": self.data.get("sha256")}


class Tuned(Struct, frozen=True):
    """What a training left."""

    folder: str
    model: str
    adapter: bool
    steps: int
    loss: float | None
    interrupted: bool
    events: tuple[str, ...]


def tune(recipe: Recipe, counts: BlendCounts, chains: PreparedChains, say: Callable[[str], None]) -> Tuned:
    """Train, or continue what was killed, and write the tuned model; the same call again continues."""
    folder = recipe.folder
    base = weights.open_base(recipe.model)
    lock = RunLock(folder) if is_main_process() else None
    try:
        record = open_record(folder, new_record(recipe, base, counts))
        if record.finished:
            return _tuned(recipe, record, interrupted=False)
        return TrainingRun(recipe, base, chains, record, say).run()
    finally:
        chains.close()
        if lock is not None:
            lock.release()


def is_main_process() -> bool:
    """Tell whether this process writes: of several that train together, the first does."""
    return int(os.environ.get("RANK", "0")) == 0


def new_record(recipe: Recipe, base: Checkpoint, counts: BlendCounts) -> TrainingRecord:
    """Return the record of a training that has not begun."""
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(recipe))  # as it is read back
    return TrainingRecord(told, dict(base.identity()), msgspec.to_builtins(counts), versions_used(), __version__)


def open_record(folder: Path, record: TrainingRecord) -> TrainingRecord:
    """Return the stored record, or store this one; what differs from the stored one is refused by name."""
    path = folder / RECORD
    if not path.is_file():
        save_record(folder, record)
        return record
    stored = read_record(folder)
    check_same_training(folder, stored, record)
    return stored


def read_record(folder: Path) -> TrainingRecord:
    """Return the stored record of a training; one that cannot be read is refused."""
    path = folder / RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrainingRecord)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = f"{path} cannot be read: {first_line(error)}"
        raise EnvironmentProblem(f"{why}; train into another -o, or bring the file back") from None


def stored_recipe(folder: Path) -> Recipe:
    """Return the recipe of a stored training; one that is none is refused by the field."""
    return convert(read_record(folder).recipe, Recipe, str(folder / RECORD))


def check_same_training(folder: Path, stored: TrainingRecord, record: TrainingRecord) -> None:
    """Refuse to go on with another training in a folder, by the first thing in which it differs."""
    if content_hash(stored.identity) != content_hash(record.identity):
        raise RunMismatch(f"{folder} holds another training ({_difference(stored, record)}): choose another -o")


def save_record(folder: Path, record: TrainingRecord) -> None:
    """Write the record, whole or not at all."""
    part = folder / f".{RECORD}.part"
    part.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
    part.replace(folder / RECORD)


def _difference(stored: TrainingRecord, wanted: TrainingRecord) -> str:
    """Return the first thing in which two trainings differ, by name."""
    old, new = _flat(stored.identity), _flat(wanted.identity)
    name = next(name for name in (*new, *old) if old.get(name) != new.get(name))
    return f"{name}: {old.get(name, 'not there')!r} there, {new.get(name, 'not there')!r} now"


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {name: value}
    inner = (_flat(below, f"{name}.{part}".strip(".")) for part, below in value.items())
    return {key: leaf for table in inner for key, leaf in table.items()}


class TrainingRun:
    """One training under way."""

    def __init__(
        self,
        recipe: Recipe,
        base: Checkpoint,
        chains: PreparedChains,
        record: TrainingRecord,
        say: Callable[[str], None],
    ) -> None:
        self._recipe, self._base, self._chains, self._record, self._say = recipe, base, chains, record, say
        self._checkpoints = recipe.folder / CHECKPOINTS
        self._part = recipe.folder / f".{TUNED}.part"
        self._batch, self._accumulate = recipe.training.batch_size, recipe.training.accumulate

    def run(self) -> Tuned:
        """Train to the end, with half the batch where memory runs out."""
        self._checkpoints.mkdir(parents=True, exist_ok=True)
        for name in weights.clear_half(self._checkpoints) if is_main_process() else ():
            self._note(f"{name} was half-written by a killed process and is removed")
        listening = listener_errors(self._recipe.training.report_to)
        known: tuple[type[Exception], ...] = (RuntimeError, OSError, MemoryError, SafetensorError, *listening)
        while True:
            try:
                return self._attempt()
            except known as error:
                self._recover(error)

    def _attempt(self) -> Tuned:
        last, _ = weights.last_checkpoint(self._checkpoints)
        monitor = TrainingMonitor(self._recipe.folder, self._say, self._plan)
        trainer = self._trainer(last, monitor)
        if is_main_process():
            self._take_back(last)
        with monitor.stop_on_interrupt():
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
        if monitor.stopping and trainer.state.global_step < trainer.state.max_steps:
            self._note(f"interrupted after step {trainer.state.global_step}")
            return _tuned(self._recipe, self._record, interrupted=True)
        return self._finish(trainer)

    def _take_back(self, last: Path | None) -> None:
        """Take away what was written of steps that are trained again, and say from where it goes on."""
        taken = cut_metrics(self._recipe.folder, 0 if last is None else weights.checkpoint_step(last))
        if last is not None:
            self._note(f"continued from {last.name}")
        elif taken:
            self._note("begun again from the first step: there was no checkpoint yet")

    def _trainer(self, last: Path | None, monitor: TrainingMonitor) -> Any:
        recipe, how = self._recipe, self._recipe.training
        full = how.weights == "full"
        model = weights.load_trainable(self._base, last if full else None, half=how.half)
        reference = weights.load_trainable(self._base, half=how.half) if full and how.trainer == DPO else None
        if last is not None:
            monitor.check_weights = _weight_check(last, model if full else None)
        arguments = make_arguments(recipe, self._checkpoints, self._batch, self._accumulate)
        dataset = open_dataset(self._chains, how.trainer)
        processor = weights.open_processor(self._base)
        return make_trainer(recipe, Parts(arguments, model, reference, processor, dataset), [monitor])

    def _recover(self, error: Exception) -> None:
        """Halve the batch where memory ran out, say so and go on; name a full disk; pass on anything else."""
        text = str(error)
        if any(sign in text for sign in DISK_SIGNS) or getattr(error, "errno", None) == 28:
            for name in weights.clear_half(self._checkpoints):
                self._say(f"{name} was half-written and is removed")
            shutil.rmtree(self._part, ignore_errors=True)
            fix = "free some, then run the same command again; it goes on from the last whole checkpoint"
            raise EnvironmentProblem(f"the disk of {self._recipe.folder} is full: {fix}") from None
        if not (is_out_of_memory(error) or isinstance(error, MemoryError)):
            raise EnvironmentProblem(f"training failed: {first_line(error)}; the last checkpoint is whole") from error
        if self._batch == 1:
            fix = "use smaller pictures, --half, an adapter instead of full weights, or a smaller model"
            raise EnvironmentProblem(f"one sample alone does not fit in memory: {fix}") from None
        # Twice the portions of half the size: the optimiser sees the same samples in the same order.
        half = next(size for size in range(self._batch // 2, 0, -1) if self._batch % size == 0)
        self._accumulate, self._batch = self._accumulate * (self._batch // half), half
        free_memory()
        self._note(f"out of memory: batch {self._batch} × {self._accumulate} portions from here on")

    def _finish(self, trainer: Any) -> Tuned:
        """Write the tuned model beside its name, then in place: whole or not at all."""
        out, part = self._recipe.folder / TUNED, self._part
        if is_main_process():
            shutil.rmtree(part, ignore_errors=True)
        trainer.save_model(str(part))
        if is_main_process():
            weights.open_processor(self._base).save_pretrained(part)
            (part / BASE).write_bytes(msgspec.json.encode(dict(self._base.identity())))
            shutil.rmtree(out, ignore_errors=True)
            part.replace(out)
            final = {k: float(v) for k, v in _last_losses(trainer.state.log_history).items()}
            final["steps"] = float(trainer.state.global_step)
            self._record = msgspec.structs.replace(self._record, finished=True, final=final)
            save_record(self._recipe.folder, self._record)
        return _tuned(self._recipe, self._record, interrupted=False)

    def _plan(self, steps: int) -> None:
        """Keep how many steps there are in all: who looks at the folder can tell how far it is."""
        if is_main_process() and self._record.planned != steps:
            self._record = msgspec.structs.replace(self._record, planned=steps)
            save_record(self._recipe.folder, self._record)

    def _note(self, event: str) -> None:
        self._say(event)
        if is_main_process():
            self._record = msgspec.structs.replace(self._record, events=(*self._record.events, event))
            save_record(self._recipe.folder, self._record)


def _weight_check(last: Path, full: Any) -> Callable[[Any], None]:
    """Return what compares the trainer's weights with the checkpoint's, once it has loaded what it loads."""
    if full is not None:
        wanted = weights.sketch_weights(full.state_dict())
        return lambda model: weights.check_sketch(weights.sketch_weights(_inner(model).state_dict()), wanted, last)
    wanted = weights.sketch_weights(weights.adapter_file_state(last))
    return lambda model: weights.check_sketch(weights.sketch_weights(adapter_state(_inner(model))), wanted, last)


def _inner(model: Any) -> Any:
    return getattr(model, "module", model)


def free_memory() -> None:
    """Let go of what a failed attempt held."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _last_losses(history: list[dict[str, Any]]) -> dict[str, float]:
    losses = [entry["loss"] for entry in history if "loss" in entry]
    return {"first_loss": losses[0], "last_loss": losses[-1]} if losses else {}


def _tuned(recipe: Recipe, record: TrainingRecord, *, interrupted: bool) -> Tuned:
    folder = recipe.folder
    steps = int(record.final.get("steps", 0))
    adapter = recipe.training.weights == "lora"
    model = str(folder / TUNED)
    return Tuned(str(folder), model, adapter, steps, record.final.get("last_loss"), interrupted, record.events)
