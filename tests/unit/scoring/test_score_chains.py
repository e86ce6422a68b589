"""Chains with missing replies are counted, own chains are told, and blind rules share the credit of ties."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cure_fixtures import item, write_cure
from snellen.core.jobs import Item
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Prediction, Request, Sample
from snellen.kits.cure.blind_baselines import RULES, baselines, credit
from snellen.kits.cure.chain import CHAIN
from snellen.kits.cure.loader import load
from snellen.prompt.build import Prompter
from snellen.report.terminal import comparison_rows, published_for
from snellen.scoring.aggregates.consistency import chain_estimates
from snellen.scoring.tables.table_builder import read_tables


def cure_samples(folder: Path) -> list[Sample]:
    task = Task(name="cure", dataset={"loader": "cure", "path": str(write_cure(folder)), "pictures": False})
    return list(load(task, LoadContext()))


def estimates(
    samples: list[Sample], values: dict[str, float | None], failed: tuple[str, ...] = (), left_out: tuple[str, ...] = ()
):
    asked = [sample for sample in samples if sample.id not in left_out]
    scores = [
        (
            s.id,
            "base",
            0,
            "accuracy",
            values.get(s.id, 1.0),
            "x",
            "rule",
            None if values.get(s.id, 1.0) is not None else "unread",
        )
        for s in asked
        if s.id not in failed
    ]
    trials = [(s.id, "base", 0, "timeout" if s.id in failed else None) for s in asked]
    tables = read_tables(scores, trials, ((s.id, s.group, s.tags) for s in asked), metrics=())
    return chain_estimates(tables["accuracy"], {})


def test_all_right(tmp_path: Path) -> None:
    found = estimates(cure_samples(tmp_path), {})
    assert {name: found[name].value for name in ("Rh", "Rcot", "Ro", "Cf", "Cb")} == dict.fromkeys(
        ("Rh", "Rcot", "Ro", "Cf", "Cb"), 1.0
    )
    assert found["Rh"].n == 3 and found["step_3_accuracy"].n == 1


def test_a_wrong_step_breaks_its_chain_and_so_does_an_unread_one(tmp_path: Path) -> None:
    found = estimates(cure_samples(tmp_path), {"00001.2": 0.0, "00002.1": None})
    read = found["Rcot_read"]
    assert (read.value, read.n, read.unscored) == (0.5, 2, 1)
    assert (found["Rh"].value, found["Rh"].n, found["Rh"].unscored) == (1.0, 3, 0)
    assert found["Cb_read"].value == 0.5 and found["Cf"].value == 1.0
    assert found["break_at_1"].value == found["break_at_2"].value == pytest.approx(1 / 3)
    assert found["Rcot"].value == pytest.approx(1 / 3) and found["Rcot"].n == 3
    assert found["Rcot"].bounds == pytest.approx((1 / 3, 2 / 3))


def test_an_inference_that_was_refused_is_not_right_in_rh_as_in_accuracy(tmp_path: Path) -> None:
    samples = cure_samples(tmp_path)
    found = estimates(samples, {"00002.h": None})
    alone = estimates([sample for sample in samples if sample.tags["role"] == "inference"], {"00002.h": None})
    for one in (found, alone):
        assert (one["Rh"].value, one["Rh"].n, one["Rh"].unscored) == (pytest.approx(2 / 3), 3, 0)
        assert (one["Rh_read"].value, one["Rh_read"].n, one["Rh_read"].unscored) == (1.0, 2, 1)
        assert one["Rh"].bounds == pytest.approx((2 / 3, 1.0))


def test_a_step_that_failed_fails_its_chain_though_later_questions_were_never_asked(tmp_path: Path) -> None:
    """So runs of 0.1 are stored: what follows a failed step of cure-cot is not there."""
    found = estimates(cure_samples(tmp_path), {}, failed=("00001.1",), left_out=("00001.2", "00001.3", "00001.h"))
    assert (found["Rh"].n, found["Rh"].failed, found["Rcot"].failed) == (2, 1, 1)
    assert found["Rh_strict"].value == found["Ro_strict"].value == pytest.approx(2 / 3)
    assert found["step_1_accuracy"].failed == 1 and found["step_2_accuracy"].failed == 0


def test_no_step_has_more_failures_than_there_are_of_it(tmp_path: Path) -> None:
    found = estimates(cure_samples(tmp_path), {}, failed=("00000.h", "00001.h", "00002.1"))
    for place in (1, 2, 3):
        step = found[f"step_{place}_accuracy"]
        assert step.n + step.unscored + step.failed == (3, 3, 1)[place - 1]
    assert found["step_1_accuracy"].failed == 1 and found["step_3_accuracy"].failed == 0


def test_a_chain_without_reply_is_counted_apart(tmp_path: Path) -> None:
    found = estimates(cure_samples(tmp_path), {}, failed=("00001.h",))
    assert (found["Rh"].value, found["Rh"].n, found["Rh"].failed) == (1.0, 2, 1)
    assert found["Rh_strict"].value == pytest.approx(2 / 3)


def test_a_chain_not_asked_to_the_end_waits(tmp_path: Path) -> None:
    found = estimates(cure_samples(tmp_path), {}, left_out=("00002.h",))
    assert found["Rh"].n == 2 and found["Rh"].failed == 0


def test_inference_alone_gives_rh_alone(tmp_path: Path) -> None:
    samples = [sample for sample in cure_samples(tmp_path) if sample.tags["role"] == "inference"]
    found = estimates(samples, {"00000.h": 0.0})
    assert set(found) == {"Rh", "Rh_read", "Rh_strict"} and found["Rh"].value == pytest.approx(2 / 3)


def test_the_period_artefact_shows_beside_the_result(tmp_path: Path) -> None:
    found = baselines(cure_samples(tmp_path))
    assert found["Rh_no-period_blind"].value == 1.0 and found["Ro_no-period_blind"].value == 1.0
    assert found["Rh_period_blind"].value == 0.0


def test_a_judge_that_learns_finds_the_artefact_and_nothing_else(tmp_path: Path) -> None:
    many = [item(number, 2, right=number * 5 % 6) for number in range(60)]
    task = Task(
        name="cure",
        dataset={"loader": "cure", "path": str(write_cure(tmp_path, many, pictures=False)), "pictures": False},
    )
    assert baselines(load(task, LoadContext()))["Ro_learned_blind"].value == 1.0
    stripped = Task(name="cure", dataset={**task.dataset, "punctuation": "strip"})
    assert baselines(load(stripped, LoadContext()))["Rh_learned_blind"].value < 0.4


@given(st.lists(st.text("ab. ", min_size=1, max_size=6), min_size=2, max_size=6), st.sampled_from(sorted(RULES)))
def test_the_credits_of_all_options_add_up_to_one(options: list[str], rule: str) -> None:
    assert math.isclose(sum(credit(options, place, RULES[rule]) for place in range(len(options))), 1.0)


def test_the_own_chain_is_told_before_the_inference(tmp_path: Path) -> None:
    samples = cure_samples(tmp_path)[:3]
    task = Task(name="cure", dataset={"loader": "cure"}, infer="chain")
    [job] = CHAIN.plan(task, [Item(place, sample) for place, sample in enumerate(samples)], Prompter(task, Prompt(), 0))
    asked: list[Request] = []

    async def ask(item: Item, request: Request) -> Prediction:
        asked.append(request)
        return Prediction(request.key, text=["(B)", "I would say the sea", "A"][len(asked) - 1])

    asyncio.run(job.run(ask))
    assert [request.key for request in asked] == list(job.keys)
    told = asked[2].messages[-1].text
    assert f"What is seen at 0.1? {samples[0].options[1]}" in told
    assert "I would say the sea" in told
    assert "What is known so far" not in asked[1].messages[-1].text


def test_a_failed_step_fails_its_chain(tmp_path: Path) -> None:
    from snellen.core.types import Failure, FailureKind

    samples = cure_samples(tmp_path)[:3]
    task = Task(name="cure", dataset={"loader": "cure"}, infer="chain")
    [job] = CHAIN.plan(task, [Item(place, sample) for place, sample in enumerate(samples)], Prompter(task, Prompt(), 0))
    asked, settled = [], []

    async def ask(item: Item, request: Request, known: Prediction | None = None) -> Prediction:
        if known is not None:
            settled.append(known)
            return known
        asked.append(request)
        return Prediction(request.key, failure=Failure(FailureKind.SERVER, "gone"))

    asyncio.run(job.run(ask))
    assert len(asked) == 1
    assert [prediction.key for prediction in settled] == list(job.keys)[1:]
    assert all(prediction.failure and prediction.failure.kind is FailureKind.SKIPPED for prediction in settled)


def test_published_rows_stand_beside_the_model() -> None:
    from snellen.data.catalog import Catalog

    card = published_for(Catalog(), "cure-cot", {})
    assert card is not None and "70.7 %" in card.note
    assert (
        published_for(Catalog(), "cured", {"Rh": 1}) is None
        and published_for(Catalog(), "mine", {"Rh_x_blind": 1}).rows == []
    )
    rows = dict(comparison_rows({"Rh": {"value": 0.5}, "Rh_no-period_blind": {"value": 0.7}}, card, "openai/x"))
    assert rows["openai/x"]["Rh"] == 50.0 and rows["rule no-period, blind"]["Rh"] == pytest.approx(70.0)
    assert rows["BLIP-2-T5xl (published)"]["Cf"] == 83.10
