"""The published annotation file, where it lies beside the project: counts, constant answers, blind rules, and our gates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Sample
from snellen.curate.gates_set import compare_to_chance, rule_credits
from snellen.curate.records import Draft, Question, Source
from snellen.curate.surface import level_draft
from snellen.data.dataset import check_sample
from snellen.data.loaders.cure import load
from snellen.data.loaders.cure_file import CureItem, read_items
from snellen.scoring.aggregates.blind_baselines import baselines
from snellen.scoring.aggregates.consistency import chains_from_items, consistency

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
FILE = SHARED / "data" / "cure" / "cot_consistency_eval.jsonl"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="the published annotation file is not beside the project")


@pytest.fixture(scope="module")
def items() -> list[CureItem]:
    return list(read_items(FILE))


def samples(**dataset: object) -> list[Sample]:
    task = Task(name="cure", dataset={"loader": "cure", "path": str(FILE), "pictures": False, **dataset})
    return list(load(task, LoadContext()))


def test_counts(items: list[CureItem]) -> None:
    assert len(items) == 1622
    assert sum(len(item.cot_inference.chain) for item in items) == 4726
    assert all(len(item.inference.candidate) == 6 for item in items)


def test_constant_answers_give_the_golden_figures(items: list[CureItem]) -> None:
    golden = json.loads((SHARED / "golden" / "cure" / "consistency.json").read_text())["whole_file_constant_answer"]
    truth = [
        {"inference": item.inference.gt, "chain": [step.gt for step in item.cot_inference.chain]} for item in items
    ]
    for answer, expected in golden.items():
        given = [{"inference": int(answer), "chain": [int(answer)] * len(item.cot_inference.chain)} for item in items]
        for convention, name in (("conditional", "conditional"), ("over-n", "over_N")):
            found = consistency(chains_from_items(truth, given), convention)
            assert {key: found[key].value for key in expected[name]} == pytest.approx(expected[name], abs=1e-12)


def test_blind_rules_give_the_known_figures() -> None:
    found = samples()
    for sample in found:
        check_sample(sample)
    figures = baselines(found)
    assert round(figures["Rh_no-period_blind"].value, 3) == 0.707
    assert round(figures["Rh_shortest_blind"].value, 3) == 0.549
    # A judge that learns the looks of options, and never sees a picture, beats the published 76.8 % of BLIP-2.
    assert figures["Rh_learned_blind"].value > 0.768
    plain = baselines(samples(punctuation="strip"))
    assert plain["Rh_no-period_blind"].value == pytest.approx(1 / 6, abs=0.001)


def as_draft(number: int, item: CureItem) -> Draft:
    steps = tuple(Question(step.question, tuple(step.candidate), step.gt) for step in item.cot_inference.chain)
    inference = Question("What can be inferred?", tuple(item.inference.candidate), item.inference.gt)
    return Draft(str(number), Source(str(number), item.image.url, item.clue, inference.answer), steps, inference)


def test_the_workshop_would_have_caught_the_artefact(items: list[CureItem]) -> None:
    drafts = [as_draft(number, item) for number, item in enumerate(items)]
    inference, _ = compare_to_chance("no-period", drafts, rule_credits(drafts, "no-period"), 0.05)
    assert round(inference.accuracy, 3) == 0.707 and not inference.passed
    levelled = [level_draft(draft)[0] for draft in drafts]
    assert all(
        test.passed for test in compare_to_chance("no-period", levelled, rule_credits(levelled, "no-period"), 0.05)
    )
