"""Rows of now beside stored ones: appended or not, and what is said of those that differ."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.tasks import RunHeader
from snellen.core.types import Form, Image, Sample
from snellen.data.dataset import fingerprint_of
from snellen.store.difference import describe_rows_changed, rows_appended


def make_sample(number: int, question: str = "Q?") -> Sample:
    return Sample(str(number), "t", Form.OPEN, question, images=(Image(f"/here/{number}.png"),), answers=("a",))


def header(samples: list[Sample], *, repeats: int = 1) -> RunHeader:
    task = {"repeats": repeats, "variants": ["base"], "data": fingerprint_of(samples)}
    return RunHeader("id", {"tasks": {"t": task}}, {}, "", planned={"t": len(samples) * repeats})


@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=8))
def test_rows_are_appended_if_and_only_if_the_stored_ones_come_first(before: list[int], now: list[int]) -> None:
    old = [make_sample(place, f"Q{number}") for place, number in enumerate(before)]
    new = [make_sample(place, f"Q{number}") for place, number in enumerate(now)]
    said = rows_appended(header(old, repeats=2), header(new, repeats=3), {"t": new}, "t")
    longer = bool(old) and len(new) > len(old) and new[: len(old)] == old
    assert said == (f"{len(old)} → {len(new)} rows" if longer else "")


def test_a_task_whose_rows_are_not_at_hand_has_not_grown() -> None:
    samples = [make_sample(n) for n in range(3)]
    assert rows_appended(header(samples[:2]), header(samples), {}, "t") == ""


def stored(samples: list[Sample]) -> Callable[[str], list[bytes]]:
    return lambda task: [msgspec.json.encode(sample) for sample in samples]


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ([make_sample(0), make_sample(1, "R?")], "row '1': question was 'Q?', now 'R?'"),
        ([make_sample(1)], "1 row that was asked is gone ('0')"),
        ([make_sample(n, "R?") for n in range(9)], "; and more"),
    ],
)
def test_rows_that_differ_are_named(now: list[Sample], said: str) -> None:
    old = [make_sample(n) for n in range(6 if said == "; and more" else 2)]
    told = describe_rows_changed(stored(old), header(old), header(now), {"t": now})
    assert said in told


def test_where_pictures_lie_is_no_difference() -> None:
    old = [make_sample(0)]
    moved = [Sample("0", "t", Form.OPEN, "Q?", images=(Image("/there/0.png"),), answers=("a",)), make_sample(1)]
    assert describe_rows_changed(stored(old), header(old), header(moved), {"t": moved}) == ""
