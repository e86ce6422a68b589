"""A folder in which a training leaves checkpoints to those that are whole, and to a measured run of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ...api.outputs import compare
from ...api.run import run_settings
from ...api.session import check_finished
from ...api.settings import RunSettings
from ...core.errors import SnellenError, UsageError
from .curve import Curve, read_curves, step_of, write_curves

WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
INDEXES = "*.index.json"
MOST_DOUBLINGS = 10


def is_whole(folder: Path, marker: str = "") -> bool:
    """Tell whether a checkpoint looks complete: its marker, or configuration and all files that its index names."""
    if marker:
        return (folder / marker).exists()
    configs = [folder / name for name in ("config.json", "adapter_config.json")]
    weights = [path for pattern in WEIGHTS for path in folder.glob(pattern)]
    if not any(path.is_file() for path in configs) or not weights:
        return False
    return all((folder / name).is_file() for index in folder.glob(INDEXES) for name in _named_by(index))


def _named_by(index: Path) -> set[str]:
    try:
        named = json.loads(index.read_bytes()).get("weight_map", {})
    except (OSError, ValueError):  # it is being written
        return {"still being written"}
    return set(named.values())


def sizes_of(folder: Path) -> dict[str, int]:
    """Return the sizes of a checkpoint's files: while they change it is being written."""
    return {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


@dataclass
class Watched:
    """The checkpoints of one folder: which are whole, and which were measured."""

    source: Path
    output: Path
    marker: str = ""
    _sizes: dict[Path, dict[str, int]] = field(default_factory=dict)
    _look: int = 0
    failures: dict[Path, int] = field(default_factory=dict)
    """How often those could not be measured that still are not."""
    _tried_again: dict[Path, int] = field(default_factory=dict)
    """The look from which on a checkpoint that could not be measured is tried again."""

    def ready(self) -> list[Path]:
        """Return the checkpoints to measure now, the newest first: whole, the same at two looks, not measured."""
        if not self.source.is_dir():
            raise UsageError(f"no folder {self.source}: name the one in which checkpoints appear")
        found = [path for path in self.source.iterdir() if path.is_dir() and is_whole(path, self.marker)]
        now = {path: sizes_of(path) for path in found}
        held = {path for path in found if self._sizes.get(path) == now[path]}
        for path in set(found) - held:  # its files changed: what was wrong may be right
            self._tried_again.pop(path, None)
            self.failures.pop(path, None)
        self._sizes, self._look = now, self._look + 1
        left = [path for path in held if self._look >= self._tried_again.get(path, 0) and not self.is_measured(path)]
        return sorted(left, key=lambda path: step_of(path.name), reverse=True)

    def wait_after_failure(self, checkpoint: Path) -> int:
        """Let a checkpoint rest that could not be measured, longer each time; return for how many looks."""
        failures = self.failures[checkpoint] = self.failures.get(checkpoint, 0) + 1
        rest: int = 2 ** min(failures, MOST_DOUBLINGS)
        self._tried_again[checkpoint] = self._look + rest
        return rest

    def is_measured(self, checkpoint: Path) -> bool:
        """Tell whether a checkpoint was asked everything; a call that failed for good is told, and asked no more."""
        path = self.output / checkpoint.name / "results.json"
        try:
            status = msgspec.json.decode(path.read_bytes())["status"]
            stopped = (status.get("until_ci") or {}).get("stopped", False)
            return bool(stopped or not any(status["not_yet_asked"].values()))
        except (OSError, KeyError, AttributeError, msgspec.DecodeError):
            return False

    def measured(self) -> list[Path]:
        """Return the runs of measured checkpoints."""
        if not self.output.is_dir():
            return []
        found = [path for path in self.output.iterdir() if path.is_dir() and self.is_measured(path)]
        return sorted(found, key=lambda path: step_of(path.name))


def measure(checkpoint: Path, watched: Watched, settings: RunSettings, provider: str) -> None:
    """Ask a checkpoint the tasks of the settings; the same call again goes on."""
    named = {"model": f"{provider}/{checkpoint.absolute()}", "output_dir": watched.output / checkpoint.name}
    result = run_settings(msgspec.structs.replace(settings, **named), None)
    if result.interrupted and result.early_stop is None:
        check_finished(result.state, checkpoint.name)


def follow(
    watched: Watched,
    settings: RunSettings,
    *,
    provider: str,
    drop: float,
    gate: Path | None,
    say: Callable[[str], object],
) -> Iterator[list[Curve]]:
    """Measure every checkpoint that is ready, once; yield the curves after each that was measured."""
    for checkpoint in watched.ready():
        try:
            measure(checkpoint, watched, settings, provider)
        except Exception as error:  # noqa: BLE001 - one that cannot be loaded, by whichever library, says nothing of the next
            why = str(error) if isinstance(error, SnellenError) else f"{type(error).__name__}: {error}"
            rest = watched.wait_after_failure(checkpoint)
            say(f"{checkpoint.name} could not be measured: {why}; tried again after {rest} looks, or when it changes")
            continue
        watched.failures.pop(checkpoint, None)
        curves = read_curves(watched.measured(), drop, gate)
        write_curves(watched.output, curves)
        if gate is not None:
            for line in gate_lines(gate, watched.output / checkpoint.name):
                say(line)
        yield curves


def gate_lines(gate: Path, run: Path) -> list[str]:
    """Say how a checkpoint stands beside the run it must not fall below."""
    lines = []
    for task, compared in compare(gate, run).items():
        first = compared[0]
        if first.difference is None or first.ci95 is None:
            continue
        low, high = (100 * bound for bound in first.ci95)
        lines.append(f"{run.name} on {task}: {100 * first.difference:+.1f} [{low:+.1f}, {high:+.1f}] to {gate}")
    return lines
