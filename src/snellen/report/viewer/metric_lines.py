"""metrics.jsonl to its lines, read on from where it was read last: broken, half and foreign lines are told."""

from __future__ import annotations

import json
import math
import os
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

METRICS = "metrics.jsonl"
STEP, LOSS = "step", "loss"
WATCHED = (LOSS, "grad_norm")
"""Figures whose being no number ends a training."""
MOST_BYTES = 256 * 2**20
"""A million steps have about as much; more is not read into memory."""
TAIL = 64
"""Bytes before the place read up to, by which an added line is told from another file."""
LARGEST, SMALLEST = 1e300, 1e-300
"""Numbers beyond cannot be drawn, or are zero to the eye."""
Line = dict[str, Any]


class Metrics(NamedTuple):
    """What was read: the lines in their order, and what is wrong with the file, each in one line."""

    lines: list[Line]
    problems: tuple[str, ...]

    @property
    def steps(self) -> list[Line]:
        """Return the lines of steps; the last line of a training sums it up and has no loss of its own."""
        return [line for line in self.lines if LOSS in line]

    @property
    def last_step(self) -> int:
        """Return the last step that was written; 0 before the first."""
        return max((int(line[STEP]) for line in self.lines), default=0)

    @property
    def no_numbers(self) -> list[str]:
        """Return what is no number where one belongs, by step."""
        found = ((line[STEP], name, line[name]) for line in self.lines for name in WATCHED if name in line)
        return [f"step {int(step)}: {name} is {value}" for step, name, value in found if plain_number(value) is None]


def plain_number(value: object) -> float | None:
    """Return a value as a number that can be drawn; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        return None
    return 0.0 if abs(value) < SMALLEST else float(value)


class MetricsFile:
    """One file that grows; a line is read once."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / METRICS
        self._forget()

    def _forget(self) -> None:
        self._inode, self._read, self._tail = 0, 0, b""
        self._lines: list[Line] = []
        self._count = 0
        self._bad: list[str] = []
        self._half = False

    def read(self) -> Metrics:
        """Read what was added since the last time, or everything where the file is another."""
        try:
            with self._path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size > MOST_BYTES:
                    return Metrics([], (f"{METRICS} has {size:,} bytes, more than is shown here ({MOST_BYTES:,})",))
                self._read_on(stream)
        except FileNotFoundError:
            self._forget()
            return Metrics([], ())
        except OSError as error:
            return Metrics([], (f"{METRICS} cannot be read: {error.strerror}",))
        return Metrics(self._lines, tuple(self._problems()))

    def _read_on(self, stream: IO[bytes]) -> None:
        inode = os.fstat(stream.fileno()).st_ino
        stream.seek(self._read - len(self._tail))
        if inode != self._inode or stream.read(len(self._tail)) != self._tail:
            self._forget()
            stream.seek(0)
        added = stream.read()
        whole, end, half = added.rpartition(b"\n")
        body = whole + end
        self._inode, self._half = inode, bool(half)
        self._read, self._tail = self._read + len(body), (self._tail + body)[-TAIL:]
        for line in body.splitlines():
            self._take(line)

    def _take(self, text: bytes) -> None:
        self._count += 1
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            self._bad.append(f"line {self._count} is no JSON")
            return
        step = plain_number(line.get(STEP)) if isinstance(line, dict) else None
        if step is None or step < 0:
            self._bad.append(f"line {self._count} names no step")
        else:
            self._lines.append(line)

    def _problems(self) -> list[str]:
        found = []
        if self._bad:
            found.append(f"{METRICS}: {len(self._bad):,} of {self._count:,} lines not read; first, {self._bad[0]}")
        if self._half:
            found.append(f"the last line of {METRICS} is half-written and not shown yet")
        steps = [float(line[STEP]) for line in self._lines if LOSS in line]
        turned = next((after for before, after in pairwise(steps) if after <= before), math.nan)
        if not math.isnan(turned):
            found.append(
                f"step {int(turned)} of {METRICS} stands after a step that is not before it: curves may mislead"
            )
        return found
