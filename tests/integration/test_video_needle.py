"""A needle in drawn films, read by the embedded reader: the grid, and what of it is the policy's part."""

from __future__ import annotations

from pathlib import Path

import snellen
from extras import needs
from snellen.api.load import load_run

needs("rapidocr")


def test_the_reader_finds_every_code_that_was_shown_and_no_other(tmp_path: Path) -> None:
    grid = (
        ("dataset.lengths", [8.0]),
        ("dataset.levels", [1.0]),
        ("dataset.depths", [0.1, 0.9]),
        ("dataset.films", 1),
    )
    result = snellen.run(
        "video-needle", "reader", output_dir=tmp_path / "run", overrides=grid, variants=("frames=2", "frames=8"), seed=3
    )
    with load_run(result.folder) as run:
        trials = list(run.trials("video-needle"))
        scores = {(s.key.sample, s.key.variant, s.metric): s.value for s in run.scores("video-needle")}
    found = {
        key: scores[(*key, "accuracy")] for key in {(k.sample, k.variant) for k in (t.prediction.key for t in trials)}
    }
    shown = {key: scores[(*key, "needle_shown")] for key in found}
    read = {key: value or 0.0 for key, value in found.items()}  # a reader that sees nothing says nothing: unscored
    assert read == shown, "what was shown is read, what was not shown is not guessed"
    assert all(shown[key] == 1.0 for key in shown if key[1] == "frames=8")
    assert any(shown[key] == 0.0 for key in shown if key[1] == "frames=2")
    report = (result.folder / "report.html").read_text("utf-8") if (result.folder / "report.html").exists() else ""
    assert not report or "by length and depth" in report
