"""Protocols: the reader that is named, the fallback beside our score, maths and typed answers without running them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ConfigError, UsageError
from snellen.core.tasks import Task
from snellen.core.types import Failure, FailureKind, Form, Prediction, Request, Sample, TrialKey
from snellen.kits.bridges import protocol_scorer
from snellen.kits.bridges.math_answers import same_value, stated_answer, value_of
from snellen.kits.bridges.open_rules import OPEN_RULES, normal_form
from snellen.kits.bridges.protocol_scorer import CHOICE_READERS, YESNO_READERS
from snellen.kits.bridges.text_rules import peer_anls, peer_relaxed
from snellen.scoring.protocols.peer_scores import check_fallback, score_with_peer, stated_protocol
from snellen.scoring.scorers.vqa import anls

KEY = TrialKey("t", "1")
OPTIONS = ("red", "blue", "green", "grey")
CHOICE = Sample("1", "t", Form.CHOICE, "Which?", options=OPTIONS, answers=("blue",))
ASKED = Request(KEY, (), marks=("A", "B", "C", "D"), shown=OPTIONS)


def asked(
    reply: str | None, fallback: str = "wrong", sample: Sample = CHOICE, **options: str
) -> dict[str, float | None]:
    failure = Failure(FailureKind.SERVER, "broke") if reply is None else None
    trial = (sample, ASKED if sample.options else Request(KEY, ()), Prediction(KEY, text=reply, failure=failure))
    return {one.metric: one.value for one in score_with_peer(fallback, protocol_scorer.score, trial, options)}


def test_what_is_read_is_the_same_in_both_numbers() -> None:
    assert asked("The answer is (B).", reader="mmmu") == {"accuracy": 1.0, "accuracy_peer": 1.0}
    assert asked("C.", reader="mmmu") == {"accuracy": 0.0, "accuracy_peer": 0.0}


@pytest.mark.parametrize(("fallback", "peer"), [("wrong", 0.0), ("minus-one", -1.0), ("left-out", None)])
def test_what_is_not_read_is_unscored_here_and_counted_there(fallback: str, peer: float | None) -> None:
    assert asked("no idea", fallback, reader="mmmu") == {"accuracy": None, "accuracy_peer": peer}
    assert asked(None, fallback, reader="mmmu") == {"accuracy_peer": peer}


def test_the_random_letter_is_seeded_and_its_share_is_that_of_chance() -> None:
    assert asked("no idea", "random", reader="mmmu") == asked("no idea", "random", reader="mmmu")
    drawn = []
    for number in range(400):
        key = TrialKey("t", str(number))
        trial = (CHOICE, Request(key, (), marks=ASKED.marks, shown=OPTIONS), Prediction(key, text="no idea"))
        own, peer = score_with_peer("random", protocol_scorer.score, trial, {"reader": "mmmu"})
        assert own.value is None
        drawn.append(peer.value)
    assert 70 <= sum(value or 0 for value in drawn) <= 130


def test_the_nearest_option_is_taken_even_by_an_empty_reply() -> None:
    assert asked("blu", "nearest", reader="blink")["accuracy_peer"] == 1.0
    assert asked("", "nearest", reader="blink") == {"accuracy": None, "accuracy_peer": 0.0}


def test_an_unknown_fallback_reader_or_rule_is_refused() -> None:
    with pytest.raises(UsageError, match=r"fallback 'rondom'.*random"):
        check_fallback("rondom", "task 't'")
    with pytest.raises(ConfigError, match=r"score_options\.reader"):
        asked("B", reader="mmu")
    with pytest.raises(ConfigError, match=r"score_options\.open"):
        asked("B", sample=Sample("1", "t", Form.OPEN, "?", answers=("x",)), open="anlss")
    with pytest.raises(ConfigError, match=r"score_options\.yesno"):
        asked("B", sample=Sample("1", "t", Form.YESNO, "?", answers=("yes",)), yesno="popes")


def test_the_readers_of_benchmarks() -> None:
    options = dict(zip("ABCD", OPTIONS, strict=True))
    read = {name: CHOICE_READERS[name] for name in CHOICE_READERS}
    assert read["mmmu-pro"]("Think (A) … Answer: C", options) == "C"
    assert read["mmmu-pro"]("Answer: A or C, so (C)", options) == "C"
    assert read["vlmevalkit-cot"]("So it is.\nAnswer: B", options) == "B"
    assert read["vlmevalkit-cot"]("Answer: A\nAnswer: **D**", options) is None, "two such lines: all is read"
    assert read["vlmevalkit-cot"]("Answer: none of these", options) == "A", "the capital of Answer"
    assert [read["mmstar"](reply, options) for reply in ("b", "(C)", "Option d", "The answer is A", "It is A")] == [
        "B", "C", "D", "A", None,
    ]  # fmt: skip
    assert read["lmms-raw-letter"]("B.", options) is None
    assert read["blink"]("(C)", options) == "C"
    assert read["blink"]("First (A).\n\nThe answer is (B) blue.", options) == "B"
    assert read["blink"]("It is B", options) is None
    assert read["mathvision"]("so \\boxed{blue}", options) == "B"
    assert read["mathvista"]("green", options) == "C"
    assert YESNO_READERS["pope"]("There is a dog") == "Yes"
    assert YESNO_READERS["pope"]("No, there is not.") == "No"


def test_a_read_that_is_no_option_is_wrong_not_unread() -> None:
    assert asked("The answer is B", reader="lmms-first-letter") == {"accuracy": 0.0, "accuracy_peer": 0.0}
    assert asked("B.", reader="lmms-raw-letter") == {"accuracy": None, "accuracy_peer": 0.0}


def judged(rule: str, reply: str, *answers: str, **tags: str) -> float | None:
    return OPEN_RULES[rule](reply, Sample("1", "t", Form.OPEN, "?", answers=answers, tags=dict(tags)))


def test_open_rules_of_the_peers_and_ours() -> None:
    assert judged("mmmu", "The answer is 24.5", "24.5") == 1.0
    assert judged("never", "The answer is 24.5", "24.5") == 0.0  # lmms-eval
    assert judged("vlmevalkit-other", "24.5", "24.5") == 1.0
    assert judged("vlmevalkit-other", "about twenty", "24.5") is None
    assert (judged("relaxed", "1,000", "1000"), judged("relaxed-peers", "1,000", "1000")) == (1.0, 0.0)
    assert (judged("relaxed", "0.0", "0"), judged("relaxed-peers", "0.0", "0")) == (1.0, 0.0)
    assert judged("relaxed-peers", "41", "42") == 1.0
    assert judged("ocrbench", "The sign says STOP\nNOW", "stop now") == 1.0
    assert judged("ocrbench", "x ^ 2", "x^2", dataset="HME100k") == 1.0
    assert judged("ocrbench", "X ^ 2", "x^2", dataset="HME100k") == 0.0
    assert judged("equal-lower", "Left.", "left") == 1.0
    assert judged("vqa", "stop", *["stop"] * 4, *["go"] * 6) == 1.0


def test_mean_relative_accuracy_counts_tolerances() -> None:
    assert judged("mra", "about 10 metres", "10") == 1.0
    assert judged("mra", "12", "10") == 0.7  # within 50, 45, 40, 35, 30, 25 and 20 %
    assert judged("mra", "20", "10") == 0.0
    assert judged("mra", "far away", "10") is None
    assert judged("mra", "0", "0") == 1.0


def test_anls_of_the_peers_keeps_half_and_counts_unfolded_lengths() -> None:
    assert anls("ab", ["ax"]) == 0.0  # the paper: below half
    assert peer_anls("ab", ["ax"]) == 0.5
    assert peer_anls("a  b", ["a b"]) == 1.0
    assert peer_relaxed("50%", ["0.5"])


def test_typed_answers_of_mathvista() -> None:
    float_one = {"answer_type": "float", "precision": "1.0"}
    assert judged("typed", "It is 1.24 m", "1.2", **float_one) == 1.0
    assert judged("typed-lmms", "1.2", "1.2", **float_one) == 0.0  # lmms-eval: every decimal is wrong
    assert judged("typed", "14", "14", answer_type="integer") == 1.0
    assert judged("typed", "nothing", "14", answer_type="integer") is None
    assert judged("typed", "between [2007, 2008]", "[2007, 2008]", answer_type="list") == 1.0
    assert judged("typed-vlmevalkit", "[1]", "[1]", answer_type="list") == 0.0
    assert judged("typed-vlmevalkit", "14", "14", answer_type="integer") == 1.0
    assert judged("typed-vlmevalkit", "13", "14", answer_type="integer") is None  # a wrong one goes to its judge
    assert normal_form("2.75", "float", 1) == str(round(2.75, 1))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/2", 0.5), ("\\frac{1}{2}", 0.5), ("\\frac12", 0.5), ("2^{10}", 1024.0), ("-3 + 5*2", 7.0), ("1,234.5", 1234.5),
        ("\\sqrt{16}", 4.0), ("2\\pi", 6.283185307179586), ("50\\%", 0.5), ("30^\\circ", 30.0), ("(1+2)(3)", 9.0),
        ("\\dfrac{\\sqrt{9}}{\\frac{1}{2}}", 6.0),
    ],
)  # fmt: skip
def test_expressions_have_values(text: str, value: float) -> None:
    assert value_of(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["", "x", "__import__('os')", "1/0", "2^9999", "(" * 500 + "1", "1 2", "sqrt(-1)", "9" * 999]
)
def test_what_is_no_expression_has_no_value(text: str) -> None:
    assert value_of(text) is None


@given(st.text(alphabet="0123456789+-*/^(){}.\\ frac sqrt pi%$", max_size=60))
def test_no_text_raises(text: str) -> None:
    value_of(text)


@given(st.integers(-999, 999), st.integers(1, 99))
def test_a_fraction_is_worth_the_same_in_both_spellings(top: int, bottom: int) -> None:
    assert same_value(f"{top}/{bottom}", f"\\frac{{{top}}}{{{bottom}}}")


def test_what_a_reply_answers_with() -> None:
    assert stated_answer("… so \\boxed{\\frac{1}{2}}") == "\\frac{1}{2}"
    assert stated_answer("Therefore the answer is 12. Because …") == "12"
    assert stated_answer("I choose (C).") == "c"
    assert judged("maths", "The answer is \\frac{2}{4}", "0.5") == 1.0
    assert judged("maths", "The answer is 3", "0.5") == 0.0


def stated(own: float | None, peer: float | None, unscored: int = 0) -> str:
    def shown(value: float | None) -> dict[str, object]:
        return {"value": value, "ci95": None, "n": 4, "unscored": unscored, "failed": 0, "unit": "trials"}

    task = Task("t", {"loader": "card"}, protocol="lmms-eval", fallback="wrong", headline="accuracy", scorers=("peer",))
    found = stated_protocol(task, {"accuracy": shown(own), "accuracy_peer": shown(peer)})
    assert (found["headline"], found["protocol"]["name"]) == ("accuracy", "lmms-eval")
    return str(found["protocol"]["peer"]["why"])


def test_one_sentence_says_why_the_numbers_differ() -> None:
    assert stated(1.0, 1.0).endswith("prints the same: everything was read.")
    assert "prints 50.00 where ours is 100.00" in stated(1.0, 0.5, unscored=4)
    assert "prints 50.00 too, though it counts otherwise" in stated(0.5, 0.5, unscored=4)
    assert "prints 0.00 where ours is nothing" in stated(None, 0.0, unscored=4)
    assert stated_protocol(Task("t", {"loader": "table"}), {}) == {"headline": ""}
    bare = Task("t", {"loader": "card"}, protocol="own")
    both = {name: {"value": 0.5, "ci95": None, "n": 4, "unscored": 0, "failed": 0} for name in ("acc_0.5", "accuracy")}
    assert stated_protocol(bare, both)["headline"] == "accuracy", "as tables choose it, not the first by name"
