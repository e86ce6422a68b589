"""Decisions are appended and never lost, the state follows from them, and agreement is what its definition says."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.errors import DataError, UsageError
from snellen.kits.curate.decisions import Decision, Ledger, Status
from snellen.kits.curate.desk import Desk, ReviewSettings, assign
from snellen.kits.curate.publish import (
    Title,
    agreement_figures,
    audit_figures,
    audit_sentence,
    card_lines,
    ceiling_figures,
    make_card,
    people_figures,
    publish,
)
from snellen.kits.curate.records import Gated, Question
from snellen.stats.agreement import Agreement
from workshop_fixtures import make_draft as make

TICKETS = map(str, itertools.count())


def new_desk(folder: Path, items: int = 10, people: tuple[str, ...] = ("ana", "ben"), **told: object) -> Desk:
    options = ReviewSettings(people, **{"overlap": 1.0, **told})
    return Desk([Gated(make(number)) for number in range(items)], Ledger(folder / "review.db"), options)


def decide(
    desk: Desk, who: str, item: str, action: str, *, mode: str = "review", reason: str = "why", body: object = None
) -> Decision:
    return desk.decide(Decision(mode, item, who, "2024-01-01", action, next(TICKETS), reason, body))


def undo(desk: Desk, who: str, mode: str = "review") -> str | None:
    row = desk.ledger.undo_of(mode, who, "2024-01-01", next(TICKETS))
    if row is None:
        return None
    desk.take(desk.ledger.write(row)[0])
    return row.item


def edit_of(desk: Desk, item: str, **change: object) -> dict[str, object]:
    draft = desk.items[item].draft

    def as_dict(question: Question) -> dict[str, object]:
        return {
            "question": question.question,
            "candidates": list(question.candidates),
            "right": question.right,
        }

    return {"steps": [as_dict(step) for step in draft.steps], "inference": {**as_dict(draft.inference), **change}}


def test_two_reviewers_saving_the_same_item_both_count(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    decide(desk, "ana", "0001", "accept")
    assert desk.outcome("0001").status is Status.OPEN, "ben's review is not in"
    decide(desk, "ben", "0001", "reject")
    assert desk.outcome("0001").status is Status.DISPUTED
    assert desk.queue("settle") == ["0001"]
    decide(desk, "ben", "0001", "reject", mode="settle")
    assert desk.outcome("0001").status is Status.DISPUTED, "nobody settles their own"
    decide(desk, "cy", "0001", "reject", mode="settle")
    assert desk.outcome("0001").status is Status.REJECTED and desk.queue("settle") == []
    assert [row.action for row in desk.ledger.rows()] == ["accept", "reject", "reject", "reject"]


@pytest.mark.parametrize("taken", ["ana", "ben", "merged", "draft"])
def test_either_edit_of_a_dispute_is_shown_and_can_be_taken(tmp_path: Path, taken: str) -> None:
    desk = new_desk(tmp_path)
    drafted = desk.items["0001"].draft.inference.question
    wordings = {"ana": "What does ana see?", "ben": "What does ben see?", "merged": "What do both see?"}
    bodies = {who: edit_of(desk, "0001", question=question) for who, question in wordings.items()}
    decide(desk, "ana", "0001", "edit", body=bodies["ana"])
    decide(desk, "ben", "0001", "edit", body=bodies["ben"])
    shown = desk.show("0001", "settle", "cy")
    assert [each["body"] for each in shown["decisions"]] == [bodies["ana"], bodies["ben"]] and not shown["party"]
    assert shown["questions"][-1]["question"] == drafted
    if taken == "draft":
        decide(desk, "cy", "0001", "accept", mode="settle")
    else:
        decide(desk, "cy", "0001", "edit", mode="settle", body=bodies[taken])
    outcome = desk.outcome("0001")
    assert outcome.status is Status.ACCEPTED
    assert outcome.draft.inference.question == {**wordings, "draft": drafted}[taken]


def test_two_who_differ_may_come_to_agree_but_neither_decides_alone(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    body = edit_of(desk, "0001", question="What does ben see?")
    decide(desk, "ana", "0001", "accept")
    decide(desk, "ben", "0001", "edit", body=body)
    assert desk.outcome("0001").status is Status.DISPUTED, "ana accepted another text"
    decide(desk, "ben", "0001", "edit", mode="settle", body=body)
    assert desk.outcome("0001").status is Status.DISPUTED and desk.next_item("settle", "ben") is None
    assert desk.next_item("settle", "ana") == "0001" and desk.show("0001", "settle", "ana")["party"]
    decide(desk, "ana", "0001", "edit", mode="settle", body=body)
    assert desk.outcome("0001").status is Status.ACCEPTED
    assert desk.outcome("0001").draft.inference.question == "What does ben see?"
    assert desk.ledger.agreement.items == 1, "agreement counts what each found alone"


def test_an_acceptance_is_of_the_text_that_was_seen(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    stale = desk.show("0001", "review", "ben")["mark"]  # ben's page is open when ana edits
    decide(desk, "ana", "0001", "edit", body=edit_of(desk, "0001", question="What does ana see?"))
    fresh = desk.show("0001", "review", "ben")["mark"]
    decide(desk, "ben", "0001", "accept", body={"seen": stale})
    assert desk.outcome("0001").status is Status.DISPUTED, "ben never saw what ana wrote"
    decide(desk, "ben", "0001", "accept", body={"seen": fresh})
    assert desk.outcome("0001").status is Status.ACCEPTED
    assert desk.outcome("0001").draft.inference.question == "What does ana see?"


def test_who_is_answered_is_asked_again(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    decide(desk, "ana", "0001", "accept")
    decide(desk, "ben", "0001", "reject")
    decide(desk, "ana", "0001", "reject", mode="settle")
    assert desk.outcome("0001").status is Status.REJECTED
    undo(desk, "ana", "settle")
    decide(desk, "ben", "0001", "edit", mode="settle", body=edit_of(desk, "0001", question="Otherwise?"))
    assert desk.next_item("settle", "ben") is None and desk.next_item("settle", "ana") == "0001"
    decide(desk, "ana", "0001", "reject", mode="settle")
    assert desk.next_item("settle", "ben") == "0001" and desk.next_item("settle", "ana") is None


DECIDED = st.lists(
    st.tuples(
        st.sampled_from(["ana", "ben", "cy"]),
        st.sampled_from(["review", "settle"]),
        st.sampled_from(["accept", "reject", "skip", "one", "other"]),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(DECIDED)
def test_an_item_is_decided_only_by_all_its_reviewers_or_by_somebody_else(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str, str, str]]
) -> None:
    desk = new_desk(tmp_path_factory.mktemp("shop"), items=1)  # ana and ben review, cy is a third
    wordings = {"one": "One wording?", "other": "Another wording?"}
    for who, mode, action in made:
        if (action == "skip" and mode == "settle") or (who == "cy" and mode == "review"):
            continue
        if action in wordings:
            decide(desk, who, "0000", "edit", mode=mode, body=edit_of(desk, "0000", question=wordings[action]))
        else:
            decide(desk, who, "0000", action, mode=mode)
    held = {mode: desk.ledger.current.get((mode, "0000"), {}) for mode in ("review", "settle")}
    reviewed = {who for who, decision in held["review"].items() if decision.action != "skip"}
    outcome = desk.outcome("0000")
    if reviewed != {"ana", "ben"}:
        assert outcome.status is Status.OPEN
    elif "cy" in held["settle"]:
        assert outcome.status is (Status.REJECTED if held["settle"]["cy"].action == "reject" else Status.ACCEPTED)
    elif outcome.status is not Status.DISPUTED:
        both = ([held["review"][who], held["settle"].get(who)] for who in ("ana", "ben"))
        last = [max(filter(None, pair), key=lambda decision: decision.id) for pair in both]
        assert len({decision.action == "reject" for decision in last}) == 1
        texts = {decision.body["inference"]["question"] for decision in last if decision.action == "edit"}
        assert len(texts) <= 1 and (not texts or outcome.draft.inference.question in texts)
    desk.ledger.close()


def test_the_card_counts_who_decided(tmp_path: Path) -> None:
    desk = new_desk(tmp_path, people=("ana", "ben", "cy"), overlap=0.0)
    for item in desk.queues["ana"]:
        decide(desk, "ana", item, "accept")
    decide(desk, "ben", desk.queues["ben"][0], "skip")
    decide(desk, "cy", desk.queues["cy"][0], "accept")
    undo(desk, "cy")
    count = len(desk.queues["ana"])
    assert people_figures(desk.ledger) == {"review": {"ana": count}}
    card = make_card(desk, Title("t"), {}, [], [])
    assert (card["reviewers"], card["decisions"]) == (1, count)


def test_a_set_that_failed_its_gates_goes_out_only_with_a_reason(tmp_path: Path) -> None:
    desk = new_desk(tmp_path, people=("ana",))
    for item in desk.items:
        decide(desk, "ana", item, "accept")
    gates = {"gates": [{"gate": "blind", "passed": False}, {"gate": "leak", "passed": True}]}
    with pytest.raises(UsageError, match=r"failed its gates \(blind\).*--despite-gates"):
        publish(desk, tmp_path / "out", Title("t"), gates, [])
    card = make_card(desk, Title("t", despite_gates="a pilot"), gates, [], [desk.items["0001"].draft])
    counted = {"seen": 1, "failed": 0, "repaired": 0, "warned": 0}
    card["gates"] = {"gates": [gate | counted for gate in gates["gates"]]}
    told = "\n".join(card_lines(card))
    assert "**Published although the set failed its gates** (blind). Reason given: a pilot" in told
    assert "reviewed by 1 person in 10 decisions" in told and "Who decided (review): ana 10." in told


def test_an_edit_is_checked_and_becomes_the_text(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    decide(desk, "ana", "0002", "edit", body=edit_of(desk, "0002", question="What does it tell?"))
    decide(desk, "ben", "0002", "accept")
    assert desk.outcome("0002").draft.inference.question == "What does it tell?"
    for change, message in (
        ({"right": 9}, "the right one at 9"),
        ({"candidates": ["a"] * 6}, "same candidate twice"),
        ({"right": "x"}, "Expected `int`"),
    ):
        with pytest.raises(DataError, match=message):
            decide(desk, "ana", "0003", "edit", body=edit_of(desk, "0003", **change))
    assert desk.outcome("0003").status is Status.OPEN
    decide(desk, "ben", "0002", "edit", body=edit_of(desk, "0002", question="Another wording?"))
    assert desk.outcome("0002").status is Status.DISPUTED


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"action": "accept", "item": "none"}, "no item 'none'"),
        ({"action": "destroy"}, "no action 'destroy'"),
        ({"action": "reject", "reason": "  "}, "needs a reason"),
        ({"action": "accept", "mode": "reviews"}, "did you mean 'review'"),
        ({"action": "answer", "mode": "answer", "body": {"places": [0]}}, "each of 3 questions"),
        ({"action": "answer", "mode": "answer", "body": {"places": [0, 0, 6]}}, "not there"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, told: dict[str, object], message: str) -> None:
    desk = new_desk(tmp_path)
    with pytest.raises(UsageError, match=message):
        decide(desk, "ana", **{"item": "0001", **told})
    assert desk.ledger.count == 0


def test_a_save_sent_twice_is_one_decision(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    row = Decision("review", "0001", "ana", "now", "accept", "same-ticket")
    assert desk.decide(row).id == desk.decide(row).id
    assert desk.ledger.count == 1 and len(list(desk.ledger.rows())) == 1


def test_rows_can_neither_be_changed_nor_deleted(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    decide(desk, "ana", "0001", "accept")
    desk.ledger.close()
    database = sqlite3.connect(tmp_path / "review.db")
    for statement in ("UPDATE decisions SET action = 'reject'", "DELETE FROM decisions"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            database.execute(statement)
    database.close()


def test_undo_goes_back_step_by_step(tmp_path: Path) -> None:
    desk = new_desk(tmp_path, overlap=0.0)
    first = desk.next_item("review", "ana")
    decide(desk, "ana", first, "accept")
    decide(desk, "ana", first, "reject")
    second = desk.next_item("review", "ana")
    assert second != first
    assert undo(desk, "ana") == first and desk.outcome(first).status is Status.ACCEPTED
    assert undo(desk, "ana") == first and desk.outcome(first).status is Status.OPEN
    assert desk.next_item("review", "ana") == first
    assert undo(desk, "ana") is None
    assert len(list(desk.ledger.rows())) == 4


def test_skipped_items_come_back_at_the_end(tmp_path: Path) -> None:
    desk = new_desk(tmp_path, items=3, people=("ana",))
    first = desk.next_item("review", "ana")
    decide(desk, "ana", first, "skip")
    order = []
    while (item := desk.next_item("review", "ana")) is not None:
        order.append(item)
        decide(desk, "ana", item, "accept")
    assert order[-1] == first and len(order) == 3
    assert desk.state("ana")["decided"] == 3


def test_who_reviewed_an_item_neither_audits_nor_answers_it(tmp_path: Path) -> None:
    desk = new_desk(tmp_path, overlap=0.0)
    decide(desk, "ana", "0004", "accept")
    assert desk.next_item("audit", "ana") is None and desk.next_item("answer", "ana") is None
    assert desk.next_item("audit", "ben") == "0004"
    shown = desk.show("0004", "answer", "ben")
    assert (
        "clue" not in shown and "inference" not in shown and all(each["right"] is None for each in shown["questions"])
    )


def test_audit_and_ceiling_have_their_figures(tmp_path: Path) -> None:
    desk = new_desk(tmp_path, items=40, audit=30, ceiling=5, overlap=0.0)
    for item in desk.items:
        decide(desk, "ana", item, "accept")
    assert audit_figures(desk) is None and ceiling_figures(desk) is None and audit_sentence(None) == "not audited"
    for place, item in enumerate(desk.queue("audit")):
        decide(desk, "ben", item, "invalid" if place == 0 else "valid", mode="audit")
    audit = audit_figures(desk)
    assert (audit["audited"], audit["valid"]) == (30, 29)
    assert audit["ci95"] == pytest.approx([0.8333, 0.9941], abs=1e-3)
    assert audit_sentence(audit) == "97% valid, 95 % CI 83% to 99% (29 of 30)"
    for place, item in enumerate(desk.queue("answer")):
        rights = [question.right for _, question in desk.items[item].draft.questions()]
        if place == 0:
            rights[0] = (rights[0] + 1) % 6
        decide(desk, "ben", item, "answer", mode="answer", body={"places": rights})
    ceiling = ceiling_figures(desk)
    assert (
        ceiling["answers"] == 5
        and ceiling["metrics"]["Rh"]["value"] == 1.0
        and ceiling["metrics"]["Rcot"]["value"] == 0.8
    )


def test_a_restart_finds_everything(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    decide(desk, "ana", "0001", "accept")
    decide(desk, "ben", "0001", "reject")
    decide(desk, "ana", "0002", "accept")
    undo(desk, "ana")
    before = (desk.state("ana"), desk.next_item("review", "ana"), agreement_figures(desk.ledger))
    desk.ledger._database.close()  # as a kill would leave it: no checkpoint, only the log
    again = new_desk(tmp_path)
    assert (again.state("ana"), again.next_item("review", "ana"), agreement_figures(again.ledger)) == before


@given(
    st.integers(1, 60),
    st.lists(st.sampled_from(["ana", "ben", "cy", "dee"]), min_size=1, unique=True),
    st.floats(0, 1),
    st.integers(0, 9),
)
def test_every_item_has_a_reviewer_and_the_share_has_two(
    items: int, people: list[str], overlap: float, seed: int
) -> None:
    names = [f"i{number}" for number in range(items)]
    lists = assign(names, people, overlap, seed)
    counts = Counter(item for queue in lists.values() for item in queue)
    assert set(counts) == set(names) and all(len(set(queue)) == len(queue) for queue in lists.values())
    assert sum(count == 2 for count in counts.values()) == (round(overlap * items) if len(people) > 1 else 0)
    assert max(map(len, lists.values())) - min(map(len, lists.values())) <= 1 + len(people)
    assert assign(list(reversed(names)), list(reversed(people)), overlap, seed) == lists


def alpha_by_definition(units: list[dict[str, str]]) -> float | None:
    """Krippendorff's alpha from its definition: observed against expected disagreement of pairable values."""
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit.values()]
    total = len(values)
    if total < 2:
        return None
    observed = (
        sum(sum(a != b for a, b in itertools.permutations(unit.values(), 2)) / (len(unit) - 1) for unit in units)
        / total
    )
    expected = sum(a != b for a, b in itertools.permutations(values, 2)) / (total * (total - 1))
    return 1 - observed / expected if expected else None


LABELS = st.dictionaries(st.sampled_from(["ana", "ben", "cy"]), st.sampled_from(["accept", "reject"]))


@settings(deadline=None)
@given(st.lists(LABELS, max_size=12))
def test_alpha_is_its_definition_however_labels_came(units: list[dict[str, str]]) -> None:
    agreement = Agreement()
    for unit in units:
        held: dict[str, str] = {}
        for who, label in unit.items():
            for value in ("reject" if label == "accept" else "accept", label):  # first the other way, then changed
                after = {**held, who: value}
                agreement.change(held, after)
                held = after
    expected = alpha_by_definition(units)
    found = agreement.alpha()
    assert (found is None) == (expected is None)
    assert found is None or found == pytest.approx(expected)


def test_kappa_of_a_known_table() -> None:
    agreement = Agreement()
    for first, second, count in (
        ("accept", "accept", 20),
        ("accept", "reject", 5),
        ("reject", "accept", 10),
        ("reject", "reject", 15),
    ):
        for _ in range(count):
            agreement.change({}, {"ana": first, "ben": second})
    assert agreement.kappa("ben", "ana") == (pytest.approx(0.4), 50)
    assert agreement.observed == 0.7 and agreement.kappa("ana", "cy") == (None, 0)
