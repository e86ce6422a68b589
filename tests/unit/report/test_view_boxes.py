"""Boxes on the pictures of a trial: each on the page it belongs to, also where only some pages were shown."""

from __future__ import annotations

from types import SimpleNamespace

from snellen.core.types import Form, Image, Sample
from snellen.report.viewer.stage import boxes_of


def test_boxes_follow_their_page_when_only_some_pages_are_shown() -> None:
    boxes = [{"page": 1, "box": [10, 10, 50, 20]}, {"page": 2, "box": [0, 0, 100, 10]}]
    shown = SimpleNamespace(sample=Sample("s", "t", Form.OPEN, "?", meta={"boxes": boxes}))
    second, third, plain = (Image(f"{page}.png", width=100, height=100, page=page) for page in (2, 3, None))
    assert list(boxes_of(shown, 0, second)) == [(0.1, 0.1, 0.5, 0.2)], "the first picture shown is the second page"
    assert list(boxes_of(shown, 1, third)) == [(0.0, 0.0, 1.0, 0.1)]
    assert list(boxes_of(shown, 1, plain)) == [(0.1, 0.1, 0.5, 0.2)] and list(boxes_of(shown, 0, plain)) == []
