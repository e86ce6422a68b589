"""Where a harness's reading and ours part: kinds, favours, and numbers that add up from one to the other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from snellen.core.types import Failure, FailureKind, Form, Prediction, Request, Sample, Score, TrialKey
from snellen.kits.bridges.disagreement import (
    AGAINST,
    DRAWN,
    FAILURE,
    FOR,
    LEFT_OUT,
    MISREAD,
    NEITHER,
    OTHERWISE,
    READ_INTO,
    UNREAD,
    Opinion,
    opinion_on,
)
from snellen.kits.bridges.peer_readers import peer_protocol
from snellen.kits.bridges.second_opinions import GROUPED, OpinionTally
from snellen.scoring.scorers.by_form import score as our_score

KEY = TrialKey("pets", "1")
OPTIONS = ("a cat", "a dog", "a horse")
VLMEVALKIT = peer_protocol("vlmevalkit", "vlmevalkit", "peer-exact")
MMMU = peer_protocol("lmms-mmmu", "", "")
INSPECT = peer_protocol("inspect-choice", "", "")


def opinion(
    reply: str | None, *, protocol: Any = VLMEVALKIT, form: Form = Form.CHOICE, answer: str = "a dog", **more: Any
) -> Opinion:
    """Return what both make of one reply; without a reply the call failed."""
    options = OPTIONS if form is Form.CHOICE else ()
    sample = Sample("1", "pets", form, "Which?", options=options, answers=(answer,), group=more.pop("group", None))
    request = Request(KEY, (), marks=tuple("ABC")[: len(options)], shown=options)
    by_file = "verdict" in more
    if "seen" in more:  # what the harness read instead of the reply
        more["reply"] = more.pop("seen")
    detail = {"peer": more} if more else {}
    failure = None if reply is not None else Failure(FailureKind.SERVER, "it broke")
    prediction = Prediction(KEY, text=reply, failure=failure, detail=detail)
    score: Score | None = None if failure else our_score(sample, request, prediction, {})[0]
    return opinion_on(protocol, sample, request, prediction, score, by_file=by_file)


KNOWN = [
    ("B", "", NEITHER),
    ("The answer is (B).", "", NEITHER),
    ("A", "", NEITHER),
    ("B, since everything about the animal in the picture says so", MISREAD, AGAINST),
    ("A, since everything about the animal in the picture says so", MISREAD, NEITHER),
    ("Surely a cat: the others are no match, so not B", MISREAD, FOR),
    ("It is certainly not a dog. What I see is a cat.", MISREAD, NEITHER),
    ("I cannot tell what that is", UNREAD, NEITHER),
    ("", UNREAD, NEITHER),
]
"""Replies to a question whose right answer is B, a dog: what VLMEvalKit's rule and ours make of each, worked out by hand."""


@pytest.mark.parametrize(("reply", "kind", "favour"), KNOWN)
def test_each_known_reply_is_the_disagreement_it_is_known_to_be(reply: str, kind: str, favour: str) -> None:
    found = opinion(reply)
    assert (found.kind, found.favour) == (kind, favour)


@given(st.lists(st.sampled_from(KNOWN), max_size=30))
def test_of_any_made_set_exactly_the_known_misreadings_are_found(known: list[tuple[str, str, str]]) -> None:
    tally = OpinionTally()
    for reply, _, _ in known:
        tally.add(opinion(reply), failed=False)
    counted = tally.described()
    assert counted["kinds"][MISREAD]["count"] == sum(kind == MISREAD for _, kind, _ in known)
    assert counted["kinds"][MISREAD][AGAINST] == sum(favour == AGAINST for _, _, favour in known)
    assert counted["trials"] == len(known)


def test_a_misreading_may_favour_the_model() -> None:
    found = opinion("Surely a cat: the others are no match, so not B")
    assert (found.kind, found.peer_read, found.our_read) == (MISREAD, "B", "A. a cat")
    assert found.favour == FOR


def test_a_failed_call_whose_text_names_a_letter_is_counted_as_an_answer() -> None:
    found = opinion(None, seen="Failed to obtain answer: KeyError B")
    assert (found.kind, found.favour, found.peer_value, found.our_value) == (FAILURE, FOR, 1.0, None)
    left_out = opinion(None, protocol=INSPECT, seen="Error B")
    assert (left_out.kind, left_out.peer_value) == ("", None)


def test_an_empty_cell_is_read_as_the_letters_nan() -> None:
    found = opinion("", seen="nan", answer="an", form=Form.OPEN)
    assert found.peer_value == 0.0
    assert found.kind == UNREAD


