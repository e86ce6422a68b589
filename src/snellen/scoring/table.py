"""The scored trials of one metric of one task as numpy columns, in one canonical order: what every aggregate reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stats.intervals import Floats

Codes = NDArray[np.int32]


class Outcome(IntEnum):
    """What became of a trial; the three always add up to what was planned."""

    SCORED = 0
    UNSCORED = 1
    FAILED = 2


@dataclass(frozen=True)
class ScoreTable:
    """The trials of one metric of one task. Columns are parallel; a code of -1 means none."""

    metric: str
    sample: Codes
    variant: Codes
    repeat: Codes
    value: Floats
    """0 where the trial was not scored: look at `outcome`."""
    outcome: NDArray[np.int8]
    answer: Codes
    rule: Codes
    reason: Codes
    """Why it was not scored, or the kind of failure."""
    samples: Sequence[str]
    variants: Sequence[str]
    answers: Sequence[str]
    rules: Sequence[str]
    reasons: Sequence[str]
    cluster_of_sample: Codes
    """Which chain, document or dialogue a sample belongs to; its own cluster where it belongs to none."""
    tags: Mapping[str, tuple[Codes, Sequence[str]]] = field(default_factory=dict)
    """Per tag: a code for each sample, and the values as text."""

    def __len__(self) -> int:
        return int(self.sample.size)

    @cached_property
    def scored(self) -> NDArray[np.bool_]:
        """Return which trials have a value."""
        return np.asarray(self.outcome == Outcome.SCORED)

    @cached_property
    def cluster(self) -> Codes:
        """Return the cluster of every trial."""
        return self.cluster_of_sample[self.sample] if len(self) else self.sample

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return how many trials were scored, unscored and failed."""
        scored, unscored, failed = np.bincount(self.outcome, minlength=3)
        return int(scored), int(unscored), int(failed)

    @property
    def is_repeated(self) -> bool:
        """Return whether some prompt was sampled more than once."""
        return bool(len(self)) and bool(np.any((np.diff(self.sample) == 0) & (np.diff(self.variant) == 0)))

    @property
    def is_varied(self) -> bool:
        """Return whether there is more than one variant."""
        return bool(len(self)) and bool(np.any(self.variant != self.variant[0]))

    def take(self, rows: NDArray[Any]) -> ScoreTable:
        """Return the chosen trials (a mask, or ascending row numbers) as a table with the same code books."""
        columns = {name: getattr(self, name)[rows] for name in _ROW_COLUMNS}
        shared = {name: getattr(self, name) for name in _SHARED_FIELDS}
        return ScoreTable(**columns, **shared)


_ROW_COLUMNS = ("sample", "variant", "repeat", "value", "outcome", "answer", "rule", "reason")
_SHARED_FIELDS = ("metric", "samples", "variants", "answers", "rules", "reasons", "cluster_of_sample", "tags")
