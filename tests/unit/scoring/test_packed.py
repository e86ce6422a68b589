"""Samples without an object each: packed names sort as texts do, and parts give the tables that rows give."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import DataError
from snellen.scoring.tables import table_builder
from snellen.scoring.tables.table_builder import (
    PackedSamples,
    PackedTexts,
    SamplePart,
    TableBuilder,
    pack_names,
    read_tables,
)

NAMES = st.lists(st.text(st.characters(codec=None), max_size=70), unique=True, min_size=1, max_size=40)


def samples_of(names: list[str], cut: int) -> PackedSamples:
    found = PackedSamples()
    for part in (names[:cut], names[cut:]):
        found.add(SamplePart.of(part, [None] * len(part), [()] * len(part)))
    return found


@given(NAMES, st.integers(0, 40))
def test_packed_names_sort_as_texts_do(names: list[str], cut: int) -> None:
    texts, order = samples_of(names, cut).sort()
    assert list(texts) == sorted(names)
    assert [names[place] for place in order] == sorted(names)


def test_a_name_that_a_block_could_not_hold_is_kept_as_text() -> None:
    assert pack_names(["a", "a\0"]) == ["a", "a\0"], "a block ends a name at its last byte that is not NUL"
    assert pack_names(["a" * 65]) == ["a" * 65]
    assert isinstance(pack_names(["a", "é"]), np.ndarray)


def test_packed_texts_are_a_sequence() -> None:
    texts = PackedTexts(np.array([name.encode() for name in ("a", "é", "z")]))
    assert (len(texts), texts[1], texts[-1], texts[:2], list(texts)) == (3, "é", "z", ["a", "é"], ["a", "é", "z"])
    assert "é" in texts
    with pytest.raises(IndexError):
        texts[3]


def test_a_sample_in_two_parts_is_refused() -> None:
    with pytest.raises(DataError, match="'b' is in two parts"):
        samples_of(["a", "b", "b"], 2).sort()
    with pytest.raises(DataError, match="'b\\\\x00' is in two parts"):
        samples_of(["a", "b\0", "b\0"], 2).sort()


def rows_of(count: int, groups: bool) -> tuple[list[Any], list[Any], list[Any]]:
    """Scores, trials and samples of a task, by sample."""
    numbers = range(count)
    scores = [
        (f"s{n}", f"v{v}", 0, metric, None if n % 7 == 0 else n / 7, f"a{n % 5}", None, "none" if n % 7 == 0 else None)
        for n in numbers
        for v in range(2)
        for metric in ("m", "n")
        if n % 11
    ]
    trials = [(f"s{n}", f"v{v}", 0, None if n % 11 else "timeout", 2 * n + v) for n in numbers for v in range(2)]
    samples = [
        (f"s{n}", ["", None, "doc"][n % 3] if groups else None, {"topic": n % 4, "odd": True} if n % 5 else {})
        for n in numbers
    ]
    return scores, trials, samples


@pytest.mark.parametrize("listed", [0, 200_000])
@given(cuts=st.lists(st.integers(0, 60), max_size=4), groups=st.booleans(), late=st.integers(0, 3))
def test_parts_give_the_tables_of_their_rows(cuts: list[int], groups: bool, late: int, listed: int) -> None:
    scores, trials, samples = rows_of(60, groups)
    whole, edges = TableBuilder(), [0, *sorted(cuts), 60]
    for low, high in pairwise(edges):
        inside = {f"s{n}" for n in range(low, high)}
        part = TableBuilder()
        part.add_scores([row for row in scores if row[0] in inside])
        part.add_trials([row for row in trials if row[0] in inside])
        part.add_samples([row for row in samples if row[0] in inside])
        whole.absorb(part.packed())
    verdicts: list[Any] = [(f"s{n}", "v0", 0, "judge", 1.0, None, None, None) for n in range(late)]
    whole.add_scores(verdicts)  # those of judges come by name, after all parts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_builder, "LISTED", listed)
        found = whole.tables()
    expected = read_tables([*scores, *verdicts], trials, samples)
    assert list(found) == list(expected)
    for metric, table in expected.items():
        same = vars(found[metric]) | {"samples": list(found[metric].samples)}
        np.testing.assert_equal(same, vars(table))
        assert {name: getattr(table, name).dtype for name in ("sample", "answer", "repeat")} == {
            name: getattr(found[metric], name).dtype for name in ("sample", "answer", "repeat")
        }


def test_parts_and_rows_may_be_mixed() -> None:
    scores, trials, samples = rows_of(20, True)
    first, whole = TableBuilder(), TableBuilder()
    inside = {f"s{n}" for n in range(9)}
    for builder, chosen in ((whole, False), (first, True)):
        builder.add_scores([row for row in scores if (row[0] in inside) is chosen])
        builder.add_trials([row for row in trials if (row[0] in inside) is chosen])
        builder.add_samples([row for row in samples if (row[0] in inside) is chosen])
    whole.absorb(first.packed())
    for metric, table in read_tables(scores, trials, samples).items():
        np.testing.assert_equal(vars(whole.tables()[metric]), vars(table))
