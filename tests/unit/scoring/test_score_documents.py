"""Compensated score, variants compared on the same questions, and curves in which an unread reply is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from snellen.core.tasks import Task
from snellen.core.types import Form, Sample, Score, TrialKey
from snellen.kits.pages.document_ladder import (
    compare_variants,
    compensated,
    ladder,
    variant_differences,
)
from snellen.scoring.aggregates.robustness import perturbed
from snellen.scoring.tables.table import ScoredTask
from snellen.scoring.tables.table_builder import read_tables

OPTIONS = ("a", "b", "c", "d")


def scored(
    values: dict[tuple[str, str], float | str | None], form: Form = Form.CHOICE, detail: dict[str, Any] | None = None
) -> ScoredTask:
    """Build a task from (sample, variant) -> value, None for an unread reply, a text for a kind of failure."""
    rows = [
        (sample, variant, 0, "accuracy", value, None, None, None if value is not None else "no letter")
        for (sample, variant), value in values.items()
        if not isinstance(value, str)
    ]
    trials = [
        (sample, variant, 0, value if isinstance(value, str) else None) for (sample, variant), value in values.items()
    ]
    names = sorted({sample for sample, _ in values})
    samples = {
        name: Sample(name, "t", form, "q", options=OPTIONS if form is Form.CHOICE else (), group=name[0])
        for name in names
    }
    tables = read_tables(rows, trials, [(name, name[0], {}) for name in names])

    def pairs() -> Iterator[tuple[Sample, Score]]:
        for (name, variant), value in values.items():
            if isinstance(value, float):
                yield samples[name], Score(TrialKey("t", name, variant), "accuracy", value, detail=detail or {})

    return ScoredTask(Task("t", {}, form), tables, pairs)


def test_an_unread_reply_earns_chance_and_a_failed_one_nothing() -> None:
    found = compensated(
        scored({("a1", "base"): 1.0, ("b1", "base"): 0.0, ("c1", "base"): None, ("d1", "base"): "too_long"}), {}
    )
    assert found["compensated"].value == pytest.approx((1 + 0 + 0.25 + 0) / 4)
    assert found["null_rate"].value == 0.25 and (found["compensated"].n, found["compensated"].failed) == (4, 0)


def test_variants_are_paired_by_question_and_clustered_by_document() -> None:
    values: dict[tuple[str, str], float | str | None] = {}
    for document in "abcdefghij":
        for question in range(3):
            values[f"{document}{question}", "clean"] = 1.0
            values[f"{document}{question}", "blur"] = 0.0 if document in "abcdefgh" else 1.0
    values["a0", "clean"] = "skipped"
    (pair,) = variant_differences(scored(values).tables["accuracy"])
    assert (pair.first, pair.second, pair.paired, pair.left_out) == ("blur", "clean", 29, 1)
    assert pair.difference == pytest.approx(23 / 29)
    assert (
        pair.ci95[0] < pair.difference < pair.ci95[1] and pair.ci95[1] - pair.ci95[0] > 0.2
    )  # ten documents, not thirty questions
    assert pair.p < 0.05
    assert compare_variants(scored(values), {})["difference:clean-blur"].value == pair.difference


def test_holm_over_all_pairs_and_nothing_for_one_variant() -> None:
    values = {
        (f"{document}0", variant): float(variant != "v3")
        for document in "abcdefghijkl"
        for variant in ("v1", "v2", "v3")
    }
    pairs = {(pair.first, pair.second): pair for pair in variant_differences(scored(values).tables["accuracy"])}
    assert pairs["v1", "v2"].p_holm == 1.0
    assert pairs["v1", "v3"].p_holm == pytest.approx(3 * pairs["v1", "v3"].p)
    assert compare_variants(scored({("a1", "base"): 1.0}), {}) == {}
    assert (
        variant_differences(scored({("a1", "x"): "skipped", ("a1", "y"): 1.0}).tables["accuracy"])[0].difference is None
    )


def test_curves_correct_for_chance_and_count_unread_replies_as_wrong() -> None:
    values: dict[tuple[str, str], float | str | None] = {}
    for index in range(20):
        values[f"{index:02d}", "base"] = 1.0
        values[f"{index:02d}", "perturb=blur:1"] = 1.0 if index < 10 else None
    task = scored(values)
    found = perturbed(task, {"chance": 0.25})
    assert found["accuracy_blur_1"].value == 0.5
    assert found["retention_blur_1"].value == pytest.approx((0.5 - 0.25) / 0.75)
    assert task.tables["accuracy"].counts == (40, 0, 0)


def test_the_ladder_is_averaged_from_the_details() -> None:
    found = ladder(scored({("a1", "base"): 1.0, ("b1", "base"): 0.0}, detail={"ladder": {"anls": 0.5}}), {})
    assert found["anls"].value == 0.5 and found["anls"].n == 2
    assert ladder(scored({("a1", "base"): 1.0}), {}) == {}
