"""What a run says of data that a model may have seen: options in an order that a reader expects."""

from __future__ import annotations

import pytest

from snellen.kits.arms.seen_before import is_sorted


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["1", "2", "3"], True),
        (["10", "9", "8"], True),
        (["1,000", "2,000", "10,000"], True),
        (["30%", "20%", "10%"], True),
        (["apple", "Banana", "cherry"], True),
        (["10", "9", "11"], False),
        (["b", "a", "c"], False),
        (["1", "2"], False),  # any two stand in one order or the other
        (["1"], False),
        ([], False),
    ],
)
def test_options_that_stand_in_order_are_known(options: list[str], found: bool) -> None:
    assert is_sorted(options) == found