def test_a_drawn_letter_is_said_to_be_drawn_whatever_it_hit() -> None:
    found = opinion("hm", protocol=MMMU)
    assert found.kind == DRAWN
    recorded = opinion("hm", protocol=MMMU, verdict=1.0, read="B")
    assert (recorded.kind, recorded.favour, recorded.peer_value) == (DRAWN, FOR, 1.0)


def test_the_verdict_in_the_file_goes_before_the_rule_and_a_judge_is_no_misreading_by_rule() -> None:
    judged = opinion("A four-legged friend that barks", verdict=1.0)
    assert (judged.kind, judged.favour, judged.peer_read) == (READ_INTO, FOR, None)
    assert opinion("The answer is (B).", verdict=0.0).kind == OTHERWISE
    assert opinion("The answer is (B).", verdict=1.0).kind == ""


def test_text_and_yes_and_no_are_compared_too() -> None:
    assert opinion("It is red", form=Form.OPEN, answer="red").kind in (OTHERWISE, "")
    assert opinion("red", form=Form.OPEN, answer="red").kind == ""
    yes = opinion("No, yes: there is one. Yes.", form=Form.YESNO, answer="yes")
    assert yes.kind in (MISREAD, UNREAD)
    assert opinion("Yes.", form=Form.YESNO, answer="yes").kind == ""
    assert opinion("Yes.", form=Form.YESNO, answer="yes", read="Unknown", verdict=0.0).kind in (MISREAD, OTHERWISE)


def test_a_reply_the_harness_has_no_score_for_is_left_out_by_it() -> None:
    assert opinion("B", protocol=peer_protocol("", "", "")).kind == LEFT_OUT


def test_the_steps_lead_from_their_number_to_ours() -> None:
    tally = OpinionTally()
    values = []
    for reply, _, _ in KNOWN:
        found = opinion(reply)
        tally.add(found, failed=False)
        values.append(found.our_worth)
    tally.add(opinion(None, seen="Failed to obtain answer via API."), failed=True)
    counted = tally.described()
    scored = [value for value in values if value is not None]
    assert counted["peer"]["value"] == pytest.approx(3 / 10)
    assert counted["steps"][-1]["after"] == pytest.approx(sum(scored) / len(scored))
    assert counted["peer"]["how"] == "reproduced"
    assert counted["failed"] == 1


def test_copies_of_a_question_count_as_one_group_and_with_an_unread_copy_it_is_not_right() -> None:
    tally = OpinionTally(GROUPED)
    for group, reply in (("1", "B"), ("1", "B"), ("2", "B"), ("2", "A"), ("3", "B"), ("3", "I cannot tell")):
        tally.add(opinion(reply, group=group), failed=False)
    counted = tally.described()
    assert (counted["peer"]["value"], counted["peer"]["n"]) == (pytest.approx(1 / 3), 3)
    ours = counted["ours_of_groups"]
    assert (ours["value"], ours["n"], ours["unscored"], ours["unit"]) == (pytest.approx(1 / 3), 3, 0, "groups")
    assert counted["steps"] == []


def test_nothing_known_is_no_number() -> None:
    tally = OpinionTally()
    tally.add(opinion("B", protocol=peer_protocol("", "", "")), failed=False)
    assert (tally.described()["peer"]["value"], tally.described()["peer"]["how"]) == (None, "unknown")


def test_the_text_of_a_failed_request_is_read_as_the_letter_it_ends_in() -> None:
    options = {"A": "a cat", "B": "a dog", "C": "a horse", "D": "a cow"}
    assert MMMU.choice is not None
    assert MMMU.choice.read("[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout", options) == "D"


def test_splits_are_told_apart_and_a_part_of_the_rows_gives_no_number() -> None:
    tally = OpinionTally()
    for split, reply in (("dev", "B"), ("validation", "A"), ("validation", "B")):
        tally.add(structs.replace(opinion(reply), split=split), failed=False)
    assert tally.described()["splits"] == {
        "dev": {"peer": 1.0, "peer_n": 1, "ours": 1.0, "ours_n": 1},
        "validation": {"peer": 0.5, "peer_n": 2, "ours": 0.5, "ours_n": 2},
    }
    tally.add(opinion("x", protocol=peer_protocol("", "", "")), failed=False)
    assert tally.described()["peer"]["value"] is None
    assert tally.described()["splits"] == {}
