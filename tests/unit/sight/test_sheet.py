"""The contact sheet of the exam: labels are written in a font that has their letters."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import EnvironmentProblem
from snellen.data.loaders.eyechart import ALPHABETS, find_cjk_font, has_glyphs
from snellen.sight.cards import exam_cards

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "exam_sheet.py"


@pytest.fixture(scope="module")
def sheet() -> Any:
    spec = importlib.util.spec_from_file_location("exam_sheet", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_chinese_and_greek_labels_get_a_font_that_has_them(sheet: Any) -> None:
    try:
        file = find_cjk_font()
    except EnvironmentProblem:
        pytest.skip("no font with Chinese characters is installed")
    for words in (ALPHABETS["cjk"], exam_cards()["colour"].unit):
        assert has_glyphs(sheet.label_font(words).path, words)
    assert sheet.label_font(ALPHABETS["cjk"]).path == file
    assert sheet.label_font("52 NHKNVSND").path != file


def test_a_sheet_shows_five_stimuli_of_a_test_and_every_quarter_turn(sheet: Any) -> None:
    assert len(sheet.stimuli_of("orientation")) == 5
    assert {stimulus.detail["turn"] for stimulus in sheet.stimuli_of("quarter-turns")} == {90, 180, 270}


def test_without_a_font_the_row_says_why_it_is_empty(sheet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise EnvironmentProblem(f"{name} needs a font")

    monkeypatch.setattr(sheet, "stimuli_of", missing)
    assert sheet.row("cjk").getextrema() != ((255, 255),) * 3
