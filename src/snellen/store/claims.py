"""Who asks which unit of a run in parts: a small file that one can make and that names its log.

    run.d/claims/0064-0003-00007.0     unit 7 of part 3 of 64, claimed for the first time
    run.d/claims/0064-0003-00007.1     claimed again, because whoever held it is gone

A claim has no end and no time. Nothing depends on it but who asks: what is stored is decided by the logs alone.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ..core.errors import EnvironmentProblem
from ..core.homes import Part
from .part_log import CLAIMS, FOLDER, LOG_NAME, make_once

NAME = re.compile(r"(\d{4,})-(\d{4,})-(\d{5,})\.(\d+)")
UnitId = tuple[int, int]
"""Part and number of a unit."""


class Claim(NamedTuple):
    """The last claim of a unit: the how many-th, and the log that its trials go to."""

    unit: UnitId
    generation: int
    log: str

    @property
    def part(self) -> int | None:
        """Return which part holds it; None where its maker was killed before it could say so."""
        match = LOG_NAME.fullmatch(self.log)
        return int(match[1]) if match else None


def remove_claims(folder: Path) -> None:
    """Remove all claims of a run that was merged whole."""
    place = folder / FOLDER / CLAIMS
    for name in _names(place):
        (place / name).unlink(missing_ok=True)
    if place.is_dir():
        place.rmdir()


def _names(place: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(place)]
    except FileNotFoundError:
        return []


class Claims:
    """The claims of one division of a run, as one attempt at a part makes and reads them."""

    def __init__(self, folder: Path, part: Part, log: str) -> None:
        self._place, self._count, self._log = folder / FOLDER / CLAIMS, part.count, log

    def held(self) -> dict[UnitId, int]:
        """Return the units that somebody claimed, each with its last generation."""
        found: dict[UnitId, int] = {}
        for name in _names(self._place):
            match = NAME.fullmatch(name)
            if match and int(match[1]) == self._count:
                unit = int(match[2]), int(match[3])
                found[unit] = max(int(match[4]), found.get(unit, 0))
        return found

    def take(self, unit: UnitId, generation: int = 0) -> bool:
        """Claim a unit; False where another was first."""
        path = self._path(unit, generation)
        try:
            self._place.mkdir(exist_ok=True)
            return make_once(path, self._log.encode())
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from None

    def read(self, unit: UnitId) -> Claim:
        """Return the last claim of a unit that is held."""
        generation = 0
        while self._path(unit, generation + 1).exists():
            generation += 1
        try:
            log = self._path(unit, generation).read_text(encoding="utf-8", errors="replace")
        except OSError:
            log = ""
        return Claim(unit, generation, log)

    def _path(self, unit: UnitId, generation: int) -> Path:
        return self._place / f"{self._count:04}-{unit[0]:04}-{unit[1]:05}.{generation}"
