"""Many tasks to one row a dimension, many models to an average rank."""

from __future__ import annotations

import pytest

from snellen.report.boards.dimensions import dimension_means, main_metric, rank_models


def task(**values: float | None) -> dict[str, object]:
    return {"metrics": {name: {"value": value} for name, value in values.items()}}


def test_the_metric_a_task_stands_for() -> None:
    assert main_metric(task(format_rate=0.9, accuracy=0.5)) == 0.5
    assert main_metric(task(bleu_1=0.2, cider=1.1)) == 1.1
    assert main_metric(task(refusal_rate=0.1, ocr=0.4)) == 0.4
    assert main_metric(task(format_rate=0.9)) is None


def test_every_task_weighs_the_same() -> None:
    tasks = {
        "a": task(accuracy=0.2),
        "b": task(accuracy=0.6),
        "c": task(accuracy=1.0),
        "d": task(accuracy=None),
        "e": task(accuracy=0.0),
    }
    means = dimension_means(tasks, {"a": "Coarse", "b": "Coarse", "c": "Fine", "d": "Fine", "e": ""})
    assert means == {"Coarse": (pytest.approx(0.4), 2), "Fine": (1.0, 1)}


def test_ranks_with_ties_and_gaps() -> None:
    scores = {"x": {"Coarse": 0.9, "Fine": 0.5}, "y": {"Coarse": 0.9, "Fine": 0.7}, "z": {"Coarse": 0.1}}
    standing = rank_models(scores)
    assert standing["x"].average_rank == (1.5 + 2) / 2
    assert standing["y"].average_rank == (1.5 + 1) / 2
    assert standing["z"].average_rank == 3
    assert standing["x"].average_score == pytest.approx(0.7)
