"""Many tasks to one row a dimension, many models to an average rank."""

from __future__ import annotations

import pytest

from snellen.report.boards.dimensions import dimension_means, main_metric


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
