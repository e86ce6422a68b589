"""The collector is slowed for a block only, and never switched on where it was off."""

from __future__ import annotations

import gc

import pytest

from snellen.core.process import RARE, rare_collections


@pytest.mark.parametrize(
    ("before", "within"), [(700, RARE), (RARE * 2, RARE * 2), (0, 0)], ids=["usual", "rarer already", "off"]
)
def test_the_threshold_holds_for_the_block(before: int, within: int) -> None:
    told = gc.get_threshold()
    gc.set_threshold(before, 11, 12)
    try:
        with pytest.raises(KeyError), rare_collections():
            assert gc.get_threshold() == (within, 11, 12)
            raise KeyError
        assert gc.get_threshold() == (before, 11, 12)
    finally:
        gc.set_threshold(*told)
