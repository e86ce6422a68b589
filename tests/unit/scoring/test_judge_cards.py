"""The judges of benchmarks, each card end to end: what it asks, and which score its verdict makes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judge_doubles import CASE, judged_answer
from snellen.core.builtins import default_registry
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.data.catalog import Catalog
from snellen.scoring.judges.judge_card import plan_votes, read_judge
from snellen.scoring.judges.verdicts import scores_of_trial

KEY = TrialKey("t", "1")
Cases = list[tuple[str, dict[str, Any], str, dict[str, Any], dict[str, float | None]]]
CASES: Cases = [
    ("mm-vet", {}, "It says 4 apples", {"verdict": 0.5}, {"mm_vet": 0.5}),
    ("mm-vet", {}, "It says 4 apples", {"verdict": 7}, {"mm_vet": None}),
    ("mathvista", {"answer_type": "integer"}, "So x is 12.", {"answer": "12"}, {"mathvista_extracted": 1.0}),
    ("mathvista", {"answer_type": "integer"}, "So x is 12.", {"answer": "12.0"}, {"mathvista_extracted": 1.0}),
    ("mathvista", {"answer_type": "integer"}, "So x is 13.", {"answer": "13"}, {"mathvista_extracted": 0.0}),
    ("mathverse-extract", {}, "So x is 12.", {"answer": "12"}, {"mathverse_extracted": 1.0}),
    ("mathverse", {"problem": "What is x?"}, "12", {"verdict": "SAME"}, {"mathverse": 1.0}),
    ("mathverse", {"problem": "What is x?"}, "13", {"verdict": "OTHER"}, {"mathverse": 0.0}),
    ("mmlongbench-doc", {"answer_format": "Int"}, "Twelve.", {"answer": "12"}, {"document_answer_extracted": 1.0}),
    ("mmlongbench-doc", {"answer_format": "Int"}, "?", {"answer": ""}, {"document_answer_extracted": None}),
    ("hallusionbench", {"gt_answer_details": "It is 12."}, "Yes", {"verdict": "CORRECT"}, {"hallusionbench": 1.0}),
    ("hallusionbench", {"gt_answer_details": "It is 12."}, "Hm", {"verdict": "UNCLEAR"}, {"hallusionbench": 0.0}),
    (
        "llava-bench",
        {"caption": "a dozen eggs"},
        "Twelve eggs",
        {"reference": 8, "answer": 6},
        {"llava_bench": 6.0, "llava_bench_reference": 8.0},
    ),
    ("mm-mt-bench", {}, "Twelve", {"verdict": 9}, {"mm_mt_bench": 9.0}),
    ("simplevqa", {}, "I do not know", {"verdict": "NOT_ATTEMPTED"}, {"simplevqa": 0.0}),
    ("logicvista", {}, "The first one.", {"answer": "A"}, {"logicvista_extracted": None}),  # the answer 12 is no label
    ("charxiv-reasoning", {"inst_category": 3}, "12", {"verdict": "RIGHT"}, {"charxiv_reasoning": 1.0}),
    ("charxiv-descriptive", {"qid": 19}, "13", {"verdict": "WRONG"}, {"charxiv_descriptive": 0.0}),
]
BENCHMARKS = sorted({case[0] for case in CASES})


@pytest.mark.parametrize(("name", "tags", "reply", "said", "expected"), CASES)
def test_a_verdict_makes_the_score_of_its_benchmark(
    name: str, tags: dict[str, Any], reply: str, said: dict[str, Any], expected: dict[str, float | None]
) -> None:
    judge = read_judge(Catalog().card("judges", name), name)
    sample = Sample("1", "t", Form.OPEN, "How many?", answers=("12",), tags=tags)
    prediction = Prediction(KEY, text=reply)
    requests = list(plan_votes(judge, [(sample, prediction)]))
    assert {judged_answer(request) for request in requests} == {reply}
    case = CASE.search(requests[0].messages[-1].text)
    assert case is not None
    votes: list[str | None] = [json.dumps({"case": case[1], **said})] * judge.votes
    scores = {
        score.metric: score.value for score in scores_of_trial(judge, sample, Request(KEY, ()), prediction, votes)
    }
    assert scores == expected


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_judge_of_a_benchmark_names_who_judged_published_numbers(name: str) -> None:
    judge = read_judge(Catalog().card("judges", name), name)
    assert "/" in judge.default_model
    assert judge.published
    assert default_registry().get("scorer", judge.fallback)
    assert not judge.compare or default_registry().get("scorer", judge.compare)
    assert judge.params.temperature == 0.0


def test_the_labels_of_a_legend_in_another_order_are_wrong_as_charxiv_says() -> None:
    rubric = read_judge(Catalog().card("judges", "charxiv-descriptive"), "charxiv-descriptive").rubrics["13"]
    assert "in the same order" in rubric and "order, case" not in rubric


def test_a_rubric_for_every_template_of_charxiv() -> None:
    judge = read_judge(Catalog().card("judges", "charxiv-descriptive"), "charxiv-descriptive")
    assert sorted(map(int, judge.rubrics)) == list(range(1, 20))
