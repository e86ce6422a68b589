"""A stored trial is worth what its scorer gives under other golds; a dropped row is worth nothing."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from drawn_banks import make_runs
from snellen.kits.bank.golds import regraded
from snellen.store.reader import RunReader


def test_every_trial_is_graded_by_the_answers_it_is_given(tmp_path: Path) -> None:
    (run,) = make_runs(tmp_path, np.array([[1.0, 0.0, 1.0]]))
    with RunReader(run) as reader:
        found = list(regraded(reader, reader.header().tasks[0]))
        assert [under(sample.answers) for sample, under in found] == [1.0, 0.0, 1.0]
        assert [under((f"left {place}",)) for place, (_, under) in enumerate(found)] == [0.0, 1.0, 0.0]
        assert math.isnan(found[0].under(None)) and math.isnan(found[0].under(()))
