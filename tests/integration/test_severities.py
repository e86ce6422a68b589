"""Severities as a reader meets them: what harmed nothing at 5 now loses the text, and 1 leaves it readable."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from snellen.core.ids import rng
from snellen.data.images.edits import CALIBRATION
from snellen.kits.pages.page_style import style_of
from snellen.kits.pages.perturb import FAMILIES, apply
from snellen.kits.pages.plant import chronicle
from snellen.kits.pages.quality import character_error_rate
from snellen.kits.pages.render import render_pages
from snellen.model.ocr.reader_model import TesseractEngine

PAGE = Path(__file__).parents[2] / "docs" / "perturbations.md"


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
@pytest.mark.parametrize("family", ["bit_depth", "contrast", "ink_fade", "webp", "thin", "bold", "curl", "low_ink"])
def test_severities_go_from_unharmed_to_lost(family: str) -> None:
    text = chronicle(rng(10, "severities"), 4000).replace("\n", " ")
    page = next(iter(render_pages(text, style_of("seed", {"height_pt": 110.0}))))
    told = text[: page.lines[-1].end]

    def rate(severity: int) -> float:
        pieces = TesseractEngine().read(apply(page.image(), family, severity, 5))
        return character_error_rate(told, " ".join(piece.text for piece in pieces))

    assert rate(1) <= 0.1 and rate(5) >= 0.4


def test_the_docs_page_has_every_family_as_measured_with_this_calibration() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"Calibration {CALIBRATION}, tesseract" in page
    rows = re.findall(r"^\| `(\w+)` \| (\d+)% \| (\d+)% \| (\d+)% \| (\d+)% \| (\d+)% \|$", page, re.MULTILINE)
    measured = {name: list(map(int, shares)) for name, *shares in rows}
    own = {name for name in FAMILIES if not name.startswith("imagenet_c.")}
    assert measured.keys() == own | {"dpi_render", "dense_text"}
    spanning = [
        name
        for name, shares in measured.items()
        if shares[0] <= 5 and shares[-1] >= 60 and all(after >= before - 5 for before, after in pairwise(shares))
    ]
    assert f"{len(spanning)} of {len(measured)} families go from at most 5 % to at least 60 %" in page
    assert spanning == list(measured)
