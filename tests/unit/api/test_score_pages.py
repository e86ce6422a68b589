"""A run and scoring it again write the page by one rule: a million trials on one page help nobody and fill the memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import snellen
import snellen.report.pages.finish as finish_module
from executor_runs import write_questions


def test_a_large_run_gets_no_page_unless_it_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    questions = str(write_questions(tmp_path, 3))
    snellen.run(questions, "blind/first", output_dir=folder, cache=False)
    page = folder / "report.html"
    page.unlink()
    monkeypatch.setattr(finish_module, "REPORTED_TRIALS", 2)
    results = snellen.score(folder)
    assert not page.exists()
    monkeypatch.setattr(finish_module, "REPORTED_TRIALS", 3)
    assert snellen.score(folder)["tasks"] == results["tasks"]
    written = page.stat().st_mtime_ns
    monkeypatch.setattr(finish_module, "REPORTED_TRIALS", 2)
    snellen.score(folder)
    again = page.stat().st_mtime_ns
    assert again > written, "a page that is there is not left out of date"
    snellen.run(questions, "blind/first", output_dir=folder, cache=False)
    assert page.stat().st_mtime_ns > again, "nor by the run that goes on"
