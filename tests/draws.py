"""How often a simulation is drawn: a third of it in `make test`, all of it in `make nightly`."""

from __future__ import annotations

import math

import pytest


def drawn(full: int) -> pytest.MarkDecorator:
    """Hand a test `draws`: a third of `full` here, `full` by night."""
    return pytest.mark.parametrize("draws", [full // 3, pytest.param(full, marks=pytest.mark.nightly)])


def leeway(distance: float, full: int, draws: int) -> float:
    """Return how far a share may be off after fewer draws, where `distance` is what `full` draws may be off."""
    return distance * math.sqrt(full / draws)
