"""The fingerprints of a run's trials as numbers, 88 bytes a trial, and where two runs part: a million are 88 MB."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..tables.packed import CodeBook, codes_in
from .divergence import SAME, STAGES, Fingerprint, Key

ENDS = (*STAGES, SAME)
Numbers = NDArray[np.int64]


class StageMarks:
    """What every stage of each trial of a task was, by hash; trials are known by codes of this run's own books."""

    def __init__(self, found: Iterable[tuple[Key, Fingerprint]] = ()) -> None:
        self.samples, self.variants = CodeBook(), CodeBook()
        keys, hashes = array("q"), array("Q")
        for (sample, variant, repeat), marks in found:
            keys.extend((self.samples.code(sample), self.variants.code(variant), repeat))
            hashes.extend([int(mark, 16) for mark in marks])
        self.keys = np.frombuffer(keys, np.int64).reshape(-1, 3) if keys else np.empty((0, 3), np.int64)
        """Sample, variant, repeat."""
        shape = (-1, len(STAGES))
        self.hashes = np.frombuffer(hashes, np.uint64).reshape(shape) if hashes else np.empty((0, len(STAGES)))

    def parting(self, other: StageMarks) -> dict[str, str]:
        """Return, for each sample of which both runs have a trial, the earliest stage at which its trials part."""
        ours, theirs = self._shared_trials(other)
        differs = self.hashes[ours] != other.hashes[theirs]
        stages = np.where(differs.any(axis=1), differs.argmax(axis=1), len(STAGES))
        earliest = np.full(len(self.samples), len(ENDS))
        np.minimum.at(earliest, self.keys[ours, 0], stages)
        names = self.samples.texts()
        return {names[place]: ENDS[earliest[place]] for place in np.flatnonzero(earliest < len(ENDS)).tolist()}

    def _shared_trials(self, other: StageMarks) -> tuple[Numbers, Numbers]:
        """Return the rows of the trials that both runs have, in each of them."""
        known = np.column_stack(
            [
                codes_in(self.samples, other.samples.texts())[other.keys[:, 0]],
                codes_in(self.variants, other.variants.texts())[other.keys[:, 1]],
                other.keys[:, 2],
            ]
        )
        rows = np.flatnonzero((known >= 0).all(axis=1))
        shape = [int(max(self.keys[:, at].max(initial=0), known[:, at].max(initial=0))) + 1 for at in range(3)]
        ours, theirs = (np.ravel_multi_index(tuple(keys.T), shape) for keys in (self.keys, known[rows]))
        _, first, second = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
        return first, rows[second]
