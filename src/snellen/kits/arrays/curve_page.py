"""The learning curves below the viewer's folders as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.markup import Html, tag
from ...report.viewer.shell import shell
from .curve import curve_section, curves_below

if TYPE_CHECKING:
    from starlette.requests import Request

    from ...report.viewer.shelf import Shelf

ADDRESS = "/curves"


def curves_page(library: Shelf, request: Request) -> Html:
    """Return every curve that `snellen follow` has written."""
    found = [(place, curve) for root in library.roots for place, curves in curves_below(root) for curve in curves]
    none = tag("p", "No curves here yet: snellen follow CHECKPOINTS/ --tasks TASK -o DIR writes them.")
    parts = [curve_section(place, curve) for place, curve in found] or [none]
    return shell("Curves", [tag("h1", "Learning curves"), *parts], place=ADDRESS)
