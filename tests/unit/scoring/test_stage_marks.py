"""Comparisons over columns against the same by dictionaries: whatever two runs have, the same samples, means and stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from snellen.scoring.compare.divergence import ENDS, STAGES, Fingerprint, Key, StageMarks
from snellen.scoring.compare.paired import RunSide, compare_pair
from snellen.scoring.tables.table_builder import read_tables

KEYS = st.tuples(st.sampled_from(["a", "B", "ä", "10", "9", "日"]), st.sampled_from(["base", "x=1"]), st.integers(0, 2))
TRIALS = st.dictionaries(KEYS, st.tuples(st.sampled_from([None, 0.0, 0.5, 1.0]), st.integers(0, 2**7 - 1)))
Trials = Mapping[Key, tuple[float | None, int]]


def marks_of(bits: int) -> Fingerprint:
    return Fingerprint(*(f"{'0f'[bits >> stage & 1] * 16}" for stage in range(len(STAGES))))


def side(name: str, trials: Trials) -> RunSide:
    rows: Any = [
        (*key, "m", value, None, None, None if value is not None else "refusal") for key, (value, _) in trials.items()
    ]
    table = read_tables(rows, metrics=["m"])["m"]
    return RunSide(name, table, StageMarks((key, marks_of(bits)) for key, (_, bits) in trials.items()))


def cells(trials: Trials, scored_only: bool) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for (sample, variant, _), (value, _) in sorted(trials.items()):
        if value is not None or not scored_only:
            found.setdefault((sample, variant), []).append(value or 0.0)
    return found


@given(TRIALS, TRIALS, st.booleans())
def test_pairs_are_those_of_the_names(first: Trials, second: Trials, scored_only: bool) -> None:
    left, right = cells(first, scored_only), cells(second, scored_only)
    common = sorted(left.keys() & right.keys())
    paired = sorted({sample for sample, _ in common})
    changes = {}
    for name in paired:
        pairs = [
            (sum(left[key]) / len(left[key]), sum(right[key]) / len(right[key])) for key in common if key[0] == name
        ]
        changes[name] = tuple(sum(each) / len(pairs) for each in zip(*pairs, strict=True))
    found = compare_pair(side("a", first), side("b", second), scored_only=scored_only)
    assert found.paired == len(paired)
    assert found.only_first == tuple(sorted({sample for sample, _ in left} - set(paired)))
    assert found.only_second == tuple(sorted({sample for sample, _ in right} - set(paired)))
    flips = {flip.sample: (flip.first, flip.second) for flip in (*found.better, *found.worse)}
    assert flips == {name: pair for name, pair in changes.items() if pair[0] != pair[1]}


@given(TRIALS, TRIALS)
def test_a_sample_parts_at_the_earliest_stage_of_its_trials(first: Trials, second: Trials) -> None:
    expected: dict[str, str] = {}
    for key in first.keys() & second.keys():
        marked = zip(STAGES, marks_of(first[key][1]), marks_of(second[key][1]), strict=True)
        stage = next((name for name, one, other in marked if one != other), "same")
        expected[key[0]] = min(expected.get(key[0], stage), stage, key=ENDS.index)
    marks = [StageMarks((key, marks_of(bits)) for key, (_, bits) in trials.items()) for trials in (first, second)]
    assert marks[0].parting(marks[1]) == expected
    assert marks[1].parting(marks[0]) == expected
