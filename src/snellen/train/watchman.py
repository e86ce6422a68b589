"""Stands beside a trainer: writes metrics as JSON lines, checks resumed weights, stops on NaN and on Ctrl-C."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ..core.errors import EnvironmentProblem

METRICS = "metrics.jsonl"
LOSSES = ("loss", "grad_norm")
TOKENS, MEAN_LOSS, SINCE = "num_tokens", "train_loss", "since_step"


class Watchman(TrainerCallback):  # type: ignore[misc]
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
