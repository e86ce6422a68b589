"""Every gate refuses what it is for, counts it, and lets a fair set pass; a planted artefact is caught and repaired."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from snellen.core.errors import UsageError
from snellen.kits.curate.gates import GateSettings, level_question, level_texts, run_gates
from snellen.kits.curate.records import Draft, Finding, Question, shuffled
from workshop_fixtures import make_draft as make


def fair(count: int = 80, **options: bool) -> list[Draft]:
    return [make(number, **options) for number in range(count)]


def outcome(draft: Draft, **settings: object) -> tuple[list[str], list[tuple[str, str]]]:
    """Run one odd item among fair ones; return what is noted of it, and where it was set aside."""
    kept, aside, _ = run_gates([*fair(30), structs.replace(draft, id="odd")], GateSettings(trim=False, **settings))
    notes = [finding.outcome for gated in kept if gated.draft.id == "odd" for finding in gated.findings]
    return notes, [(each.stage, each.reason) for each in aside if each.id == "odd"]


def with_step(draft: Draft, question: Question) -> Draft:
    return structs.replace(draft, steps=(question, *draft.steps[1:]))


def test_a_fair_set_passes_every_gate() -> None:
    kept, aside, report = run_gates(fair())
    assert len(kept) == 80 and not aside and report.passed
    assert [gate.gate for gate in report.gates] == [
        "schema",
        "unique",
        "chain",
        "grounded",
        "duplicates",
        "surface",
        "leak",
        "blind",
    ]
    assert all(gate.seen == 80 for gate in report.gates)


def test_a_planted_artefact_is_caught_and_the_repaired_set_passes() -> None:
    drafts = fair(artefact=True)
    _, _, caught = run_gates(drafts, GateSettings(repair=False))
    failed = {gate.gate for gate in caught.gates if not gate.passed}
    assert failed == {"surface", "blind"}
    worst = {test.judge: test.accuracy for test in caught.tests if test.role == "inference"}
    assert worst["no-period"] == 1.0 and worst["learned"] > 0.9
    kept, _, repaired = run_gates(drafts)
    assert repaired.passed and len(kept) == 80
    assert next(gate for gate in repaired.gates if gate.gate == "surface").repaired == 80


def test_an_artefact_of_length_is_trimmed_or_refused() -> None:
    few = [lengthen(draft) if number < 15 else draft for number, draft in enumerate(fair(60))]
    _, aside, report = run_gates(few)
    assert report.passed and 0 < len(aside) <= 15 and all("without the picture" in each.reason for each in aside)
    _, aside, report = run_gates([lengthen(draft) for draft in fair(60)])
    assert not report.passed and not aside  # the set itself is at fault: nothing is hidden by trimming


def lengthen(draft: Draft) -> Draft:
    answer = draft.inference.answer
    candidates = tuple(
        f"{each} and much more than that" if each == answer else each for each in draft.inference.candidates
    )
    return structs.replace(draft, inference=structs.replace(draft.inference, candidates=candidates))


def test_text_only_models_count_as_judges() -> None:
    drafts = fair(60)
    replies = {draft.id: {"inference": [1.0], "step": [0.0, 1.0]} for draft in drafts}
    _, _, report = run_gates(drafts, GateSettings(trim=False), judges={"openai/blind": replies})
    found = {test.role: test for test in report.tests if test.judge == "openai/blind"}
    assert not found["inference"].passed and found["inference"].accuracy == 1.0 and found["step"].accuracy == 0.5
    assert not report.passed


def test_verdicts_of_checkers_set_items_aside_or_warn() -> None:
    drafts = fair(20)
    verdicts = {
        drafts[0].id: Finding("chain (checker)", "fail", "says no"),
        drafts[1].id: Finding("chain (checker)", "warn", "no verdict"),
    }
    kept, aside, report = run_gates(drafts, checks={"chain (checker)": verdicts})
    assert [(each.id, each.stage) for each in aside] == [(drafts[0].id, "gates: chain (checker)")]
    count = next(gate for gate in report.gates if gate.gate == "chain (checker)")
    assert (count.failed, count.warned) == (1, 1)
    assert next(gated for gated in kept if gated.draft.id == drafts[1].id).findings[0].reason == "no verdict"


BASE = make(500)


@pytest.mark.parametrize(
    ("draft", "gate", "reason"),
    [
        (structs.replace(BASE, steps=()), "schema", "0 steps"),
        (structs.replace(BASE, steps=BASE.steps * 3), "schema", "6 steps"),
        (
            with_step(BASE, structs.replace(BASE.steps[0], candidates=BASE.steps[0].candidates[:4])),
            "schema",
            "4 candidates",
        ),
        (with_step(BASE, structs.replace(BASE.steps[0], right=6)), "schema", "the right one at 6"),
        (with_step(BASE, structs.replace(BASE.steps[0], question=" ")), "schema", "empty text"),
        (
            with_step(
                BASE,
                Question("What is it?", (BASE.source.clue, BASE.source.clue.upper() + ".", "x1", "x2", "x3", "x4"), 0),
            ),
            "unique",
            "the same candidate twice",
        ),
        (structs.replace(BASE, steps=(BASE.steps[0], BASE.steps[0])), "chain", "same question"),
        (
            structs.replace(BASE, source=structs.replace(BASE.source, clue="a xylophone")),
            "grounded",
            "nothing of the clue",
        ),
        (
            with_step(BASE, structs.replace(BASE.steps[0], question=f"Is it {BASE.source.clue}, what is it?")),
            "leak",
            "step 1 holds its own answer",
        ),
    ],
)
def test_each_gate_refuses_what_it_is_for(draft: Draft, gate: str, reason: str) -> None:
    _, aside = outcome(draft)
    assert len(aside) == 1 and aside[0][0] == f"gates: {gate}" and reason in aside[0][1]


def test_a_drafter_that_uses_no_word_of_the_inference_is_kept_with_a_note() -> None:
    """As the draft prompt asks for."""
    draft = structs.replace(BASE, inference=shuffled("What?", "xyzzy plugh", ["k1", "k2", "k3", "k4", "k5"], 1))
    notes, aside = outcome(draft)
    assert not aside and "warn" in notes


@pytest.mark.parametrize("gate", ["unique", "chain", "grounded", "duplicates", "surface", "leak", "blind"])
def test_a_gate_is_switched_off_by_name_with_a_reason(gate: str) -> None:
    _, aside, report = run_gates([*fair(20), structs.replace(make(3), id="again")], GateSettings(off={gate: "tried"}))
    count = next(each for each in report.gates if each.gate == gate)
    assert (count.off, count.failed, len(aside)) == ("tried", 0, int(gate != "duplicates"))


@pytest.mark.parametrize(
    ("off", "named"), [({"schema": "x"}, "schema"), ({"leek": "x"}, "leak"), ({"leak": " "}, "leak")]
)
def test_no_gate_is_off_without_a_name_and_a_reason(off: dict[str, str], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        GateSettings(off=off)


def test_duplicates_keep_the_first() -> None:
    _, aside, _ = run_gates([*fair(20), structs.replace(make(3), id="again")])
    assert [(each.id, each.reason) for each in aside] == [("again", "repeats item 0003")]


def test_a_last_answer_that_tells_the_inference_is_noted() -> None:
    told = structs.replace(
        BASE.steps[1],
        candidates=tuple(
            BASE.inference.answer + " too" if c == BASE.steps[1].answer else c for c in BASE.steps[1].candidates
        ),
    )
    notes, aside = outcome(structs.replace(BASE, steps=(BASE.steps[0], told)), repair=False)
    assert notes == ["warn"] and not aside


def test_the_word_list_is_optional() -> None:
    rude = with_step(BASE, structs.replace(BASE.steps[0], question="What damn thing is in the marked region?"))
    assert outcome(rude)[1] == []
    assert outcome(rude, forbidden=frozenset({"damn"}))[1] == [("gates: toxicity", "contains damn")]


def test_looks_are_levelled() -> None:
    assert level_texts(["The sea.", "a lake", " A  river… ", '"The pond"']) == [
        "The sea",
        "A lake",
        "A river",
        "The pond",
    ]
    assert level_texts(["red", "Blue.", "green", "NASA"]) == ["Red", "Blue", "Green", "NASA"]
    question = Question("q", ("a", "b."), 1)
    assert level_question(question).answer == "b" and level_question(level_question(question)) is not None


@given(st.lists(st.text("abAB .", min_size=1, max_size=8), min_size=2, max_size=6))
def test_levelling_twice_changes_nothing_more(texts: list[str]) -> None:
    once = level_texts(texts)
    assert len(once) == len(texts) and level_texts(once) == once
