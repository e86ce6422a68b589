"""What tests of inferencers share."""

from __future__ import annotations

import pytest


@pytest.fixture
def drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw pictures in threads: a process of its own takes half a second to start, and every engine has its own."""
    monkeypatch.setattr("snellen.data.images.encode.APART", False)
