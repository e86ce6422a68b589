"""What a run may ask beyond what it stored: more inferences, variants, rows; and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from snellen.store.difference import growth

TASK = {"repeats": 2, "variants": ["base", "a"], "data": "one", "prompt": {"shots": {"retriever": "zero"}}}


def config(limit: int | None = None, model: str = "m", **changed: Any) -> dict[str, Any]:
    return {"model": {"name": model}, "limit": limit, "tasks": {"t": {**TASK, **changed}, "u": TASK}}


def appended(name: str) -> str:
    return "8 → 10 rows"


DRAWN = {"shots": {"retriever": "random", "count": 2}}
POOLED = {"shots": {"retriever": "random", "pool": "other.jsonl"}}


@pytest.mark.parametrize(
    ("stored", "wanted", "said"),
    [
        (config(), config(), []),
        (config(), config(repeats=3), ["t: 2 → 3 inferences"]),
        (config(), config(repeats=1), []),
        (config(), config(variants=["base", "a", "b"]), ["t: 2 → 3 variants"]),
        (config(), config(variants=["b", "a", "base"]), ["t: 2 → 3 variants"]),
        (config(), config(variants=["base"]), []),
        (config(), config(variants=["base", "b"]), []),
        (config(), config(repeats=3, variants=["base"]), []),
        (config(), config(repeats=1, variants=["base", "a", "b"]), []),
        (config(), config(repeats=4, variants=["base", "a", "b"]), ["t: 2 → 4 inferences", "t: 2 → 3 variants"]),
        (config(), config(data="two"), ["t: 8 → 10 rows"]),
        (config(), config(data="two", repeats=3), ["t: 8 → 10 rows", "t: 2 → 3 inferences"]),
        (config(prompt=DRAWN), config(prompt=DRAWN, data="two"), []),
        (config(prompt=DRAWN), config(prompt=DRAWN, repeats=3), ["t: 2 → 3 inferences"]),
        (config(prompt=POOLED), config(prompt=POOLED, data="two"), ["t: 8 → 10 rows"]),
        (config(prompt={"v": DRAWN}), config(prompt={"v": DRAWN}, data="two"), []),
        (config(), config(prompt=DRAWN, repeats=3), []),
        (config(5), config(9), ["limit 5 → 9"]),
        (config(5), config(9, repeats=3), ["t: 2 → 3 inferences"]),
        (config(), config(model="n", repeats=3), []),
        (config(infer_options={"majority": 3}), config(infer_options={"majority": 3}, repeats=3), []),
        (config(infer_options={"k": 3}), config(infer_options={"k": 3}, repeats=3), ["t: 2 → 3 inferences"]),
    ],
)
def test_a_run_grows_by_what_leaves_its_trials_as_they_are(
    stored: dict[str, Any], wanted: dict[str, Any], said: list[str]
) -> None:
    assert growth(stored, wanted, appended) == said


def test_rows_that_are_others_tasks_that_are_others_and_predictions_made_elsewhere_do_not_grow() -> None:
    assert growth(config(), config(data="two")) == [], "its first rows differ"
    assert growth(config(), {**config(repeats=3), "tasks": {"t": {**TASK, "repeats": 3}}}) == []
    assert growth({**config(), "tasks": None}, config(repeats=3)) == []
    imported = {"tasks": {"t": {"data": "one"}}}
    assert growth(imported, {"tasks": {"t": {"data": "two"}}}, appended) == []
    both = {**config(), "tasks": {"t": {**TASK, "repeats": 3}, "u": {**TASK, "other": 1}}}
    assert growth(config(), both) == [], "one task that is another refuses the run"
