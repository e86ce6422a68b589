"""Scores that a test puts into a run, as if they had been made there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from snellen.core.types import Score
from snellen.store.reader import row_of_score, write_score_rows


def write_scores(folder: Path, task: str, scores: Iterable[Score]) -> None:
    """Replace the stored scores of one task."""
    write_score_rows(folder, task, (row_of_score(task, score) for score in scores))
