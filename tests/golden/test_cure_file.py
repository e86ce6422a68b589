"""A file of CURE's shape and size: counts, constant answers, blind rules against plain counting, and our gates."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cure_standin import ITEMS, STEPS, write_standin
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Sample
from snellen.data.dataset import check_sample
from snellen.kits.curate.gates import compare_to_chance, level_draft, rule_credits
from snellen.kits.curate.records import Draft, Question, Source
from snellen.kits.cure.blind_baselines import baselines
from snellen.kits.cure.loader import CureItem, load, read_items
from snellen.scoring.aggregates.consistency import chains_from_items, consistency


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_standin(tmp_path_factory.mktemp("cure") / "cot_consistency_eval.jsonl")


@pytest.fixture(scope="module")
def items(path: Path) -> list[CureItem]:
    return list(read_items(path))


def samples(path: Path, **dataset: object) -> list[Sample]:
    task = Task(name="cure", dataset={"loader": "cure", "path": str(path), "pictures": False, **dataset})
    return list(load(task, LoadContext()))


def plain(path: Path) -> list[dict[str, Any]]:
    """The file as the JSON module reads it, past our own reader."""
    return list(json.loads(path.read_text(encoding="utf-8")))


def test_counts(items: list[CureItem]) -> None:
    assert len(items) == ITEMS
    assert sum(len(item.cot_inference.chain) for item in items) == STEPS
    assert all(len(item.inference.candidate) == 6 for item in items)


def count_constant(path: Path, answer: int) -> dict[str, dict[str, float | None]]:
    """Both conventions by plain counting of the items where `answer` is right for the inference, the chain, and both."""
    flags = [
        (
            item["inference"]["gt"] == answer,
            all(step["gt"] == answer for step in item["cot_inference"]["chain"]),
        )
        for item in plain(path)
    ]
    n, h = len(flags), sum(inference for inference, _ in flags)
    s, both = sum(chain for _, chain in flags), sum(inference and chain for inference, chain in flags)
    shares: dict[str, float | None] = {"Rh": h / n, "Rcot": s / n, "Ro": both / n}
    return {
        "conditional": shares | {"Cf": both / s if s else None, "Cb": both / h if h else None},
        "over-n": shares | {"Cf": both / n, "Cb": both / n},
    }


@pytest.mark.parametrize("answer", range(6))
def test_constant_answers_give_the_counted_figures(path: Path, items: list[CureItem], answer: int) -> None:
    truth = [
        {"inference": item.inference.gt, "chain": [step.gt for step in item.cot_inference.chain]} for item in items
    ]
    given = [{"inference": answer, "chain": [answer] * len(item.cot_inference.chain)} for item in items]
    for convention, expected in count_constant(path, answer).items():
        estimates = consistency(chains_from_items(truth, given), convention)
        assert {key: estimates[key].value for key in expected} == pytest.approx(expected, abs=1e-12)


def blind_accuracy(path: Path, prefer: Callable[[str], int]) -> float:
    """The mean credit of taking the best-liked inference, ties shared, in exact fractions."""
    credits = []
    for item in plain(path):
        liked = [prefer(text) for text in item["inference"]["candidate"]]
        right = liked[item["inference"]["gt"]] == max(liked)
        credits.append(Fraction(int(right), liked.count(max(liked))))
    return float(sum(credits) / len(credits))


def test_blind_rules_give_the_counted_figures(path: Path) -> None:
    asked = samples(path)
    for sample in asked:
        check_sample(sample)
    figures = baselines(asked)
    no_period = blind_accuracy(path, lambda text: not text.endswith("."))
    shortest = blind_accuracy(path, lambda text: -len(text))
    assert no_period > 0.6 and shortest > 0.4, "the stand-in must hold the artefact that the published file has"
    assert figures["Rh_no-period_blind"].value == pytest.approx(no_period, abs=1e-12)
    assert figures["Rh_shortest_blind"].value == pytest.approx(shortest, abs=1e-12)
    # A judge that learns the looks of options, and never sees a picture, joins both artefacts.
    assert figures["Rh_learned_blind"].value > max(no_period, shortest) + 0.05
    stripped = baselines(samples(path, punctuation="strip"))
    assert stripped["Rh_no-period_blind"].value == pytest.approx(1 / 6, abs=0.001)


def as_draft(number: int, item: CureItem) -> Draft:
    steps = tuple(Question(step.question, tuple(step.candidate), step.gt) for step in item.cot_inference.chain)
    inference = Question("What can be inferred?", tuple(item.inference.candidate), item.inference.gt)
    return Draft(str(number), Source(str(number), item.image.url, item.clue, inference.answer), steps, inference)


def test_the_workshop_would_have_caught_the_artefact(path: Path, items: list[CureItem]) -> None:
    drafts = [as_draft(number, item) for number, item in enumerate(items)]
    inference, _ = compare_to_chance("no-period", drafts, rule_credits(drafts, "no-period"), 0.05)
    counted = blind_accuracy(path, lambda text: not text.endswith("."))
    assert inference.accuracy == pytest.approx(counted, abs=1e-12) and not inference.passed
    levelled = [level_draft(draft)[0] for draft in drafts]
    assert all(
        test.passed for test in compare_to_chance("no-period", levelled, rule_credits(levelled, "no-period"), 0.05)
    )
