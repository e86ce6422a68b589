"""data.examples: spread evenly over all, bounded in number and in bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from snellen.core.types import Form, Image, Sample
from snellen.data.dataset import MOST, MOST_BYTES, SampleExamples


def sample(number: int, weight: int = 0) -> Sample:
    images = (Image("data:" + "x" * weight),) if weight else ()
    return Sample(id=str(number), dataset="d", form=Form.OPEN, question="?", images=images)


@given(st.integers(1, 5_000))
def test_they_are_spread_evenly(count: int) -> None:
    examples = SampleExamples()
    for number in range(count):
        examples.add(sample(number))
    numbers = [int(one.id) for one in examples.kept()]
    steps = {second - first for first, second in pairwise(numbers)}
    assert len(steps) <= 1
    assert numbers[0] == 0
    assert min(count, MOST // 2) <= len(numbers) < MOST
    assert count - numbers[-1] <= max(steps, default=count)


def test_heavy_ones_are_fewer() -> None:
    examples = SampleExamples()
    for number in range(300):
        examples.add(sample(number, MOST_BYTES // 10))
    assert 2 <= len(examples.kept()) <= 10


def test_one_is_kept_however_heavy_it_is() -> None:
    examples = SampleExamples()
    for number in range(3):
        examples.add(sample(number, MOST_BYTES + 1))
    assert [one.id for one in examples.kept()] == ["0"]
