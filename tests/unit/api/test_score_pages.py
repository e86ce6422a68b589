"""Scoring again writes the page that a run would: a million trials on one page help nobody and fill the memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import snellen
import snellen.api.score as score_module
from executor_runs import write_questions


def test_a_large_run_gets_no_page_unless_it_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    snellen.run(str(write_questions(tmp_path, 3)), "blind/first", output_dir=folder, cache=False)
    page = folder / "report.html"
    page.unlink()
    monkeypatch.setattr(score_module, "REPORTED_TRIALS", 2)
    results = snellen.score(folder)
    assert not page.exists()
    monkeypatch.setattr(score_module, "REPORTED_TRIALS", 3)
    assert snellen.score(folder)["tasks"] == results["tasks"]
    written = page.stat().st_mtime_ns
    monkeypatch.setattr(score_module, "REPORTED_TRIALS", 2)
    snellen.score(folder)
    assert page.stat().st_mtime_ns > written, "a page that is there is not left out of date"
